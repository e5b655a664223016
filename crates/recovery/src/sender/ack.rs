//! What an acknowledgement does, one named step after the other.

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, Tracer};

use super::adaptive::{Arrival, LateUnit};
use super::answers::Answered;
use super::path::{Path, PathAck};
use super::{LossRecovery, Unit, UnitState};
use crate::ledger::{EndedUnit, Fate};
use crate::loss::rack::Rack;
use crate::redundancy::FirstSent;
use crate::{Acked, Reordering};

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Older than what is known: nothing was done.
    pub is_stale: bool,
    /// The cumulative point advanced.
    pub has_advanced: bool,
    /// Units acknowledged for the first time.
    pub newly_acked: u64,
    /// Paths over which one of them was last sent, as a bit set by index.
    pub paths: u64,
    /// Of these, the ones over which a unit was sent that was sent over no other.
    pub certain_paths: u64,
    /// Units judged lost.
    pub newly_lost: u64,
    /// The receiver has dropped units that it had acknowledged above the cumulative point.
    pub has_reneged: bool,
    /// A round-trip time was measured.
    pub has_sampled: bool,
    /// One of the units acknowledged for the first time had been sent more than once, so that the
    /// acknowledgement alone does not tell a round-trip time (Karn).
    pub has_acked_resent: bool,
}

/// Why an acknowledgement is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckError {
    /// It acknowledges a unit that was never sent.
    NeverSent,
}

/// What the steps hand on to each other.
pub(super) struct Progress {
    pub(super) cumulative: u64,
    was_in_fast_recovery: bool,
    pub(super) highest_before: u64,
    pub(super) highest_newly_acked: Option<u64>,
    pub(super) lowest_newly_acked: Option<u64>,
    pub(super) highest_in_blocks: u64,
    /// Units that the receiver has dropped after it acknowledged them.
    pub(super) reneged: Vec<u64>,
    /// Units below others that were acknowledged before, and brought by blocks.
    pub(super) late: Vec<LateUnit>,
    /// The acknowledgement of the earliest unit restarts T3-rtx.
    pub(super) may_restart_timer: bool,
    pub(super) outcome: AckOutcome,
}

impl<P> LossRecovery<P> {
    /// Every unit up to `cumulative` and those in `blocks` (inclusive ranges, ascending) are
    /// acknowledged. `on_delivered` gets each unit that the cumulative point passes, in order.
    ///
    /// # Errors
    /// [`AckError::NeverSent`] if `cumulative` is beyond the last unit sent; nothing was done.
    pub fn on_ack(
        &mut self,
        now: Instant,
        (cumulative, blocks): (u64, impl Iterator<Item = (u64, u64)> + Clone),
        tracer: &mut Tracer<'_>,
        on_delivered: impl FnMut(Unit<P>),
    ) -> Result<AckOutcome, AckError> {
        if cumulative >= self.next_unit() {
            return Err(AckError::NeverSent);
        }
        if cumulative < self.cumulative() {
            return Ok(AckOutcome { is_stale: true, ..AckOutcome::default() });
        }
        let mut progress = self.begin_ack(cumulative);
        self.take_cumulative(now, &mut progress, tracer, on_delivered);
        self.take_blocks(now, &mut progress, blocks.clone(), tracer);
        self.check_reneging(&mut progress, blocks);
        self.note_first_copy(now, &progress);
        self.sample_copied(now);
        self.learn_answers(now);
        self.sample_round_trips(now, &mut progress, tracer);
        self.grow_windows(now, &progress, tracer);
        self.leave_fast_recovery(&progress);
        self.take_advance(&mut progress, tracer);
        self.answer_repaired_losses(now, &progress, tracer);
        self.detect_losses(now, &mut progress, tracer);
        if self.path(0).scrutiny.is_some() {
            self.age_evidence(progress.outcome.newly_acked, tracer);
            self.judge_events(now, &progress, tracer);
        }
        self.update_timers(now, &progress);
        self.leave_path_recoveries();
        self.settle_resending();
        self.ledger.forget_ended();
        self.arm_all_early();
        (0..self.paths.len() as u8).for_each(|path| self.renew_overdue(path));
        self.watch_thinness(tracer);
        Ok(progress.outcome)
    }

    fn begin_ack(&mut self, cumulative: u64) -> Progress {
        self.find_pseudo_cumulative();
        for (path, index) in self.paths.iter_mut().zip(0..) {
            path.ack =
                PathAck { flight_before: self.ledger.flight(index).bytes, ..PathAck::default() };
            if let Some(known) = &mut path.concurrent {
                known.highest_newly_acked = None;
            }
            if let Some(scrutiny) = &mut path.scrutiny {
                scrutiny.begin_ack();
            }
        }
        Progress {
            cumulative,
            was_in_fast_recovery: self.is_in_fast_recovery(),
            highest_before: self.acknowledged.max().unwrap_or(self.cumulative()),
            highest_newly_acked: None,
            lowest_newly_acked: None,
            highest_in_blocks: cumulative,
            reneged: Vec::new(),
            late: Vec::new(),
            may_restart_timer: true,
            outcome: AckOutcome::default(),
        }
    }

