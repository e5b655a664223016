//! The timers of an association except T3-rtx, which loss recovery owns, and the heartbeat timers, which the paths own.
//! Each has its deadline with the procedure that arms it.

use rexmit_core::Instant;

/// The timers, in the order in which simultaneous ones expire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Timer {
    /// T1-init and T1-cookie, depending on the state.
    T1,
    /// T2-shutdown.
    T2Shutdown,
    /// T5-shutdown-guard.
    T5ShutdownGuard,
    /// The delayed acknowledgement.
    Sack,
    /// The next probe of a closed receive window.
    WindowProbe,
    /// Waits for the answer to a RE-CONFIG request.
    ReConfig,
    /// Expires when the peer was silent for too long (`dead_after`).
    DeadPeer,
    /// T-4: waits for the answer to an ASCONF.
    T4,
}

/// When a timer expires, if it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// The timer does not run.
    pub(super) const OFF: Self = Self(Instant::FAR_FUTURE);

    pub(super) const fn at(at: Instant) -> Self {
        Self(at)
    }

    /// When the timer expires; [`Instant::FAR_FUTURE`] if it does not run.
    pub(super) const fn instant(self) -> Instant {
        self.0
    }

    pub(super) fn is_armed(self) -> bool {
        self.0 < Instant::FAR_FUTURE
    }
}

/// The timer with the earliest deadline, if it has expired at `now`.
pub(super) fn first_due(now: Instant, timers: &[(Timer, Deadline)]) -> Option<Timer> {
    let due = timers.iter().filter(|(_, deadline)| deadline.is_armed() && deadline.0 <= now);
    due.min_by_key(|(timer, deadline)| (deadline.0, *timer)).map(|&(timer, _)| timer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_timer_expires_first_and_of_equals_the_first() {
        let ms = |ms| Deadline::at(Instant::from_millis(ms));
        let timers = [
            (Timer::T4, ms(20)),
            (Timer::Sack, ms(20)),
            (Timer::ReConfig, ms(30)),
            (Timer::T1, Deadline::OFF),
        ];
        let at = |ms| first_due(Instant::from_millis(ms), &timers);
        assert_eq!(at(19), None);
        assert_eq!(at(20), Some(Timer::Sack));
        assert_eq!(first_due(Instant::from_millis(30), &timers[2..]), Some(Timer::ReConfig));
        assert_eq!(first_due(Instant::FAR_FUTURE, &timers[3..]), None);
        let late = [(Timer::T2Shutdown, ms(20)), (Timer::T4, ms(10))];
        assert_eq!(first_due(Instant::from_millis(30), &late), Some(Timer::T4));
    }
}
