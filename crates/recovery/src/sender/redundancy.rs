//! Copies of what is in flight beside new data: which, and what their acknowledgement tells.

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::ack::Progress;
use super::{LossRecovery, UnitState};
use crate::PacketNumber;
use crate::ledger::Fate;
use crate::recovery_timer::AnswerTimes;
use crate::redundancy::AckedCopied;

/// Units looked at to find what to copy, at most: only the newest few can be of the packets before.
const MAX_LOOK_BACK: u64 = 64;

/// What a packet with new data has room for.
#[derive(Clone, Copy, Debug)]
pub struct BundleRoom {
    /// The new unit, in bytes as units are counted.
    pub new_bytes: u32,
    /// What is left in the packet beside it.
    pub room: u32,
    /// The copies and the new unit must be one run: a segment of TCP.
    pub is_contiguous: bool,
}

impl<P> LossRecovery<P> {
    /// Whether what is in flight of `group` may be copied now.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    #[inline]
    pub fn may_copy(&self, group: u8) -> bool {
        self.groups.of(group).thin.max_bundle_packets > 0 && self.is_thin(group)
    }

    /// Whether a retransmission may take along what is in flight of `group`.
    pub(super) fn may_bundle(&self, group: u8) -> bool {
        self.may_copy(group) && self.bytes_to_copy(self.open_path(), group) > 0
    }

    /// The path of the packet being built, or of the next one with new data.
    fn open_path(&self) -> u8 {
        self.open.map_or(self.data_path, |open| open.path)
    }

