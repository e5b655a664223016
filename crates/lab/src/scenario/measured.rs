//! Outcomes of runs that were executed elsewhere, under the names used for scenarios.

use std::time::Duration;

use super::outcome::{RunOutcome, Unit};
use super::sheet::{QUANTILES, Sheet};
use crate::measure::LatencyDistribution;

/// The cost of a flow's messages, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MeasuredCost {
    /// Messages that were sent.
    pub messages: u64,
    /// The bytes of these messages.
    pub payload_bytes: u64,
    /// IP packets.
    pub packets: u64,
    /// Bytes of the IP packets.
    pub wire_bytes: u64,
}

impl RunOutcome {
    /// The latency and the cost of the messages of `flow`, with the names of a thin flow's quantities: `latency`,
    /// `two_way.packets_per_message`, `two_way.wire_bytes_per_payload_byte` (left out if the bytes are zero, that is,
    /// unknown), `messages` and `undelivered`. `of_all.p99` and so on are quantiles of all messages, where undelivered
    /// ones count as later than any other; a quantile that falls on an undelivered message is left out.
    #[must_use]
    pub fn measured(flow: &str, latency: &LatencyDistribution, cost: MeasuredCost) -> Self {
        let mut sheet = Sheet::default();
        sheet.set_flow(flow);
        sheet.latency("latency", "time from the intended sending to the delivery", latency);
        let undelivered = cost.messages.saturating_sub(latency.count());
        sheet.count("messages", "messages that were sent", cost.messages);
        sheet.count("undelivered", "messages that were not delivered", undelivered);
        let all = latency.count() + undelivered;
        for (name, quantile, words) in QUANTILES {
            let within = quantile * all as f64 / latency.count().max(1) as f64;
            let value = (latency.count() > 0 && within <= 1.0).then(|| latency.quantile(within));
            of_all(&mut sheet, name, words, value);
        }
        let summary = latency.summary().filter(|_| undelivered == 0);
        of_all(&mut sheet, "mean", "mean", summary.map(|it| it.mean));
        of_all(&mut sheet, "max", "maximum", summary.map(|it| it.max));
        let per = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let (bytes, packets) =
            (per(cost.wire_bytes, cost.payload_bytes), per(cost.packets, cost.messages));
        let about = "bytes of IP packets in both directions per byte of messages";
        sheet.quantity("two_way.wire_bytes_per_payload_byte", Unit::Ratio, about, bytes);
        let about = "IP packets in both directions per message";
        sheet.quantity("two_way.packets_per_message", Unit::Ratio, about, packets);
        sheet.outcome
    }
}

fn of_all(sheet: &mut Sheet, name: &str, words: &str, value: Option<Duration>) {
    let about = format!("latency of all messages, with those not delivered: {words}");
    let value = value.map(|value| value.as_nanos() as f64 / 1e6);
    sheet.quantity(&format!("of_all.{name}"), Unit::Milliseconds, &about, value);
}
