//! Which path data take, as the paths fail and recover.

use rexmit_core::Instant;

use super::LossRecovery;
use super::path::Concurrent;
use crate::destination::{Candidate, TIMEOUT_MEMORY, alternate_to, choose, data_path};
use crate::spurious::f_rto::FRto;
use crate::{FailureLimits, PathCounters, PathState, Reach, RetransmissionDestination};

/// Timeouts of a path that are remembered at most.
const MAX_TIMEOUTS: usize = 64;

impl<P> LossRecovery<P> {
    /// What is known of `path`.
    #[must_use]
    pub fn reach(&self, path: u8) -> Reach {
        self.path(path).reach
    }

    /// What was counted on `path`.
    #[must_use]
    pub fn path_counters(&self, path: u8) -> PathCounters {
        self.path(path).counters(&self.statistics)
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
    pub(super) fn choose_paths(&mut self) {
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
            RetransmissionDestination::Alternate if is_timeout => self.alternate_to(path),
            RetransmissionDestination::Elsewhere => self.alternate_to(path),
            // Those that choose late do so when it leaves; until then it stays.
            _ if is_active => path,
            _ => self.alternate_to(path),
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

    /// What was judged lost on `path` otherwise: one packet of it may leave whatever the window says,
    /// where it goes (RFC 9260 §7.2.4 rule 3).
    pub(super) fn resend_now(&mut self, path: u8) {
        let to = if self.paths.len() > 1 { self.destination(path, false) } else { path };
        self.path_mut(to).may_resend_now = true;
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
        let p = self.path_mut(from);
        p.lost.remove(&unit);
        p.set_f_rto(FRto::Off);
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
        if p.outstanding == 0 && p.reach.errors() == 0 {
            // Else both paths may be dead, and each expiry of T3-rtx would begin another silence.
            p.watch.iter_mut().for_each(|watch| watch.begin_with_next());
        }
        if p.outstanding == 0 || unit < p.earliest {
            p.earliest = unit;
        }
        p.outstanding += 1;
    }

    /// Whether the path of a retransmission is chosen as it leaves.
    #[inline]
    pub(super) fn chooses_late(&self) -> bool {
        self.paths.len() > 1 && self.config.retransmission_destination.is_chosen_late()
    }

    /// Before a packet is built: chooses the path that retransmissions take now, where that is a
    /// choice. `draw` gives a number below the one that it is given, for ties.
    pub fn choose_destination(&mut self, now: Instant, draw: impl FnOnce(u64) -> u64) {
        if !self.chooses_late() {
            return;
        }
        let policy = self.config.retransmission_destination;
        let first = self.next_lost_anywhere(self.first).and_then(|unit| self.unit(unit));
        let home = first.map(|unit| unit.path);
        let is_active = |&path: &u8| self.path(path).reach.state() == PathState::Active;
        let active = (0..self.paths.len() as u8).filter(is_active);
        self.chosen_path = home.and_then(|home| {
            if active.clone().next().is_none() {
                return Some(self.alternate_to(home));
            }
            choose(policy, active.map(|path| self.candidate(now, path)), draw)
        });
    }

    fn candidate(&self, now: Instant, path: u8) -> Candidate {
        let p = self.path(path);
        let is_recent = |at: &&Instant| **at + TIMEOUT_MEMORY > now;
        let counters = p.counters(&self.statistics);
        let timeouts = p.concurrent.iter().flat_map(|known| known.timeouts.iter().rev());
        Candidate {
            path,
            has_room: p.burst_left > 0 && self.has_room(path, 0),
            lost: (counters.packets_lost, counters.packets),
            cwnd: p.window.cwnd(),
            ssthresh: p.window.ssthresh(),
            recent_timeouts: timeouts.clone().take_while(is_recent).count() as u64,
            last_timeout: timeouts.clone().next().copied(),
        }
    }

    /// T3-rtx of `path` has expired, if it ran.
    pub(super) fn remember_timeout(&mut self, path: u8) {
        if self.config.retransmission_destination != RetransmissionDestination::Csi {
            return;
        }
        let Some(at) = self.t3_deadline(path) else { return };
        let Some(Concurrent { timeouts, .. }) = self.path_mut(path).concurrent.as_deref_mut()
        else {
            return;
        };
        if timeouts.len() == MAX_TIMEOUTS {
            timeouts.pop_front();
        }
        timeouts.push_back(at);
    }

    /// The first unit from `from` on that waits to be sent again, over any path.
    pub(super) fn next_lost_anywhere(&self, from: u64) -> Option<u64> {
        self.paths.iter().filter_map(|path| path.lost.range(from..).next()).min().copied()
    }

    pub(super) fn next_to_resend_over_chosen(&self, path: u8) -> Option<u64> {
        let unit =
            self.next_lost_anywhere(self.first).filter(|_| self.chosen_path == Some(path))?;
        let p = self.path(path);
        let may_leave = self.paths.iter().any(|path| path.may_resend_now)
            || (p.burst_left > 0 && self.has_room(path, 0));
        may_leave.then_some(unit)
    }

    /// One packet has left whatever the windows said.
    pub(super) fn on_chosen_used(&mut self) {
        if self.chooses_late() {
            self.paths.iter_mut().for_each(|path| path.may_resend_now = false);
        }
    }

    /// Whether what is to be sent again over `path` comes before anything new.
    pub(super) fn is_held_back(&self, path: u8) -> bool {
        if self.chooses_late() {
            self.chosen_path == Some(path) && self.has_lost()
        } else {
            self.has_lost_for(path) && !self.path(path).f_rto().prefers_new()
        }
    }
}
