//! The flows of a scenario: their machines and their meters. [`tell`](super::tell) reports the
//! measurements after a run.

use std::net::{IpAddr, SocketAddr};

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Route, Seed};
use rexmit_netsim::network::Network;
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::source::{UdpSender, UdpSink, WebClient};
use rexmit_qlog::{About, MakeLog, VantagePoint};
use rexmit_sctp::Endpoint as Sctp;
use rexmit_tcp::Endpoint as Tcp;

use super::connection::{Connection, PORT, TRANSFER_BUFFER_BYTES, sctp, tcp};
use super::kernel;
use super::meter::{MessageMeter, Probe, RateMeter, SharedMeter};
use super::problem::{Problem, Problems};
use super::rival;
use super::spec::{
    BulkFlow, Encapsulation, NetworkSpec, Over, Scenario, ThinFlow, TransportKind, UdpFlow, WebFlow,
};
use super::topology::{Pair, Place, Station};
use super::traffic::TimedSource;
use super::words::{Time, Words};
use crate::hosts::{
    Bulk, BulkSender, Host, KernelMachine, KernelSctp, KernelTcp, Protocol, Sink, Thin, ThinPlan,
    ThinReceiver, ThinSender, Transport, Unordered, WebClients, WebLoad, WebServer, WithTransfer,
};
use crate::kernel::Kernel;
use crate::measure::CopyLedger;
use crate::rivals::{ARE_BUILT, Rival, RivalEndpoint, RivalWithTransfer, Role};

/// A flow of a run, or one of several connections that share a name and are measured together.
pub(super) struct Flow {
    pub(super) name: String,
    /// The machines of the flow, until they are added to the network.
    pub(super) station: Option<Station>,
    pub(super) kind: Kind,
}

/// A flow and its meters.
pub(super) enum Kind {
    Thin(Carrier, ThinPlan, Probe),
    /// Without a probe, only its goodput is measured.
    Bulk(Carrier, Option<Probe>),
    Web,
    Udp,
}

/// The transport that carries messages.
#[derive(Clone, Copy)]
pub(super) enum Carrier {
    Sctp,
    UnorderedSctp,
    /// SCTP, with a transfer on another stream.
    SctpWithTransfer,
    Tcp,
    Rival,
    /// Another implementation, with messages and a transfer.
    RivalWithTransfer,
    KernelSctp,
    KernelTcp,
}

/// The transports of a kernel.
pub(super) type KernelSctpHost = KernelMachine<KernelSctp>;
pub(super) type KernelTcpHost = KernelMachine<KernelTcp>;

/// SCTP with a transfer on another stream.
pub(super) type SctpWithTransfer = WithTransfer<RateMeter>;
/// Another implementation with a transfer.
pub(super) type OtherWithTransfer = RivalWithTransfer<RateMeter>;

impl Carrier {
    const fn of(transport: TransportKind, is_unordered: bool) -> Self {
        match transport {
            TransportKind::Sctp if is_unordered => Self::UnorderedSctp,
            TransportKind::Sctp => Self::Sctp,
            TransportKind::Tcp => Self::Tcp,
            _ => Self::Rival,
        }
    }

    const fn of_kernel(transport: TransportKind) -> Self {
        match transport {
            TransportKind::Tcp => Self::KernelTcp,
            _ => Self::KernelSctp,
        }
    }

    /// Whether both ends are hosts of a kernel.
    pub(super) const fn is_of_kernel(self) -> bool {
        matches!(self, Self::KernelSctp | Self::KernelTcp)
    }
}

