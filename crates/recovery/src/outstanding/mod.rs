//! Outstanding data: every unit that was sent and is not cumulatively acknowledged, the packets it was sent
//! in, and data in flight. [`Outstanding`] is the only owner of a unit's state: each transition is one
//! method, keeps every sum, and returns what it changed.

use repeats::History;
pub use repeats::LOG_CAPACITY;
pub(crate) use repeats::{EpisodeId, FirstSent, FirstTransmission, Repeat, Repeats};
use rexmit_core::trace::SendCause;
use rexmit_core::{Instant, RangeSet};
use smallvec::SmallVec;
use std::collections::VecDeque;
pub(crate) use units::Transmission;
use units::{Carried, Departed, PathUnits};
pub(crate) use units::{Fate, PacketNumber, SentPacket, SentPackets};
pub use units::{Flight, NewUnit, Unit, UnitState};

mod repeats;
mod units;

#[cfg(any(test, debug_assertions))]
mod invariants;
#[cfg(test)]
mod tests;

/// Runs of units, inclusive.
pub(crate) type Runs = SmallVec<[(u64, u64); 4]>;

/// The units of one association that are not cumulatively acknowledged. Their numbers are consecutive and do
/// not wrap. `P` is the protocol's data of a unit.
#[derive(Debug)]
pub struct Outstanding<P> {
    /// The number of `units[0]`: one above the cumulative point.
    first: u64,
    units: VecDeque<Unit<P>>,
    /// Units acknowledged above the cumulative point.
    acknowledged: RangeSet,
    packets: SentPackets,
    paths: Vec<PathUnits>,
    history: History,
    /// The number of transmissions, and of units that the receiver dropped after acknowledging them above the
    /// cumulative point (RFC 9260 §6.2.1). Each transmission can be dropped once: a receiver that drops more
    /// acknowledged data that it did not have, and following it would cost work for every outstanding unit at
    /// every ACK.
    sent: u64,
    dropped: u64,
    /// `FlightSize` (RFC 5681 §2).
    bytes: u64,
    user_bytes_in_flight: u64,
    user_bytes_lost: u64,
    #[cfg(any(test, debug_assertions))]
    checks: invariants::Checks,
}

/// The path and place of a unit that is being sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) path: u8,
    /// Whether the unit is the first of its packet.
    pub(crate) starts_packet: bool,
}

/// A unit was acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedUnit {
    pub(crate) unit: u64,
    pub(crate) group: u8,
    pub(crate) bytes: u32,
    /// The path on which it was outstanding.
    pub(crate) path: u8,
    pub(crate) last: Transmission,
    /// When its last transmission was sent, unless that packet is forgotten.
    pub(crate) sent_at: Option<Instant>,
    /// Whether the unit was in flight; otherwise it waited to be retransmitted.
    pub(crate) was_in_flight: bool,
    /// The packet that was acknowledged with it.
    pub(crate) packet: Option<PacketNumber>,
    /// Whether the unit was sent only once, bundled copies not counted.
    pub(crate) is_first_transmission: bool,
    pub(crate) is_copied: bool,
    pub(crate) is_on_several_paths: bool,
    /// Whether the unit was the earliest one outstanding on its path.
    pub(crate) was_earliest: bool,
}

/// A unit was declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostUnit {
    pub(crate) path: u8,
    /// The path over which it was last sent.
    pub(crate) sent_over: u8,
    pub(crate) group: u8,
    /// The packet that is lost with it.
    pub(crate) packet: Option<PacketNumber>,
    /// When its last transmission was sent, unless that packet is forgotten.
    pub(crate) sent_at: Option<Instant>,
    pub(crate) is_first_transmission: bool,
    pub(crate) is_copied: bool,
}

/// A unit was retransmitted in a packet of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retransmitted {
    /// The transmission before this one.
    pub(crate) before: Transmission,
    /// Whether the unit was in flight, that is not declared lost.
    pub(crate) was_in_flight: bool,
    /// Whether the unit is the earliest one outstanding on its path and was last sent over that path.
    pub(crate) is_earliest: bool,
    pub(crate) moved: Option<Moved>,
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

