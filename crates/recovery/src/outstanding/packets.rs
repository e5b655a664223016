//! Every packet sent and what became of it.
//!
//! *Packets* are counted, whatever they carried: the thin test looks at packets in flight, not at chunks or
//! bytes (Petlund 2009 §5). A packet ends with its last unit in flight, and has the fate of
//! this unit: acknowledged, declared lost, or superseded by a retransmission. Packets with a known fate are forgotten once nothing older is in
//! flight.

use std::collections::VecDeque;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

/// The number of a data packet of an association, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketNumber(pub u64);

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Sent, and neither acknowledged nor declared lost.
    InFlight,
    /// The last of its units in flight was acknowledged.
    Acknowledged,
    /// Declared lost.
    Lost(SendCause),
    /// The last of its units in flight was retransmitted or abandoned.
    Superseded,
}

/// One packet that was sent.
#[derive(Clone, Debug)]
pub struct SentPacket {
    /// When it was sent.
    pub sent_at: Instant,
    /// The index of its path.
    pub path: u8,
    /// Why its first unit was sent.
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
    /// How many of its units are in flight in it.
    in_flight: u16,
    /// The groups of its units, one bit each.
    groups: u32,
}

impl SentPacket {
    /// The groups of its units, one bit each.
    pub(crate) const fn groups(&self) -> u32 {
        self.groups
    }

    /// How many of its units are in flight in it.
    #[cfg(any(test, debug_assertions))]
    pub(super) const fn units_in_flight(&self) -> u16 {
        self.in_flight
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

/// The packets of one association, oldest first, and data in flight on each path.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    first: u64,
    packets: VecDeque<SentPacket>,
    flights: Vec<Flight>,
    groups: GroupFlights,
}

/// A unit as it goes into a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) unit: u64,
    pub(super) bytes: u32,
    /// Below 32.
    pub(super) group: u8,
}

/// A unit that is no longer in flight, or is again: the path and the packet of its last transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departed {
    pub(super) bytes: u32,
    pub(super) path: u8,
    pub(super) packet: PacketNumber,
}

/// Packets in flight that carry a unit of a group.
#[derive(Clone, Debug, Default)]
struct GroupFlights {
    /// Of group 0, which always exists.
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

impl SentPackets {
    /// Adds a path; its index is the number of paths so far.
    pub(super) fn add_path(&mut self) {
        self.flights.reserve_exact(1); // One path is the rule.
        self.flights.push(Flight::default());
    }

    /// Data in flight on `path`.
    #[must_use]
    #[inline]
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

    /// Packets that are remembered: those sent since the oldest in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The packet `number`, unless it is forgotten.
    #[must_use]
    pub fn packet(&self, number: PacketNumber) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// When the packet `number` was sent, unless it is forgotten.
    #[must_use]
    pub fn sent_at(&self, number: PacketNumber) -> Option<Instant> {
        self.packet(number).map(|packet| packet.sent_at)
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

    /// Whether a packet sent after `number` is in flight on `path`. Costs what was sent over other paths, or
    /// is no longer in flight, since the newest one.
    #[must_use]
    pub fn has_in_flight_after(&self, path: u8, number: PacketNumber) -> bool {
        let newer = self.next_number().0.saturating_sub(number.0 + 1);
        let newer = usize::try_from(newer).unwrap_or(usize::MAX);
        let is_one = |packet: &SentPacket| packet.fate == Fate::InFlight && packet.path == path;
        self.packets.iter().rev().take(newer).any(is_one)
    }

    /// The number of the next packet.
    #[must_use]
    pub fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first + self.packets.len() as u64)
    }

