//! Comparison of strategies for two paths between the same hosts, one of which fails.
//!
//! The messages of a captured trace go from a server to its clients as in comparisons in real time,
//! but in virtual time, so that a run is fast and the same seed gives the same figures. Each
//! strategy has its own networks, one per client, in which the n-th packet of a link is lost for
//! every strategy or for none. From [`fails_at`](TwoPaths::fails_at) on, the first path loses every
//! packet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::{BuildError, Direction, LinkId, Livelock, Network};
use rexmit_netsim::path::{Loss, PathConfig};
use rexmit_netsim::traffic::trace::Message;
use rexmit_qlog::{About, MakeLog};
use rexmit_sctp::recovery::{CmtConfig, RecoveryConfig, SctpConfig};
use rexmit_sctp::{AssociationConfig, Endpoint, EndpointConfig};
use thiserror::Error;

use crate::hosts::{Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender, set_ip_protocols};
use crate::link::Link;
use crate::load::Load;
use crate::measure::{Comparison, Counters, MessageRecord, Recorder, Recording, Run};

/// The strategies that are compared, each with a one-line description.
pub const WAYS: [(&str, &str); 5] = [
    ("failover", "one path until it has failed, then the other (RFC 9260 §6.4, §8.2)"),
    (
        "failover-pf",
        "as failover, but new data uses the other path after the first timeout (RFC 7829)",
    ),
    ("all-paths", "new data over both at once (CMT: SFR, CUC, DAC)"),
    ("all-paths-pf", "as all-paths, but no new data over a path after its first timeout"),
    ("one-path", "one address on each side"),
];

/// The addresses of both hosts on each path.
const ADDRESSES: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2))],
    [IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 2, 0, 2))],
];
const PORT: u16 = 5000;
/// Time limit for delivering outstanding data at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval of the checks whether everything has arrived.
const STEP: Duration = Duration::from_secs(1);
/// Bytes of the IP header of each packet.
const IP_BYTES: u64 = 20;

/// The plan of the run.
#[derive(Clone, Debug)]
pub struct TwoPaths {
    /// The messages.
    pub load: Load,
    /// Each of the two links between server and clients.
    pub link: Link,
    /// When the first link fails permanently.
    pub fails_at: Duration,
    /// The seed of the links.
    pub seed: u64,
    /// Makes the logs of the servers, one for each strategy and client.
    pub logs: Option<Arc<dyn MakeLog>>,
}

