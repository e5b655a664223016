//! The last resorts of a recovery by scoreboard (RFC 6675 §4, `NextSeg` rules 3 and 4).

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::{LossRecovery, UnitState};
use crate::{LossDetection, Reordering};

impl<P> LossRecovery<P> {
    /// In a recovery whose window has room, with nothing judged lost and, as the protocol knows,
    /// nothing new to send: a unit that may be lost, to keep acknowledgements coming. First those
    /// below the highest acknowledged one, each once (rule 3), then, once per recovery and after
    /// the cumulative point moved, the highest one not acknowledged (rule 4). Leaves through
    /// [`rescue`](Self::rescue).
    #[must_use]
    pub fn next_to_rescue(&self, path: u8) -> Option<u64> {
        let is_recovering = self.is_in_fast_recovery() && !self.duplicates.is_recovering();
        if self.config.loss_detection != LossDetection::Scoreboard
            || self.config.reordering == Reordering::Rack
            || !is_recovering
            || self.has_lost()
            || self.path(path).burst_left == 0
            || !self.has_room(path, 0)
        {
            return None;
        }
        let is_in_flight =
            |&unit: &u64| self.unit(unit).is_some_and(|u| u.state == UnitState::InFlight);
        let hole = self.scoreboard.hole_not_sent_again(&self.acknowledged, self.first);
        hole.filter(is_in_flight).or_else(|| {
            let last = self.next_unit() - 1;
            let cumulative = self.cumulative();
            self.scoreboard.to_rescue(&self.acknowledged, cumulative, last).filter(is_in_flight)
        })
    }

    /// Puts `unit`, which [`next_to_rescue`](Self::next_to_rescue) named, into the packet being
    /// built. It counts as a fast retransmission; of its two copies one is in flight for the books,
    /// which RFC 6675 §4 allows for.
    pub fn rescue(&mut self, now: Instant, unit: u64) -> Option<&P> {
        let exit = self.fast_recovery_exit?;
        self.scoreboard.on_rescued(&self.acknowledged, unit, exit);
        self.resend_as(now, unit, SendCause::FastRetransmit)
    }
}
