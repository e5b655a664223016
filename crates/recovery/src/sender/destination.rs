//! Which path data take, as the paths fail and recover.

use super::LossRecovery;
use crate::destination::{alternate_to, data_path};
use crate::{FailureLimits, PathCounters, PathState, Reach, RetransmissionDestination};

impl<P> LossRecovery<P> {
    /// What is known of `path`.
    #[must_use]
    pub fn reach(&self, path: u8) -> Reach {
        self.path(path).reach
    }

    /// What was counted on `path`.
    #[must_use]
    pub fn path_counters(&self, path: u8) -> &PathCounters {
        &self.path(path).counters
    }

    /// The path that the application has chosen for data.
    #[must_use]
    pub const fn primary_path(&self) -> u8 {
        self.primary
    }

    /// The path that new data take now: the primary one, or while that has failed another.
    #[must_use]
    pub const fn data_path(&self) -> u8 {
        self.data_path
    }

    /// The path over which to try again what was not answered over `path` (RFC 9260 §6.4.1).
    #[must_use]
    pub fn alternate_to(&self, path: u8) -> u8 {
        if self.paths.len() == 1 {
            return path;
        }
        alternate_to(path, self.reaches(), self.primary)
    }

    /// New data take `path` while it works.
    pub fn set_primary_path(&mut self, path: u8) {
        self.primary = path;
        self.choose_paths();
    }

    /// Something that was sent over `path` was not answered in time (RFC 9260 §8.2). Returns the
    /// new state, if that is another.
    pub fn on_path_error(&mut self, path: u8, path_max_retrans: u32) -> Option<PathState> {
        let limits = FailureLimits {
            potentially_failed: self.config.potentially_failed_max_retrans,
            inactive: path_max_retrans,
        };
        let change = self.change_reach(path, |reach| reach.on_error(limits));
        // Among paths that are not active the fewest errors decide.
        self.choose_paths();
        change
    }

    /// Something was answered that was sent over `path`, and if it `is_certain`, over no other.
    /// Returns the new state, if that is another.
    pub fn on_path_answered(&mut self, path: u8, is_certain: bool) -> Option<PathState> {
        self.change_reach(path, |reach| reach.on_answer(is_certain))
    }

    /// A probe of `path` with a random number in it was answered (RFC 9260 §5.4, §8.3). Returns the
    /// new state, if that is another.
    pub fn on_path_probed(&mut self, path: u8) -> Option<PathState> {
        self.change_reach(path, Reach::on_probe_answered)
    }

    fn change_reach(&mut self, path: u8, change: impl FnOnce(&mut Reach)) -> Option<PathState> {
        let reach = &mut self.path_mut(path).reach;
        let before = reach.state();
        change(reach);
        let state = reach.state();
        if state == before {
            return None;
        }
        self.choose_paths();
        Some(state)
    }

    /// A path has changed: new data and what waits to be sent again take the best one.
    fn choose_paths(&mut self) {
        if self.paths.len() == 1 {
            return;
        }
        self.data_path = data_path(self.reaches(), self.primary, self.data_path);
        for path in 0..self.paths.len() as u8 {
            if self.path(path).reach.state() != PathState::Active {
                self.move_lost(path, self.alternate_to(path));
            }
        }
    }

    fn reaches(&self) -> impl ExactSizeIterator<Item = Reach> + '_ {
        self.paths.iter().map(|path| path.reach)
    }

    /// Where a unit goes that was sent over `path` and is judged lost, by the timer or otherwise.
    pub(super) fn destination(&self, path: u8, is_timeout: bool) -> u8 {
        let is_active = self.path(path).reach.state() == PathState::Active;
        match self.config.retransmission_destination {
            RetransmissionDestination::Same if is_active => path,
            RetransmissionDestination::Alternate if is_active && !is_timeout => path,
            RetransmissionDestination::Same | RetransmissionDestination::Alternate => {
                self.alternate_to(path)
            }
        }
    }

    /// The timer of `path` expired: what waited for its window goes where the rest goes, of which
    /// one packet may leave whatever the window says (RFC 9260 §6.3.3 E3).
    pub(super) fn leave_elsewhere(&mut self, path: u8) {
        self.path_mut(path).may_resend_now = true;
        if self.paths.len() > 1 {
            self.move_lost(path, self.destination(path, true));
        }
        self.settle_resending();
    }

    fn move_lost(&mut self, from: u8, to: u8) {
        if from == to || self.path(from).lost.is_empty() {
            return;
        }
        while let Some(&unit) = self.path(from).lost.first() {
            self.send_elsewhere(unit, to);
        }
        let may_resend_now = std::mem::take(&mut self.path_mut(from).may_resend_now);
        self.path_mut(to).may_resend_now |= may_resend_now;
    }

    /// `unit`, which is judged lost, is to be sent again over `to`.
    pub(super) fn send_elsewhere(&mut self, unit: u64, to: u8) {
        let Some(from) = self.unit(unit).map(|u| u.path).filter(|&from| from != to) else { return };
        self.path_mut(from).lost.remove(&unit);
        self.path_mut(to).lost.insert(unit);
        self.move_to_path(unit, from, to);
    }

    /// `unit` is outstanding on `to` instead of `from`.
    pub(super) fn move_to_path(&mut self, unit: u64, from: u8, to: u8) {
        if let Some(u) = self.unit_mut(unit) {
            u.path = to;
        }
        self.leave_path(unit, from);
        let p = self.path_mut(to);
        if p.outstanding == 0 || unit < p.earliest {
            p.earliest = unit;
        }
        p.outstanding += 1;
    }
}
