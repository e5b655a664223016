//! Copies on purpose in packets of their own. See [`crate::SpacedCopies`].

use std::ops::Range;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::{LossRecovery, Unit, UnitState};
use crate::PacketNumber;
use crate::redundancy::FirstSent;

/// Copies of a path that are planned, at most.
const MAX_PLANNED: usize = 64;

/// A copy that is to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    at: Instant,
    unit: u64,
    /// The packet that it repeats: it is not needed if the unit has left in another since.
    packet: PacketNumber,
    /// Copies that are to follow.
    left: u8,
}

impl<P> LossRecovery<P> {
    /// `unit` was sent again because of `cause`; so many copies beside new data left before, and count.
    pub(super) fn plan_copies(&mut self, now: Instant, unit: u64, cause: SendCause, standing: u8) {
        let is_lost = matches!(cause, SendCause::Overdue | SendCause::FastRetransmit);
        let Some(group) = self.unit(unit).map(|unit| unit.group).filter(|_| is_lost) else {
            return;
        };
        let copies = self.groups.of(group).thin.spaced_copies.of_retransmissions;
        let copies = copies.saturating_sub(standing);
        if copies > 0 && self.is_thin(group) {
            self.plan_copy(now, unit, copies - 1);
        }
    }

    fn plan_copy(&mut self, now: Instant, unit: u64, left: u8) {
        let Some((path, group, packet)) = self.unit(unit).map(|u| (u.path, u.group, u.packet))
        else {
            return;
        };
        let at = now + self.groups.of(group).thin.spaced_copies.interval;
        let planned = &mut self.path_mut(path).watch.get_or_insert_default().planned;
        if planned.len() < MAX_PLANNED {
            let place = planned.partition_point(|known| known.at <= at);
            planned.insert(place, Planned { at, unit, packet, left });
        }
    }

    /// A packet left over `path` with these new units.
    pub(super) fn plan_last(&mut self, now: Instant, path: u8, units: Range<u64>) {
        let group = self.unit(units.start).map_or(0, |unit| unit.group);
        let after = self.groups.of(group).thin.spaced_copies.of_last_after;
        let is_wanted = after.is_some() && self.is_thin(group);
        if is_wanted || self.path(path).watch.as_ref().is_some_and(|watch| watch.last.is_some()) {
            let watch = self.path_mut(path).watch.get_or_insert_default();
            watch.last = after.filter(|_| is_wanted).map(|after| (now + after, units));
        }
    }

    /// When the next copy of `path` is due.
    pub(super) fn next_planned(&self, path: u8) -> Instant {
        let Some(watch) = &self.path(path).watch else { return Instant::FAR_FUTURE };
        let planned = watch.planned.front().map_or(Instant::FAR_FUTURE, |planned| planned.at);
        watch.last.as_ref().map_or(planned, |(at, _)| planned.min(*at))
    }

    /// Copies that are due may leave, if they still make sense.
    pub(super) fn ready_copies(&mut self, now: Instant, path: u8) {
        let Some(watch) = &self.path(path).watch else { return };
        let is_denied = |it: &&Planned| self.is_awaited(path, it) && !self.is_paid(it);
        self.statistics.copies_denied += watch.ready.iter().filter(is_denied).count() as u64;
        let Some(watch) = &mut self.path_mut(path).watch else { return };
        watch.ready.clear();
        if let Some((at, units)) = watch.last.take_if(|(at, _)| *at <= now) {
            for unit in units {
                let packet = self.unit(unit).map_or(PacketNumber(0), |unit| unit.packet);
                self.ready_copy(path, Planned { at, unit, packet, left: 0 });
            }
        }
        while let Some(watch) = &mut self.path_mut(path).watch
            && watch.planned.front().is_some_and(|planned| planned.at <= now)
            && let Some(planned) = watch.planned.pop_front()
        {
            self.ready_copy(path, planned);
        }
    }

    fn ready_copy(&mut self, path: u8, planned: Planned) {
        let Some(unit) = self.unit(planned.unit).filter(|_| self.is_awaited(path, &planned)) else {
            return;
        };
        let (group, bytes) = (unit.group, unit.bytes);
        if !unit.is_probe
            && self.may_copy_alone(path, group, bytes)
            && let Some(watch) = &mut self.path_mut(path).watch
        {
            watch.ready.push_back(planned);
        }
    }