impl<P> Outstanding<P> {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            units: VecDeque::new(),
            acknowledged: RangeSet::new(),
            packets: SentPackets::default(),
            paths: Vec::with_capacity(1),
            history: History::default(),
            sent: 0,
            dropped: 0,
            bytes: 0,
            user_bytes_in_flight: 0,
            user_bytes_lost: 0,
            #[cfg(any(test, debug_assertions))]
            checks: invariants::Checks::default(),
        }
    }

    pub(crate) fn add_path(&mut self) {
        self.packets.add_path();
        self.paths.push(PathUnits::default());
    }

    /// The units of `path`.
    #[inline]
    pub(crate) fn on(&self, path: u8) -> &PathUnits {
        &self.paths[usize::from(path)]
    }

    #[inline]
    fn on_mut(&mut self, path: u8) -> &mut PathUnits {
        &mut self.paths[usize::from(path)]
    }
}

/// Queries.
impl<P> Outstanding<P> {
    /// The number of the next new unit.
    #[must_use]
    pub fn next_unit(&self) -> u64 {
        self.first + self.units.len() as u64
    }

    /// The cumulative point: every unit up to this one is acknowledged (or was never sent).
    #[must_use]
    pub const fn cumulative(&self) -> u64 {
        self.first - 1
    }

    /// The unit numbered `unit`, if it was sent and is not cumulatively acknowledged.
    #[must_use]
    #[inline]
    pub fn unit(&self, unit: u64) -> Option<&Unit<P>> {
        #[cfg(test)]
        self.checks.count_visit();
        self.units.get(usize::try_from(unit.checked_sub(self.first)?).ok()?)
    }

    fn unit_mut(&mut self, unit: u64) -> Option<&mut Unit<P>> {
        #[cfg(test)]
        self.checks.count_visit();
        self.units.get_mut(usize::try_from(unit.checked_sub(self.first)?).ok()?)
    }

    /// The units from `first` on that are not cumulatively acknowledged, in order, with their numbers.
    pub fn units_from(&self, first: u64) -> impl Iterator<Item = (u64, &Unit<P>)> {
        let skipped = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let skipped = skipped.min(self.units.len());
        (self.first + skipped as u64..).zip(self.units.range(skipped..))
    }

    /// Whether everything sent is cumulatively acknowledged.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Data in flight on `path`.
    #[must_use]
    #[inline]
    pub fn flight(&self, path: u8) -> Flight {
        self.packets.flight(path)
    }

    /// Bytes sent and not cumulatively acknowledged, on all paths: `FlightSize` (RFC 5681 §2).
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// User bytes in flight on all paths: what counts against the peer's receive window.
    #[must_use]
    pub const fn user_bytes_in_flight(&self) -> u64 {
        self.user_bytes_in_flight
    }

    /// User bytes in flight or waiting to be retransmitted, for which the peer's receive window needs room
    /// before any new data.
    #[must_use]
    pub const fn user_bytes_to_arrive(&self) -> u64 {
        self.user_bytes_in_flight + self.user_bytes_lost
    }

    /// Whether gap ack blocks are still trusted: the receiver has not dropped more acknowledged data than was
    /// sent to it.
    #[must_use]
    pub const fn believes_reports(&self) -> bool {
        self.dropped <= self.sent
    }

    /// The packets that are remembered.
    pub(crate) const fn packets(&self) -> &SentPackets {
        &self.packets
    }

    /// Units acknowledged above the cumulative point.
    pub(crate) const fn acknowledged(&self) -> &RangeSet {
        &self.acknowledged
    }

    /// How many units are acknowledged above `unit`, and above the cumulative point.
    pub(crate) fn acknowledged_above(&self, unit: u64) -> u16 {
        let above = self.acknowledged.iter().rev().take_while(|range| *range.end() > unit);
        let count: u64 =
            above.map(|range| range.end() - (range.start().max(&(unit + 1))) + 1).sum();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// The units in flight in `packet`, in order.
    pub(crate) fn in_flight_in(&self, packet: PacketNumber) -> SmallVec<[u64; 8]> {
        let Some(sent) = self.packets.packet(packet) else { return SmallVec::new() };
        let units = self.units_from(sent.lowest);
        let units = units.take_while(|(number, _)| *number <= sent.highest);
        units.filter(|(_, unit)| unit.is_in_flight_in(packet)).map(|(number, _)| number).collect()
    }

    /// Whether anything waits to be retransmitted, over any path.
    #[must_use]
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.paths.iter().any(PathUnits::has_lost)
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
        repeats?.first()
    }
}

