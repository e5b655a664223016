//! Units that are declared lost, return to flight, move to another path, or are abandoned.

use super::repeats::FirstTransmission;
use super::{Fate, Flight, Outstanding, PacketNumber, PathUnits, SentPackets, Unit, UnitState};
use rexmit_core::Instant;
use rexmit_core::trace::SendCause;
use smallvec::SmallVec;

/// A unit was declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostUnit {
    pub(crate) path: u8,
    /// The path over which it was last sent.
    pub(crate) sent_over: u8,
    pub(crate) group: u8,
    /// The packet that is lost with the unit.
    pub(crate) packet: Option<PacketNumber>,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) is_first_transmission: bool,
    pub(crate) is_copied: bool,
}

/// A unit is outstanding on another path than before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) from: u8,
    pub(crate) to: u8,
    /// Whether nothing was outstanding on the new path.
    pub(crate) was_idle: bool,
}

/// A unit was abandoned that was outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abandoned {
    pub(crate) path: u8,
    pub(crate) sent_over: u8,
    /// Whether the unit waited to be retransmitted.
    pub(crate) was_lost: bool,
}

/// Queries.
impl<P> Outstanding<P> {
    /// The units in flight in `packet`, in order.
    pub(crate) fn in_flight_in(&self, packet: PacketNumber) -> SmallVec<[u64; 8]> {
        let Some(sent) = self.packets.packet(packet) else { return SmallVec::new() };
        let units = self.units_from(sent.lowest);
        let units = units.take_while(|(number, _)| *number <= sent.highest);
        units.filter(|(_, unit)| unit.is_in_flight_in(packet)).map(|(number, _)| number).collect()
    }

    /// The first unit from `from` on that waits to be retransmitted, over any path.
    pub(crate) fn lost_anywhere(&self, from: u64) -> Option<u64> {
        self.paths.iter().filter_map(|path| path.lost_from(from)).min()
    }

    /// The units declared lost and not retransmitted yet that were last sent over `path`, even if they are
    /// queued for retransmission over another path.
    pub(crate) fn awaiting(&self, path: u8) -> impl Iterator<Item = u64> {
        let lost = self.paths.iter().flat_map(|on_path| on_path.lost.iter().copied());
        lost.filter(move |&unit| self.unit(unit).is_some_and(|unit| unit.last_sent.path == path))
    }

    /// The first transmission of `unit`, if it was declared lost and round trips are measured by it.
    pub(crate) fn first_transmission(&self, unit: u64) -> Option<FirstTransmission> {
        let repeats = match unit >= self.first {
            true => self.unit(unit)?.repeats(),
            false => self.history.delivered(unit),
        };
        repeats?.first
    }
}

impl PathUnits {
    pub(crate) fn lost_from(&self, from: u64) -> Option<u64> {
        self.lost.range(from..).next().copied()
    }
}

/// Transitions.
impl<P> Outstanding<P> {
    /// Declares `unit` lost. `None` if it is not in flight.
    pub(crate) fn lose(&mut self, unit: u64, cause: SendCause) -> Option<LostUnit> {
        let packet = self.leave_flight(unit, Fate::Lost(cause));
        let u = self.unit_mut(unit)?;
        let (path, last, group) = (u.path, u.last(), u.group);
        let (is_first_transmission, is_copied) = (u.is_first_transmission(), u.is_copied);
        u.state = UnitState::Lost(cause);
        if !is_first_transmission || is_copied {
            u.repeats.iter_mut().for_each(|repeats| repeats.on_later_lost());
        }
        self.user_bytes_lost += u64::from(u.user_bytes);
        self.on_mut(last.path).awaiting += 1;
        self.on_mut(path).lost.insert(unit);
        self.check();
        Some(LostUnit {
            path,
            sent_over: last.path,
            group,
            packet,
            sent_at: self.packets.sent_at(last.packet),
            is_first_transmission,
            is_copied,
        })
    }

    /// Returns `unit` to flight, because the receiver no longer reports it after acknowledging it above the cumulative point.
    pub(super) fn renege(&mut self, unit: u64) {
        let Some(u) = self.unit_mut(unit).filter(|u| u.state == UnitState::Acknowledged) else {
            return; // An abandoned unit stays abandoned.
        };
        u.path = u.last_sent.path;
        let (path, user_bytes) = (u.path, u64::from(u.user_bytes));
        self.return_to_flight(unit);
        let on_path = self.on_mut(path);
        on_path.earliest = if on_path.outstanding == 0 { unit } else { on_path.earliest.min(unit) };
        on_path.outstanding += 1;
        on_path.user_bytes += user_bytes;
        self.check();
    }

    /// Returns `unit`, which was declared lost wrongly, to flight on the path where it was last sent.
    pub(crate) fn return_lost(&mut self, unit: u64) -> Option<Moved> {
        let u = self.unit(unit)?;
        let (from, to) = (u.path, u.last_sent.path);
        self.leave_lost(unit);
        let moved = (from != to).then(|| self.move_between(unit, from, to));
        self.return_to_flight(unit);
        self.check();
        moved
    }