/// All flows of `scenario` in their order, without those that have problems.
pub(super) fn flows(
    scenario: &Scenario,
    seed: &Seed,
    kernel: &mut dyn Kernel,
    logs: Option<&dyn MakeLog>,
    problems: &mut Problems,
) -> Vec<Flow> {
    let mut maker = Maker { scenario, seed, kernel, logs, flows: Vec::new(), problems };
    for (name, flow) in &scenario.thin {
        let way = Way::new(flow.over(scenario), flow.edge.as_ref());
        maker.problems.set_place(format!("thin.{name}"));
        if flow.is_of_rival(maker.problems) && !ARE_BUILT {
            continue;
        }
        let meter = SharedMeter::new(MessageMeter::new(scenario, flow));
        for n in 0..flow.connections() {
            let seed = connection_seed(seed, name, n);
            let make = |part: &mut Part<'_>| part.thin(flow, n, meter.clone());
            maker.add_with(seed, ("thin", name), way, make);
        }
    }
    for (name, flow) in &scenario.bulk {
        let way = Way::new(flow.over(scenario), flow.edge.as_ref());
        maker.add("bulk", name, way, |part| part.bulk(flow));
    }
    for (name, flow) in &scenario.web {
        let way = Way::new(flow.over.unwrap_or_default(), flow.edge.as_ref());
        maker.add("web", name, way, |part| part.web(flow));
    }
    for (name, flow) in &scenario.udp {
        let way = Way::new(flow.over.unwrap_or_default(), flow.edge.as_ref());
        maker.add("udp", name, way, |part| part.udp(flow));
    }
    maker.flows
}

/// The seed of a connection of a thin flow.
pub(super) fn connection_seed(seed: &Seed, name: &str, connection: u32) -> Seed {
    match connection {
        0 => seed.split(&format!("thin {name}")),
        n => seed.split(&format!("thin {name} {n}")),
    }
}

/// The plan of connection `n` of a thin flow, relative to the connection's establishment.
pub(super) fn thin_plan(
    scenario: &Scenario,
    flow: &ThinFlow,
    n: u32,
    seed: &Seed,
) -> Result<ThinPlan, Problem> {
    let source = flow.traffic.source(&seed.split("traffic"));
    let source = source.map_err(|error| Problem::of("traffic", error))?;
    Ok(ThinPlan::new(source, Instant::ZERO + (scenario.end() - flow.start_of(n))))
}

/// The attachment of a flow to its networks.
#[derive(Clone, Copy)]
struct Way<'a> {
    over: Over,
    edge: Option<&'a Words<PathConfig>>,
}

impl<'a> Way<'a> {
    fn new(over: Over, edge: Option<&'a Words<PathConfig>>) -> Self {
        Self { over, edge }
    }

    /// The edge path on each network.
    fn edges(self, scenario: &Scenario) -> Vec<PathConfig> {
        let of = |network: &NetworkSpec| {
            let edge = self.edge.or(network.edge.as_ref());
            edge.map_or_else(PathConfig::default, |edge| (**edge).clone())
        };
        scenario.networks().map(|(_, network)| of(network)).collect()
    }
}

/// Creates the flows, one after the other.
struct Maker<'a> {
    scenario: &'a Scenario,
    seed: &'a Seed,
    kernel: &'a mut dyn Kernel,
    logs: Option<&'a dyn MakeLog>,
    flows: Vec<Flow>,
    problems: &'a mut Problems,
}

/// The transports of both ends of one flow.
struct Part<'a> {
    /// The name of the flow.
    name: &'a str,
    scenario: &'a Scenario,
    seed: Seed,
    kernel: &'a mut dyn Kernel,
    /// Makes the log of the sender, and its name.
    log: Option<(&'a dyn MakeLog, String)>,
    place: Place,
    problems: &'a mut Problems,
}

/// Sender, receiver, and their meters.
type Made = Result<(Host, Host, Kind), Problem>;