/// Transitions.
impl<P> Outstanding<P> {
    /// Records that a new unit is sent. Returns its number, and whether nothing was outstanding on its path.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        place: Placement,
        new: NewUnit,
        payload: P,
    ) -> (u64, bool) {
        let unit = self.next_unit();
        let NewUnit { bytes, user_bytes, group, .. } = new;
        let packet = self.put(now, place, SendCause::New, Carried { unit, bytes, group });
        self.sent += 1;
        self.bytes += u64::from(bytes);
        self.user_bytes_in_flight += u64::from(user_bytes);
        self.units.push_back(Unit::new(payload, new, place.path, packet));
        let on_path = self.on_mut(place.path);
        let was_idle = on_path.outstanding == 0;
        if was_idle {
            on_path.earliest = unit;
        }
        on_path.outstanding += 1;
        on_path.user_bytes += u64::from(user_bytes);
        self.check();
        (unit, was_idle)
    }

    /// Uses up a number for a unit that is never sent: it is abandoned from the start.
    pub(crate) fn skip(&mut self, payload: P) -> u64 {
        let unit = self.next_unit();
        let packet = self.packets.next_number();
        let nothing = NewUnit { bytes: 0, user_bytes: 0, group: 0, is_probe: false, due: None };
        let skipped = Unit::new(payload, nothing, 0, packet);
        self.units.push_back(Unit { state: UnitState::Abandoned, transmissions: 0, ..skipped });
        unit
    }

    /// Adds a unit to the packet being built.
    #[inline(always)] // With every unit: the call would cost as much again.
    fn put(
        &mut self,
        now: Instant,
        place: Placement,
        cause: SendCause,
        carried: Carried,
    ) -> PacketNumber {
        if place.starts_packet {
            self.packets.begin(now, place.path, cause, carried);
        } else {
            self.packets.add(carried);
        }
        self.newest_packet()
    }

    /// The packet that was begun last.
    pub(crate) fn newest_packet(&self) -> PacketNumber {
        PacketNumber(self.packets.next_number().0.saturating_sub(1))
    }

    /// Records that an outstanding unit is retransmitted because of `cause`; `is_redundant`: as a redundant
    /// copy. `None` if it is not outstanding.
    pub(crate) fn retransmit(
        &mut self,
        now: Instant,
        place: Placement,
        unit: u64,
        cause: SendCause,
        is_redundant: bool,
    ) -> Option<Retransmitted> {
        let u = self.unit(unit)?;
        let &Unit { bytes, user_bytes, group, path: from, state, .. } = u;
        let before = u.last();
        match state {
            UnitState::Lost(_) => self.leave_lost(unit),
            UnitState::InFlight => _ = self.leave_flight(unit, Fate::Superseded),
            UnitState::Acknowledged | UnitState::Abandoned => return None,
        }
        let packet = self.put(now, place, cause, Carried { unit, bytes, group });
        let path = place.path;
        self.sent += 1;
        self.user_bytes_in_flight += u64::from(user_bytes);
        let moved = (from != path).then(|| self.move_between(unit, from, path));
        let is_earliest = self.on(path).earliest == unit && before.path == path;
        self.on_mut(before.path).user_bytes -= u64::from(user_bytes);
        self.on_mut(path).user_bytes += u64::from(user_bytes);
        let u = self.unit_mut(unit)?;
        u.set_last(Transmission { packet, path, cause });
        u.is_on_several_paths |= before.path != path;
        u.state = UnitState::InFlight;
        u.transmissions = u.transmissions.saturating_add(1);
        u.redundant = u.redundant.saturating_add(u16::from(is_redundant));
        // The probe timer repeats it if that is lost, too.
        u.is_fast_retransmitted |= matches!(cause, SendCause::FastRetransmit | SendCause::Probe);
        self.check();
        let was_in_flight = state == UnitState::InFlight;
        Some(Retransmitted { before, was_in_flight, is_earliest, moved })
    }

    /// Acknowledges `unit`. `None` if it was acknowledged or abandoned before.
    pub(crate) fn acknowledge(&mut self, unit: u64) -> Option<AckedUnit> {
        let u = self.unit_mut(unit)?;
        let &mut Unit { bytes, user_bytes, group, path, state, .. } = u;
        let last = u.last();
        if matches!(state, UnitState::Acknowledged | UnitState::Abandoned) {
            return None;
        }
        let mut acked = AckedUnit {
            unit,
            group,
            bytes,
            path,
            last,
            sent_at: None,
            was_in_flight: state == UnitState::InFlight,
            packet: None,
            is_first_transmission: u.is_first_transmission(),
            is_copied: u.is_copied,
            is_on_several_paths: u.is_on_several_paths,
            was_earliest: false,
        };
        u.state = UnitState::Acknowledged;
        if acked.was_in_flight {
            self.user_bytes_in_flight -= u64::from(user_bytes);
            let departed = Departed { bytes, path, packet: last.packet };
            let (is_ended, sent_at) = self.packets.on_departed(&departed, Fate::Acknowledged);
            acked.packet = is_ended.then_some(last.packet);
            acked.sent_at = sent_at;
        } else {
            self.leave_lost(unit);
            acked.sent_at = self.packets.sent_at(last.packet);
        }
        let on_path = self.on_mut(path);
        on_path.outstanding -= 1;
        acked.was_earliest = on_path.earliest == unit;
        self.on_mut(last.path).user_bytes -= u64::from(user_bytes);
        self.check();
        Some(acked)
    }

    /// Moves the cumulative point past the first unit, which is acknowledged or abandoned, and returns it.
    #[inline]
    pub(crate) fn deliver_first(&mut self) -> Option<Unit<P>> {
        let mut unit = self.units.pop_front()?;
        if let Some(repeats) = unit.repeats.take() {
            self.history.on_delivered(self.first, repeats);
        }
        self.first += 1;
        self.bytes -= u64::from(unit.bytes);
        Some(unit)
    }

    /// Forgets acknowledged ranges that the cumulative point has passed.
    pub(crate) fn forget_passed(&mut self) {
        self.acknowledged.remove_below(self.first);
    }

    /// Adds an acknowledged range above the cumulative point, and appends the parts of it that are new to
    /// `new`.
    pub(crate) fn add_acknowledged(&mut self, start: u64, end: u64, new: &mut Runs) {
        self.acknowledged.insert_range(start, end, |from, to| new.push((from, to)));
    }

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

    /// Returns `unit` to flight, because the receiver no longer reports it after acknowledging it above the
    /// cumulative point. Returns whether it was acknowledged.
    fn renege(&mut self, unit: u64) -> bool {
        let Some(u) = self.unit_mut(unit).filter(|u| u.state == UnitState::Acknowledged) else {
            return false; // An abandoned unit stays abandoned.
        };
        u.path = u.last_sent.path;
        let (path, user_bytes) = (u.path, u64::from(u.user_bytes));
        self.return_to_flight(unit);
        let on_path = self.on_mut(path);
        on_path.earliest = if on_path.outstanding == 0 { unit } else { on_path.earliest.min(unit) };
        on_path.outstanding += 1;
        on_path.user_bytes += user_bytes;
        self.check();
        true
    }

    /// Detects reneging: returns units to flight that the receiver acknowledged above the cumulative point
    /// and no longer reports in `blocks` (RFC 9260 §6.2.1 D iii). A SACK overtaken by a newer one cannot be
    /// mistaken for this, and its units stay acknowledged (R4).
    ///
    /// A receiver that drops more than was sent to it is no longer trusted: then all units above the
    /// cumulative point return to flight, for the last time.
    pub(crate) fn check_reneging(&mut self, blocks: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        let in_front = self.units.front().map(|unit| unit.state);
        if in_front != Some(UnitState::Acknowledged) {
            return Vec::new();
        }
        let mut still = RangeSet::new();
        let (first, next) = (self.first, self.next_unit());
        for (start, end) in blocks.filter(|&(start, end)| start >= first && end < next) {
            still.insert_range(start, end, |_, _| ());
        }
        self.dropped += self.acknowledged.len() - still.len();
        if !self.believes_reports() {
            still.clear();
        }
        let known = std::mem::replace(&mut self.acknowledged, still.clone());
        let mut reneged = Vec::new();
        for run in known.iter() {
            still.insert_range(*run.start(), *run.end(), |from, to| reneged.extend(from..=to));
        }
        reneged.iter().for_each(|&unit| _ = self.renege(unit));
        reneged
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

    /// Ends the role of `unit` as a window probe, because the peer's window is open again. Returns whether it
    /// is in flight.
    pub(crate) fn end_probe(&mut self, unit: u64) -> bool {
        let Some(u) = self.unit_mut(unit) else { return false };
        u.is_probe = false;
        u.is_in_flight()
    }

    /// Finds the earliest unit outstanding on `path`, upwards from where it was: each unit is passed over
    /// once.
    pub(crate) fn advance_earliest(&mut self, path: u8) {
        let from = self.on(path).earliest.max(self.first);
        let is_it = |u: &Unit<P>| u.path == path && u.is_outstanding();
        let found = (from..self.next_unit()).find(|&unit| self.unit(unit).is_some_and(is_it));
        self.on_mut(path).earliest = found.unwrap_or(self.next_unit());
    }

    /// Forgets the oldest packets with a known fate.
    pub(crate) fn forget_ended(&mut self) {
        self.packets.forget_ended();
    }

    /// Forgets every unit, giving each to `f` in order: the end of the association.
    pub(crate) fn drain(&mut self, f: impl FnMut(Unit<P>)) {
        self.first = self.next_unit();
        self.units.drain(..).for_each(f);
        self.acknowledged.clear();
        self.packets.clear();
        self.history.release_memory(self.first - 1);
        (self.bytes, self.user_bytes_in_flight, self.user_bytes_lost) = (0, 0, 0);
        for path in &mut self.paths {
            *path = PathUnits { earliest: path.earliest, ..PathUnits::default() };
        }
    }

    /// Releases memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.units.shrink_to_fit();
        self.acknowledged.release_memory();
        self.packets.release_memory();
        if self.units.is_empty() {
            // These are empty, but keep a node until they are cleared.
            self.paths.iter_mut().for_each(|path| path.lost.clear());
            self.history.release_memory(self.first - 1);
        }
    }

    /// Removes `unit` from the flight; returns its packet if that thereby met `fate`.
    fn leave_flight(&mut self, unit: u64, fate: Fate) -> Option<PacketNumber> {
        let &Unit { bytes, user_bytes, path, last_packet: packet, .. } = self.unit(unit)?;
        self.user_bytes_in_flight -= u64::from(user_bytes);
        let departed = Departed { bytes, path, packet };
        self.packets.on_departed(&departed, fate).0.then_some(packet)
    }

    /// Removes `unit` from the units that wait to be retransmitted.
    fn leave_lost(&mut self, unit: u64) {
        let Some(u) = self.unit(unit) else { return };
        let (path, sent_over, user_bytes) = (u.path, u.last_sent.path, u64::from(u.user_bytes));
        self.on_mut(path).lost.remove(&unit);
        self.on_mut(sent_over).awaiting -= 1;
        self.user_bytes_lost -= user_bytes;
    }

    /// Removes `unit` from the outstanding data of `path`.
    fn leave_path(&mut self, unit: u64, path: u8) {
        let on_path = self.on_mut(path);
        on_path.outstanding -= 1;
        if on_path.outstanding > 0 && on_path.earliest == unit {
            self.advance_earliest(path);
        }
    }

    fn move_between(&mut self, unit: u64, from: u8, to: u8) -> Moved {
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

    fn return_to_flight(&mut self, unit: u64) {
        let Some(u) = self.unit_mut(unit) else { return };
        u.state = UnitState::InFlight;
        let (path, packet, bytes) = (u.path, u.last_packet, u.bytes);
        let user_bytes = u64::from(u.user_bytes);
        self.packets.on_returned(&Departed { bytes, path, packet });
        self.user_bytes_in_flight += user_bytes;
    }

    #[inline]
    fn check(&mut self) {
        #[cfg(any(test, debug_assertions))]
        self.check_now_and_then();
    }
}

