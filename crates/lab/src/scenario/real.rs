//! One run on real sockets.
//!
//! The scenario must have a single thin flow and one path that does not change. A driver with
//! [sockets](crate::connections) opens and measures the connections: SCTP through UDP sockets, TCP
//! through TUN devices, with rexmit at both ends. With the same seed, the emulator decides on the
//! n-th packet of each direction as in virtual time, but the order of packets depends on
//! microseconds, so that runs are not reproducible.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::HostStats;
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::recovery::RecoveryStatistics;

use super::bounds;
use super::deadline;
use super::error::ExecuteError;
use super::flows::{connection_seed, thin_plan};
use super::meter::{MessageMeter, SenderTally, SenderTrace, TrafficMeter};
use super::problem::{Problem, Problems};
use super::quantities::{self, Copies};
use super::rival;
use super::run::DRAIN;
use super::sheet::Sheet;
use super::spec::{Encapsulation, NETWORK, Scenario, ThinFlow, TransportKind};
use crate::connections::{
    Connections, Ends, MAX_MESSAGES, Measured, Planned, Sockets, SocketsError,
};
use crate::hosts::{Gauge, ThinRecord};
use crate::measure::MessageRecord;

/// Reports the features of `scenario` that are not possible on real sockets.
pub(super) fn find(scenario: &Scenario, problems: &mut Problems) {
    let mut refuse = |field: &str, is_there: bool, what: &str| {
        if is_there {
            problems.add(field, format!("{what}: leave it out, or say `clock = \"virtual\"`"));
        }
    };
    let one = "a run on real sockets has a single thin flow (of any number of `connections`)";
    refuse("thin", scenario.thin.len() != 1, one);
    refuse("bulk", !scenario.bulk.is_empty(), one);
    refuse("web", !scenario.web.is_empty(), one);
    refuse("udp", !scenario.udp.is_empty(), one);
    let network = &scenario.network;
    let edge = "a run on real sockets has only the shared path";
    refuse("network.edge", network.edge.is_some(), edge);
    refuse("network.receiver_edge", network.receiver_edge.is_some(), edge);
    refuse(
        "second_network",
        scenario.second_network.is_some(),
        "a run on real sockets has one network",
    );
    let changes = "a run on real sockets cannot change its path";
    refuse("network.changes", !network.changes.is_empty(), changes);
    for (name, flow) in &scenario.thin {
        refuse(&format!("thin.{name}.edge"), flow.edge.is_some(), edge);
        let is_in_udp = flow.encapsulation != Encapsulation::None;
        let udp = "the emulator counts SCTP packets, without UDP headers";
        refuse(&format!("thin.{name}.encapsulation"), is_in_udp, udp);
        let is_rival = flow.transport.rival().is_some();
        refuse(&format!("thin.{name}.transport"), is_rival, "rivals run in virtual time only");
    }
    if let Some((name, flow)) = scenario.thin.first_key_value() {
        let planned = planned(scenario, (name, flow), &Seed::from_u64(0));
        planned.err().into_iter().for_each(|problem| problems.push(problem));
    }
}

/// Runs `scenario`, which must be valid, on `sockets` in real time.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    sockets: &dyn Sockets,
) -> Result<Sheet, ExecuteError> {
    let Some((name, flow)) = scenario.thin.first_key_value() else {
        return Err(Problem::of("thin", "a thin flow is required").into());
    };
    let mut problems = Problems::default();
    problems.set_place(format!("thin.{name}"));
    let (connections, packet_bytes) =
        connections(scenario, (name, flow), &scenario.seed(seed), &mut problems)?;
    if let Some(problem) = problems.into_first() {
        return Err(problem.into());
    }
    let mut traces = Vec::new();
    let measured = sockets.run(&connections, &mut || {
        let trace = SenderTrace::new(packet_bytes);
        let sink = trace.sink();
        traces.push(trace);
        sink
    })?;
    let mut tally = SenderTally::default();
    traces.iter().for_each(|trace| tally.merge(&trace.tally()));
    Ok(tell(scenario, &measured, &tally))
}

/// Reports the quantities of a run of `scenario`.
pub(super) fn tell(scenario: &Scenario, measured: &Measured, tally: &SenderTally) -> Sheet {
    let mut sheet = Sheet::default();
    let link = &measured.link;
    for (name, flow) in &scenario.thin {
        sheet.set_flow(name);
        let [wire, back] = [0, 1].map(|way| {
            let path = &link[way].path;
            let headers = measured.ip_bytes * path.offered;
            let mut host = HostStats::default();
            host.packets_out = path.offered;
            host.bytes_out = path.offered_bytes.saturating_sub(headers);
            host
        });
        let copies = Copies::Counted(Box::new(counted(&measured.recovery)));
        let sender = quantities::Sender {
            tally: tally.clone(),
            copies,
            wire,
            back,
            ..quantities::Sender::default()
        };
        let meter = meter(scenario, flow, measured);
        quantities::thin(&mut sheet, &meter, &traffic(measured), &sender);
        bounds::tell(&mut sheet, scenario, flow, &meter.latency);
        deadline::tell(&mut sheet, scenario, flow, &meter.latency, None);
        let about = "how late messages were passed to the transport";
        sheet.latency("send_lateness", about, &measured.sending);
    }
    quantities::network(&mut sheet, NETWORK, [&link[0], &link[1]]);
    quantities::lateness(&mut sheet, measured.lateness);
    sheet
}

