//! The Eifel detection algorithm (RFC 3522 §3.2): the first acknowledgement that moves the
//! cumulative point after a retransmission echoes the timestamp of what it answers, and if that is
//! older than the retransmission, the original had arrived.

use rexmit_core::Instant;

/// The result of the first such acknowledgement of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Eifel {
    /// It has not come.
    #[default]
    Waiting,
    /// It has come, and did not show the episode to be spurious.
    Done,
}

/// The timestamps of an acknowledgement that moves the cumulative point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    /// When the segment was sent whose timestamp it echoes, in whole ticks of the timestamp clock.
    pub(crate) sent_at: Instant,
    /// The tick.
    pub(crate) tick: std::time::Duration,
    /// It reports a duplicate.
    pub(crate) has_duplicate: bool,
    /// The peer has reported a duplicate before.
    pub(crate) peer_reports_duplicates: bool,
    /// It acknowledges everything outstanding.
    pub(crate) is_last: bool,
}

impl Eifel {
    /// An acceptable acknowledgement arrives (steps 3 to 5). `resent_at`: when the first
    /// retransmission of the episode was sent; without one nothing is decided. Returns whether it shows
    /// the episode to be spurious.
    pub(crate) fn on_ack(&mut self, resent_at: Option<Instant>, echo: Echo) -> bool {
        let Some(resent_at) = resent_at.filter(|_| *self == Self::Waiting) else { return false };
        *self = Self::Done;
        let ticks = |at: Instant| u128::from(at.as_nanos()) / echo.tick.as_nanos().max(1);
        let is_older = ticks(echo.sent_at) < ticks(resent_at);
        is_older && !echo.has_duplicate && (echo.peer_reports_duplicates || !echo.is_last)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn echo(ms: u64) -> Echo {
        Echo {
            sent_at: Instant::from_millis(ms),
            tick: Duration::from_millis(1),
            has_duplicate: false,
            peer_reports_duplicates: false,
            is_last: false,
        }
    }

    fn verdict(echo: Echo) -> bool {
        Eifel::default().on_ack(Some(Instant::from_millis(500)), echo)
    }

    /// RFC 3522 §3.2 steps 4 and 5.
    #[test]
    fn an_echo_from_before_the_retransmission_tells_it_was_needless() {
        assert!(verdict(echo(499)));
        assert!(!verdict(echo(500)), "the same tick may be the retransmission's");
        assert!(!verdict(echo(501)));
        assert!(!verdict(Echo { has_duplicate: true, ..echo(499) }));
        assert!(!verdict(Echo { is_last: true, ..echo(499) }), "all acknowledgements were lost");
        let both = Echo { is_last: true, peer_reports_duplicates: true, ..echo(499) };
        assert!(verdict(both), "it would have reported the duplicate");
    }

    /// RFC 3522 §3.2 step 4: then the algorithm is done.
    #[test]
    fn only_the_first_acknowledgement_counts() {
        let mut eifel = Eifel::default();
        let resent_at = Some(Instant::from_millis(500));
        assert!(!eifel.on_ack(None, echo(100)), "nothing was sent yet");
        assert!(!eifel.on_ack(resent_at, echo(600)));
        assert!(!eifel.on_ack(resent_at, echo(100)));
    }
}
