//! The transmissions of a unit after the first, which ambiguous ACKs and duplicate reports are compared with,
//! while the unit is outstanding and for a while after it was delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::PacketNumber;

/// The most repeated transmissions remembered, over all units of an association.
pub const LOG_CAPACITY: usize = 1024;
/// From this age on, a transmission of a delivered unit is forgotten when another one is to be remembered: a duplicate
/// of it is not to be expected any more. Where losses are real, no duplicate is ever reported.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The number of a recovery episode: the episodes of a path in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EpisodeId {
    /// The path whose window the episode reduced.
    pub(crate) path: u8,
    pub(crate) number: u32,
}

/// The history of a unit that was declared lost, retransmitted or copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    list: Vec<Repeat>,
    /// The index of the first transmission since the unit was last retransmitted or its copies expired:
    /// bundled copies before it no longer count.
    standing_from: usize,
    /// The first transmission, if redundant copies were sent since and nothing else.
    copied: Option<FirstSent>,
    /// Whether the receiver reported a duplicate of the unit, after its first redundant copy if there is one.
    pub(crate) is_reported: bool,
    /// The first transmission, if round trips are to be measured by it.
    pub(crate) first: Option<FirstTransmission>,
}

/// One transmission after the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    /// The packet that this transmission replaces; for a bundled copy, the packet that carried it.
    pub(crate) packet: PacketNumber,
    pub(super) sent_at: Instant,
    pub(crate) cause: SendCause,
    pub(crate) is_bundled: bool,
    /// The recovery episode that it belongs to, unless that is forgotten.
    pub(crate) episode: Option<EpisodeId>,
    /// The reordering threshold that would have waited for the unit; zero before that is known.
    pub(crate) needed: u16,
    pub(super) is_reported: bool,
}

/// The first redundant copies of a unit that was not declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstCopy {
    /// The transmission before.
    pub(crate) first: FirstSent,
    /// The packet that carried the first copy, if that was bundled with new data.
    pub(crate) bundled: Option<PacketNumber>,
    /// When the first copy in a packet of its own was sent.
    pub(crate) alone_at: Option<Instant>,
}

/// The transmission of a unit before it was copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstSent {
    pub(crate) packet: PacketNumber,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) path: u8,
    pub(crate) group: u8,
}

/// The first transmission of a unit that was declared lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstTransmission {
    pub(crate) path: u8,
    pub(crate) sent_at: Instant,
    /// When the unit was retransmitted.
    repeated_at: Option<Instant>,
    /// When the unit was acknowledged.
    pub(crate) acked_at: Option<Instant>,
    /// Whether a duplicate had been reported by then, so that the ACK was for a repeated transmission.
    is_acked_for_repeat: bool,
    /// Whether the unit was acknowledged too soon for the ACK to answer the second transmission.
    pub(crate) is_answered: bool,
    /// Whether the unit was declared lost only once, that is, was sent at most twice.
    is_lost_once: bool,
}

impl Repeat {
    pub(super) const fn new(
        sent_at: Instant,
        packet: PacketNumber,
        cause: SendCause,
        episode: Option<EpisodeId>,
    ) -> Self {
        let (is_bundled, needed, is_reported) = (false, 0, false);
        Self { packet, sent_at, cause, is_bundled, episode, needed, is_reported }
    }
}

/// Whether a transmission with this cause repeats something that was not declared lost.
const fn is_redundant(cause: SendCause) -> bool {
    matches!(cause, SendCause::Redundant | SendCause::Bundled | SendCause::WindowProbe)
}

impl Repeats {
    /// Called when the first transmission, over `path` at `sent_at`, is declared lost, and its round trip may
    /// be measured later.
    pub(super) fn on_first_lost(&mut self, path: u8, sent_at: Instant) {
        let new = FirstTransmission { path, sent_at, ..FirstTransmission::default() };
        self.first = Some(FirstTransmission { is_lost_once: true, ..new });
    }

    pub(super) fn on_later_lost(&mut self) {
        self.first.iter_mut().for_each(|first| first.is_lost_once = false);
    }

    /// Called when the unit is retransmitted in a packet of its own. Earlier copies no longer count. Only after a redundant
    /// copy is it open whether the first transmission arrived: any other retransmission follows a declared loss.
    pub(super) fn on_retransmitted(&mut self, now: Instant, cause: SendCause) {
        self.expire_copies();
        self.copied = self.copied.filter(|_| cause == SendCause::Redundant);
        if let Some(first) = &mut self.first {
            first.repeated_at.get_or_insert(now);
        }
    }

