//! Outstanding data: every unit that was sent and is not cumulatively acknowledged, the packets it was sent
//! in, and data in flight. [`Outstanding`] is the only owner of a unit's state: each transition is one
//! method, keeps every sum, and returns what it changed.
//!
//! Here are the units and packets themselves, and what an acknowledgement does to them; `sending` has what a
//! transmission does, `lost` a loss, a move between paths and the end.

pub(crate) use lost::{LostUnit, Moved};
use repeats::History;
pub use repeats::LOG_CAPACITY;
pub(crate) use repeats::{EpisodeId, FirstCopy, FirstSent, FirstTransmission, Repeat, Repeats};
use rexmit_core::trace::SendCause;
use rexmit_core::{Instant, RangeSet};
pub use sending::NewUnit;
pub(crate) use sending::Placement;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};

use crate::paths::Pair;

mod lost;
mod repeats;
mod sending;

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
    /// The number of transmissions, and of units that the receiver dropped after acknowledging them above the cumulative point
    /// (RFC 9260 §6.2.1). Each transmission can be dropped once: a receiver that drops more acknowledged data that it did not
    /// have, and following it would cost work for every outstanding unit at every ACK.
    sent: u64,
    dropped: u64,
    /// `FlightSize` (RFC 5681 §2).
    bytes: u64,
    user_bytes_in_flight: u64,
    user_bytes_lost: u64,
    #[cfg(any(test, debug_assertions))]
    checks: invariants::Checks,
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
    /// The packet that was acknowledged with the unit.
    pub(crate) packet: Option<PacketNumber>,
    /// Whether the unit was sent only once, bundled copies not counted.
    pub(crate) is_first_transmission: bool,
    pub(crate) is_copied: bool,
    pub(crate) is_on_several_paths: bool,
    /// Whether the unit was the earliest one outstanding on its path.
    pub(crate) was_earliest: bool,
}

/// The state of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitState {
    /// The last transmission is in flight.
    InFlight,
    /// Reported as received above the cumulative point.
    Acknowledged,
    /// Declared lost, and waiting to be retransmitted.
    Lost(SendCause),
    /// Abandoned (partial reliability): it is not retransmitted.
    Abandoned,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) packet: PacketNumber,
    pub(crate) path: u8,
    pub(crate) cause: SendCause,
}

#[derive(Clone, Copy, Debug)]
struct LastSent {
    path: u8,
    cause: SendCause,
}

/// A unit that was sent and is not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct Unit<P> {
    /// Data of the protocol for a retransmission.
    pub payload: P,
    /// Size of the unit in bytes as congestion control counts it: with header and padding.
    pub(crate) bytes: u32,
    user_bytes: u32,
    group: u8,
    /// The path on which it is outstanding: in flight over it, or waiting to be retransmitted over it.
    pub(crate) path: u8,
    state: UnitState,
    /// The last transmission, in parts so that a unit with an SCTP fragment stays within 128 bytes, the size
    /// that the compiler moves without a call.
    last_packet: PacketNumber,
    last_sent: LastSent,
    /// How often the unit was sent, redundant copies in packets of their own included.
    pub(crate) transmissions: u16,
    /// How many of the transmissions were redundant copies in packets of their own.
    redundant: u16,
    /// Whether the unit was retransmitted as lost, which makes it ineligible for another fast retransmit (RFC
    /// 9260 §7.2.4 rule 5).
    pub(crate) is_fast_retransmitted: bool,
    pub(crate) is_copied: bool,
    is_on_several_paths: bool,
    /// Whether the unit probes a closed receive window: only T3-rtx retransmits it.
    pub(crate) is_probe: bool,
    /// Set once it was declared lost or copied.
    repeats: Option<Box<Repeats>>,
}

impl<P> Unit<P> {
    /// The group that it was sent in.
    #[must_use]
    pub const fn group(&self) -> u8 {
        self.group
    }

    /// The state of the unit.
    #[must_use]
    pub const fn state(&self) -> UnitState {
        self.state
    }

