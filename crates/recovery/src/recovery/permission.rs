//! Permission to send: by the window, Max.Burst, and the rules of a recovery.

use super::LossRecovery;
use crate::PathState;
use crate::spurious::SpuriousDetection;

/// A look at what decides.
#[derive(Debug)]
pub(super) struct Permission<'a, P>(&'a LossRecovery<P>);

impl<'a, P> Permission<'a, P> {
    #[inline]
    pub(super) const fn of(recovery: &'a LossRecovery<P>) -> Self {
        Self(recovery)
    }

    /// Whether the window of `path` has room for a packet, if `beyond` bytes in flight do not count.
    #[inline]
    fn has_room(&self, path: u8, beyond: u64) -> bool {
        self.0.state.has_room(path, self.0.loss.duplicates.departed() + beyond)
    }

    #[inline]
    pub(super) fn may_pass_window(&self, path: u8) -> bool {
        let path_state = &self.0.state.paths[path];
        path_state.gate.burst_left > 0
            && !path_state.window.is_paced(false)
            && self.has_room(path, 0)
    }

    /// Whether units of `group` may exceed the window and the credit of the pacer by a packet: those of a stream
    /// that is thin beside others.
    #[inline]
    fn may_exceed(&self, path: u8, group: u8) -> bool {
        let state = &self.0.state;
        state.shares_path(path, group) && state.is_thin(group)
    }

    /// The next unit to be retransmitted over `path`, if one may be sent now (RFC 9260 §6.1 C, §7.2.4).
    #[inline(always)] // Asked several times with every packet: the call would cost as much again.
    pub(super) fn next_lost(&self, path: u8) -> Option<u64> {
        if self.0.state.chooses_late() {
            return self.next_lost_of_chosen(path);
        }
        let unit = self.0.state.outstanding.on(path).first_lost()?;
        let gate = &self.0.state.paths[path].gate;
        let may_be_sent = gate.may_retransmit_now() || self.may_pass_window(path);
        let holds = |it: &SpuriousDetection| it.holds_lost(path, gate.may_retransmit_now());
        let is_held = || self.0.spurious.as_deref().is_some_and(holds);
        (may_be_sent && !is_held()).then_some(unit)
    }

    #[cold]
    fn next_lost_of_chosen(&self, path: u8) -> Option<u64> {
        let paths = &self.0.state.paths;
        let unit = self.0.state.outstanding.lost_anywhere(0);
        let unit = unit.filter(|_| paths.chosen == Some(path))?;
        let may_be_sent =
            paths.iter().any(|path| path.gate.may_retransmit_now()) || self.may_pass_window(path);
        may_be_sent.then_some(unit)
    }

    /// The unit after `unit` that waits to be retransmitted over `path`, to fill a packet.
    pub(super) fn lost_after(&self, unit: u64, path: u8) -> Option<u64> {
        if self.0.state.chooses_late() {
            self.0.state.outstanding.lost_anywhere(unit + 1)
        } else {
            self.0.state.outstanding.on(path).lost_from(unit + 1)
        }
    }

    /// The next unit of which a delayed copy may be sent over `path`.
    #[inline(always)] // As above.
    pub(super) fn next_copy(&self, path: u8, is_begun: bool) -> Option<u64> {
        let has_burst = || self.0.state.paths[path].gate.burst_left > 0;
        let may_be_any = self.0.redundancy.has_ready(path) && has_burst();
        if may_be_any { self.0.redundancy.next_copy(path, is_begun, &self.0.state) } else { None }
    }

    /// Whether a packet with new units of `group` may be sent over `path` now: retransmissions come first
    /// (RFC 9260 §6.1 C), of those on the same path if all are used at once.
    #[inline]
    pub(super) fn may_send_new(&self, path: u8, group: u8) -> bool {
        let paths = &self.0.state.paths;
        if !self.has_room_for_new(path, group) {
            false
        } else if paths.is_one() {
            !self.must_retransmit_first()
        } else if self.0.state.cmt().is_some() {
            let is_active = paths[path].reach().state() == PathState::Active;
            (path == paths.data_path() || is_active) && !self.is_held_back(path)
        } else {
            path == paths.data_path() && !self.must_retransmit_first()
        }
    }

    /// Whether the window of `path` has room for new units of `group` (RFC 9260 §6.1 B, D; RFC 3042 §2).
    #[inline]
    pub(super) fn has_room_for_new(&self, path: u8, group: u8) -> bool {
        let path_state = &self.0.state.paths[path];
        let (gate, window) = (&path_state.gate, &path_state.window);
        let is_held = gate.burst_left == 0
            || gate.may_retransmit_now()
            || self.0.spurious.as_ref().is_some_and(|it| it.holds_new(path));
        if is_held {
            return false;
        }
        let allowance = self.limited_transmit(path);
        let has_room = !window.is_paced(false) && self.has_room(path, allowance);
        has_room
            || (self.may_exceed(path, group)
                && !window.is_paced(true)
                && self.has_room(path, allowance + window.packet()))
    }

    /// Whether the next packet of retransmissions over `path` probes it because it is silent, and new data may follow in it: if
    /// the window has room.
    #[cold]
    pub(super) fn probes_silence(&self, path: u8) -> bool {
        let LossRecovery { state, probe, .. } = self.0;
        let p = &state.paths[path];
        let is_alone = path == state.paths.data_path() && state.cmt().is_none();
        let is_probe = probe.is_silent(path) && p.gate.may_retransmit_now();
        is_alone && is_probe && p.window.has_room(state.outstanding.flight(path).bytes)
    }

    /// Bytes that may be sent beyond the window of `path` because of the first duplicate acknowledgements.
    #[inline]
    pub(super) fn limited_transmit(&self, path: u8) -> u64 {
        let LossRecovery { state, loss, .. } = self.0;
        let is_off = loss.duplicates.is_empty() || !state.config.tcp.limited_transmit;
        if is_off || state.outstanding.has_lost() {
            return 0;
        }
        loss.duplicates.limited_transmit(state.paths[path].window.packet())
    }

    /// Whether units declared lost have to be sent before new data: always, except for F-RTO.
    #[inline]
    fn must_retransmit_first(&self) -> bool {
        let prefers_new = |it: &SpuriousDetection| it.prefers_new_somewhere();
        self.0.state.outstanding.has_lost() && !self.0.spurious.as_deref().is_some_and(prefers_new)
    }

    /// Whether retransmissions over `path` come before new data.
    fn is_held_back(&self, path: u8) -> bool {
        if self.0.state.chooses_late() {
            self.0.state.paths.chosen == Some(path) && self.0.state.outstanding.has_lost()
        } else {
            let prefers_new = |it: &SpuriousDetection| it.prefers_new(path);
            self.0.state.outstanding.on(path).has_lost()
                && !self.0.spurious.as_deref().is_some_and(prefers_new)
        }
    }

    /// A unit that may be lost, to keep the acknowledgements of a recovery by scoreboard coming (RFC 6675 §4
    /// `NextSeg` rules 3 and 4).
    pub(super) fn rescue_unit(&self, path: u8) -> Option<u64> {
        let is_recovering =
            self.0.state.fast_recovery.is_on() && !self.0.loss.duplicates.is_recovering();
        if !is_recovering || self.0.state.outstanding.has_lost() || !self.may_pass_window(path) {
            return None;
        }
        self.0.loss.rescue_unit(&self.0.state.outstanding)
    }
}
