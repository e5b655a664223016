//! What a queue on the path holds back: copies on purpose, repetitions, and after a loss what is new.
//!
//! A thin stream may send small packets as often as it likes without filling its window. Beside a queue
//! that others fill, each of them takes a place from a full-sized one. So a loss there has the stream
//! send what collects, as after T3-rtx, until something is acknowledged.

use std::time::Duration;

use rexmit_core::Instant;

use super::LossRecovery;
use crate::budget::Share;

impl<P> LossRecovery<P> {
    /// The answer to what left over `path` took so long.
    #[inline]
    pub(super) fn note_queueing(&mut self, now: Instant, path: u8, time: Duration) {
        if self.groups.yields() {
            self.path_mut(path).queueing.get_or_insert_default().on_answer(now, time);
        }
    }

    /// What the queue on `path` leaves `group` of its budget.
    pub(super) fn share_of_copies(&self, path: u8, group: u8) -> Share {
        let limit = self.groups.of(group).thin.yield_to_queue;
        if limit.is_zero() {
            Share::ALL
        } else if self.latest_losses.forbid_copies() {
            Share::NONE
        } else {
            Share::beside(self.standing_queue(path), limit)
        }
    }

    fn standing_queue(&self, path: u8) -> Duration {
        self.path(path).queueing.as_ref().map_or(Duration::ZERO, |queue| queue.standing())
    }

    /// Whether the queue on `path` is more than `group` bears.
    pub(super) fn yields(&self, path: u8, group: u8) -> bool {
        let limit = self.groups.of(group).thin.yield_to_queue;
        !limit.is_zero()
            && (self.latest_losses.are_too_many() || self.standing_queue(path) >= limit)
    }

    /// How many bytes of `group` may be copied on purpose over `path` now.
    pub(super) fn bytes_to_copy(&self, path: u8, group: u8) -> u64 {
        let budget = self.groups.of(group).thin.copy_budget;
        let is_denied = self.share_of_copies(path, group).is_none();
        if is_denied { 0 } else { self.spending.bytes_left(budget) }
    }

    /// Something of `path` is overdue: beside a queue, what is new waits for the next acknowledgement, and
    /// leaves together.
    pub(super) fn wait_for_answer(&mut self, path: u8) {
        if self.yields(path, self.group_of_earliest(path)) {
            self.path_mut(path).is_after_timeout = true;
        }
    }
}
