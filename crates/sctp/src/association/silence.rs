//! Measures for how long the peer has been silent while DATA, SHUTDOWN or SHUTDOWN ACK is sent to it (`dead_after`).

use std::time::Duration;

use rexmit_core::Instant;

use super::timers::Deadline;

/// Timeouts in a row before a silent peer counts as unreachable: a single lost packet does not suffice, even if the RTO
/// is long.
const MIN_ERRORS: u32 = 2;

/// The time since which the peer is silent: that of the first DATA, SHUTDOWN or SHUTDOWN ACK sent since its last packet; in the
/// far future if none was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    since: Instant,
    /// How long this host had not run when the silence began, or `since` was last postponed.
    starved: Duration,
}

impl Default for Silence {
    fn default() -> Self {
        Self { since: Instant::FAR_FUTURE, starved: Duration::ZERO }
    }
}

impl Silence {
    /// Called when DATA, SHUTDOWN or SHUTDOWN ACK was sent, which a reachable peer answers, and this host has not run for `starved`
    /// so far.
    pub(super) fn on_sent(&mut self, now: Instant, starved: Duration) {
        if self.since == Instant::FAR_FUTURE {
            *self = Self { since: now, starved };
        }
    }

    /// Called when a packet of the peer arrived: ends the silence.
    pub(super) const fn end(&mut self) {
        self.since = Instant::FAR_FUTURE;
    }

    /// Called when timers have expired: time in which this host did not run is no silence of the peer.
    pub(super) fn on_timeout(&mut self, now: Instant, starved: Duration) {
        if self.since < Instant::FAR_FUTURE {
            let late = starved - std::mem::replace(&mut self.starved, starved);
            self.since = (self.since + late).min(now);
        }
    }

    /// When the peer counts as unreachable, given `errors` consecutive timeouts.
    pub(super) fn deadline(self, dead_after: Option<Duration>, errors: u32) -> Deadline {
        match dead_after {
            Some(limit) if self.since < Instant::FAR_FUTURE && errors >= MIN_ERRORS => {
                Deadline::at(self.since + limit)
            }
            _ => Deadline::OFF,
        }
    }
}