    /// Makes `unit` outstanding on path `to`. `None` if it was there already.
    pub(crate) fn move_to(&mut self, unit: u64, to: u8) -> Option<Moved> {
        let from = self.unit(unit)?.path;
        if from == to {
            return None;
        }
        if self.on_mut(from).lost.remove(&unit) {
            self.on_mut(to).lost.insert(unit);
        }
        let moved = self.move_between(unit, from, to);
        self.check();
        Some(moved)
    }

    /// Abandons `unit` (RFC 3758), also if it was acknowledged above the cumulative point, because its
    /// message is abandoned as a whole. `None` if it was not outstanding.
    pub(crate) fn abandon(&mut self, unit: u64) -> Option<Abandoned> {
        let u = self.unit_mut(unit)?;
        let (state, path, last) = (u.state, u.path, u.last());
        u.state = UnitState::Abandoned;
        match state {
            UnitState::Abandoned | UnitState::Acknowledged => return None,
            UnitState::InFlight => {
                self.leave_flight(unit, Fate::Superseded);
                self.packets.forget_ended();
            }
            UnitState::Lost(_) => self.leave_lost(unit),
        }
        let user_bytes = self.unit(unit).map_or(0, |u| u64::from(u.user_bytes));
        self.on_mut(last.path).user_bytes -= user_bytes;
        self.leave_path(unit, path);
        self.check();
        Some(Abandoned { path, sent_over: last.path, was_lost: state != UnitState::InFlight })
    }

    /// Ends the role of `unit` as a window probe, because the peer's window is open again. Returns whether it is in flight.
    pub(crate) fn end_probe(&mut self, unit: u64) -> bool {
        let Some(u) = self.unit_mut(unit) else { return false };
        u.is_probe = false;
        u.is_in_flight()
    }

    /// Removes `unit` from the flight; returns its packet if that thereby met `fate`.
    pub(super) fn leave_flight(&mut self, unit: u64, fate: Fate) -> Option<PacketNumber> {
        let &Unit { bytes, user_bytes, path, last_packet: packet, .. } = self.unit(unit)?;
        self.user_bytes_in_flight -= u64::from(user_bytes);
        self.packets.on_departed(path, bytes, packet, fate).0.then_some(packet)
    }

    /// Removes `unit` from the units that wait to be retransmitted.
    pub(super) fn leave_lost(&mut self, unit: u64) {
        let Some(u) = self.unit(unit) else { return };
        let (path, sent_over, user_bytes) = (u.path, u.last_sent.path, u64::from(u.user_bytes));
        self.on_mut(path).lost.remove(&unit);
        self.on_mut(sent_over).awaiting -= 1;
        self.user_bytes_lost -= user_bytes;
    }

    /// Removes `unit` from the outstanding data of `path`.
    pub(super) fn leave_path(&mut self, unit: u64, path: u8) {
        let on_path = self.on_mut(path);
        on_path.outstanding -= 1;
        if on_path.outstanding > 0 && on_path.earliest == unit {
            self.advance_earliest(path);
        }
    }

    pub(super) fn move_between(&mut self, unit: u64, from: u8, to: u8) -> Moved {
        if let Some(u) = self.unit_mut(unit) {
            u.path = to;
        }
        self.leave_path(unit, from);
        let on_path = self.on_mut(to);
        let was_idle = on_path.outstanding == 0;
        if was_idle || unit < on_path.earliest {
            on_path.earliest = unit;
        }
        on_path.outstanding += 1;
        Moved { from, to, was_idle }
    }

    pub(super) fn return_to_flight(&mut self, unit: u64) {
        let Some(u) = self.unit_mut(unit) else { return };
        u.state = UnitState::InFlight;
        let &mut Unit { path, last_packet, bytes, user_bytes, .. } = u;
        self.packets.on_returned(path, bytes, last_packet);
        self.user_bytes_in_flight += u64::from(user_bytes);
    }
}

/// The end.
impl<P> Outstanding<P> {
    /// Forgets every unit, giving each to `f` in order: the end of the association.
    pub(crate) fn drain(&mut self, f: impl FnMut(Unit<P>)) {
        self.first = self.next_unit();
        self.units.drain(..).for_each(f);
        self.acknowledged.clear();
        let flights = vec![Flight::default(); self.paths.len()];
        self.packets = SentPackets { flights, ..SentPackets::default() };
        self.history.release_memory(self.first - 1);
        (self.bytes, self.user_bytes_in_flight, self.user_bytes_lost) = (0, 0, 0);
        for path in &mut self.paths {
            *path = PathUnits { earliest: path.earliest, ..PathUnits::default() };
        }
    }

    pub(crate) fn release_memory(&mut self) {
        self.units.shrink_to_fit();
        self.acknowledged.release_memory();
        self.packets.packets.shrink_to_fit();
        if self.units.is_empty() {
            // These are empty, but keep a node until they are cleared.
            self.paths.iter_mut().for_each(|path| path.lost.clear());
            self.history.release_memory(self.first - 1);
        }
    }
}

impl SentPackets {
    /// Called when a unit counts as in flight again: the receiver reneged, or the unit was declared lost
    /// wrongly. If its packet was already delivered or declared lost, the packet stays so.
    pub(super) fn on_returned(&mut self, path: u8, bytes: u32, packet: PacketNumber) {
        self.flights[usize::from(path)].bytes += u64::from(bytes);
        if let Some(packet) = self.packet_mut(packet)
            && packet.fate == Fate::InFlight
        {
            packet.in_flight += 1;
        }
    }
}