impl Maker<'_> {
    fn add(
        &mut self,
        kind: &str,
        name: &str,
        way: Way<'_>,
        make: impl FnOnce(&mut Part<'_>) -> Made,
    ) {
        let seed = self.seed.split(&format!("{kind} {name}"));
        self.add_with(seed, (kind, name), way, make);
    }

    fn add_with(
        &mut self,
        seed: Seed,
        (kind, name): (&str, &str),
        way: Way<'_>,
        make: impl FnOnce(&mut Part<'_>) -> Made,
    ) {
        let Self { scenario, kernel, logs, flows, problems, .. } = self;
        problems.set_place(format!("{kind}.{name}"));
        if way.over != Over::First && scenario.second_network.is_none() {
            problems.add("over", "there is one network: give `second_network`, or leave it out");
        }
        let place = scenario.place(flows.len(), way.over);
        let before = problems.len();
        let number = flows.iter().rev().take_while(|flow| flow.name == name).count();
        let log = logs.map(|logs| (logs, format!("{kind}-{name}-{number}")));
        let kernel = &mut **kernel;
        match make(&mut Part { name, scenario, seed, kernel, log, place, problems }) {
            // The endpoint only repeats a problem of the configuration that is already reported.
            _ if problems.len() > before => {}
            Ok((sender, receiver, kind)) => {
                let (name, over, edges) = (name.to_owned(), way.over, way.edges(scenario));
                let station = Station { name: name.clone(), sender, receiver, over, edges };
                flows.push(Flow { name, station: Some(station), kind });
            }
            Err(problem) => problems.push(problem),
        }
    }
}

impl Part<'_> {
    fn thin(&mut self, flow: &ThinFlow, n: u32, meter: SharedMeter) -> Made {
        flow.check_bounds(self.scenario, self.problems);
        let plan = thin_plan(self.scenario, flow, n, &self.seed)?;
        let all = plan.clone();
        let thin = Thin {
            start: flow.start_of(n),
            stays_open: true,
            waits_for_connection: true,
            ..Thin::new(at(self.place.sender, 0), at(self.place.receiver, PORT))
        };
        let carrier = self.carrier(flow);
        let (sender, receiver, probe) = match carrier {
            Carrier::SctpWithTransfer => {
                let (sender, receiver) = self.sctp_with_transfer(flow)?;
                let hosts = thin_hosts([sender, receiver], thin, plan, meter);
                // The trace does not distinguish the streams.
                (hosts.0, hosts.1, Probe::new(0, CopyLedger::default()))
            }
            Carrier::Sctp => {
                let (sender, receiver, probe) = self.sctp(&flow.connection())?;
                let hosts = thin_hosts([sender, receiver], thin, plan, meter);
                (hosts.0, hosts.1, probe)
            }
            Carrier::UnorderedSctp => {
                let (sender, receiver, probe) = self.sctp(&flow.connection())?;
                let hosts = thin_hosts([sender, receiver].map(Unordered), thin, plan, meter);
                (hosts.0, hosts.1, probe)
            }
            Carrier::Tcp => {
                let (sender, receiver, probe) = self.tcp(&flow.connection())?;
                let hosts = thin_hosts([sender, receiver], thin, plan, meter);
                (hosts.0, hosts.1, probe)
            }
            Carrier::RivalWithTransfer => {
                let beside = |end| {
                    RivalWithTransfer::new(end, self.scenario.rate_meter(flow.start.as_ref()))
                };
                let ends = self.rival(flow)?.map(beside);
                let hosts = thin_hosts(ends, thin, plan, meter);
                (hosts.0, hosts.1, Probe::new(0, CopyLedger::default()))
            }
            Carrier::Rival => {
                let hosts = thin_hosts(self.rival(flow)?, thin, plan, meter);
                // Another implementation has no trace.
                (hosts.0, hosts.1, Probe::new(0, CopyLedger::default()))
            }
            Carrier::KernelSctp => {
                let ends = self.of_kernel::<KernelSctp>(&flow.connection(), flow.unordered)?;
                let hosts = thin_hosts(ends, thin, plan, meter);
                (hosts.0, hosts.1, Probe::new(0, CopyLedger::default()))
            }
            Carrier::KernelTcp => {
                let ends = self.of_kernel::<KernelTcp>(&flow.connection(), false)?;
                let hosts = thin_hosts(ends, thin, plan, meter);
                (hosts.0, hosts.1, Probe::new(0, CopyLedger::default()))
            }
        };
        let kind = Kind::Thin(carrier, all, probe);
        if self.check_encapsulation(flow) {
            return Ok((sender.over_udp(), receiver.over_udp(), kind));
        }
        Ok((sender, receiver, kind))
    }

    fn carrier(&mut self, flow: &ThinFlow) -> Carrier {
        if self.scenario.is_of_kernel(self.name) {
            return Carrier::of_kernel(flow.transport);
        }
        if !flow.transfer {
            return Carrier::of(flow.transport, flow.unordered);
        }
        if flow.transport == TransportKind::Tcp || flow.connections() > 1 {
            self.problems.add(
                "transfer",
                "it is for one association or connection with streams: leave it out",
            );
        }
        if flow.rival().is_some() { Carrier::RivalWithTransfer } else { Carrier::SctpWithTransfer }
    }

    /// Creates both ends of an SCTP flow that shares its association with a greedy transfer.
    fn sctp_with_transfer(
        &mut self,
        flow: &ThinFlow,
    ) -> Result<(SctpWithTransfer, SctpWithTransfer), Problem> {
        self.refuse_second_network();
        let ends = flow.connection().sctp(self.problems);
        let end = |config, name| {
            let endpoint = sctp(config, Vec::new(), &self.seed.split(name))?;
            let meter = self.scenario.rate_meter(flow.start.as_ref());
            Ok(WithTransfer::new(endpoint, flow.unordered, TRANSFER_BUFFER_BYTES, meter))
        };
        Ok((end(ends.sender, "sender")?, end(ends.receiver, "receiver")?))
    }

    /// Returns whether the packets of `flow` are encapsulated in UDP. Reports a problem if they cannot be.
    fn check_encapsulation(&mut self, flow: &ThinFlow) -> bool {
        let is_wanted = flow.encapsulation == Encapsulation::Udp;
        if is_wanted && flow.transport == TransportKind::Tcp {
            self.problems.add("encapsulation", "it is for SCTP: leave it out");
        }
        let is_there_already = flow.rival().is_some_and(Rival::is_over_udp);
        is_wanted && !is_there_already
    }

    fn bulk(&mut self, flow: &BulkFlow) -> Made {
        rival::not_of_rivals(flow.transport)?;
        let bulk = Bulk {
            start: starts(flow.start.as_ref()),
            ..Bulk::new(at(self.place.sender, 0), at(self.place.receiver, PORT))
        };
        let meter = self.scenario.rate_meter(flow.start.as_ref());
        let carrier = if self.scenario.is_of_kernel(self.name) {
            Carrier::of_kernel(flow.transport)
        } else {
            Carrier::of(flow.transport, flow.unordered)
        };
        let (sender, receiver, probe) = match carrier {
            Carrier::Sctp | Carrier::UnorderedSctp | Carrier::SctpWithTransfer => {
                let (sender, receiver, probe) = self.sctp(&flow.connection())?;
                let bulk = Bulk { write_bytes: flow.connection().payload_bytes(), ..bulk };
                let (sender, receiver) = if flow.unordered {
                    bulk_hosts([sender, receiver].map(Unordered), bulk, meter)
                } else {
                    bulk_hosts([sender, receiver], bulk, meter)
                };
                (sender, receiver, probe)
            }
            Carrier::Tcp | Carrier::Rival | Carrier::RivalWithTransfer => {
                let (sender, receiver, probe) = self.tcp(&flow.connection())?;
                let (sender, receiver) = bulk_hosts([sender, receiver], bulk, meter);
                (sender, receiver, probe)
            }
            Carrier::KernelSctp => {
                let ends = self.of_kernel::<KernelSctp>(&flow.connection(), flow.unordered)?;
                let bulk = Bulk { write_bytes: flow.connection().payload_bytes(), ..bulk };
                let (sender, receiver) = bulk_hosts(ends, bulk, meter);
                (sender, receiver, Probe::new(0, CopyLedger::default()))
            }
            Carrier::KernelTcp => {
                let ends = self.of_kernel::<KernelTcp>(&flow.connection(), false)?;
                let (sender, receiver) = bulk_hosts(ends, bulk, meter);
                (sender, receiver, Probe::new(0, CopyLedger::default()))
            }
        };
        Ok((sender, receiver, Kind::Bulk(carrier, (!flow.background).then_some(probe))))
    }

    /// Creates both ends of an SCTP flow, and a probe for the sender.
    fn sctp(&mut self, connection: &Connection<'_>) -> Result<(Sctp, Sctp, Probe), Problem> {
        let ends = connection.sctp(self.problems);
        let mut probe = Probe::new(ends.sender.max_packet_bytes, CopyLedger::of_sctp());
        let mut addresses = [Vec::new(), Vec::new()];
        if let Some([from, to]) = self.place.second {
            probe = probe.with_paths();
            addresses = [vec![self.place.sender, from], vec![self.place.receiver, to]];
        }
        let [of_sender, of_receiver] = addresses;
        let mut sender = sctp(ends.sender, of_sender, &self.seed.split("sender"))?;
        sender.set_trace(Some(self.traced("sctp", probe.sink())));
        Ok((sender, sctp(ends.receiver, of_receiver, &self.seed.split("receiver"))?, probe))
    }

    /// `sink`, and the log of the sender if there is to be one.
    fn traced(&self, protocol: &'static str, sink: Box<dyn TraceSink>) -> Box<dyn TraceSink> {
        let log = self.log.as_ref().and_then(|(logs, name)| {
            let about = About::new(name.clone()).protocol(protocol);
            logs.log(name, &about.vantage_point(VantagePoint::Client))
        });
        match log {
            Some(log) => Box::new(vec![sink, log.sink()]),
            None => sink,
        }
    }

    /// Creates both ends of a TCP flow.
    fn tcp(&mut self, connection: &Connection<'_>) -> Result<(Tcp, Tcp, Probe), Problem> {
        self.refuse_second_network();
        let ends = connection.tcp(self.problems);
        let probe = Probe::new(ends.sender.mss.into(), CopyLedger::default());
        let mut sender = tcp(ends.sender, &self.seed.split("sender"))?;
        sender.set_trace(Some(self.traced("tcp", probe.sink())));
        Ok((sender, tcp(ends.receiver, &self.seed.split("receiver"))?, probe))
    }

    /// Creates both ends of a flow over another implementation.
    fn rival(&mut self, flow: &ThinFlow) -> Result<[RivalEndpoint; 2], Problem> {
        self.refuse_second_network();
        let rival = flow.rival().ok_or_else(|| Problem::of("profile", "no such profile"))?;
        let new = if flow.transfer { RivalEndpoint::with_transfer } else { RivalEndpoint::new };
        let end = |role, name| {
            new(rival, role, flow.unordered, &self.seed.split(name))
                .map_err(|error| Problem::of("", error))
        };
        Ok([end(Role::Connects, "sender")?, end(Role::Accepts, "receiver")?])
    }

    /// Creates both ends of a flow between hosts of the kernel.
    fn of_kernel<P: Protocol>(
        &mut self,
        connection: &Connection<'_>,
        is_unordered: bool,
    ) -> Result<[KernelMachine<P>; 2], Problem> {
        self.refuse_second_network();
        let flow = (self.name, self.scenario);
        let hosts = kernel::hosts(self.kernel, flow, (connection, is_unordered), self.place)?;
        Ok(hosts.map(KernelMachine::new))
    }

    /// Reports a problem if the flow uses both networks, because TCP and UDP have one address.
    fn refuse_second_network(&mut self) {
        if self.place.second.is_some() {
            self.problems.add("over", "`both` is for SCTP: choose `first` or `second`");
        }
    }

    fn web(&mut self, flow: &WebFlow) -> Made {
        self.refuse_second_network();
        let default = WebClient::default();
        let client = WebClient {
            min_bytes: flow.min_bytes.unwrap_or(default.min_bytes),
            mean_bytes: flow.mean_bytes.unwrap_or(default.mean_bytes),
            max_bytes: flow.max_bytes.unwrap_or(default.max_bytes),
            mean_interval: flow.interval.as_ref().map_or(default.mean_interval, |time| ***time),
            start: starts(flow.start.as_ref()),
            stop: default.stop,
        };
        let clients = 0..flow.count.unwrap_or(WebFlow::CLIENTS);
        let sources = clients.map(|n| client.source(&self.seed.split(&format!("client {n}"))));
        let sources: Result<Vec<_>, _> = sources.collect();
        let sources = sources.map_err(|error| Problem::of("mean_bytes", error))?;
        let ends = flow.connection().tcp(self.problems);
        let server = tcp(ends.sender, &self.seed.split("server"))?;
        let clients = tcp(ends.receiver, &self.seed.split("clients"))?;
        let load = WebLoad::new(at(self.place.receiver, 0), at(self.place.sender, PORT));
        let server = Host::new(server, WebServer::<Tcp>::new());
        let clients = Host::new(clients, WebClients::<Tcp, _>::new(load, sources));
        Ok((server, clients, Kind::Web))
    }

    fn udp(&mut self, flow: &UdpFlow) -> Made {
        self.refuse_second_network();
        let source = flow.traffic.source(&self.seed.split("traffic"));
        let source = source.map_err(|error| Problem::of("traffic", error))?;
        let (start, end) = (starts(flow.start.as_ref()), self.scenario.end());
        let from = at(self.place.sender, PORT);
        let route = Route { local: from, remote: at(self.place.receiver, PORT) };
        let packet_bytes = flow.packet_bytes.unwrap_or(UdpFlow::PACKET_BYTES);
        let sender = UdpSender::new(route, TimedSource::new(source, start, end), packet_bytes);
        Ok((Host::of(sender), Host::of(UdpSink::new(from)), Kind::Udp))
    }
}

