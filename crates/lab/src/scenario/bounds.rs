//! The latency of a flow in comparison with theoretical bounds.

use std::time::Duration;

use rexmit_netsim::path::BurstLoss;

use super::deadline::least_bytes;
use super::outcome::{Distribution, Unit};
use super::problem::{Problem, Problems};
use super::sheet::{QUANTILES, Sheet};
use super::spec::{BoundKind, Scenario, ThinFlow};
use super::traffic::Traffic;
use crate::bound::{Bound, Deadline, LossModel, Messages, Strategy, least_cost, least_packets};
use crate::measure::LatencyDistribution;

impl BoundKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Reactive => "reactive",
            Self::Doubled => "doubled",
            Self::Bundled => "bundled",
            Self::BundledOnce => "bundled_once",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Reactive => "one copy as soon as the loss of the previous one is certain",
            Self::Doubled => "two copies as soon as the loss of the previous ones is certain",
            Self::Bundled => "copies bundled with all later messages",
            Self::BundledOnce => {
                "a copy bundled with the next message, others with messages a round trip later"
            }
        }
    }
}

impl ThinFlow {
    /// Reports an error for requested bounds that cannot be computed.
    pub(super) fn check_bounds(&self, scenario: &Scenario, problems: &mut Problems) {
        for &kind in &self.bounds {
            if let Err(problem) = self.bound(scenario, kind) {
                problems.push(problem);
            }
        }
    }

    /// The bound for the initial forward path, assuming no loss of ACKs, constant delays and no
    /// queueing.
    fn bound(&self, scenario: &Scenario, kind: BoundKind) -> Result<Bound, Problem> {
        let [forward, _] = scenario.network.paths();
        let refuse = |what: &str| Problem::of("bounds", what);
        let loss = match (forward.loss.uniform, forward.loss.burst) {
            (share, None) => LossModel::Uniform(share),
            (0.0, Some(BurstLoss::Time { mean_loss, mean_bad })) => {
                LossModel::Bursts { share: mean_loss, mean_bad }
            }
            _ => {
                return Err(refuse(
                    "bounds are defined for uniform loss, and for `loss burst` in time",
                ));
            }
        };
        let strategy = match (kind, &*self.traffic) {
            (BoundKind::Reactive, _) => Strategy::Reactive,
            (BoundKind::Doubled, _) => Strategy::Doubled,
            (_, Traffic::Intervals(messages)) if !messages.is_random => {
                let interval = messages.interval;
                match kind {
                    BoundKind::Bundled => Strategy::Bundled { interval },
                    _ => Strategy::BundledOnce { interval },
                }
            }
            _ => {
                return Err(refuse(
                    "bounds of bundling are defined for messages at constant intervals: `every`",
                ));
            }
        };
        Ok(Bound::new(strategy, forward.delay.mean, loss))
    }

    /// The loss rates of both directions; `None` unless each message is acknowledged before the next is sent.
    fn losses_alone(&self, scenario: &Scenario) -> Option<[f64; 2]> {
        let paths = scenario.network.paths();
        let rtt: Duration = paths.iter().map(|path| path.delay.mean).sum();
        let is_alone = match &*self.traffic {
            Traffic::Intervals(messages) => !messages.is_random && messages.interval > rtt,
            _ => false,
        };
        let is_uniform =
            paths.iter().all(|path| path.loss.burst.is_none() && path.loss.packets.is_empty());
        (is_alone && is_uniform).then(|| paths.map(|path| path.loss.uniform))
    }
}

