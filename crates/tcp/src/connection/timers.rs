//! The timers of a connection other than the retransmission timer, which loss recovery owns.

use rexmit_core::TimerKey;

/// Names the timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// The retransmission timer of the SYN or SYN-ACK.
    Syn,
    /// The delayed acknowledgement.
    Ack,
    /// The next probe of a closed window, or data held back to avoid silly windows.
    Persist,
    /// The next keep-alive probe.
    KeepAlive,
    /// The end of FIN-WAIT-2 after the application has closed the connection.
    FinWait,
    /// The end of TIME-WAIT.
    TimeWait,
    /// Unused memory is released after a time without activity.
    Release,
}

/// The number of timers.
pub(super) const TIMERS: usize = 7;

impl TimerKey for Timer {
    const ALL: &'static [Self] = &[
        Self::Syn,
        Self::Ack,
        Self::Persist,
        Self::KeepAlive,
        Self::FinWait,
        Self::TimeWait,
        Self::Release,
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