    /// How often it was sent because it was new or declared lost: redundant copies do not count.
    #[must_use]
    pub const fn transmissions(&self) -> u16 {
        self.transmissions.saturating_sub(self.redundant)
    }

    /// Whether a redundant copy of it was sent.
    #[must_use]
    pub const fn was_copied(&self) -> bool {
        self.is_copied
    }

    /// The last transmission; copies bundled into other packets do not count.
    pub(crate) const fn last(&self) -> Transmission {
        let LastSent { path, cause } = self.last_sent;
        Transmission { packet: self.last_packet, path, cause }
    }

    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.state == UnitState::InFlight
    }

    pub(crate) fn is_in_flight_in(&self, packet: PacketNumber) -> bool {
        self.last_packet == packet && self.is_in_flight()
    }

    /// Whether the unit is in flight or waits to be retransmitted.
    #[inline]
    pub(crate) const fn is_outstanding(&self) -> bool {
        matches!(self.state, UnitState::InFlight | UnitState::Lost(_))
    }

    /// Whether it was sent once, redundant copies bundled into other packets aside.
    pub(crate) const fn is_first_transmission(&self) -> bool {
        self.transmissions == 1
    }

    /// Whether missing reports of it count (RFC 9260 §7.2.4 rule 5).
    pub(crate) fn may_be_fast_retransmitted(&self) -> bool {
        self.is_in_flight() && !self.is_fast_retransmitted
    }

    pub(crate) fn repeats(&self) -> Option<&Repeats> {
        self.repeats.as_deref()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PathUnits {
    /// Units that wait to be retransmitted over this path.
    pub(crate) lost: BTreeSet<u64>,
    /// Units in flight over this path, and those that wait to be retransmitted over it.
    pub(crate) outstanding: u32,
    /// The earliest unit outstanding on this path, or a lower bound of it.
    pub(crate) earliest: u64,
    /// User bytes last sent over this path that are in flight, or lost and wait for any path.
    pub(crate) user_bytes: u64,
    /// Units declared lost that were last sent over this path, whichever path they wait for.
    pub(crate) awaiting: u32,
}

impl PathUnits {
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    #[inline]
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    #[inline]
    pub(crate) const fn is_awaiting(&self) -> bool {
        self.awaiting > 0
    }
}

/// The number of a data packet of an association, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PacketNumber(pub(crate) u64);

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Sent, and neither acknowledged nor declared lost.
    InFlight,
    /// The last unit of the packet that was in flight was acknowledged.
    Acknowledged,
    /// Declared lost.
    Lost(SendCause),
    /// The last unit of the packet that was in flight was retransmitted or abandoned.
    Superseded,
}

/// One packet that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Instant,
    pub(crate) path: u8,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    pub(crate) units: u16,
    /// The bytes of its units, as congestion control counts them.
    pub(crate) bytes: u32,
    pub(crate) fate: Fate,
    /// The number of units that are in flight in this packet.
    in_flight: u16,
    /// The groups of its units, one bit each.
    pub(crate) groups: u32,
    /// The pair of paths for which its fate counts.
    pub(crate) trial: Option<Pair>,
}

impl SentPacket {
    pub(crate) fn is_in_flight_on(&self, path: u8) -> bool {
        self.fate == Fate::InFlight && self.path == path
    }
}

/// Data in flight on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Packets neither acknowledged nor declared lost.
    pub packets: u32,
    /// Bytes of units neither acknowledged, declared lost nor abandoned.
    pub bytes: u64,
}

/// The packets of one association, oldest first, with the fate of each, and data in flight on each path.
///
/// Packets are counted whatever their content, because the thin test uses packets in flight, not chunks or bytes
/// (Petlund 2009 §5). A packet ends with its last unit in flight, and has the fate of this unit: acknowledged, declared
/// lost, or superseded by a retransmission. Packets with a known fate are forgotten once nothing older is in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentPackets {
    first: u64,
    packets: VecDeque<SentPacket>,
    flights: Vec<Flight>,
    /// The packets in flight that carry a unit of each group, up to the highest that was sent.
    groups: Vec<u32>,
}