    fn take_cumulative(
        &mut self,
        now: Instant,
        progress: &mut Progress,
        tracer: &mut Tracer<'_>,
        mut on_delivered: impl FnMut(Unit<P>),
    ) {
        progress.outcome.has_advanced = progress.cumulative >= self.first;
        while self.first <= progress.cumulative {
            self.take_unit(now, self.first, progress, tracer);
            let Some(unit) = self.units.pop_front() else { break };
            self.first += 1;
            self.outstanding_bytes -= u64::from(unit.bytes);
            self.path_mut(unit.sent_over).ack.cumulative_bytes += u64::from(unit.bytes);
            on_delivered(unit);
        }
        self.acknowledged.remove_below(self.first);
        self.missing.forget_through(progress.cumulative);
    }

    fn take_blocks(
        &mut self,
        now: Instant,
        progress: &mut Progress,
        blocks: impl Iterator<Item = (u64, u64)>,
        tracer: &mut Tracer<'_>,
    ) {
        let end_of_sent = self.next_unit();
        let known = progress.outcome.newly_acked;
        let mut acknowledged = std::mem::take(&mut self.acknowledged);
        for (start, end) in blocks {
            // A block at or below the cumulative point, or of units never sent, says nothing.
            if start <= progress.cumulative || end < start || end >= end_of_sent {
                continue;
            }
            progress.highest_in_blocks = progress.highest_in_blocks.max(end);
            acknowledged.insert_range(start, end, |from, to| {
                for unit in from..=to {
                    self.take_unit(now, unit, progress, tracer);
                }
            });
        }
        self.acknowledged = acknowledged;
        if !progress.late.is_empty() {
            let newest = progress.outcome.newly_acked - known - progress.late.len() as u64;
            self.learn_from_late(&progress.late, newest);
        }
    }

    /// `unit` is acknowledged; counts it if that is new.
    fn take_unit(
        &mut self,
        now: Instant,
        unit: u64,
        progress: &mut Progress,
        tracer: &mut Tracer<'_>,
    ) {
        let Some(u) = self.unit_mut(unit) else { return };
        let (state, path, sent_over) = (u.state, u.path, u.sent_over);
        let (bytes, user_bytes) = (u.bytes, u.user_bytes);
        // What was given up has left the books before, and stays given up.
        if matches!(state, UnitState::Acknowledged | UnitState::Abandoned) {
            return;
        }
        let (packet, is_first_copy) = (u.packet, u.transmissions == 1);
        let (is_copied, is_on_several, group) = (u.is_copied, u.is_on_several, u.group);
        u.state = UnitState::Acknowledged;
        match state {
            UnitState::InFlight => {
                let ended = EndedUnit { unit, bytes, path, packet };
                if self.end_flight(&ended, user_bytes, Fate::Acknowledged) {
                    tracer.emit(|| TraceEvent::PacketAcked { packet: packet.0 });
                }
            }
            UnitState::Lost(_) => {
                self.leave_lost(unit);
                self.on_waiting_acked(sent_over, is_first_copy && !is_copied);
            }
            UnitState::Abandoned | UnitState::Acknowledged => {}
        }
        let reports = self.missing.forget(unit);
        progress.highest_newly_acked = progress.highest_newly_acked.max(Some(unit));
        progress.lowest_newly_acked.get_or_insert(unit);
        progress.outcome.newly_acked += 1;
        progress.outcome.paths |= 1 << sent_over;
        progress.outcome.certain_paths |= u64::from(!is_on_several) << sent_over;
        let sent_at = self.ledger.packet(packet).map(|packet| packet.sent_at);
        progress.outcome.has_acked_resent |= !is_first_copy;
        if is_copied {
            let first = is_first_copy.then_some(FirstSent { packet, sent_at, path, group });
            self.copies.on_acked(unit, state == UnitState::InFlight, first);
        }
        if self.groups.timed() != 0 {
            let path = sent_over;
            let answered =
                Answered { unit, group, path, packet, sent_at, is_first_copy, is_copied };
            self.note_answer(now, answered);
        }
        let is_late = reports.is_some() || unit < progress.highest_before;
        let tells = match self.config.reordering {
            Reordering::Fixed => false,
            Reordering::Adaptive { .. } => is_late,
            Reordering::Rack => true,
        };
        if tells {
            let path = sent_over;
            let arrival =
                Arrival { unit, path, packet, sent_at, is_first_copy, is_copied, reports };
            self.learn_from_arrival(now, arrival, progress);
        }
        let p = self.path_mut(path);
        p.outstanding -= 1;
        p.ack.has_acked_earliest |= p.earliest == unit;
        let p = self.path_mut(sent_over);
        p.ack.bytes += u64::from(bytes);
        p.leave_share(user_bytes);
        if let Some(known) = &mut p.concurrent {
            known.highest_newly_acked = known.highest_newly_acked.max(Some(unit));
            p.ack.has_pseudo_advanced |= !is_first_copy || unit == known.earliest_first_sent;
        }
        if is_first_copy && !is_copied {
            p.ack.sample_sent_at = p.ack.sample_sent_at.max(sent_at);
        }
    }

