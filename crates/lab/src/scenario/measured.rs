//! Outcomes of runs that something else executed, with the names that those of scenarios have.

use super::outcome::{RunOutcome, Unit};
use super::sheet::Sheet;
use crate::measure::LatencyDistribution;

/// The cost of a flow's messages, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MeasuredCost {
    /// Messages that were sent.
    pub messages: u64,
    /// Their bytes.
    pub payload_bytes: u64,
    /// IP packets.
    pub packets: u64,
    /// Bytes of the IP packets.
    pub wire_bytes: u64,
}

impl RunOutcome {
    /// The latency and the cost of the messages of `flow`, with the names of a thin flow's quantities: `latency`,
    /// `two_way.packets_per_message`, `two_way.wire_bytes_per_payload_byte`, `messages` and `undelivered`.
    #[must_use]
    pub fn measured(flow: &str, latency: &LatencyDistribution, cost: MeasuredCost) -> Self {
        let mut sheet = Sheet::default();
        sheet.set_flow(flow);
        sheet.latency("latency", "time from the intended sending to the delivery", latency);
        let undelivered = cost.messages.saturating_sub(latency.count());
        sheet.count("messages", "messages that were sent", cost.messages);
        sheet.count("undelivered", "messages that were not delivered", undelivered);
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
