//! The timers of an association beside T3-rtx, which is the business of loss recovery, and the
//! heartbeat timers, which belong to the paths.

use rexmit_core::TimerKey;

/// Names the timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// T1-init and T1-cookie: the state tells which.
    T1,
    /// T2-shutdown.
    T2Shutdown,
    /// T5-shutdown-guard.
    T5ShutdownGuard,
    /// The delayed acknowledgement.
    Sack,
    /// The next probe of a closed receive window.
    WindowProbe,
    /// The answer to a RE-CONFIG request.
    ReConfig,
    /// T-4: the answer to an ASCONF.
    T4,
}

/// How many there are.
pub(super) const TIMERS: usize = 7;

impl TimerKey for Timer {
    const ALL: &'static [Self] = &[
        Self::T1,
        Self::T2Shutdown,
        Self::T5ShutdownGuard,
        Self::Sack,
        Self::WindowProbe,
        Self::ReConfig,
        Self::T4,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_has_its_place() {
        assert_eq!(Timer::ALL.len(), TIMERS);
        for (index, timer) in Timer::ALL.iter().enumerate() {
            assert_eq!(timer.index(), index);
        }
    }
}
