//! The books of what is outstanding: in flight on a path, or judged lost and waiting for one.

use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::{LossRecovery, Unit, UnitState};
use crate::PacketNumber;
use crate::ledger::{EndedUnit, Fate};

impl<P> LossRecovery<P> {
    /// Gives `unit` up (RFC 3758): it will not be sent again and is not in flight. One that was
    /// acknowledged above the cumulative point is given up, too, as a part of its message.
    pub fn abandon(&mut self, unit: u64) {
        let Some(u) = self.unit_mut(unit) else { return };
        let (state, path, sent_over, user_bytes) = (u.state, u.path, u.sent_over, u.user_bytes);
        u.state = UnitState::Abandoned;
        match state {
            UnitState::Abandoned | UnitState::Acknowledged => return,
            UnitState::InFlight => {
                self.leave_flight(unit, Fate::Superseded);
                self.ledger.forget_ended();
            }
            UnitState::Lost(_) => {
                self.leave_lost(unit);
                // Whether it had arrived will never be known.
                self.path_mut(sent_over).doubt();
            }
        }
        self.path_mut(sent_over).leave_share(user_bytes);
        self.missing.forget(unit);
        self.copies.forget(unit);
        self.arm_early(path);
        self.renew_overdue(path);
        self.leave_path(unit, path);
        self.settle_resending();
    }

    /// `unit` is no longer outstanding on `path`.
    pub(super) fn leave_path(&mut self, unit: u64, path: u8) {
        let p = self.path_mut(path);
        p.outstanding -= 1;
        if p.outstanding == 0 {
            p.t3 = None;
        } else if p.earliest == unit {
            self.advance_earliest(path);
        }
    }

    /// Where nothing waits to be sent again, no packet may pass the window for it.
    pub(super) fn settle_resending(&mut self) {
        for path in &mut self.paths {
            path.may_resend_now &= !path.lost.is_empty();
        }
    }

    /// Finds the earliest unit outstanding on `path` again, upwards from where it was: each unit
    /// is passed over once.
    pub(super) fn advance_earliest(&mut self, path: u8) {
        let is_outstanding = |u: &Unit<P>| {
            u.path == path && matches!(u.state, UnitState::InFlight | UnitState::Lost(_))
        };
        let from = self.path(path).earliest.max(self.first);
        let found =
            (from..self.next_unit()).find(|&unit| self.unit(unit).is_some_and(is_outstanding));
        self.path_mut(path).earliest = found.unwrap_or(self.next_unit());
    }

    /// Takes `unit` out of the flight; its packet meets `fate` if it was the highest unit in it.
    pub(super) fn leave_flight(&mut self, unit: u64, fate: Fate) -> Option<PacketNumber> {
        let &Unit { bytes, user_bytes, path, packet, .. } = self.unit(unit)?;
        let ended = EndedUnit { unit, bytes, path, packet };
        self.end_flight(&ended, user_bytes, fate).then_some(packet)
    }

    /// The same for what the caller knows already; returns whether the packet met `fate`.
    #[inline]
    pub(super) fn end_flight(&mut self, ended: &EndedUnit, user_bytes: u32, fate: Fate) -> bool {
        self.user_bytes_in_flight -= u64::from(user_bytes);
        self.ledger.on_unit_ended(ended, fate)
    }

    /// `unit` is about to be judged lost: a duplicate report may tell later what its round trip was.
    fn remember_first_copy(&mut self, unit: u64) {
        let Some(u) = self.unit(unit) else { return };
        if u.transmissions > 1 || u.is_copied {
            self.log.iter_mut().for_each(|log| log.first_copies.on_later_lost(unit));
            return;
        }
        let (path, group) = (u.sent_over, u.group);
        let sent_at = self.ledger.packet(u.packet).map(|packet| packet.sent_at);
        let thin = &self.groups.of(group).thin;
        let is_on = thin.duplicate_samples || thin.recovery_timer.is_on;
        let is_wanted = is_on && self.is_thin(group);
        if let Some(sent_at) = sent_at.filter(|_| is_wanted) {
            let log = self.log.get_or_insert_default();
            log.first_copies.on_first_lost(unit, path, sent_at);
        }
    }

    pub(super) fn mark_lost(&mut self, unit: u64, cause: SendCause, tracer: &mut Tracer<'_>) {
        let is_first = self.unit(unit).is_some_and(|unit| unit.transmissions == 1);
        if let Some(packet) = self.leave_flight(unit, Fate::Lost(cause)) {
            // The receiver refused a window probe; the network lost nothing.
            if cause != SendCause::WindowProbe {
                self.count_lost_packet(is_first);
                let path = self.unit(unit).map_or(0, |u| u.path);
                if let Some(known) = &mut self.path_mut(path).concurrent {
                    known.counters.packets_lost += 1;
                }
            }
            tracer.emit(|| TraceEvent::PacketLost { packet: packet.0, cause });
        }
        self.remember_first_copy(unit);
        let is_counted_on = self.is_adaptive();
        let Some(u) = self.unit_mut(unit) else { return };
        u.state = UnitState::Lost(cause);
        let (path, sent_over, user_bytes) = (u.path, u.sent_over, u64::from(u.user_bytes));
        self.user_bytes_lost += user_bytes;
        if is_counted_on {
            self.missing.judge(unit);
        } else {
            self.missing.forget(unit);
        }
        if let Some(known) = &mut self.path_mut(sent_over).concurrent {
            known.awaiting += 1;
        }
        self.path_mut(path).lost.insert(unit);
        if self.paths.len() > 1 {
            self.send_elsewhere(unit, self.destination(path, false));
        }
    }

    /// `unit` does not wait to be sent again any more.
    pub(super) fn leave_lost(&mut self, unit: u64) {
        let Some(u) = self.unit(unit) else { return };
        let (path, sent_over, user_bytes) = (u.path, u.sent_over, u64::from(u.user_bytes));
        self.path_mut(path).lost.remove(&unit);
        if let Some(known) = &mut self.path_mut(sent_over).concurrent {
            known.awaiting -= 1;
        }
        self.user_bytes_lost -= user_bytes;
    }
}