/// Adds the bounds requested by `flow`, and the excess of its latency over them.
pub(super) fn tell(
    sheet: &mut Sheet,
    scenario: &Scenario,
    flow: &ThinFlow,
    latency: &LatencyDistribution,
) {
    for &kind in &flow.bounds {
        let Ok(bound) = flow.bound(scenario, kind) else { continue };
        let (name, words) = (kind.name(), kind.words());
        let about = format!("theoretical minimum: {words}");
        for (part, quantile, part_words) in QUANTILES {
            let least = bound.quantile(quantile).as_nanos() as f64 / 1e6;
            let about = format!("{about}: {part_words}");
            let unit = Unit::Milliseconds;
            sheet.quantity(&format!("bound.{name}.{part}"), unit, &about, Some(least));
            let about = format!("excess over the theoretical minimum ({words}): {part_words}");
            let measured = latency.quantile(quantile).as_nanos() as f64 / 1e6;
            let over = (latency.count() > 0).then_some(measured - least);
            sheet.quantity(&format!("over_bound.{name}.{part}"), unit, &about, over);
        }
        let about_packets = format!("packets beyond one per message: {words}");
        let packets = Some(bound.extra_packets);
        let name = format!("bound.{name}");
        sheet.quantity(&format!("{name}.extra_packets"), Unit::Ratio, &about_packets, packets);
        sheet.distribution(&name, Unit::Milliseconds, &about, distribution(&bound));
    }
    if !flow.bounds.is_empty() {
        packets(sheet, flow.losses_alone(scenario));
        bytes(sheet, flow.messages(scenario), latency);
    }
}

/// Adds, for each quantile, the minimum number of packets per message that keep it within one
/// round-trip time more than the delay, and the ratio of the measured number to it.
fn packets(sheet: &mut Sheet, losses: Option<[f64; 2]>) {
    const MEASURED: &str = "packets_per_message";
    let measured = sheet.outcome.quantities.get(&format!("{}.{MEASURED}", sheet.flow())).copied();
    for (part, quantile, words) in QUANTILES {
        let least =
            losses.and_then(|[forward, backward]| least_packets(forward, backward, 1.0 - quantile));
        let about = format!(
            "the least packets per message, acknowledged alone, if one repetition is to bring the {words}"
        );
        sheet.quantity(&format!("bound.{MEASURED}.{part}"), Unit::Ratio, &about, least);
        let about = format!("packets per message over {about}");
        let over = measured.zip(least).map(|(measured, least)| measured - least);
        sheet.quantity(&format!("over_bound.{MEASURED}.{part}"), Unit::Ratio, &about, over);
    }
}

/// Adds, for the 99th and 99.9th percentile, the least bytes with which any sender achieves the measured percentile,
/// and the ratio of the measured bytes to them. If the percentile is more than two and a half round trips above the
/// delay, there is no value: the model would have too many states, and the least would be near the cost of a sender
/// without copies.
fn bytes(sheet: &mut Sheet, sent: Option<(Messages, usize)>, latency: &LatencyDistribution) {
    const MEASURED: &str = "wire_bytes_per_payload_byte";
    let measured = sheet.outcome.quantities.get(&format!("{}.{MEASURED}", sheet.flow())).copied();
    let sent = sent.filter(|_| latency.count() > 0);
    for (part, quantile, words) in QUANTILES {
        if !matches!(part, "p99" | "p999") {
            continue;
        }
        let within = latency.quantile(quantile);
        let is_soon = |messages: &Messages| within <= 6 * messages.delay;
        let least = sent.as_ref().filter(|(messages, _)| is_soon(messages));
        let deadline = Deadline { within, probability: quantile };
        let least = least.and_then(|(messages, bytes)| {
            least_bytes(*bytes, |prices| least_cost(messages, &deadline, prices))
        });
        let about =
            format!("the least bytes of IP packets per byte of the messages for this {words}");
        sheet.quantity(&format!("bound.{MEASURED}.{part}"), Unit::Ratio, &about, least);
        let about = format!("bytes of IP packets per byte of the messages, over {about}");
        let over = measured.zip(least).map(|(measured, least)| measured / least);
        sheet.quantity(&format!("over_bound.{MEASURED}.{part}"), Unit::Ratio, &about, over);
    }
}

/// Number of messages that represent the distribution of a bound, so that the shares in its tail
/// are integers.
const MESSAGES: f64 = 1e9;

fn distribution(bound: &Bound) -> Distribution {
    let mut distribution = Distribution::default();
    let mut before = 1.0;
    for step in &bound.steps {
        let count = ((before - step.beyond) * MESSAGES).round() as u64;
        if count > 0 {
            distribution.values.push(step.latency.as_nanos() as f64 / 1e6);
            distribution.counts.push(count);
            before = step.beyond;
        }
    }
    distribution
}