    /// Stops counting the copies sent so far as replacements of a retransmission.
    pub(crate) fn expire_copies(&mut self) {
        self.standing_from = self.list.len();
    }

    /// The number of bundled copies since the unit was last sent in a packet of its own, and when the latest was sent.
    pub(crate) fn standing_copies(&self) -> (u8, Option<Instant>) {
        let standing = self.list.get(self.standing_from..).unwrap_or_default();
        let mut bundled = standing.iter().filter(|repeat| repeat.is_bundled);
        let latest = bundled.next_back().map(|repeat| repeat.sent_at);
        let count = bundled.count() + usize::from(latest.is_some());
        (u8::try_from(count).unwrap_or(u8::MAX), latest)
    }

    /// The first redundant copies, until the unit is acknowledged, and whether the receiver reported the unit as a duplicate.
    pub(crate) fn take_first_copy(&mut self) -> Option<(FirstCopy, bool)> {
        self.standing_from = self.list.len();
        let first = self.copied.take()?;
        let mut copies = self.list.iter();
        let bundled = copies.clone().find(|copy| copy.is_bundled).map(|copy| copy.packet);
        let alone_at = copies.find(|copy| !copy.is_bundled).map(|copy| copy.sent_at);
        Some((FirstCopy { first, bundled, alone_at }, self.is_reported))
    }

    /// Called when the first copy is sent, of what was sent as `first` says.
    pub(super) fn on_first_copy(&mut self, first: FirstSent) {
        self.copied = Some(first);
        self.is_reported = false;
    }

    /// When the first transmission was sent, if the ACK at `now` must be for it: it was sent over the same
    /// path, and the ACK came less than `shortest`, the least round trip, after the second.
    pub(crate) fn acked_before_retransmission(
        &mut self,
        now: Instant,
        path: u8,
        shortest: Duration,
    ) -> Option<Instant> {
        let first = self.first.as_mut()?;
        first.is_answered = now - first.repeated_at? < shortest;
        (first.is_answered && first.path == path).then_some(first.sent_at)
    }

    /// Called when this unit, and no later one, is acknowledged by an ACK. (Otherwise its own ACK may have
    /// been lost, and the time until this one would be too long.)
    pub(crate) fn on_acked(&mut self, now: Instant) {
        let is_reported = self.list.iter().any(|repeat| repeat.is_reported);
        if let Some(first) = &mut self.first {
            (first.acked_at, first.is_acked_for_repeat) = (Some(now), is_reported);
        }
    }

    /// The path and round-trip time of the first transmission, which is no ambiguous sample (Karn's algorithm) if
    /// both transmissions have arrived, as duplicate reports show: the ACK of the unit was for the first. `None` if a
    /// duplicate was reported before that ACK, or if this was asked before. With `may_be_several`, units that were sent
    /// more than twice count, too: then duplicates of all their transmissions must have been reported.
    pub(crate) fn take_rtt_sample(&mut self, may_be_several: bool) -> Option<(u8, Duration)> {
        if may_be_several && self.has_open() {
            return None;
        }
        let first = self.first.take()?;
        let is_certain = (first.is_lost_once || may_be_several) && !first.is_acked_for_repeat;
        first.acked_at.filter(|_| is_certain).map(|at| (first.path, at - first.sent_at))
    }

    /// Called when a reordering threshold of `needed` would have waited for the unit.
    pub(crate) fn on_late(&mut self, needed: u16) {
        let open = self.list.iter_mut().filter(|repeat| !repeat.is_reported);
        if let Some(repeat) = open.max_by_key(|repeat| repeat.packet) {
            repeat.needed = needed;
        }
    }

    /// Called when the receiver has received the unit more than once. A redundant copy explains it first;
    /// then the oldest retransmission does.
    pub(super) fn on_duplicate_report(&mut self) -> Option<Repeat> {
        self.is_reported = true;
        let open = self.list.iter_mut().filter(|repeat| !repeat.is_reported);
        let repeat = open.min_by_key(|repeat| (!is_redundant(repeat.cause), repeat.packet))?;
        repeat.is_reported = true;
        Some(*repeat)
    }

    /// Forgets the oldest transmission that was not reported, and returns its episode.
    fn forget_oldest(&mut self) -> Option<Option<EpisodeId>> {
        let open = self.list.iter_mut().filter(|repeat| !repeat.is_reported);
        let repeat = open.min_by_key(|repeat| repeat.packet)?;
        repeat.is_reported = true;
        Some(repeat.episode)
    }

    fn oldest(&self) -> Option<Instant> {
        self.list.iter().find(|repeat| !repeat.is_reported).map(|repeat| repeat.sent_at)
    }

