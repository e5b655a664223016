//! The timers of a connection beside the retransmission timer, which is the business of loss
//! recovery.

use rexmit_core::TimerKey;

/// Names the timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// The SYN, or the SYN-ACK, is not answered.
    Syn,
    /// The delayed acknowledgement.
    Ack,
    /// The next probe of a closed window, or what is held back against silly windows.
    Persist,
    /// The peer has been silent.
    KeepAlive,
    /// FIN-WAIT-2 without an application.
    FinWait,
    /// The end of TIME-WAIT.
    TimeWait,
    /// Nothing has happened for a while: memory goes back.
    Release,
}

/// How many there are.
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
