//! Runs of SCTP endpoints with one profile: thin streams in both directions, and bulk transfers occasionally.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Route, Seed};
use rexmit_netsim::network::{Context, Direction, HostId, Network, Occurrence};
use rexmit_sctp::recovery::{
    CmtConfig, CongestionControl, Coupling, RecoveryConfig, RetransmissionDestination, ThinConfig,
};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage, Reliability,
};

use super::recorded::{Digest, Recorded};
use super::{Case, Fingerprint, Kind, link, numbers};
use crate::plan::pick;
use crate::watch::{address, second_address};

type Host = Recorded<Endpoint>;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SCTP_PORT: u16 = 5000;
/// The token of a wake-up for a restart; other tokens are numbers of flows.
const RESTART: u64 = u64::MAX;

/// Messages that a host sends at a rate.
#[derive(Clone, Copy, Debug)]
struct Flow {
    host: usize,
    stream: u16,
    interval: Duration,
    bytes: usize,
    begins: Instant,
    unordered: bool,
    reliability: Reliability,
}

struct Run {
    duration: Duration,
    config: EndpointConfig,
    flows: Vec<Flow>,
    /// The host that restarts, and when.
    restart: Option<(Instant, usize)>,
    /// The stream that is singled out, and its mechanisms.
    thin_stream: Option<(u16, ThinConfig)>,
    seed: Seed,
    hosts: [HostId; 2],
    ids: [Option<AssociationId>; 2],
    rng: Rng,
}

pub(super) fn run(profile: &str, case: Case) -> Fingerprint {
    let seed = Seed::from_u64(case.seed).split(case.kind.name());
    let mut rng = seed.split("plan").rng();
    let duration = MS(pick(&mut rng, &[4_000, 12_000, 25_000]));
    let config = config(profile, case.kind, &mut rng);
    let mut network: Network<Host> = Network::new(&seed.split("network"));
    let hosts = [0, 1].map(|host| {
        let homes = if case.kind == Kind::TwoPaths { 2 } else { 1 };
        network.add_host(["a", "b"][host], endpoint(&config, &seed, (host, homes), 0))
    });
    let addresses: [fn(usize, usize) -> IpAddr; 2] = [address, second_address];
    let homes = if case.kind == Kind::TwoPaths { 2 } else { 1 };
    for of_home in &addresses[..homes] {
        add_link(&mut network, hosts, *of_home, &link::schedule(case.kind, &mut rng, duration));
    }
    let flows = flows(case.kind, &mut rng, config.association.extensions.partial_reliability);
    let thin_stream = rng.chance(0.25).then(|| {
        let thin = pick(&mut rng, &[ThinConfig::M1_TO_M4, ThinConfig::INTERACTIVE]);
        (flows[0].stream, thin)
    });
    let restart = (case.kind == Kind::Restart).then(|| {
        let millis = duration.as_millis() as u64;
        (Instant::from_millis(millis / 4 + rng.below(millis / 4)), rng.below(2) as usize)
    });
    let mut run =
        Run { duration, config, flows, restart, thin_stream, seed, hosts, ids: [None; 2], rng };
    run.carry_out(&mut network, homes)
}

fn endpoint(
    config: &EndpointConfig,
    seed: &Seed,
    (host, homes): (usize, usize),
    life: u32,
) -> Host {
    let mut config = config.clone();
    if homes == 2 {
        config.addresses = vec![address(host, 0), second_address(host, 0)];
    }
    let seed = seed.split(&format!("endpoint {host}, life {life}"));
    Recorded::new(Endpoint::new(config, &seed).expect("profiles are valid"))
}

fn add_link(
    network: &mut Network<Host>,
    hosts: [HostId; 2],
    address: fn(usize, usize) -> IpAddr,
    schedule: &link::Schedule,
) {
    let [a, b] = hosts.map(|host| network.host_node(host));
    let (_, [there, back]) = schedule[0].clone();
    let link = network.add_link(a, b, there, back).expect("valid paths");
    for (host, id) in hosts.into_iter().enumerate() {
        network.add_address(id, address(host, 0), link).expect("distinct");
    }
    for (at, [there, back]) in schedule[1..].iter().cloned() {
        for (direction, path) in [(Direction::Forward, there), (Direction::Backward, back)] {
            network.change_path_at(link, direction, at, path).expect("valid paths");
        }
    }
}

fn config(profile: &str, kind: Kind, rng: &mut Rng) -> EndpointConfig {
    let mut recovery = RecoveryConfig::profile(profile).expect("a profile");
    if kind == Kind::TwoPaths {
        use RetransmissionDestination::{Alternate, Asap, Csi, Cwnd, LossRate, Same, Ssthresh};
        let drawn = pick(rng, &[Alternate, Same, Asap, LossRate, Cwnd, Ssthresh, Csi]);
        if !recovery.sctp.lowest_tail {
            recovery.sctp.retransmission_destination = drawn;
        }
        recovery.sctp.potentially_failed_max_retrans = pick(rng, &[None, Some(0), Some(2)]);
        if rng.chance(0.5) {
            let mut cmt = CmtConfig::default()
                .split_fast_retransmit(rng.chance(0.8))
                .cwnd_update(rng.chance(0.8))
                .delayed_ack(rng.chance(0.5))
                .split_buffer(rng.chance(0.3))
                .avoid_blocking(rng.chance(0.3))
                .coupling(pick(rng, &[None, Some(Coupling::ResourcePoolingV2)]));
            if recovery.congestion != CongestionControl::Rfc9260 {
                cmt.coupling = None; // Only windows of RFC 9260 can be coupled.
            }
            recovery.sctp.cmt = Some(cmt);
        }
    }
    let association = AssociationConfig::rfc9260()
        .recovery(recovery)
        .max_packet_bytes(pick(rng, &[1232, 1473]))
        .sack_delay(MS(pick(rng, &[0, 40, 200])))
        .partial_reliability(rng.chance(0.3))
        .heartbeat_interval(pick(rng, &[None, Some(MS(1_000)), Some(MS(30_000))]));
    EndpointConfig::default().port(SCTP_PORT).accept(true).association(Arc::new(association))
}

