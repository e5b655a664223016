//! One run in virtual time: that of the simulation, or of a kernel.

use std::time::Duration;

use rexmit_netsim::network::{Direction, Network};
use rexmit_qlog::MakeLog;

use super::bounds;
use super::deadline;
use super::error::ExecuteError;
use super::flows::{Kind, flows};
use super::kernel::Pace;
use super::meter::MessageMeter;
use super::outcome::Catalogue;
use super::outcome::RunOutcome;
use super::packets::PacketLog;
use super::problem::{Problem, Problems};
use super::quantities;
use super::sheet::Sheet;
use super::spec::{Over, Scenario};
use super::tell::{self, Placed};
use super::topology::{Pair, Topology};
use crate::hosts::{Host, WebStats};
use crate::measure::CopyLedger;

/// Default time limit for delivering outstanding data at the end.
pub(super) const DRAIN: Duration = Duration::from_secs(300);
/// Interval of the checks whether everything has arrived.
const DRAIN_STEP: Duration = Duration::from_secs(1);

/// What records a run besides its meters.
#[derive(Clone, Copy, Default)]
pub(super) struct Records<'a> {
    /// Records all packets.
    pub(super) packets: Option<&'a PacketLog>,
    /// Makes the logs of senders.
    pub(super) logs: Option<&'a dyn MakeLog>,
}

/// Runs `scenario`, which must be valid.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    records: Records<'_>,
    mut pace: Pace<'_>,
) -> Result<RunOutcome, ExecuteError> {
    let seed = scenario.seed(seed);
    let mut problems = Problems::default();
    let mut flows = flows(scenario, &seed, pace.kernel(), records.logs, &mut problems);
    if let Some(problem) = problems.into_first() {
        return Err(problem.into());
    }
    let stations = flows.iter_mut().filter_map(|flow| flow.station.take()).collect();
    let topology = Topology::build(scenario, stations, &seed.split("network"));
    let mut topology = topology.map_err(|error| Problem::of("network", error))?;
    let network = &mut topology.network;
    let watched = flows.iter().zip(&topology.pairs);
    let watched = watched.filter_map(|(flow, pair)| Some((flow.probe()?.ledger(), pair.sender)));
    network.add_observer(CopyLedger::observer_of(watched));
    if let Some(log) = records.packets {
        let hosts = flows.iter().zip(&topology.pairs);
        let hosts =
            hosts.map(|(flow, &pair)| (flow.name.as_str(), pair, !matches!(flow.kind, Kind::Web)));
        network.add_observer(log.observer(hosts));
    }
    let of_kernel = flows.iter().zip(&topology.pairs).filter(|(flow, _)| flow.is_of_kernel());
    let of_kernel: Vec<_> = of_kernel.flat_map(|(_, pair)| [pair.sender, pair.receiver]).collect();
    let end = scenario.end();
    pace.advance(network, &of_kernel, end)?;
    let counts = |pair: &Pair| [pair.sender, pair.receiver].map(|host| *network.host_stats(host));
    let at_end: Vec<_> = topology.pairs.iter().map(counts).collect();
    let last = end + scenario.drain.as_ref().map_or(DRAIN, |drain| ***drain);
    let is_through = |network: &Network<Host>| {
        let mut pairs = flows.iter().zip(&topology.pairs);
        pairs.all(|(flow, pair)| flow.is_through(network, *pair))
    };
    while network.now() < last && !is_through(network) {
        let next = (network.now() + DRAIN_STEP).min(last);
        pace.advance(network, &of_kernel, next)?;
    }
    let placed = flows.iter().zip(&topology.pairs).zip(at_end);
    let placed: Vec<_> =
        placed.map(|((flow, &pair), at_end)| Placed { flow, pair, at_end }).collect();
    Ok(tell(scenario, &placed, &topology))
}

/// Reports the measurements.
fn tell(scenario: &Scenario, placed: &[Placed<'_>], topology: &Topology) -> RunOutcome {
    let mut sheet = Sheet::default();
    for together in placed.chunk_by(|one, next| one.flow.name == next.flow.name) {
        tell::flow(together, &topology.network, scenario, &mut sheet);
    }
    for ((name, _), &link) in scenario.networks().zip(&topology.shared) {
        let stats = [Direction::Forward, Direction::Backward]
            .map(|direction| topology.network.link_stats(link, direction));
        quantities::network(&mut sheet, name, [&stats[0], &stats[1]]);
    }
    sheet.outcome
}

/// The quantities of a run of `scenario`, derived by reporting flows without any traffic.
pub(super) fn catalogue(scenario: &Scenario) -> Catalogue {
    let mut sheet = Sheet::default();
    for (name, flow) in &scenario.thin {
        sheet.set_flow(name);
        let meter = MessageMeter::new(scenario, flow);
        let sender = nothing_sent(flow.over(scenario));
        quantities::thin(&mut sheet, &meter, &Default::default(), &sender);
        if flow.transfer {
            quantities::transfer(&mut sheet, &scenario.rate_meter(None));
        }
        bounds::tell(&mut sheet, scenario, flow, &meter.latency);
        deadline::tell(&mut sheet, scenario, flow, &meter.latency, None);
    }
    for (name, flow) in &scenario.bulk {
        sheet.set_flow(name);
        let sender = (!flow.background).then(|| nothing_sent(flow.over(scenario)));
        quantities::bulk(&mut sheet, &scenario.rate_meter(None), sender.as_ref());
    }
    for name in scenario.web.keys() {
        sheet.set_flow(name);
        quantities::web(&mut sheet, &WebStats::default(), 0.0);
    }
    for name in scenario.udp.keys() {
        sheet.set_flow(name);
        quantities::udp(&mut sheet, &Default::default(), 0, 0.0);
    }
    for (name, _) in scenario.networks() {
        quantities::network(&mut sheet, name, [&Default::default(), &Default::default()]);
    }
    sheet.catalogue
}

/// The measurements of a sender without any traffic.
fn nothing_sent(over: Over) -> quantities::Sender {
    let paths = (over == Over::Both).then(Default::default);
    quantities::Sender { paths, ..Default::default() }
}