    fn has_open(&self) -> bool {
        self.list.iter().any(|repeat| !repeat.is_reported)
    }
}

/// Delivered units of which a duplicate may still be reported, and the count of all that is remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    delivered: BTreeMap<u64, Box<Repeats>>,
    /// Transmissions remembered and not reported, of outstanding and delivered units.
    pub(super) remembered: usize,
    /// The highest unit of which a transmission was forgotten.
    forgotten_through: u64,
    /// A lower bound: no outstanding unit below has a remembered transmission that was not reported.
    pub(super) lowest_outstanding: u64,
}

impl History {
    /// Whether the oldest transmission of the lowest delivered unit is too old for a duplicate report.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        let oldest = self.delivered.first_key_value().and_then(|(_, repeats)| repeats.oldest());
        oldest.is_some_and(|sent_at| now - sent_at >= MAX_AGE)
    }

    /// Remembers a retransmission of `unit`.
    pub(super) fn remember(&mut self, unit: u64, repeats: &mut Repeats, new: Repeat) {
        repeats.list.push(new);
        self.remembered += 1;
        self.lowest_outstanding = self.lowest_outstanding.min(unit);
    }

    /// Forgets the oldest transmission of the lowest delivered unit, and returns its episode; `None` if there is no such unit.
    pub(super) fn forget_oldest_delivered(&mut self) -> Option<Option<EpisodeId>> {
        let mut entry = self.delivered.first_entry()?;
        let episode = entry.get_mut().forget_oldest()?;
        let unit = *entry.key();
        if !entry.get().has_open() {
            entry.remove();
        }
        self.on_forgotten(unit);
        Some(episode)
    }

    /// Forgets the oldest remembered transmission of `unit`, which is outstanding, and returns its episode;
    /// `None` if none is remembered.
    pub(super) fn forget_oldest_of(
        &mut self,
        unit: u64,
        repeats: &mut Repeats,
    ) -> Option<Option<EpisodeId>> {
        self.lowest_outstanding = unit;
        let episode = repeats.forget_oldest()?;
        self.on_forgotten(unit);
        Some(episode)
    }

    fn on_forgotten(&mut self, unit: u64) {
        self.remembered -= 1;
        self.forgotten_through = self.forgotten_through.max(unit);
    }

    /// Called when `unit` is delivered: keeps its transmissions of which a duplicate may still be reported.
    pub(super) fn on_delivered(&mut self, unit: u64, repeats: Box<Repeats>) {
        if repeats.has_open() {
            self.delivered.insert(unit, repeats);
        }
    }

    pub(super) fn delivered(&self, unit: u64) -> Option<&Repeats> {
        self.delivered.get(&unit).map(|repeats| &**repeats)
    }

    pub(super) fn delivered_mut(&mut self, unit: u64) -> Option<&mut Repeats> {
        self.delivered.get_mut(&unit).map(|repeats| &mut **repeats)
    }

    /// Called when a duplicate report was matched to a transmission.
    pub(super) const fn on_explained(&mut self) {
        self.remembered -= 1;
    }

    /// Forgets the history of a delivered unit, once no further report can concern it.
    pub(crate) fn settle_delivered(&mut self, unit: u64) {
        if self.delivered.get(&unit).is_some_and(|repeats| !repeats.has_open()) {
            self.delivered.remove(&unit);
        }
    }

    /// Called when a new episode of `path` begins: removes transmissions of delivered units from its earlier
    /// episodes, because such units are not retransmitted.
    pub(crate) fn forget_episodes(&mut self, path: u8) {
        let repeats = self.delivered.values_mut().flat_map(|repeats| &mut repeats.list);
        repeats.for_each(|repeat| repeat.episode = repeat.episode.filter(|it| it.path != path));
    }

    /// Whether a repeated transmission of `unit` would still be remembered.
    pub(crate) const fn remembers(&self, unit: u64) -> bool {
        unit > self.forgotten_through
    }

    /// Forgets every delivered unit; `cumulative` is the highest.
    pub(super) fn release_memory(&mut self, cumulative: u64) {
        *self = Self { forgotten_through: cumulative, ..Self::default() };
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn remembered_of_delivered(&self) -> usize {
        self.delivered.values().map(|repeats| repeats.open()).sum()
    }
}

#[cfg(any(test, debug_assertions))]
impl Repeats {
    /// Transmissions that were not reported.
    pub(super) fn open(&self) -> usize {
        self.list.iter().filter(|repeat| !repeat.is_reported).count()
    }
}