    /// Whether a copy of so many bytes of `group` may leave over `path` in a packet of its own.
    fn may_copy_alone(&mut self, path: u8, group: u8, bytes: u32) -> bool {
        if !self.is_thin(group) || !self.has_window_for(path) {
            return false;
        }
        let may_leave = self.may_pay(path, group, bytes);
        self.statistics.copies_denied += u64::from(!may_leave);
        may_leave
    }

    /// Whether the budget still allows it: others that are due at once may have spent what there was.
    fn is_paid(&self, planned: &Planned) -> bool {
        self.unit(planned.unit).is_some_and(|unit| self.may_pay(unit.path, unit.group, unit.bytes))
    }

    /// Whether the budget allows a copy of so many bytes of `group`, in the packet being built if there
    /// is one.
    fn may_pay(&self, path: u8, group: u8, bytes: u32) -> bool {
        let budget = self.groups.of(group).thin.copy_budget;
        let is_begun = self.open.is_some_and(|open| open.units > 0);
        let has_packet = is_begun || self.spending.has_packet(budget);
        has_packet && self.bytes_to_copy(path, group) >= u64::from(bytes)
    }

    /// Whether `unit` is to leave again, in a packet of its own, now that what left at `at` is overdue.
    ///
    /// Copies beside new data that left since are copies as good: as many as would leave then are
    /// enough, and the latest of them is waited for. Where messages are about a round trip apart there
    /// are fewer, and they left just now: what is missing leaves as a copy, if one may.
    pub(super) fn lacks_copies(&mut self, unit: u64, at: Instant) -> bool {
        let Some((copies, latest)) = self.copies.since(unit) else { return true };
        if latest <= at {
            self.copies.restart(unit);
            return true;
        }
        let Some(u) = self.unit(unit) else { return false };
        let (path, group, bytes) = (u.path, u.group, u.bytes);
        let is_first = self.ledger.packet(u.packet).is_some_and(|packet| packet.sent_at == at);
        let is_enough = copies > self.groups.of(group).thin.spaced_copies.of_retransmissions;
        if is_enough || !is_first || !self.may_copy_alone(path, group, bytes) {
            return false;
        }
        self.spending.on_copied(bytes);
        true
    }

    /// Whether what the copy repeats is still in flight as it was.
    fn is_awaited(&self, path: u8, planned: &Planned) -> bool {
        self.unit(planned.unit).is_some_and(|unit| {
            unit.state == UnitState::InFlight && unit.packet == planned.packet && unit.path == path
        })
    }

    /// The next unit of which a copy may leave over `path` in a packet of its own; it leaves through
    /// [`send_copy`](Self::send_copy).
    #[must_use]
    #[inline]
    pub fn next_copy(&self, path: u8) -> Option<u64> {
        let p = self.path(path);
        let watch = p.watch.as_ref().filter(|_| p.burst_left > 0)?;
        let may_leave = |it: &&Planned| self.is_awaited(path, it) && self.is_paid(it);
        watch.ready.iter().find(may_leave).map(|ready| ready.unit)
    }

    /// `unit`, which [`next_copy`](Self::next_copy) named for `path`, is to have none.
    pub fn drop_copy(&mut self, path: u8, unit: u64) {
        if let Some(watch) = &mut self.path_mut(path).watch {
            watch.ready.retain(|planned| planned.unit != unit);
        }
    }

    /// Puts a copy of `unit`, which [`next_copy`](Self::next_copy) named, into the packet being built,
    /// and returns what the protocol keeps with it. From here on the unit is in flight with it.
    pub fn send_copy(&mut self, now: Instant, unit: u64) -> Option<&P> {
        let &Unit { path, bytes, group, packet, transmissions, is_copied, .. } = self.unit(unit)?;
        let watch = self.path_mut(path).watch.as_mut()?;
        let place = watch.ready.iter().position(|planned| planned.unit == unit)?;
        let planned = watch.ready.remove(place)?;
        let sent_at = self.ledger.packet(packet).map(|packet| packet.sent_at);
        self.resend_as(now, unit, SendCause::Redundant)?;
        if transmissions == 1 && !is_copied {
            let u = self.unit_mut(unit)?;
            u.is_copied = true;
            let copy = u.packet;
            self.copies.on_left_alone(now, unit, FirstSent { packet, sent_at, path, group }, copy);
        }
        self.statistics.redundant_bytes += u64::from(bytes);
        self.statistics.spaced_copies += 1;
        self.spending.on_copied(bytes);
        if planned.left > 0 {
            self.plan_copy(now, unit, planned.left - 1);
        }
        self.unit(unit).map(|unit| &unit.payload)
    }
}