/// Why the comparison cannot be made.
#[derive(Debug, Error)]
pub enum TwoPathsError {
    /// The link is invalid.
    #[error(transparent)]
    Link(#[from] BuildError),
    /// An endless loop of events at one instant.
    #[error(transparent)]
    Livelock(#[from] Livelock),
}

/// A strategy for two addresses.
#[derive(Clone, Copy, Debug)]
struct FailoverRule {
    name: &'static str,
    about: &'static str,
}

impl FailoverRule {
    fn recovery(self) -> RecoveryConfig {
        let is_pf = self.name.ends_with("-pf");
        let is_cmt = self.name.starts_with("all-paths");
        let cmt = is_cmt.then_some(CmtConfig::ON);
        let sctp =
            SctpConfig::default().potentially_failed_max_retrans(is_pf.then_some(0)).cmt(cmt);
        RecoveryConfig::rfc9260().with_sctp(sctp)
    }

    fn paths(self) -> usize {
        if self.name == "one-path" { 1 } else { 2 }
    }
}

impl TwoPaths {
    /// Runs all strategies.
    ///
    /// # Errors
    /// If the link is invalid.
    pub fn run(&self) -> Result<Comparison, TwoPathsError> {
        let mut comparison = self.describe();
        for (name, about) in WAYS {
            comparison = comparison.with_run(&self.run_rule(FailoverRule { name, about })?);
        }
        Ok(comparison)
    }

    fn describe(&self) -> Comparison {
        let Load { name, flows, duration } = &self.load;
        let seconds = |duration: Duration| format!("{} s", duration.as_secs_f64());
        let failure = seconds(self.fails_at);
        let title = format!(
            "{name}, from a server to its clients over two paths of {}, of which the first fails at \
             {failure}",
            self.link
        );
        let comparison = Comparison::new(title, self.seed)
            .with("traffic", format!("trace {name}, server to client"))
            .with("clients", flows.len().to_string())
            .with("duration", seconds(*duration))
            .with("the first path fails at", failure)
            .with("time", "virtual");
        let parameters = self.link.parameters().into_iter();
        parameters
            .fold(comparison, |comparison, (name, value)| comparison.with(name, value))
            .with("on the wire", "SCTP packets with their IPv4 headers, both ways")
    }

    fn run_rule(&self, rule: FailoverRule) -> Result<Run, TwoPathsError> {
        let mut run = Run {
            profile: rule.name.to_owned(),
            about: rule.about.to_owned(),
            ended: Instant::ZERO + self.load.duration,
            ..Run::default()
        };
        for (number, messages) in (0..).zip(&self.load.flows) {
            let flow = Flow { rule, number, messages };
            self.run_flow(&flow, &mut run)?;
        }
        run.trace.events.sort_by_key(|event| event.at);
        Ok(run)
    }

    /// Runs one client, and adds its measurements to `run`.
    fn run_flow(&self, flow: &Flow<'_>, run: &mut Run) -> Result<(), TwoPathsError> {
        let seed = Seed::from_u64(self.seed).split(&format!("client {}", flow.number));
        let recorder = Recorder::default();
        let end = Instant::ZERO + self.load.duration;
        let [server, client] = flow.hosts(end, &seed, self.sink(flow, &recorder));
        let mut network = Network::new(&seed.split("network"));
        let server = network.add_host("server", server);
        let client = network.add_host("client", client);
        let [a, b] = [server, client].map(|host| network.host_node(host));
        let mut links = Vec::new();
        for [from, to] in ADDRESSES {
            let link = network.add_link(a, b, self.link.path(), self.link.path())?;
            network.add_address(server, from, link)?;
            network.add_address(client, to, link)?;
            links.push(link);
        }
        self.fail(&mut network, links[0])?;
        set_ip_protocols(&mut network, [server, client]);
        let mut counters = Counters::default();
        while network.now() < end
            || (network.now() < end + DRAIN_TIMEOUT && !flow.is_through(network.machine(client)))
        {
            let next = network.now() + STEP;
            network.run_until(next, |_, _| {})?;
            // A closed association has no statistics any more.
            counters = flow.counters(network.machine(server)).unwrap_or(counters);
        }
        run.counters += counters;
        run.ended = run.ended.max(network.now());
        for host in [server, client] {
            let stats = network.host_stats(host);
            let bytes = stats.bytes_out + IP_BYTES * stats.packets_out;
            run.counters.on_wire(stats.packets_out, bytes);
        }
        run.messages.extend(flow.records(network.machine(client)));
        let Recording { events, dropped_events } = recorder.take();
        run.trace.dropped_events += dropped_events;
        run.trace.events.extend(events.into_iter().map(|mut event| {
            event.association = flow.number;
            event
        }));
        Ok(())
    }

    /// What records the trace of the server.
    fn sink(&self, flow: &Flow<'_>, recorder: &Recorder) -> Box<dyn TraceSink> {
        let name = format!("{}-client{}", flow.rule.name, flow.number);
        let about = About::new(format!("{name}: {}", self.load.name));
        let log = self.logs.as_ref().and_then(|logs| logs.log(&name, &about));
        let sinks = log.map(|log| log.sink()).into_iter().chain([recorder.sink()]);
        Box::new(sinks.collect::<Vec<_>>())
    }

    /// Makes `link` lose every packet from now on.
    fn fail(&self, network: &mut Network<Host>, link: LinkId) -> Result<(), BuildError> {
        let dark =
            PathConfig { loss: Loss { uniform: 1.0, ..Loss::default() }, ..self.link.path() };
        let at = Instant::ZERO + self.fails_at;
        for direction in [Direction::Forward, Direction::Backward] {
            network.change_path_at(link, direction, at, dark.clone())?;
        }
        Ok(())
    }
}

/// The messages to one client.
#[derive(Clone, Copy)]
struct Flow<'a> {
    rule: FailoverRule,
    number: u32,
    messages: &'a [Message],
}

type Sender = ThinSender<Endpoint>;
type Receiver = ThinReceiver<Endpoint>;

impl Flow<'_> {
    /// Creates the server and the client.
    fn hosts(&self, end: Instant, seed: &Seed, sink: Box<dyn TraceSink>) -> [Host; 2] {
        let association = Arc::new(AssociationConfig::new(self.rule.recovery()));
        let endpoint = |side: usize| {
            let addresses = ADDRESSES[..self.rule.paths()].iter().map(|path| path[side]);
            let config = EndpointConfig::default()
                .port(PORT)
                .accept(true)
                .addresses(addresses.collect())
                .association(Arc::clone(&association));
            let seed = seed.split(["server", "client"][side]);
            Endpoint::new(config, &seed).expect("the ways are valid")
        };
        let messages: Arc<[Message]> = self.messages.into();
        let times = (0..messages.len())
            .map(move |n| (Instant::ZERO + messages[n].at, messages[n].bytes as usize));
        let plan = ThinPlan::new(times, end);
        let [from, to] = ADDRESSES[0].map(|ip| SocketAddr::new(ip, PORT));
        let thin = Thin { stays_open: true, waits_for_connection: true, ..Thin::new(from, to) };
        let mut server = endpoint(0);
        server.set_trace(Some(sink));
        [
            Host::new(server, Sender::new(thin, plan.clone())),
            Host::new(endpoint(1), Receiver::new(plan)),
        ]
    }