/// Repeated transmissions.
impl<P> Outstanding<P> {
    /// Remembers that `unit`, which was last sent in `packet`, is retransmitted in `episode`. Beyond
    /// [`LOG_CAPACITY`], or if it is too old, the oldest transmission of the lowest unit is forgotten; returns its
    /// episode.
    pub(crate) fn remember_repeat(
        &mut self,
        now: Instant,
        unit: u64,
        packet: PacketNumber,
        cause: SendCause,
        episode: Option<EpisodeId>,
    ) -> Option<EpisodeId> {
        let forgotten = self.make_room(now);
        let repeats = self.unit_mut(unit)?.repeats.get_or_insert_default();
        repeats.on_sent_again(now);
        self.remember(unit, Repeat::new(now, packet, cause, episode));
        forgotten
    }

    /// Remembers that a copy of `unit` is sent in `packet`, bundled with other units.
    pub(crate) fn remember_bundled_copy(
        &mut self,
        now: Instant,
        unit: u64,
        packet: PacketNumber,
    ) -> Option<EpisodeId> {
        let forgotten = self.make_room(now);
        let copy = Repeat::new(now, packet, SendCause::Redundant, None);
        self.remember(unit, Repeat { is_bundled: true, ..copy });
        if let Some(u) = self.unit_mut(unit)
            && !std::mem::replace(&mut u.is_copied, true)
        {
            u.repeats.get_or_insert_default().on_first_copy(packet, None);
        }
        forgotten
    }