impl SentPackets {
    fn add_path(&mut self) {
        self.flights.reserve_exact(1); // One path is the rule.
        self.flights.push(Flight::default());
    }

    #[inline]
    pub(crate) fn flight(&self, path: u8) -> Flight {
        self.flights[usize::from(path)]
    }

    /// Packets in flight that carry a unit of `group`, on all paths.
    #[inline]
    pub(crate) fn packets_of(&self, group: u8) -> u32 {
        self.groups.get(usize::from(group)).copied().unwrap_or(0)
    }

    /// The packet `number`, unless it is forgotten.
    pub(crate) fn packet(&self, number: PacketNumber) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    pub(crate) fn sent_at(&self, number: PacketNumber) -> Option<Instant> {
        self.packet(number).map(|packet| packet.sent_at)
    }

    fn packet_mut(&mut self, number: PacketNumber) -> Option<&mut SentPacket> {
        self.packets.get_mut(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    pub(crate) fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first + self.packets.len() as u64)
    }

    /// Called when a unit of `bytes` leaves the flight of `path`. If it is the last unit of its packet in flight, the packet meets
    /// `fate`. Returns whether it did, and when the packet was sent, unless that is forgotten.
    #[inline(always)] // With every unit: the call would cost as much again.
    fn on_departed(
        &mut self,
        path: u8,
        bytes: u32,
        packet: PacketNumber,
        fate: Fate,
    ) -> (bool, Option<Instant>) {
        self.flights[usize::from(path)].bytes -= u64::from(bytes);
        let Some(packet) = self.packet_mut(packet) else { return (false, None) };
        let sent_at = Some(packet.sent_at);
        if packet.fate != Fate::InFlight {
            return (false, sent_at); // The unit had left it, and returned.
        }
        packet.in_flight -= 1;
        if packet.in_flight > 0 {
            return (false, sent_at);
        }
        packet.fate = fate;
        let (path, mut groups) = (usize::from(packet.path), packet.groups);
        self.flights[path].packets -= 1;
        while groups != 0 {
            self.groups[groups.trailing_zeros() as usize] -= 1;
            groups &= groups - 1;
        }
        (true, sent_at)
    }

    fn forget_ended(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.fate != Fate::InFlight) {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// The packets in flight on `path`, oldest first.
    pub(crate) fn in_flight(&self, path: u8) -> impl Iterator<Item = (PacketNumber, &SentPacket)> {
        let numbered = (self.first..).map(PacketNumber).zip(&self.packets);
        numbered.filter(move |(_, packet)| packet.is_in_flight_on(path))
    }

    /// Whether a packet sent after `number` is in flight on `path`. The cost is the number of newer packets
    /// that were sent over other paths or are no longer in flight.
    pub(crate) fn has_in_flight_after(&self, path: u8, number: PacketNumber) -> bool {
        let newer = self.next_number().0.saturating_sub(number.0 + 1);
        let newer = usize::try_from(newer).unwrap_or(usize::MAX);
        self.packets.iter().rev().take(newer).any(|packet| packet.is_in_flight_on(path))
    }

    /// Packets that are remembered: those sent since the oldest in flight.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
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

    /// User bytes in flight or waiting to be retransmitted, for which the peer's receive window needs room before any new data.
    #[must_use]
    pub const fn user_bytes_to_arrive(&self) -> u64 {
        self.user_bytes_in_flight + self.user_bytes_lost
    }

    /// Whether gap ack blocks are still trusted: the receiver has not dropped more acknowledged data than was sent to it.
    #[must_use]
    pub const fn believes_reports(&self) -> bool {
        self.dropped <= self.sent
    }

    pub(crate) const fn packets(&self) -> &SentPackets {
        &self.packets
    }

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

    /// Whether anything waits to be retransmitted, over any path.
    #[must_use]
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.paths.iter().any(PathUnits::has_lost)
    }
}

