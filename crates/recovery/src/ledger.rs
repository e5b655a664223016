//! Every packet that left and what became of it.
//!
//! The ledger counts *packets*, whatever they carried: a thin stream is told by its packets in
//! flight, not by its chunks or bytes (Petlund 2009 §5). A packet's end is decided by the highest
//! unit in it: acknowledged, judged lost, or superseded by a copy that left before a verdict.
//! Packets whose end is known are forgotten once nothing older is in flight; that a judgement was
//! wrong is remembered by the log of `spurious`.

use std::collections::VecDeque;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

/// Counts the data packets of an association, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketNumber(pub u64);

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Sent, and nothing known yet.
    InFlight,
    /// Its highest unit was acknowledged.
    Acknowledged,
    /// Judged lost, by missing reports or by the timer.
    Lost(SendCause),
    /// Its highest unit left again, or was given up, before a verdict.
    Superseded,
}

/// One packet that left.
#[derive(Clone, Debug)]
pub struct SentPacket {
    /// When it left.
    pub sent_at: Instant,
    /// The index of its path.
    pub path: u8,
    /// Why it was sent: the cause of its first unit.
    pub cause: SendCause,
    /// The lowest unit in it.
    pub lowest: u64,
    /// The highest unit in it.
    pub highest: u64,
    /// How many units it carries.
    pub units: u16,
    /// Their bytes, as congestion control counts them.
    pub bytes: u32,
    /// What became of it.
    pub fate: Fate,
    /// The groups of its units, a bit each.
    groups: u32,
}

impl SentPacket {
    /// The groups of its units, a bit each.
    pub(crate) const fn groups(&self) -> u32 {
        self.groups
    }
}

/// What is in flight on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Packets neither acknowledged nor judged lost.
    pub packets: u32,
    /// Bytes of units neither acknowledged, judged lost nor given up.
    pub bytes: u64,
}

/// The packets of one association, oldest first, and what is in flight on each path.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    first: u64,
    packets: VecDeque<SentPacket>,
    flights: Vec<Flight>,
    groups: GroupFlights,
}

/// Packets in flight that carry something of a group of units.
#[derive(Clone, Debug, Default)]
struct GroupFlights {
    /// Of group 0, which is there always.
    base: u32,
    /// Of the others, from 1.
    others: Vec<u32>,
}

impl GroupFlights {
    #[inline]
    fn of_mut(&mut self, group: u8) -> &mut u32 {
        let Some(index) = usize::from(group).checked_sub(1) else { return &mut self.base };
        if index >= self.others.len() {
            self.others.resize(index + 1, 0);
        }
        &mut self.others[index]
    }

    #[inline]
    fn leave(&mut self, mut groups: u32) {
        if groups == 1 {
            self.base -= 1;
            return;
        }
        while groups != 0 {
            *self.of_mut(groups.trailing_zeros() as u8) -= 1;
            groups &= groups - 1;
        }
    }
}

impl Ledger {
    /// A ledger over `paths` paths.
    #[must_use]
    pub fn new(paths: usize) -> Self {
        Self { flights: vec![Flight::default(); paths], ..Self::default() }
    }

    /// Adds a path; its index is the number of paths so far.
    pub fn add_path(&mut self) {
        self.flights.reserve_exact(1); // One path is the rule.
        self.flights.push(Flight::default());
    }

    /// What is in flight on `path`.
    #[must_use]
    pub fn flight(&self, path: u8) -> Flight {
        self.flights[usize::from(path)]
    }

    /// Packets in flight that carry a unit of `group`, on all paths.
    #[must_use]
    #[inline]
    pub fn packets_of(&self, group: u8) -> u32 {
        match usize::from(group).checked_sub(1) {
            None => self.groups.base,
            Some(index) => self.groups.others.get(index).copied().unwrap_or(0),
        }
    }

    /// Packets in the ledger, whatever their fate: bounded by what left since the oldest in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet is in the ledger.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The packet `number`, unless it is forgotten.
    #[must_use]
    pub fn packet(&self, number: PacketNumber) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    fn packet_mut(&mut self, number: PacketNumber) -> Option<&mut SentPacket> {
        self.packets.get_mut(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// The packets in flight on `path`, oldest first.
    pub fn in_flight(&self, path: u8) -> impl Iterator<Item = (PacketNumber, &SentPacket)> {
        (self.first..)
            .map(PacketNumber)
            .zip(&self.packets)
            .filter(move |(_, packet)| packet.fate == Fate::InFlight && packet.path == path)
    }

    /// The oldest packet in flight on `path`.
    #[must_use]
    #[inline]
    pub fn oldest_in_flight(&self, path: u8) -> Option<&SentPacket> {
        let is_it = |packet: &SentPacket| packet.fate == Fate::InFlight && packet.path == path;
        // Most of the time it is the first; nothing is numbered on the way.
        (0..self.packets.len()).map(|index| &self.packets[index]).find(|packet| is_it(packet))
    }

    /// Whether a packet is in flight on `path` that left after `number`. Costs what left over other
    /// paths, or is no longer in flight, since the newest one.
    #[must_use]
    pub fn has_in_flight_after(&self, path: u8, number: PacketNumber) -> bool {
        let newer = self.next_number().0.saturating_sub(number.0 + 1);
        let newer = usize::try_from(newer).unwrap_or(usize::MAX);
        let is_one = |packet: &SentPacket| packet.fate == Fate::InFlight && packet.path == path;
        self.packets.iter().rev().take(newer).any(is_one)
    }

    /// The number of the packet that leaves next.
    #[must_use]
    pub fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first + self.packets.len() as u64)
    }