    /// A packet is sent over `path`, with this unit first.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant, path: u8, cause: SendCause, carried: Carried) {
        let Carried { unit, bytes, group } = carried;
        self.packets.push_back(SentPacket {
            sent_at: now,
            path,
            cause,
            lowest: unit,
            highest: unit,
            units: 1,
            bytes,
            fate: Fate::InFlight,
            in_flight: 1,
            groups: 1 << group,
        });
        *self.groups.of_mut(group) += 1;
        let flight = &mut self.flights[usize::from(path)];
        flight.packets += 1;
        flight.bytes += u64::from(bytes);
    }

    /// The newest packet also carries this unit.
    pub(super) fn add(&mut self, carried: Carried) {
        let Carried { unit, bytes, group } = carried;
        let Some(packet) = self.packets.back_mut() else { return };
        if packet.groups & (1 << group) == 0 {
            packet.groups |= 1 << group;
            *self.groups.of_mut(group) += 1;
        }
        packet.lowest = packet.lowest.min(unit);
        packet.highest = packet.highest.max(unit);
        packet.units += 1;
        packet.in_flight += 1;
        packet.bytes += bytes;
        self.flights[usize::from(packet.path)].bytes += u64::from(bytes);
    }

    /// A unit is no longer in flight: its bytes leave the flight of its path, and if it is the last unit of its
    /// packet in flight, the packet meets `fate`. Returns whether it did, and when it was sent, unless it is
    /// forgotten.
    #[inline(always)] // With every unit: the call would cost as much again.
    pub(super) fn on_departed(
        &mut self,
        departed: &Departed,
        fate: Fate,
    ) -> (bool, Option<Instant>) {
        let flight = &mut self.flights[usize::from(departed.path)];
        flight.bytes -= u64::from(departed.bytes);
        let Some(packet) = self.packet_mut(departed.packet) else { return (false, None) };
        let sent_at = Some(packet.sent_at);
        if packet.fate != Fate::InFlight {
            return (false, sent_at); // The unit had left it, and returned.
        }
        packet.in_flight -= 1;
        if packet.in_flight > 0 {
            return (false, sent_at);
        }
        packet.fate = fate;
        let (path, groups) = (usize::from(packet.path), packet.groups);
        self.flights[path].packets -= 1;
        self.groups.leave(groups);
        (true, sent_at)
    }

    /// A unit is in flight again: the receiver reneged, or the unit was declared lost wrongly. If its packet has
    /// ended, the packet stays so.
    pub(super) fn on_returned(&mut self, returned: &Departed) {
        self.flights[usize::from(returned.path)].bytes += u64::from(returned.bytes);
        if let Some(packet) = self.packet_mut(returned.packet)
            && packet.fate == Fate::InFlight
        {
            packet.in_flight += 1;
        }
    }

    /// Forgets the oldest packets with a known fate.
    pub(super) fn forget_ended(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.fate != Fate::InFlight) {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Gives back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// Forgets every packet, and what was in flight. The numbers begin again.
    pub(super) fn clear(&mut self) {
        let paths = self.flights.len();
        *self = Self { flights: vec![Flight::default(); paths], ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets() -> SentPackets {
        let mut packets = SentPackets::default();
        packets.add_path();
        packets
    }

    fn carried(unit: u64, group: u8) -> Carried {
        Carried { unit, bytes: 100, group }
    }

    fn ended(packet: u64) -> Departed {
        Departed { bytes: 100, path: 0, packet: PacketNumber(packet) }
    }

    #[test]
    fn a_packet_ends_with_its_last_unit_in_flight() {
        let mut packets = packets();
        packets.begin(Instant::ZERO, 0, SendCause::New, carried(7, 0));
        packets.add(carried(8, 0));
        assert_eq!(packets.flight(0), Flight { packets: 1, bytes: 200 });
        assert!(!packets.on_departed(&ended(0), Fate::Superseded).0);
        assert_eq!(packets.flight(0), Flight { packets: 1, bytes: 100 });
        packets.on_returned(&ended(0));
        assert!(!packets.on_departed(&ended(0), Fate::Superseded).0);
        assert_eq!(packets.on_departed(&ended(0), Fate::Acknowledged), (true, Some(Instant::ZERO)));
        assert_eq!(packets.flight(0), Flight::default());
        assert_eq!(packets.packet(PacketNumber(0)).unwrap().fate, Fate::Acknowledged);
    }

    #[test]
    fn a_packet_is_in_flight_for_each_group_that_it_carries_something_of() {
        let mut packets = packets();
        let counts = |packets: &SentPackets| [0, 1, 2].map(|group| packets.packets_of(group));
        packets.begin(Instant::ZERO, 0, SendCause::New, carried(1, 0));
        packets.begin(Instant::ZERO, 0, SendCause::New, carried(2, 2));
        for (unit, group) in [(3, 0), (4, 2)] {
            packets.add(carried(unit, group));
        }
        assert_eq!(counts(&packets), [2, 0, 1]);
        packets.on_departed(&ended(1), Fate::Acknowledged);
        assert_eq!(counts(&packets), [2, 0, 1]);
        packets.on_departed(&ended(1), Fate::Acknowledged);
        packets.on_departed(&ended(1), Fate::Acknowledged);
        assert_eq!(counts(&packets), [1, 0, 0]);
        packets.on_departed(&ended(0), Fate::Acknowledged);
        assert_eq!(counts(&packets), [0, 0, 0]);
    }

    #[test]
    fn ended_packets_are_forgotten_only_behind_nothing_in_flight() {
        let mut packets = packets();
        for unit in 0..3 {
            packets.begin(Instant::ZERO, 0, SendCause::New, carried(unit, 0));
        }
        packets.on_departed(&ended(1), Fate::Lost(SendCause::FastRetransmit));
        packets.forget_ended();
        assert_eq!(packets.len(), 3);
        packets.on_departed(&ended(0), Fate::Acknowledged);
        packets.forget_ended();
        assert_eq!(packets.len(), 1);
        assert_eq!(packets.next_number(), PacketNumber(3));
        assert!(packets.packet(PacketNumber(1)).is_none());
        assert_eq!(packets.in_flight(0).map(|(n, _)| n.0).collect::<Vec<_>>(), [2]);
    }
}
