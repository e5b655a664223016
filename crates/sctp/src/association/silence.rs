//! The time for which the peer is silent while data is sent to it (`dead_after`).

use std::time::Duration;

use rexmit_core::Instant;

use super::timers::Deadline;

/// Timeouts in a row before a silent peer is unreachable: one lost packet shows nothing, even when the
/// RTO is long.
const MIN_ERRORS: u32 = 2;

/// When the first DATA was sent since the peer's last packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence(Option<Instant>);

impl Silence {
    /// DATA was sent, which a living peer answers.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.0.get_or_insert(now);
    }

    /// A packet of the peer arrived.
    pub(super) const fn end(&mut self) {
        self.0 = None;
    }

    /// When the peer is unreachable, after so many timeouts in a row.
    pub(super) fn deadline(self, dead_after: Option<Duration>, errors: u32) -> Deadline {
        let since = self.0.filter(|_| errors >= MIN_ERRORS);
        since.zip(dead_after).map_or(Deadline::OFF, |(since, limit)| Deadline::at(since + limit))
    }
}