    /// A packet leaves over `path` with its first unit, of so many bytes and of a group (below 32).
    #[inline]
    pub fn on_sent(
        &mut self,
        now: Instant,
        path: u8,
        cause: SendCause,
        (unit, bytes, group): (u64, u32, u8),
    ) {
        self.packets.push_back(SentPacket {
            sent_at: now,
            path,
            cause,
            lowest: unit,
            highest: unit,
            units: 1,
            bytes,
            fate: Fate::InFlight,
            groups: 1 << group,
        });
        *self.groups.of_mut(group) += 1;
        let flight = &mut self.flights[usize::from(path)];
        flight.packets += 1;
        flight.bytes += u64::from(bytes);
    }

    /// The newest packet also carries `unit`, of `group` (below 32).
    pub fn on_bundled(&mut self, unit: u64, bytes: u32, group: u8) {
        let Some(packet) = self.packets.back_mut() else { return };
        if packet.groups & (1 << group) == 0 {
            packet.groups |= 1 << group;
            *self.groups.of_mut(group) += 1;
        }
        packet.lowest = packet.lowest.min(unit);
        packet.highest = packet.highest.max(unit);
        packet.units += 1;
        packet.bytes += bytes;
        self.flights[usize::from(packet.path)].bytes += u64::from(bytes);
    }

    /// A unit is no longer in flight on `path`: `bytes` leave the flight, and if it is the highest
    /// unit of its packet, the packet meets `fate`. Returns whether it did.
    #[inline(always)] // With every unit: the call would cost as much again.
    pub fn on_unit_ended(&mut self, ended: &EndedUnit, fate: Fate) -> bool {
        let flight = &mut self.flights[usize::from(ended.path)];
        flight.bytes -= u64::from(ended.bytes);
        let Some(packet) = self.packet_mut(ended.packet) else { return false };
        if packet.fate != Fate::InFlight || packet.highest != ended.unit {
            return false;
        }
        packet.fate = fate;
        let (path, groups) = (usize::from(packet.path), packet.groups);
        self.flights[path].packets -= 1;
        self.groups.leave(groups);
        true
    }

    /// Forgets the oldest packets whose end is known.
    pub fn forget_ended(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.fate != Fate::InFlight) {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Gives back memory that is not in use.
    pub fn release_memory(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// A unit that had left the flight counts as in flight again (the receiver reneged).
    pub fn on_unit_returned(&mut self, path: u8, bytes: u32) {
        self.flights[usize::from(path)].bytes += u64::from(bytes);
    }
}

/// A unit that leaves the flight: where it was last sent, with which packet.
#[derive(Clone, Copy, Debug)]
pub struct EndedUnit {
    /// The unit's number.
    pub unit: u64,
    /// Its bytes.
    pub bytes: u32,
    /// The path of its last copy.
    pub path: u8,
    /// The packet of its last copy.
    pub packet: PacketNumber,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(unit: u64, packet: u64) -> EndedUnit {
        EndedUnit { unit, bytes: 100, path: 0, packet: PacketNumber(packet) }
    }

    #[test]
    fn the_highest_unit_decides_the_end_of_a_packet() {
        let mut ledger = Ledger::new(1);
        ledger.on_sent(Instant::ZERO, 0, SendCause::New, (7, 100, 0));
        ledger.on_bundled(8, 100, 0);
        assert_eq!(ledger.flight(0), Flight { packets: 1, bytes: 200 });
        assert!(!ledger.on_unit_ended(&ended(7, 0), Fate::Acknowledged));
        assert_eq!(ledger.flight(0), Flight { packets: 1, bytes: 100 });
        assert!(ledger.on_unit_ended(&ended(8, 0), Fate::Acknowledged));
        assert_eq!(ledger.flight(0), Flight::default());
        assert_eq!(ledger.packet(PacketNumber(0)).unwrap().fate, Fate::Acknowledged);
    }

    #[test]
    fn a_packet_is_in_flight_for_each_group_that_it_carries_something_of() {
        let mut ledger = Ledger::new(1);
        let counts = |ledger: &Ledger| [0, 1, 2].map(|group| ledger.packets_of(group));
        ledger.on_sent(Instant::ZERO, 0, SendCause::New, (1, 100, 0));
        ledger.on_sent(Instant::ZERO, 0, SendCause::New, (2, 100, 2));
        for (unit, group) in [(3, 0), (4, 2)] {
            ledger.on_bundled(unit, 100, group);
        }
        assert_eq!(counts(&ledger), [2, 0, 1]);
        ledger.on_unit_ended(&ended(4, 1), Fate::Acknowledged);
        assert_eq!(counts(&ledger), [1, 0, 0]);
        ledger.on_unit_ended(&ended(1, 0), Fate::Acknowledged);
        assert_eq!(counts(&ledger), [0, 0, 0]);
    }

    #[test]
    fn ended_packets_are_forgotten_only_behind_nothing_in_flight() {
        let mut ledger = Ledger::new(1);
        for unit in 0..3 {
            ledger.on_sent(Instant::ZERO, 0, SendCause::New, (unit, 100, 0));
        }
        ledger.on_unit_ended(&ended(1, 1), Fate::Lost(SendCause::FastRetransmit));
        ledger.forget_ended();
        assert_eq!(ledger.len(), 3);
        ledger.on_unit_ended(&ended(0, 0), Fate::Acknowledged);
        ledger.forget_ended();
        assert_eq!(ledger.len(), 1);
        assert_eq!(ledger.next_number(), PacketNumber(3));
        assert!(ledger.packet(PacketNumber(1)).is_none());
        assert_eq!(ledger.in_flight(0).map(|(n, _)| n.0).collect::<Vec<_>>(), [2]);
    }
}