fn thin_hosts<T: Transport>(
    [sender, receiver]: [T; 2],
    thin: Thin,
    plan: ThinPlan,
    meter: SharedMeter,
) -> (Host, Host) {
    let sender = Host::new(sender, ThinSender::<T>::new(thin, plan.clone()));
    (sender, Host::new(receiver, ThinReceiver::<T, _>::with_gauge(plan, meter)))
}

fn bulk_hosts<T: Transport>(
    [sender, receiver]: [T; 2],
    bulk: Bulk,
    meter: RateMeter,
) -> (Host, Host) {
    let sender = Host::new(sender, BulkSender::new(bulk));
    (sender, Host::new(receiver, Sink::<T, _>::with_counter(meter)))
}

fn at(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

fn starts(start: Option<&Words<Time>>) -> Instant {
    Instant::ZERO + start.map_or_else(Default::default, |start| ***start)
}

/// The message of a panic that cannot occur: the host runs the program that was passed to it.
pub(super) const PUT_THERE: &str = "the program was put there";

impl Flow {
    /// The probe of its sender, if it has one.
    pub(super) const fn probe(&self) -> Option<&Probe> {
        match &self.kind {
            Kind::Thin(_, _, probe) => Some(probe),
            Kind::Bulk(_, probe) => probe.as_ref(),
            Kind::Web | Kind::Udp => None,
        }
    }

    /// Whether both its ends are hosts of a kernel.
    pub(super) const fn is_of_kernel(&self) -> bool {
        match self.kind {
            Kind::Thin(carrier, ..) | Kind::Bulk(carrier, _) => carrier.is_of_kernel(),
            Kind::Web | Kind::Udp => false,
        }
    }

    /// Whether all its data has arrived, or can no longer arrive.
    pub(super) fn is_through(&self, network: &Network<Host>, pair: Pair) -> bool {
        match &self.kind {
            Kind::Thin(Carrier::Sctp, ..) => is_through::<Sctp>(network, pair),
            Kind::Thin(Carrier::UnorderedSctp, ..) => is_through::<Unordered>(network, pair),
            Kind::Thin(Carrier::SctpWithTransfer, ..) => {
                is_through::<SctpWithTransfer>(network, pair)
            }
            Kind::Thin(Carrier::Tcp, ..) => is_through::<Tcp>(network, pair),
            Kind::Thin(Carrier::Rival, ..) => is_through::<RivalEndpoint>(network, pair),
            Kind::Thin(Carrier::RivalWithTransfer, ..) => {
                is_through::<OtherWithTransfer>(network, pair)
            }
            Kind::Thin(Carrier::KernelSctp, ..) => is_through::<KernelSctpHost>(network, pair),
            Kind::Thin(Carrier::KernelTcp, ..) => is_through::<KernelTcpHost>(network, pair),
            Kind::Bulk(..) | Kind::Web | Kind::Udp => true,
        }
    }

    /// The messages of a thin flow.
    pub(super) fn plan(&self) -> Option<&ThinPlan> {
        match &self.kind {
            Kind::Thin(_, plan, _) => Some(plan),
            Kind::Bulk(..) | Kind::Web | Kind::Udp => None,
        }
    }
}

fn is_through<T: Transport>(network: &Network<Host>, pair: Pair) -> bool {
    let sender = network.machine(pair.sender).program::<ThinSender<T>>().expect(PUT_THERE);
    let receiver = thin_receiver::<T>(network, pair);
    let has_ended = sender.is_broken() || receiver.ended_gracefully().is_some();
    has_ended || sender.has_sent_all() && receiver.delivered() >= sender.sent()
}

pub(super) fn thin_receiver<T: Transport>(
    network: &Network<Host>,
    pair: Pair,
) -> &ThinReceiver<T, SharedMeter> {
    network.machine(pair.receiver).program().expect(PUT_THERE)
}
