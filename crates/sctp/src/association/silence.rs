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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_this_host_did_not_run_is_not_counted() {
        let (at, s) = (Instant::from_millis, Duration::from_secs);
        let mut silence = Silence::default();
        silence.on_sent(at(1_000), s(5));
        silence.on_timeout(at(4_000), s(7));
        assert_eq!(silence.since, at(3_000));
        // The same two seconds do not count again.
        silence.on_timeout(at(5_000), s(7));
        assert_eq!(silence.since, at(3_000));
        silence.on_timeout(at(6_000), s(60));
        assert_eq!(silence.since, at(6_000), "not in the future");
        let deadline = |errors| silence.deadline(Some(s(15)), errors);
        assert_eq!((deadline(1), deadline(2)), (Deadline::OFF, Deadline::at(at(21_000))));
    }
}