/// The connections of a flow, and the largest size of their packets, including transport headers.
fn connections(
    scenario: &Scenario,
    (name, flow): (&str, &ThinFlow),
    seed: &Seed,
    problems: &mut Problems,
) -> Result<(Connections, usize), Problem> {
    let flows = planned(scenario, (name, flow), seed)?;
    let (ends, packet_bytes) = ends(flow, problems)?;
    let [forward, backward] = scenario.network.paths();
    let drain = scenario.drain.as_ref().map_or(DRAIN, |drain| ***drain);
    let setup_timeout = Duration::from_secs(1) + (scenario.end() - Instant::ZERO) + drain;
    // That of the shared path in virtual time: the n-th packet of either way meets the same fate.
    let seed = seed.split("network").split("link 0");
    Ok((Connections { ends, flows, forward, backward, seed, setup_timeout }, packet_bytes))
}

/// The messages of the connections. They are stored until the end of the run, so their number is
/// limited.
fn planned(
    scenario: &Scenario,
    (name, flow): (&str, &ThinFlow),
    seed: &Seed,
) -> Result<Vec<Planned>, Problem> {
    let since = |at: Instant| at - Instant::ZERO;
    let mut left = MAX_MESSAGES;
    let mut connection = |n| {
        let plan = thin_plan(scenario, flow, n, &connection_seed(seed, name, n))?;
        let messages = plan.take(left + 1);
        let messages = messages.map(|m| Message { at: since(m.intended), bytes: m.bytes });
        let planned = Planned { begin: since(flow.start_of(n)), messages: messages.collect() };
        left = left.checked_sub(planned.messages.len()).ok_or_else(|| {
            let what = format!("a run on real sockets has at most {MAX_MESSAGES} messages");
            Problem::of("traffic", what)
        })?;
        Ok(planned)
    };
    let planned: Result<_, Problem> = (0..flow.connections()).map(&mut connection).collect();
    planned.map_err(|problem| Problem::of(&format!("thin.{name}.{}", problem.path), problem.what))
}

fn ends(flow: &ThinFlow, problems: &mut Problems) -> Result<(Ends, usize), Problem> {
    rival::not_of_rivals(flow.transport)?;
    if flow.transport == TransportKind::Tcp {
        let ends = flow.connection().tcp(problems);
        let packet_bytes = ends.sender.mss.into();
        return Ok((Ends::Tcp { sender: ends.sender, receiver: ends.receiver }, packet_bytes));
    }
    let ends = flow.connection().sctp(problems);
    let packet_bytes = ends.sender.max_packet_bytes;
    let (sender, receiver) = (ends.sender, ends.receiver);
    Ok((Ends::Sctp { sender, receiver, unordered: flow.unordered }, packet_bytes))
}

/// The sum of the counters of all senders.
fn counted(senders: &[RecoveryStatistics]) -> RecoveryStatistics {
    let mut sum = RecoveryStatistics::default();
    for sender in senders {
        sum.new_units += sender.new_units;
        sum.retransmitted += sender.retransmitted;
        sum.spurious += sender.spurious;
    }
    sum
}

/// Measures the planned messages.
fn traffic(measured: &Measured) -> TrafficMeter {
    let message = |record: &MessageRecord| (record.intended, record.payload_bytes);
    let connections = measured.records.chunk_by(|a, b| a.connection == b.connection);
    TrafficMeter::of(connections.map(|messages| messages.iter().map(message)))
}

/// Measures the latencies of the messages, in the order of delivery.
fn meter(scenario: &Scenario, flow: &ThinFlow, measured: &Measured) -> MessageMeter {
    let record = |record: &MessageRecord| {
        let at = |at: Instant| Instant::ZERO + (at - measured.origin);
        ThinRecord {
            number: record.sequence,
            bytes: record.payload_bytes,
            intended: at(record.intended),
            arrived: None,
            delivered: record.delivered.map(at),
        }
    };
    let mut records: Vec<_> = measured.records.iter().map(record).collect();
    records.sort_by_key(|record| record.delivered);
    let undelivered = records.partition_point(|record| record.delivered.is_none());
    let mut meter = MessageMeter::new(scenario, flow);
    records[undelivered..].iter().for_each(|record| meter.on_delivered(record));
    meter.finish(records[..undelivered].iter().copied());
    meter
}

impl From<SocketsError> for ExecuteError {
    fn from(error: SocketsError) -> Self {
        match error {
            SocketsError::NotPermitted(why) => Self::NotPermitted(why),
            SocketsError::Failed(why) => Self::Failed(why),
            SocketsError::NoKernel(what) => Self::NotBuilt(what),
        }
    }
}
