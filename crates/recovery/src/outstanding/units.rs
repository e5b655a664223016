//! One unit of data: its state and its transmissions.

use super::repeats::{FirstTransmission, Repeats};
use crate::plan::Due;
use rexmit_core::Instant;
use rexmit_core::trace::SendCause;
use std::collections::{BTreeSet, VecDeque};

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

/// A transmission of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) packet: PacketNumber,
    pub(crate) path: u8,
    pub(crate) cause: SendCause,
}

/// How a unit was last sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSent {
    pub(super) path: u8,
    pub(super) cause: SendCause,
}

/// A unit that is sent for the first time.
#[derive(Clone, Copy, Debug)]
pub struct NewUnit {
    /// Its size in bytes as congestion control counts it: with header and padding.
    pub bytes: u32,
    /// Payload bytes, which count against the peer's receive window.
    pub user_bytes: u32,
    /// The group whose mechanisms apply to it.
    pub group: u8,
    /// Whether the unit probes a closed receive window. A missing ACK then does not show a loss: only T3-rtx
    /// retransmits it.
    pub is_probe: bool,
    /// Whether data sent later waits for it at the receiver.
    pub is_ordered: bool,
    /// When it must arrive; `None` for the deadline of its group, if that has one.
    pub due: Option<Due>,
}

/// A unit that was sent and is not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct Unit<P> {
    /// Data of the protocol for a retransmission.
    pub payload: P,
    /// Its size in bytes as congestion control counts it: with header and padding.
    pub(crate) bytes: u32,
    pub(super) user_bytes: u32,
    pub(super) group: u8,
    /// The path on which it is outstanding: in flight over it, or waiting to be retransmitted over it.
    pub(crate) path: u8,
    pub(super) state: UnitState,
    /// The last transmission, in parts so that a unit with an SCTP fragment stays within 128 bytes, the size
    /// that the compiler moves without a call.
    pub(super) last_sent: LastSent,
    pub(super) last_packet: PacketNumber,
    /// How often it was sent, redundant copies in packets of their own included.
    pub(crate) transmissions: u16,
    /// How many of the transmissions were redundant copies in packets of their own.
    pub(super) redundant: u16,
    /// Whether the unit was retransmitted as lost, which makes it ineligible for another fast retransmit (RFC
    /// 9260 §7.2.4 rule 5).
    pub(crate) is_fast_retransmitted: bool,
    /// Whether a redundant copy of it was sent.
    pub(crate) is_copied: bool,
    pub(super) is_on_several_paths: bool,
    /// Whether the unit probes a closed receive window: only T3-rtx retransmits it.
    pub(crate) is_probe: bool,
    /// Set once it was declared lost or copied.
    pub(super) repeats: Option<Box<Repeats>>,
}

/// A unit that was abandoned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownAbandoned {
    pub(crate) group: u8,
    /// The path over which it was last sent.
    pub(crate) path: u8,
    /// The transmission of a unit that was sent only once and declared lost, if an RTT sample is to be taken
    /// from it.
    pub(crate) only_transmission: Option<FirstTransmission>,
}

impl<P> Unit<P> {
    /// A new unit, in flight over `path` in `packet`.
    #[inline]
    pub(super) const fn new(payload: P, new: NewUnit, path: u8, packet: PacketNumber) -> Self {
        Self {
            payload,
            bytes: new.bytes,
            user_bytes: new.user_bytes,
            group: new.group,
            path,
            state: UnitState::InFlight,
            last_sent: LastSent { path, cause: SendCause::New },
            last_packet: packet,
            transmissions: 1,
            redundant: 0,
            is_fast_retransmitted: false,
            is_copied: false,
            is_on_several_paths: false,
            is_probe: new.is_probe,
            repeats: None,
        }
    }

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

    /// Records another transmission.
    pub(super) const fn set_last(&mut self, last: Transmission) {
        self.last_packet = last.packet;
        self.last_sent = LastSent { path: last.path, cause: last.cause };
    }

    /// Whether it is in flight.
    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.state == UnitState::InFlight
    }

    /// Whether it is in flight in `packet`.
    pub(crate) fn is_in_flight_in(&self, packet: PacketNumber) -> bool {
        self.last_packet == packet && self.is_in_flight()
    }

    /// Whether it is in flight or waits to be retransmitted.
    #[inline]
    pub(crate) const fn is_outstanding(&self) -> bool {
        matches!(self.state, UnitState::InFlight | UnitState::Lost(_))
    }

    /// Whether it was sent once, redundant copies bundled into other packets aside.
    pub(crate) const fn is_first_transmission(&self) -> bool {
        self.transmissions == 1
    }

    /// The unit, if it was abandoned.
    pub(crate) fn abandoned(&self) -> Option<KnownAbandoned> {
        if self.state != UnitState::Abandoned {
            return None;
        }
        let is_only = self.is_first_transmission() && !self.is_copied;
        let first = self.repeats().and_then(Repeats::first).filter(|_| is_only);
        Some(KnownAbandoned { group: self.group, path: self.last().path, only_transmission: first })
    }

    /// Whether missing reports of it count (RFC 9260 §7.2.4 rule 5).
    pub(crate) fn may_be_fast_retransmitted(&self) -> bool {
        self.is_in_flight() && !self.is_fast_retransmitted
    }

    /// The repeated transmissions that are remembered.
    pub(crate) fn repeats(&self) -> Option<&Repeats> {
        self.repeats.as_deref()
    }
}