    /// The lowest unit that a packet with a new unit of `group` is to carry a copy of; the others
    /// follow by [`next_to_copy`](Self::next_to_copy), and together they fit. The newest come
    /// first: what is beyond a limit is left out with all that is older. When the budget is nearly
    /// spent, what had no answer for a round trip comes before what left since: it is more probably lost.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn first_to_copy(&mut self, now: Instant, group: u8, bundle: BundleRoom) -> Option<u64> {
        // What is sent again takes along what it may by itself.
        let is_begun = self.open.is_some_and(|open| open.units > 0);
        if self.units.is_empty() || is_begun || !self.may_copy(group) {
            return None;
        }
        let mut chosen = self.copies.take_chosen();
        let is_denied = self.choose_copies(now, group, bundle, &mut chosen);
        self.statistics.copies_denied += u64::from(is_denied);
        let lowest = chosen.last().copied();
        self.copies.choose(chosen);
        lowest
    }

    /// Returns whether the budget is why something was left out.
    fn choose_copies(
        &self,
        now: Instant,
        group: u8,
        bundle: BundleRoom,
        chosen: &mut Vec<u64>,
    ) -> bool {
        let thin = &self.groups.of(group).thin;
        let limit = match thin.max_bundle_bytes {
            0 => bundle.room,
            most => bundle.room.min(most.saturating_sub(bundle.new_bytes)),
        };
        let left = self.bytes_to_copy(self.open_path(), group);
        let left_for_recent = left.min(self.spending.bytes_left_for_recent(thin.copy_budget));
        let (mut bytes, mut packets, mut packet, mut is_denied) = (0, 0, None, false);
        for number in (self.first..self.next_unit()).rev().take(MAX_LOOK_BACK as usize) {
            let Some(unit) = self.unit(number) else { break };
            if unit.state != UnitState::InFlight || unit.group != group {
                if bundle.is_contiguous {
                    break;
                }
                continue;
            }
            packets += u8::from(packet.replace(unit.packet) != Some(unit.packet));
            if packets > thin.max_bundle_packets || bytes + unit.bytes > limit {
                break;
            }
            // A run takes along all that is newer, so that nothing comes before it.
            let is_recent = !bundle.is_contiguous && self.is_recent(now, unit);
            if u64::from(bytes + unit.bytes) <= if is_recent { left_for_recent } else { left } {
                bytes += unit.bytes;
                chosen.push(number);
                continue;
            }
            is_denied = true;
            if bundle.is_contiguous {
                break;
            }
        }
        is_denied
    }

    /// Whether `unit` left so lately that no answer can have come.
    fn is_recent(&self, now: Instant, unit: &super::Unit<P>) -> bool {
        let answers = self.path(unit.path).watch.as_ref().map(|watch| &watch.answers);
        let shortest = answers.and_then(AnswerTimes::shortest);
        let sent_at = self.ledger.packet(unit.packet).map(|packet| packet.sent_at);
        shortest.zip(sent_at).is_some_and(|(shortest, sent_at)| now - sent_at < shortest)
    }

    /// The next unit to be copied after `unit`.
    #[must_use]
    pub fn next_to_copy(&self, unit: u64) -> Option<u64> {
        self.copies.chosen().find(|&chosen| chosen > unit)
    }

    /// Puts a copy of `unit` into the packet being built, which a new unit has to follow, and returns
    /// what the protocol keeps with it; `None` if it is not in flight. The unit stays what it is: the
    /// copy is neither in flight nor a retransmission.
    pub fn copy(&mut self, unit: u64) -> Option<&P> {
        if self.unit(unit)?.state != UnitState::InFlight {
            return None;
        }
        self.copies.add(unit);
        self.unit(unit).map(|unit| &unit.payload)
    }

    /// The packet that was built leaves with its copies.
    #[inline]
    pub(super) fn count_copies(&mut self, now: Instant, path: u8, tracer: &mut Tracer<'_>) {
        if !self.copies.is_open_empty() {
            self.count_open_copies(now, path, tracer);
        }
    }

    fn count_open_copies(&mut self, now: Instant, path: u8, tracer: &mut Tracer<'_>) {
        let number = PacketNumber(self.ledger.next_number().0 - 1);
        let units = self.copies.take_open(now, number);
        for &unit in &units {
            let dropped = self.log.get_or_insert_default().on_copied(unit, number);
            self.on_copy_forgotten(dropped);
            self.statistics.retransmitted.count(SendCause::Redundant);
            if let Some(u) = self.unit_mut(unit) {
                u.is_copied = true;
                let bytes = u.bytes;
                self.statistics.redundant_bytes += u64::from(bytes);
                self.spending.on_copied(bytes);
                self.watch_again(now, unit);
            }
        }
        tracer.emit(|| TraceEvent::CopiesSent { packet: number.0, path, runs: runs_of(&units) });
        self.copies.reuse(units);
    }

    /// What was copied makes a round-trip sample if no copy can have been what arrived.
    #[inline]
    pub(super) fn sample_copied(&mut self, now: Instant) {
        if !self.copies.acked().is_empty() {
            self.sample_acked_copied(now);
        }
    }

    fn sample_acked_copied(&mut self, now: Instant) {
        for index in 0..self.copies.acked().len() {
            let acked = self.copies.acked()[index];
            if !self.may_copy_have_arrived(now, &acked) {
                let sample = &mut self.path_mut(acked.first.path).ack.sample_sent_at;
                *sample = (*sample).max(acked.first.sent_at);
                self.note_answer_of_copied(acked.first.path, acked.first.sent_at);
            }
        }
    }

    /// A packet whose units arrived only as copies was lost: congestion as any other loss, once per
    /// window, unless the stream hides it.
    #[inline]
    pub(super) fn answer_repaired_losses(
        &mut self,
        now: Instant,
        progress: &Progress,
        tracer: &mut Tracer<'_>,
    ) {
        if !self.copies.acked().is_empty() {
            self.answer_repaired(now, progress, tracer);
        }
    }

    fn answer_repaired(&mut self, now: Instant, progress: &Progress, tracer: &mut Tracer<'_>) {
        let mut last = None;
        for index in 0..self.copies.acked().len() {
            let acked = self.copies.acked()[index];
            let packet = acked.first.packet;
            let is_repaired = !acked.is_reported && self.may_copy_have_arrived(now, &acked);
            if is_repaired && last.replace(packet) != Some(packet) {
                self.on_repaired(&acked, tracer);
            }
        }
        self.copies.clear_acked();
        // With nothing left of that window there is nothing to recover from.
        self.leave_fast_recovery(progress);
    }

    fn on_repaired(&mut self, acked: &AckedCopied, tracer: &mut Tracer<'_>) {
        let AckedCopied { unit, first, .. } = *acked;
        self.statistics.packets_repaired += 1;
        let (packet, cause) = (first.packet.0, SendCause::Redundant);
        tracer.emit(|| TraceEvent::PacketLost { packet, cause });
        if self.groups.of(first.group).thin.loss_hiding {
            return;
        }
        self.count_lost_packet(true);
        let is_new_window = self.recover.is_none_or(|recover| unit > recover);
        // Something was lost: no event before is to be undone.
        self.path_mut(first.path).doubt();
        if is_new_window && !self.is_in_fast_recovery() {
            self.reduce_window_for(first.path, tracer);
            self.begin_recovery();
            self.scoreboard.on_repaired(self.cumulative(), self.next_unit() - 1);
        }
    }

    fn may_copy_have_arrived(&self, now: Instant, acked: &AckedCopied) -> bool {
        let Some(packet) = self.ledger.packet(acked.copy) else { return false };
        let answers = self.path(acked.first.path).watch.as_ref().map(|watch| &watch.answers);
        match answers.and_then(AnswerTimes::shortest).filter(|_| acked.is_alone) {
            Some(shortest) => now - packet.sent_at >= shortest,
            None => packet.fate == Fate::Acknowledged,
        }
    }
}

/// Ascending numbers as runs.
fn runs_of(units: &[u64]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &unit in units {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == unit => *last = unit,
            _ => runs.push((unit, unit)),
        }
    }
    runs
}