    /// A unit that was acknowledged above the cumulative point must pass with it; if it is left in
    /// front unacknowledged, the receiver reneged (RFC 9260 §6.2.1 D iii, R4), and what it no
    /// longer reports is in flight again. A SACK overtaken by a newer one
    /// cannot be mistaken for this.
    fn check_reneging(
        &mut self,
        progress: &mut Progress,
        blocks: impl Iterator<Item = (u64, u64)> + Clone,
    ) {
        let in_front = self.units.front().map(|unit| unit.state);
        if in_front != Some(UnitState::Acknowledged) {
            return;
        }
        let mut still = rexmit_core::RangeSet::new();
        let end_of_sent = self.next_unit();
        for (start, end) in blocks.filter(|&(s, e)| s > progress.cumulative && e < end_of_sent) {
            still.insert_range(start, end, |_, _| ());
        }
        let reneged: Vec<u64> =
            self.acknowledged.iter().flatten().filter(|&unit| !still.contains(unit)).collect();
        self.acknowledged = still;
        for &unit in &reneged {
            let Some(u) = self.unit_mut(unit) else { continue };
            // What was given up after it was acknowledged stays given up.
            if u.state != UnitState::Acknowledged {
                continue;
            }
            u.state = UnitState::InFlight;
            u.path = u.sent_over;
            let (path, bytes, user_bytes) = (u.path, u.bytes, u.user_bytes);
            self.ledger.on_unit_returned(path, bytes);
            self.user_bytes_in_flight += u64::from(user_bytes);
            let p = self.path_mut(path);
            p.earliest = if p.outstanding == 0 { unit } else { p.earliest.min(unit) };
            p.outstanding += 1;
            p.enter_share(user_bytes);
        }
        progress.outcome.has_reneged = !reneged.is_empty();
        progress.reneged = reneged;
    }

    fn sample_round_trips(
        &mut self,
        now: Instant,
        progress: &mut Progress,
        tracer: &mut Tracer<'_>,
    ) {
        for path in 0..self.paths.len() as u8 {
            if let Some(sent_at) = self.path(path).ack.sample_sent_at {
                self.note_queueing(now, path, now - sent_at);
            }
            let p = self.path(path);
            if let Some(sent_at) = p.ack.sample_sent_at.filter(|&at| p.may_sample(at)) {
                self.take_round_trip(now, path, now - sent_at, tracer);
                progress.outcome.has_sampled = true;
            }
        }
    }

    fn grow_windows(&mut self, now: Instant, progress: &Progress, tracer: &mut Tracer<'_>) {
        self.couple_windows();
        for path in 0..self.paths.len() as u8 {
            let flight_after = self.ledger.flight(path).bytes;
            let p = self.path_mut(path);
            if p.ack.bytes == 0 {
                continue;
            }
            p.is_after_timeout = false;
            let in_fast_recovery = progress.was_in_fast_recovery || p.recovery_exit().is_some();
            if !self.may_grow(path, progress) {
                continue;
            }
            let p = self.path_mut(path);
            let before = p.window.cwnd();
            p.window.on_acked(Acked {
                now,
                bytes: p.ack.bytes,
                cumulative_bytes: p.ack.cumulative_bytes,
                srtt: p.timer.rtt().srtt(),
                flight_before: p.ack.flight_before,
                flight_after,
                in_fast_recovery,
            });
            if p.window.cwnd() != before {
                self.trace_window(path, tracer);
            }
        }
    }

    pub(super) fn leave_fast_recovery(&mut self, progress: &Progress) {
        if self.fast_recovery_exit.is_some_and(|exit| progress.cumulative >= exit) {
            self.fast_recovery_exit = None;
            self.paths.iter_mut().filter_map(Path::rack_mut).for_each(Rack::on_recovery_left);
        }
    }

    /// T3-rtx stops when nothing is outstanding (R2) and restarts when the earliest outstanding
    /// unit was acknowledged (R3).
    fn update_timers(&mut self, now: Instant, progress: &Progress) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.outstanding == 0 {
                self.paths[index].t3 = None;
                self.paths[index].may_resend_now = false;
            } else if path.ack.has_acked_earliest {
                self.advance_earliest(index as u8);
                if progress.may_restart_timer || self.paths[index].t3.is_none() {
                    self.arm_t3(now, index as u8);
                }
            } else if path.t3.is_none() {
                self.arm_t3(now, index as u8);
            }
        }
    }
}
