//! Measures for how long the peer has been silent while data is sent to it (`dead_after`).

use std::time::Duration;

use rexmit_core::Instant;

use super::timers::Deadline;

/// Timeouts in a row before a silent peer counts as unreachable: a single lost packet does not suffice, even if the RTO
/// is long.
const MIN_ERRORS: u32 = 2;

/// The time since which the peer is silent: that of the first DATA sent since its last packet; in the far future if
/// none was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence(Instant);

impl Default for Silence {
    fn default() -> Self {
        Self(Instant::FAR_FUTURE)
    }
}

impl Silence {
    /// Called when DATA was sent, which a reachable peer acknowledges.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.0 = self.0.min(now);
    }

    /// Called when a packet of the peer arrived: ends the silence.
    pub(super) const fn end(&mut self) {
        self.0 = Instant::FAR_FUTURE;
    }

    /// Called when this host handled its timers `late`: it was not the peer that was silent in this time.
    pub(super) fn on_late(&mut self, now: Instant, late: Duration) {
        if self.0 < Instant::FAR_FUTURE {
            self.0 = (self.0 + late).min(now);
        }
    }

    /// When the peer counts as unreachable, given `errors` consecutive timeouts.
    pub(super) fn deadline(self, dead_after: Option<Duration>, errors: u32) -> Deadline {
        match dead_after {
            Some(limit) if self.0 < Instant::FAR_FUTURE && errors >= MIN_ERRORS => {
                Deadline::at(self.0 + limit)
            }
            _ => Deadline::OFF,
        }
    }
}