/// Transitions.
impl<P> Outstanding<P> {
    pub(crate) fn newest_packet(&self) -> PacketNumber {
        PacketNumber(self.packets.next_number().0.saturating_sub(1))
    }

    /// Acknowledges `unit`. `None` if it was acknowledged or abandoned before.
    pub(crate) fn acknowledge(&mut self, unit: u64) -> Option<AckedUnit> {
        let u = self.unit_mut(unit).filter(|u| u.is_outstanding())?;
        let &mut Unit { bytes, user_bytes, group, path, state, .. } = u;
        let (last, is_first_transmission) = (u.last(), u.is_first_transmission());
        let (is_copied, is_on_several_paths) = (u.is_copied, u.is_on_several_paths);
        let was_in_flight = state == UnitState::InFlight;
        u.state = UnitState::Acknowledged;
        let (is_ended, sent_at) = if was_in_flight {
            self.user_bytes_in_flight -= u64::from(user_bytes);
            self.packets.on_departed(path, bytes, last.packet, Fate::Acknowledged)
        } else {
            self.leave_lost(unit);
            (false, self.packets.sent_at(last.packet))
        };
        let on_path = self.on_mut(path);
        on_path.outstanding -= 1;
        let was_earliest = on_path.earliest == unit;
        self.on_mut(last.path).user_bytes -= u64::from(user_bytes);
        self.check();
        Some(AckedUnit {
            unit,
            group,
            bytes,
            path,
            last,
            sent_at,
            was_in_flight,
            packet: is_ended.then_some(last.packet),
            is_first_transmission,
            is_copied,
            is_on_several_paths,
            was_earliest,
        })
    }

    /// Moves the cumulative point past the first unit, which is acknowledged or abandoned, and returns it.
    #[inline]
    pub(crate) fn deliver_first(&mut self) -> Option<Unit<P>> {
        let unit = self.units.front_mut()?;
        if let Some(repeats) = unit.repeats.take() {
            self.history.on_delivered(self.first, repeats);
        }
        self.first += 1;
        self.bytes -= u64::from(unit.bytes);
        self.units.pop_front()
    }

    /// Forgets acknowledged ranges that the cumulative point has passed.
    pub(crate) fn forget_passed(&mut self) {
        self.acknowledged.remove_below(self.first);
    }

    /// Adds an acknowledged range above the cumulative point, and appends the parts of it that are new to `new`.
    pub(crate) fn add_acknowledged(&mut self, start: u64, end: u64, new: &mut Runs) {
        self.acknowledged.insert_range(start, end, |from, to| new.push((from, to)));
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
        reneged.iter().for_each(|&unit| self.renege(unit));
        reneged
    }

    /// Finds the earliest unit outstanding on `path`, upwards from where it was: each unit is passed over once.
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

    #[inline]
    fn check(&mut self) {
        #[cfg(debug_assertions)]
        self.check_now_and_then();
    }
}

/// Repeated transmissions.
impl<P> Outstanding<P> {
    /// Called when the receiver reports `unit` as a duplicate. Returns the transmission to which the report is attributed:
    /// the oldest redundant one without a report, else the oldest other one. `None` if none is left.
    pub(crate) fn on_duplicate_report(&mut self, unit: u64) -> Option<Repeat> {
        let explained = self.repeats_mut(unit)?.on_duplicate_report()?;
        self.history.on_explained();
        Some(explained)
    }

    pub(crate) fn repeats_mut(&mut self, unit: u64) -> Option<&mut Repeats> {
        match unit.checked_sub(self.first) {
            Some(index) => self.units.get_mut(usize::try_from(index).ok()?)?.repeats.as_deref_mut(),
            None => self.history.delivered_mut(unit),
        }
    }

    pub(crate) const fn history(&mut self) -> &mut History {
        &mut self.history
    }
}