fn flows(kind: Kind, rng: &mut Rng, is_partial: bool) -> Vec<Flow> {
    let thin = |host, stream, rng: &mut Rng| Flow {
        host,
        stream,
        interval: MS(pick(rng, &[10, 50, 100, 130, 250, 1_000])),
        bytes: pick(rng, &[20, 100, 400]),
        begins: Instant::from_millis(rng.below(300)),
        unordered: rng.chance(0.3),
        reliability: match is_partial && rng.chance(0.5) {
            true => {
                let limits = [
                    Reliability::Timed(MS(150)),
                    Reliability::MaxRetransmissions(0),
                    Reliability::MaxRetransmissions(2),
                ];
                pick(rng, &limits)
            }
            false => Reliability::Full,
        },
    };
    let mut flows = vec![thin(0, 0, rng), thin(1, 0, rng)];
    if rng.chance(0.3) {
        flows.push(thin(0, 1, rng));
    }
    if kind == Kind::Bottleneck || rng.chance(0.2) {
        let bulk = Flow { interval: MS(100), bytes: 12_000, stream: 2, ..thin(0, 2, rng) };
        flows.push(Flow { reliability: Reliability::Full, unordered: false, ..bulk });
    }
    flows
}

impl Run {
    fn carry_out(&mut self, network: &mut Network<Host>, homes: usize) -> Fingerprint {
        self.connect(Instant::ZERO, network.machine_mut(self.hosts[0]));
        for (index, flow) in self.flows.iter().enumerate() {
            network.wake_at(self.hosts[flow.host], flow.begins, index as u64);
        }
        if let Some((at, host)) = self.restart {
            network.wake_at(self.hosts[host], at, RESTART);
        }
        let end = Instant::ZERO + self.duration + MS(8_000);
        let app = |context: &mut Context<'_, Host>, occurrence| {
            self.on_occurrence(context, occurrence, homes);
        };
        network.run_until(end, app).expect("no livelock");
        self.fingerprint(network)
    }

    fn fingerprint(&self, network: &Network<Host>) -> Fingerprint {
        let machines = self.hosts.map(|host| network.machine(host));
        let mut statistics = Digest::default();
        for (machine, id) in machines.iter().zip(self.ids) {
            if let Some(known) = id.and_then(|id| machine.machine.statistics(id)) {
                statistics.add(&numbers::of_association(&known));
            }
        }
        Fingerprint {
            packets: machines.iter().map(|machine| machine.sent.packets()).sum(),
            bytes: Digest::of(&machines.map(|machine| machine.sent.value())).value(),
            statistics: statistics.value(),
        }
    }

    fn connect(&mut self, now: Instant, host: &mut Host) {
        let at = |host| SocketAddr::new(address(host, 0), 0);
        let route = Route { local: at(0), remote: at(1) };
        let id = host.machine.connect(now, route, SCTP_PORT).expect("a new one");
        self.ids[0] = Some(id);
    }

    fn on_occurrence(
        &mut self,
        context: &mut Context<'_, Host>,
        occurrence: Occurrence<(AssociationId, Event)>,
        homes: usize,
    ) {
        let now = context.now();
        let host = usize::from(context.host() == self.hosts[1]);
        match occurrence {
            Occurrence::Wake(RESTART) => {
                let sent = context.machine().sent;
                let fresh = endpoint(&self.config, &self.seed, (host, homes), 1);
                *context.machine() = Recorded { sent, ..fresh };
                self.ids[host] = None;
                if host == 0 {
                    self.connect(now, context.machine());
                }
            }
            Occurrence::Wake(flow) => self.send(context, flow),
            Occurrence::Event((id, event)) => {
                self.on_event(now, context.machine(), (host, id), &event);
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_, Host>, number: u64) {
        let now = context.now();
        let flow = self.flows[number as usize];
        if let Some(id) = self.ids[flow.host] {
            let message = OutboundMessage::new(flow.stream, vec![number as u8; flow.bytes])
                .unordered(flow.unordered)
                .reliability(flow.reliability);
            // A full buffer, or an association that is not there yet, is a part of the run.
            let _ = context.machine().machine.send(now, id, message);
        }
        // Neither exactly periodic nor far from it.
        let jitter = self.rng.below(1 + flow.interval.as_micros() as u64 / 4);
        let next = now + flow.interval + Duration::from_micros(jitter);
        if next < Instant::ZERO + self.duration {
            context.wake_at(self.hosts[flow.host], next, number);
        }
    }

    fn on_event(
        &mut self,
        now: Instant,
        host: &mut Host,
        (number, id): (usize, AssociationId),
        event: &Event,
    ) {
        match event {
            Event::Connected { .. } => {
                self.ids[number] = Some(id);
                if let Some((stream, thin)) = self.thin_stream {
                    let set = host.machine.set_stream_thin(now, id, stream, Some(thin));
                    set.expect("the stream is there");
                }
            }
            Event::Readable => while host.machine.receive(now, id).is_some() {},
            Event::Closed(_) if self.ids[number] == Some(id) => self.ids[number] = None,
            _ => {}
        }
    }
}