/// The units of a path.
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
    /// Whether anything waits to be retransmitted over the path.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The first unit that waits to be retransmitted over the path.
    #[inline]
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// The first unit from `from` on that waits to be retransmitted over the path.
    pub(crate) fn lost_from(&self, from: u64) -> Option<u64> {
        self.lost.range(from..).next().copied()
    }

    /// Whether a unit that was last sent over the path is declared lost, and waits for any path.
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
    /// The last of its units in flight was acknowledged.
    Acknowledged,
    /// Declared lost.
    Lost(SendCause),
    /// The last of its units in flight was retransmitted or abandoned.
    Superseded,
}

/// One packet that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentPacket {
    /// When it was sent.
    pub(crate) sent_at: Instant,
    /// The index of its path.
    pub(crate) path: u8,
    /// Why its first unit was sent.
    pub(crate) cause: SendCause,
    /// The lowest unit in it.
    pub(crate) lowest: u64,
    /// The highest unit in it.
    pub(crate) highest: u64,
    /// How many units it carries.
    pub(crate) units: u16,
    /// The bytes of its units, as congestion control counts them.
    pub(crate) bytes: u32,
    /// The fate of the packet.
    pub(crate) fate: Fate,
    /// How many of its units are in flight in it.
    pub(super) in_flight: u16,
    /// The groups of its units, one bit each.
    pub(crate) groups: u32,
}

/// Data in flight on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Packets neither acknowledged nor declared lost.
    pub packets: u32,
    /// Bytes of units neither acknowledged, declared lost nor abandoned.
    pub bytes: u64,
}

/// The packets sent, with the fate of each.
///
/// Packets are counted whatever their content, because the thin test uses packets in flight, not chunks or
/// bytes (Petlund 2009 §5). A packet ends with its last unit in flight, and has the fate of this unit:
/// acknowledged, declared lost, or superseded by a retransmission. Packets with a known fate are forgotten
/// once nothing older is in flight.
///
/// The packets of one association, oldest first, and data in flight on each path.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentPackets {
    first: u64,
    packets: VecDeque<SentPacket>,
    flights: Vec<Flight>,
    groups: GroupFlights,
}

/// A unit that is added to a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) unit: u64,
    pub(super) bytes: u32,
    /// The group of the unit, below 32.
    pub(super) group: u8,
}

/// A unit that stops or begins to count as in flight: the path and the packet of its last transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departed {
    pub(super) bytes: u32,
    pub(super) path: u8,
    pub(super) packet: PacketNumber,
}

/// Packets in flight that carry a unit of a group.
#[derive(Clone, Debug, Default)]
struct GroupFlights {
    /// The count of group 0, which always exists.
    base: u32,
    /// The counts of the other groups, from 1.
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
    #[inline]
    pub(crate) fn flight(&self, path: u8) -> Flight {
        self.flights[usize::from(path)]
    }

    /// Packets in flight that carry a unit of `group`, on all paths.
    #[inline]
    pub(crate) fn packets_of(&self, group: u8) -> u32 {
        match usize::from(group).checked_sub(1) {
            None => self.groups.base,
            Some(index) => self.groups.others.get(index).copied().unwrap_or(0),
        }
    }

    /// Packets that are remembered: those sent since the oldest in flight.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packet `number`, unless it is forgotten.
    pub(crate) fn packet(&self, number: PacketNumber) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// When the packet `number` was sent, unless it is forgotten.
    pub(crate) fn sent_at(&self, number: PacketNumber) -> Option<Instant> {
        self.packet(number).map(|packet| packet.sent_at)
    }

    fn packet_mut(&mut self, number: PacketNumber) -> Option<&mut SentPacket> {
        self.packets.get_mut(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// The packets in flight on `path`, oldest first.
    pub(crate) fn in_flight(&self, path: u8) -> impl Iterator<Item = (PacketNumber, &SentPacket)> {
        (self.first..)
            .map(PacketNumber)
            .zip(&self.packets)
            .filter(move |(_, packet)| packet.fate == Fate::InFlight && packet.path == path)
    }

    /// The oldest packet in flight on `path`.
    #[inline]
    pub(crate) fn oldest_in_flight(&self, path: u8) -> Option<&SentPacket> {
        let is_it = |packet: &SentPacket| packet.fate == Fate::InFlight && packet.path == path;
        // Most of the time it is the first; nothing is numbered on the way.
        (0..self.packets.len()).map(|index| &self.packets[index]).find(|packet| is_it(packet))
    }

    /// Whether a packet sent after `number` is in flight on `path`. The cost is the number of newer packets
    /// that were sent over other paths or are no longer in flight.
    pub(crate) fn has_in_flight_after(&self, path: u8, number: PacketNumber) -> bool {
        let newer = self.next_number().0.saturating_sub(number.0 + 1);
        let newer = usize::try_from(newer).unwrap_or(usize::MAX);
        let is_one = |packet: &SentPacket| packet.fate == Fate::InFlight && packet.path == path;
        self.packets.iter().rev().take(newer).any(is_one)
    }

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first + self.packets.len() as u64)
    }

    /// Records that a packet is sent over `path`, with this unit first.
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

    /// Adds a unit to the newest packet.
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

    /// Called when a unit leaves the flight. If it is the last unit of its packet in flight, the packet meets
    /// `fate`. Returns whether it did, and when the packet was sent, unless that is forgotten.
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

    /// Called when a unit counts as in flight again: the receiver reneged, or the unit was declared lost
    /// wrongly. If its packet was already delivered or declared lost, the packet stays so.
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

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// Forgets every packet and all data in flight. Numbering begins again.
    pub(super) fn clear(&mut self) {
        let paths = self.flights.len();
        *self = Self { flights: vec![Flight::default(); paths], ..Self::default() };
    }
}