    fn remember(&mut self, unit: u64, new: Repeat) {
        let Some(index) = unit.checked_sub(self.first) else { return };
        if let Some(u) = self.units.get_mut(index as usize) {
            self.history.remember(unit, u.repeats.get_or_insert_default(), new);
        }
    }

    fn make_room(&mut self, now: Instant) -> Option<EpisodeId> {
        if self.history.has_room() && !self.history.is_stale(now) {
            return None;
        }
        if let Some(episode) = self.history.forget_oldest_delivered() {
            return episode;
        }
        // Each unit is passed over once, until a lower one is retransmitted.
        let lowest = self.history.lowest_outstanding().max(self.first);
        let skipped = usize::try_from(lowest - self.first).unwrap_or(usize::MAX);
        let Self { units, history, .. } = self;
        let units = (lowest..).zip(units.range_mut(skipped.min(units.len())..));
        let mut repeats = units.filter_map(|(unit, u)| Some((unit, u.repeats.as_mut()?)));
        repeats.find_map(|(unit, repeats)| history.forget_oldest_of(unit, repeats)).flatten()
    }

    /// Remembers that `unit` was sent as a redundant copy in a packet of its own, and once before, as
    /// described by `first`.
    pub(crate) fn on_copied_alone(&mut self, unit: u64, first: FirstSent) {
        if let Some(u) = self.unit_mut(unit) {
            u.is_copied = true;
            let packet = u.last_packet;
            u.repeats.get_or_insert_default().on_first_copy(packet, Some(first));
        }
    }

    /// Called when the first transmission of `unit` is declared lost, so that its round trip can be measured
    /// if it proves to have arrived.
    pub(crate) fn watch_first_transmission(&mut self, unit: u64, path: u8, sent_at: Instant) {
        if let Some(u) = self.unit_mut(unit) {
            u.repeats.get_or_insert_default().on_first_lost(path, sent_at);
        }
    }

    /// Called when the receiver reports `unit` as a duplicate. `None` if no transmission that is remembered
    /// explains it.
    pub(crate) fn on_duplicate_report(&mut self, unit: u64) -> Option<Repeat> {
        let explained = self.repeats_mut(unit)?.on_duplicate_report()?;
        self.history.on_explained();
        Some(explained)
    }

    /// The history of `unit`.
    pub(crate) fn repeats_mut(&mut self, unit: u64) -> Option<&mut Repeats> {
        match unit.checked_sub(self.first) {
            Some(index) => self.units.get_mut(usize::try_from(index).ok()?)?.repeats.as_deref_mut(),
            None => self.history.delivered_mut(unit),
        }
    }

    /// The history of repeated transmissions.
    pub(crate) const fn history(&mut self) -> &mut History {
        &mut self.history
    }
}
