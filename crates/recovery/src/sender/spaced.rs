//! Copies on purpose in packets of their own. See [`crate::SpacedCopies`].

use std::ops::Range;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::{LossRecovery, UnitState};
use crate::PacketNumber;

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
    /// `unit` was sent again because of `cause`.
    pub(super) fn plan_copies(&mut self, now: Instant, unit: u64, cause: SendCause) {
        let is_lost = matches!(cause, SendCause::Overdue | SendCause::FastRetransmit);
        let Some(group) = self.unit(unit).map(|unit| unit.group).filter(|_| is_lost) else {
            return;
        };
        let copies = self.groups.of(group).thin.spaced_copies.of_retransmissions;
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
        let (group, bytes) = (unit.group, u64::from(unit.bytes));
        if unit.is_probe
            || !self.is_thin(group)
            || !self.has_window_for(path)
            || self.is_queueing(path)
        {
            return;
        }
        let budget = self.groups.of(group).thin.copy_budget;
        if !self.spending.has_packet(budget) || self.spending.bytes_left(budget) < bytes {
            self.statistics.copies_denied += 1;
        } else if let Some(watch) = &mut self.path_mut(path).watch {
            watch.ready.push_back(planned);
        }
    }

    /// Whether what the copy repeats is still in flight as it was.
    fn is_awaited(&self, path: u8, planned: &Planned) -> bool {
        self.unit(planned.unit).is_some_and(|unit| {
            unit.state == UnitState::InFlight && unit.packet == planned.packet && unit.path == path
        })
    }

    /// Whether a queue has built up that is the sender's own.
    fn is_queueing(&self, path: u8) -> bool {
        let p = self.path(path);
        let is_much = 2 * self.ledger.flight(path).bytes >= p.window.cwnd();
        let is_slow = p.watch.as_ref().is_some_and(|watch| {
            let shortest = watch.answers.shortest().unwrap_or_default();
            watch.answers.mean() > shortest + shortest / 4
        });
        is_much && is_slow
    }

    /// The next unit of which a copy may leave over `path` in a packet of its own; it leaves through
    /// [`send_copy`](Self::send_copy).
    #[must_use]
    #[inline]
    pub fn next_copy(&self, path: u8) -> Option<u64> {
        let p = self.path(path);
        let watch = p.watch.as_ref().filter(|_| p.burst_left > 0)?;
        let ready = watch.ready.iter().find(|planned| self.is_awaited(path, planned))?;
        Some(ready.unit)
    }

    /// Puts a copy of `unit`, which [`next_copy`](Self::next_copy) named, into the packet being built,
    /// and returns what the protocol keeps with it. From here on the unit is in flight with it.
    pub fn send_copy(&mut self, now: Instant, unit: u64) -> Option<&P> {
        let (path, bytes) = self.unit(unit).map(|unit| (unit.path, unit.bytes))?;
        let watch = self.path_mut(path).watch.as_mut()?;
        let place = watch.ready.iter().position(|planned| planned.unit == unit)?;
        let planned = watch.ready.remove(place)?;
        self.resend_as(now, unit, SendCause::Redundant)?;
        self.statistics.redundant_bytes += u64::from(bytes);
        self.statistics.spaced_copies += 1;
        self.spending.on_copied(bytes);
        if planned.left > 0 {
            self.plan_copy(now, unit, planned.left - 1);
        }
        self.unit(unit).map(|unit| &unit.payload)
    }
}
