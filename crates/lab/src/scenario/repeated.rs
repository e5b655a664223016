//! Messages of captured traffic, one flow after the other, repeated forever.

use std::ops::Deref;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::traffic::trace::Message;

/// Flows of messages, one after the other, repeated forever. The pause before the next flow or repetition is the mean
/// time between two messages.
#[derive(Clone, Debug)]
pub struct Repeated<F> {
    flows: Vec<F>,
    flow: usize,
    message: usize,
    /// The time of the first message of the current flow.
    begin: Instant,
}

impl<F: Deref<Target = [Message]>> Repeated<F> {
    /// The messages of those of `flows` that have any.
    pub(super) fn new(flows: impl Iterator<Item = F>) -> Self {
        let flows = flows.filter(|flow| !flow.is_empty()).collect();
        Self { flows, flow: 0, message: 0, begin: Instant::ZERO }
    }

    /// Whether there is no message at all.
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
}

impl<F: Deref<Target = [Message]>> Iterator for Repeated<F> {
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let flow = self.flows.get(self.flow)?;
        let (first, last) = (flow.first()?.at, flow.last()?.at);
        let Message { at, bytes } = flow[self.message];
        let item = (self.begin + (at - first), bytes as usize);
        self.message += 1;
        if self.message == flow.len() {
            self.begin += (last - first) + pause(flow.len(), last - first);
            self.message = 0;
            self.flow = (self.flow + 1) % self.flows.len();
        }
        (item.0 < Instant::FAR_FUTURE).then_some(item)
    }
}

/// The pause between two repetitions: the mean time between messages, or one second.
fn pause(messages: usize, length: Duration) -> Duration {
    let gaps = u32::try_from(messages - 1).unwrap_or(u32::MAX);
    let mean = length.checked_div(gaps).unwrap_or_default();
    if mean.is_zero() { Duration::from_secs(1) } else { mean }
}
