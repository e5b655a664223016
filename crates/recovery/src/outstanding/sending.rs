//! Transmissions: units that are sent, retransmitted or copied, and the packets they are put in.

use super::repeats::{EpisodeId, FirstSent, LOG_CAPACITY, Repeat};
use super::{
    Fate, LastSent, Moved, Outstanding, PacketNumber, SentPacket, SentPackets, Transmission, Unit,
    UnitState,
};
use crate::paths::Pair;
use rexmit_core::Instant;
use rexmit_core::trace::SendCause;
use rexmit_deadline::Due;

/// A unit that is sent for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewUnit {
    /// Size of the unit in bytes as congestion control counts it: with header and padding.
    pub bytes: u32,
    /// Payload bytes, which count against the peer's receive window.
    pub user_bytes: u32,
    /// The group whose mechanisms apply to the unit.
    pub group: u8,
    /// Whether the unit probes a closed receive window. A missing ACK then does not show a loss: only T3-rtx retransmits it.
    pub is_probe: bool,
    /// Whether data sent later waits for it at the receiver.
    pub is_ordered: bool,
    /// When it must arrive; `None` for the deadline of its group, if that has one.
    pub due: Option<Due>,
}

/// The path and place of a unit that is being sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) path: u8,
    /// Whether the unit is the first of its packet.
    pub(crate) starts_packet: bool,
    /// The pair of paths for which the fate of a new packet counts.
    pub(crate) trial: Option<Pair>,
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

#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) unit: u64,
    pub(super) bytes: u32,
    /// The group of the unit, below 32.
    pub(super) group: u8,
}

impl<P> Unit<P> {
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
}

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
        let packet = self.put(now, place, Carried { unit, bytes, group });
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
        let skipped = Unit::new(payload, NewUnit::default(), 0, packet);
        self.units.push_back(Unit { state: UnitState::Abandoned, transmissions: 0, ..skipped });
        unit
    }

    /// Adds a unit to the packet being built.
    #[inline(always)] // With every unit: the call would cost as much again.
    fn put(&mut self, now: Instant, place: Placement, carried: Carried) -> PacketNumber {
        let known = self.packets.groups.len();
        self.packets.groups.resize(known.max(usize::from(carried.group) + 1), 0);
        // Not open any more: its units so far were abandoned while it was built.
        if place.starts_packet || !self.packets.is_newest_in_flight() {
            self.packets.begin(now, place, carried);
        } else {
            self.packets.add(carried);
        }
        self.newest_packet()
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
        let path = place.path;
        let trial = Pair::new(before.path, path).filter(|_| matches!(state, UnitState::Lost(_)));
        let place = Placement { trial, ..place };
        let packet = self.put(now, place, Carried { unit, bytes, group });
        self.sent += 1;
        self.user_bytes_in_flight += u64::from(user_bytes);
        let moved = (from != path).then(|| self.move_between(unit, from, path));
        let is_earliest = self.on(path).earliest == unit && before.path == path;
        self.on_mut(before.path).user_bytes -= u64::from(user_bytes);
        self.on_mut(path).user_bytes += u64::from(user_bytes);
        let u = self.unit_mut(unit)?;
        (u.last_packet, u.last_sent) = (packet, LastSent { path, cause });
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
}

/// Repeated transmissions.
impl<P> Outstanding<P> {
    /// Remembers that `unit`, which was last sent in `packet`, is retransmitted in `episode`. Beyond [`LOG_CAPACITY`], or if it
    /// is too old, the oldest transmission of the lowest unit is forgotten; returns its episode.
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
        repeats.on_retransmitted(now, cause);
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
        let first = FirstSent::of(self, unit);
        self.on_copied(unit, first);
        forgotten
    }

    fn remember(&mut self, unit: u64, new: Repeat) {
        let Some(index) = unit.checked_sub(self.first) else { return };
        if let Some(u) = self.units.get_mut(index as usize) {
            self.history.remember(unit, u.repeats.get_or_insert_default(), new);
        }
    }

    fn make_room(&mut self, now: Instant) -> Option<EpisodeId> {
        if self.history.remembered < LOG_CAPACITY && !self.history.is_stale(now) {
            return None;
        }
        if let Some(episode) = self.history.forget_oldest_delivered() {
            return episode;
        }
        // Each unit is passed over once, until a lower one is retransmitted.
        let lowest = self.history.lowest_outstanding.max(self.first);
        let skipped = usize::try_from(lowest - self.first).unwrap_or(usize::MAX);
        let Self { units, history, .. } = self;
        let units = (lowest..).zip(units.range_mut(skipped.min(units.len())..));
        let mut repeats = units.filter_map(|(unit, u)| Some((unit, u.repeats.as_mut()?)));
        repeats.find_map(|(unit, repeats)| history.forget_oldest_of(unit, repeats)).flatten()
    }

    /// Called when a redundant copy of `unit` was sent. `first` is its first transmission, if there was no other before the copy.
    pub(crate) fn on_copied(&mut self, unit: u64, first: Option<FirstSent>) {
        let Some(u) = self.unit_mut(unit) else { return };
        if !std::mem::replace(&mut u.is_copied, true)
            && let Some(first) = first
        {
            u.repeats.get_or_insert_default().on_first_copy(first);
        }
    }

    /// Called when the first transmission of `unit` is declared lost, so that its round trip can be measured
    /// if it proves to have arrived.
    pub(crate) fn measure_first_transmission(&mut self, unit: u64, path: u8, sent_at: Instant) {
        if let Some(u) = self.unit_mut(unit) {
            u.repeats.get_or_insert_default().on_first_lost(path, sent_at);
        }
    }
}

impl FirstSent {
    /// The first transmission of `unit`, if it was sent once.
    pub(crate) fn of<P>(outstanding: &Outstanding<P>, unit: u64) -> Option<Self> {
        let u = outstanding.unit(unit).filter(|u| u.is_first_transmission())?;
        let packet = u.last_packet;
        let sent_at = outstanding.packets.sent_at(packet);
        Some(Self { packet, sent_at, path: u.path, group: u.group })
    }
}

impl SentPackets {
    #[inline]
    pub(super) fn begin(&mut self, now: Instant, place: Placement, carried: Carried) {
        let Placement { path, trial, .. } = place;
        let Carried { unit, bytes, group } = carried;
        self.packets.push_back(SentPacket {
            sent_at: now,
            path,
            lowest: unit,
            highest: unit,
            units: 1,
            bytes,
            fate: Fate::InFlight,
            in_flight: 1,
            groups: 1 << group,
            trial,
        });
        self.groups[usize::from(group)] += 1;
        let flight = &mut self.flights[usize::from(path)];
        flight.packets += 1;
        flight.bytes += u64::from(bytes);
    }

    /// Whether the packet that was sent last has units in flight.
    #[inline]
    fn is_newest_in_flight(&self) -> bool {
        self.packets.back().is_some_and(|packet| packet.fate == Fate::InFlight)
    }

    pub(super) fn add(&mut self, carried: Carried) {
        let Carried { unit, bytes, group } = carried;
        let Some(packet) = self.packets.back_mut() else { return };
        if packet.groups & (1 << group) == 0 {
            packet.groups |= 1 << group;
            self.groups[usize::from(group)] += 1;
        }
        packet.lowest = packet.lowest.min(unit);
        packet.highest = packet.highest.max(unit);
        packet.units += 1;
        packet.in_flight += 1;
        packet.bytes += bytes;
        self.flights[usize::from(packet.path)].bytes += u64::from(bytes);
    }
}