    fn is_through(&self, client: &Host) -> bool {
        let receiver = client.program::<Receiver>().expect("it was put there");
        receiver.delivered() >= self.messages.len() as u64
    }

    fn records(&self, client: &Host) -> Vec<MessageRecord> {
        let receiver = client.program::<Receiver>().expect("it was put there");
        receiver.records(Layer::Application, self.number)
    }

    /// The counters of the server; `None` once it has no association.
    fn counters(&self, server: &Host) -> Option<Counters> {
        let sender = server.program::<Sender>()?;
        let statistics = server.transport::<Endpoint>()?.statistics(sender.id()?)?;
        Some(Counters::from(&statistics.recovery))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ProfileOutcome;

    /// A message every 250 ms for a minute over paths of 100 ms without loss; the first fails at 20 s.
    fn compared() -> Comparison {
        let messages = (0..240).map(|n| Message { at: Duration::from_millis(250 * n), bytes: 100 });
        TwoPaths {
            load: Load {
                name: "clock".into(),
                flows: vec![messages.collect()],
                duration: Duration::from_secs(60),
            },
            link: Link { loss: 0.0, ..Link::default() },
            fails_at: Duration::from_secs(20),
            seed: 1,
            logs: None,
        }
        .run()
        .unwrap()
    }

    /// Message n is sent at 0.2 + n/4 s. The last one that passes the first path is 79; the SACK of 78 is delayed by
    /// 200 ms and restarts T3-rtx at 20 s. Message 80 is sent at 20.2 s and arrives over the other path at 21.05 s.
    ///
    /// Without PF new data stay on the first path until its sixth timeout, a packet of ten messages at a
    /// time: 84 until 23.2 s, 85 until 27.2 s, 93 until 35.2 s, 103 until 51.2 s, and 113, which had
    /// waited since 28.45 s, until 83.2 s.
    ///
    /// With all paths, 78 was sent over the second one, so that the timer of the first starts with 80, at 20.2 s.
    /// Without PF it expires at 21.2, 23.2, 27.2, 35.2 and 51.2 s, and each time the next message is sent over that
    /// path: that of 51.2 s waits for 32 s.
    #[test]
    fn each_failover_rule_stalls_for_its_computed_time() {
        let comparison = compared();
        let longest = |name: &str| {
            let run = comparison.runs.iter().find(|run| run.profile == name).unwrap();
            (run.undelivered, run.latency.as_ref().unwrap().max.as_millis())
        };
        assert_eq!(longest("failover"), (0, 83_250 - 28_450));
        assert_eq!(longest("failover-pf"), (0, 850));
        assert_eq!(longest("all-paths-pf"), (0, 1_050));
        assert_eq!(longest("all-paths"), (0, 32_050));
        assert_eq!(longest("one-path"), (240 - 80, 50));
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        let figures = |comparison: &Comparison| -> Vec<ProfileOutcome> { comparison.runs.clone() };
        assert_eq!(figures(&compared()), figures(&compared()));
    }
}
