//! How well a flow meets its deadline (`recovery.thin.deadline`), and its cost compared with the least possible one.

use rexmit_netsim::path::{BurstLoss, PathConfig};
use rexmit_sctp::recovery::Deadline as Asked;

use super::outcome::Unit;
use super::problem::Problems;
use super::sheet::Sheet;
use super::spec::{Scenario, ThinFlow, TransportKind};
use super::traffic::Traffic;
use crate::bound::{
    Deadline, LossModel, Messages, PlanCost, Prices, least_cost, least_cost_in_bursts, least_late,
};
use crate::measure::LatencyDistribution;

/// Bytes of the header of a DATA chunk.
const CHUNK_HEADER_BYTES: usize = 16;
/// Bytes of the headers of IP, UDP and SCTP in each packet.
const HEADER_BYTES: u32 = 40;

impl ThinFlow {
    /// The deadline of the flow's profile, if it has one.
    fn deadline(&self) -> Option<Asked> {
        if self.transport != TransportKind::Sctp {
            return None;
        }
        self.connection().sctp(&mut Problems::default()).sender.recovery.thin.deadline
    }

    /// The messages of the flow in terms of [`least_cost`], and their size in bytes; `None` if the model does not
    /// apply.
    pub(super) fn messages(&self, scenario: &Scenario) -> Option<(Messages, usize)> {
        let [forward, backward] = &scenario.network.paths();
        let is_uniform = |path: &PathConfig| path.loss.burst.is_none();
        let (messages, bytes) = self.messages_of_any_loss(scenario)?;
        (is_uniform(forward) && is_uniform(backward)).then_some((messages, bytes))
    }

    /// The same whether or not losses are in bursts.
    fn messages_of_any_loss(&self, scenario: &Scenario) -> Option<(Messages, usize)> {
        let Traffic::Intervals(traffic) = &*self.traffic else { return None };
        let [forward, backward] = &scenario.network.paths();
        let is_known = |path: &PathConfig| path.loss.packets.is_empty();
        if traffic.is_random || !is_known(forward) || !is_known(backward) {
            return None;
        }
        let messages = Messages {
            interval: Some(traffic.interval),
            delay: (forward.delay.mean + backward.delay.mean) / 2,
            loss: losses(forward)?.share(),
            sack_loss: losses(backward)?.share(),
        };
        Some((messages, traffic.bytes))
    }

    /// The least possible share of late messages, of any sender; `None` if the model does not apply.
    fn least_late(&self, scenario: &Scenario, asked: Asked) -> Option<f64> {
        let [forward, _] = &scenario.network.paths();
        let losses = losses(forward).filter(|_| forward.loss.packets.is_empty())?;
        Some(least_late(losses, forward.delay.mean, asked.within()))
    }

    /// The least packets and bytes per message for the flow's deadline; `None` if the model does not apply.
    fn least(&self, scenario: &Scenario, asked: Asked) -> Option<[f64; 2]> {
        let (messages, bytes) = self.messages_of_any_loss(scenario)?;
        let deadline = Deadline { within: asked.within(), probability: asked.probability() };
        let [forward, backward] = &scenario.network.paths();
        let cost = |prices: &Prices| match (losses(forward)?, losses(backward)?) {
            (LossModel::Uniform(_), LossModel::Uniform(_)) => {
                least_cost(&messages, &deadline, prices)
            }
            (LossModel::Bursts { mean_bad, .. }, _) => {
                least_cost_in_bursts(&messages, mean_bad, &deadline, prices)
            }
            _ => None,
        };
        Some([1.0 + cost(&Prices::PACKETS)?.cost, least_bytes(bytes, cost)?])
    }
}

/// The losses of a path; `None` if the models have none of this kind.
fn losses(path: &PathConfig) -> Option<LossModel> {
    match path.loss.burst {
        None => Some(LossModel::Uniform(path.loss.uniform)),
        Some(BurstLoss::Time { mean_loss: share, mean_bad }) if path.loss.uniform == 0.0 => {
            Some(LossModel::Bursts { share, mean_bad })
        }
        Some(_) => None,
    }
}

/// The least bytes of IP packets per byte of messages of `bytes` bytes, where `cost` is the least for given prices.
pub(super) fn least_bytes(
    bytes: usize,
    cost: impl FnOnce(&Prices) -> Option<PlanCost>,
) -> Option<f64> {
    let chunk = u32::try_from((bytes + CHUNK_HEADER_BYTES).next_multiple_of(4)).ok()?;
    let more = cost(&Prices::bytes(chunk, HEADER_BYTES))?.cost;
    Some((f64::from(chunk + HEADER_BYTES) + more) / bytes as f64)
}

/// Adds the share of messages that miss the deadline of `flow`, if it has one, how often the sender reported it as
/// infeasible (`None` if that was not counted), and the cost of meeting it.
pub(super) fn tell(
    sheet: &mut Sheet,
    scenario: &Scenario,
    flow: &ThinFlow,
    latency: &LatencyDistribution,
    infeasible: Option<u64>,
) {
    let Some(asked) = flow.deadline() else { return };
    let late: u64 =
        latency.steps().filter(|&(step, _)| step > asked.within()).map(|(_, count)| count).sum();
    let share = (latency.count() > 0).then(|| late as f64 / latency.count() as f64);
    sheet.share(
        "deadline.late_share",
        "share of messages that miss the deadline",
        late,
        latency.count(),
    );
    let about = "share of messages that miss the deadline, over the share that may";
    let over = share.map(|share| share / (1.0 - asked.probability()));
    sheet.quantity("deadline.late_ratio", Unit::Ratio, about, over);
    let about = "times the sender reported that the deadline cannot be met";
    let infeasible = infeasible.map(|times| times as f64);
    sheet.quantity("deadline.infeasible", Unit::Count, about, infeasible);
    let about = "the least share of messages that miss the deadline, of any sender and at any cost";
    let least_late = flow.least_late(scenario, asked);
    sheet.quantity("bound.deadline.late_share", Unit::Share, about, least_late);
    let least = flow.least(scenario, asked);
    let mut cheaper: Option<f64> = None;
    for (index, name, about) in [
        (0, "packets_per_message", "packets per message"),
        (1, "wire_bytes_per_payload_byte", "bytes of IP packets per byte of the messages"),
    ] {
        let least = least.map(|least| least[index]);
        let words = format!("the least {about} for which any sender meets the deadline");
        sheet.quantity(&format!("bound.deadline.{name}"), Unit::Ratio, &words, least);
        let measured = sheet.outcome.quantities.get(&format!("{}.{name}", sheet.flow())).copied();
        let over = measured.zip(least).map(|(measured, least)| measured / least);
        let words = format!("{about}, over {words}");
        sheet.quantity(&format!("over_bound.deadline.{name}"), Unit::Ratio, &words, over);
        cheaper = over.map(|over| cheaper.map_or(over, |cheaper| cheaper.min(over)));
    }
    let about = "packets over their least, or bytes over theirs: the smaller of both";
    sheet.quantity("over_bound.deadline.cost", Unit::Ratio, about, cheaper);
}
