//! Processing of an acknowledgement, step by step.

use std::time::Duration;

use rexmit_congestion::Acked;
use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};
use smallvec::SmallVec;

use super::LossRecovery;
use super::diversity::review_paths;
use crate::loss::{AckRange, LateUnit};
use crate::outstanding::{Runs, Unit};
use crate::redundancy::AckedCopied;
use crate::state::State;
use crate::{Echo, Path, RttSample, UnitState};

/// The path of duplicate ACKs: only TCP counts them, and it has one path.
pub(super) const ONLY_PATH: u8 = 0;
/// An acknowledgement, mapped onto units.
#[derive(Clone, Debug)]
pub struct Ack<B, D> {
    /// The cumulative point: every unit up to this one has arrived.
    pub cumulative: u64,
    /// Units received above `cumulative`, as inclusive ranges in ascending order.
    pub blocks: B,
    /// Units that the receiver reports as duplicates.
    pub duplicates: D,
    /// Whether the receiver reports a duplicate that was never sent more than once: the network duplicated it.
    pub has_unexplained_duplicate: bool,
    /// Whether the ACK differs from the one before in more than the duplicates that it reports.
    pub has_news: bool,
    /// Whether this is a duplicate ACK (RFC 5681 §2) of a peer without SACK. Only on path 0.
    pub is_duplicate: bool,
    /// The number of packets that the ACK covers; 0 if unknown. Used by CMT's DAC
    /// ([`CmtConfig::delayed_ack`](crate::CmtConfig::delayed_ack)).
    pub packets_acked: u8,
    /// The timestamp that the ACK echoes, if there are timestamps.
    pub echo: Option<Echo>,
    /// Whether new data could be sent now: F-RTO needs some (RFC 5682 §3.1).
    pub has_new: bool,
    /// The units that a FORWARD-TSN asked the peer to skip; their ACK does not prove that they arrived.
    pub skipped: Skipped,
}

/// Abandoned units that a FORWARD-TSN asked the peer to skip (RFC 3758). An ACK of them may answer the
/// FORWARD-TSN, and is no proof that they arrived.
#[derive(Clone, Copy, Debug)]
pub struct Skipped {
    /// Units up to this one were named by an earlier FORWARD-TSN.
    pub before: u64,
    /// The last unit named by the latest FORWARD-TSN, and when that unit was named first.
    pub latest: (u64, Instant),
}

impl Skipped {
    /// No unit was skipped.
    pub const NONE: Self = Self { before: 0, latest: (0, Instant::ZERO) };

    /// When the peer was first asked to skip `unit`: `None` if never, [`Instant::ZERO`] if by an earlier FORWARD-TSN.
    fn at(&self, unit: u64) -> Option<Instant> {
        match unit {
            _ if unit <= self.before => Some(Instant::ZERO),
            _ if unit <= self.latest.0 => Some(self.latest.1),
            _ => None,
        }
    }
}

impl<B, D> Ack<B, D> {
    /// An ACK of `cumulative`, `blocks` and `duplicates`; all other fields have their defaults (`has_news` is set).
    pub const fn new(cumulative: u64, blocks: B, duplicates: D) -> Self {
        Self {
            cumulative,
            blocks,
            duplicates,
            has_unexplained_duplicate: false,
            has_news: true,
            is_duplicate: false,
            packets_acked: 0,
            echo: None,
            has_new: false,
            skipped: Skipped::NONE,
        }
    }
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Whether the ACK is older than the present state, and was ignored.
    pub is_stale: bool,
    /// Whether the cumulative point advanced.
    pub has_advanced: bool,
    /// Units acknowledged for the first time.
    pub newly_acked: u64,
    /// The paths over which newly acknowledged units were last sent: bit `n` is path `n`.
    pub paths: u64,
    /// The paths of `paths` that certainly work: a newly acknowledged unit was sent over this path and no other.
    pub certain_paths: u64,
    /// Units declared lost.
    pub newly_lost: u64,
    /// Whether the receiver reneged: it dropped units that it had acknowledged above the cumulative point.
    pub has_reneged: bool,
    /// Whether a round-trip time was measured.
    pub has_sampled: bool,
    /// Whether one of the units acknowledged for the first time had been sent more than once, so that the
    /// acknowledgement alone gives no round-trip time (Karn).
    pub has_acked_retransmitted: bool,
    /// Whether the cumulative point passed units that were abandoned.
    pub has_passed_abandoned: bool,
}

/// Why an ACK was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckError {
    /// The ACK covers a unit that was never sent.
    NeverSent,
}

impl<P> LossRecovery<P> {
    /// Processes an ACK. `on_delivered` is called for each unit that the cumulative point passes, in order.
    ///
    /// # Errors
    /// [`AckError::NeverSent`] if the cumulative point is beyond the last unit sent; then nothing but
    /// duplicate reports was processed.
    pub fn on_ack<B, D>(
        &mut self,
        now: Instant,
        ack: Ack<B, D>,
        tracer: &mut Tracer<'_>,
        on_delivered: impl FnMut(Unit<P>),
    ) -> Result<AckOutcome, AckError>
    where
        B: Iterator<Item = (u64, u64)> + Clone,
        D: IntoIterator<Item = u64>,
    {
        let mut step = Acknowledging::new(self, now, tracer);
        // Before the rest: a copy that was not needed has repaired no loss.
        ack.duplicates.into_iter().for_each(|unit| step.on_duplicate(unit));
        if ack.has_unexplained_duplicate {
            step.on_unexplained_duplicate();
        }
        let outstanding = &step.recovery.state.outstanding;
        if ack.cumulative >= outstanding.next_unit() {
            return Err(AckError::NeverSent);
        } else if ack.cumulative < outstanding.cumulative() {
            return Ok(AckOutcome { is_stale: true, ..AckOutcome::default() });
        }
        if ack.has_news {
            let is_believed = step.recovery.state.outstanding.believes_reports();
            let blocks = ack.blocks.take(if is_believed { usize::MAX } else { 0 });
            step.begin(ack.cumulative);
            step.advance(&ack.skipped, on_delivered);
            step.take_blocks(blocks.clone());
            step.check_reneging(blocks);
            step.measure(ack.echo);
            step.grow_windows();
            step.leave_recovery();
            if step.outcome.has_advanced {
                step.leave_duplicates();
            }
            step.respond_to_repaired_losses();
            step.detect_losses(ack.packets_acked);
            if step.recovery.spurious.is_some() {
                step.detect_spurious_episodes(ack.has_new, ack.echo);
            }
            step.update_timers();
            if step.recovery.state.paths.diversity().is_some() {
                review_paths(step.recovery, now);
            }
        }
        if ack.is_duplicate {
            step.count_duplicate();
        }
        Ok(step.outcome)
    }
}

/// An acknowledgement that is being processed.
pub(super) struct Acknowledging<'a, 't, 's, P> {
    pub(super) recovery: &'a mut LossRecovery<P>,
    pub(super) now: Instant,
    pub(super) tracer: &'t mut Tracer<'s>,
    pub(super) range: AckRange,
    was_recovering: bool,
    pub(super) paths: SmallVec<[PathAck; 2]>,
    reneged: Vec<u64>,
    /// Units of which copies were sent.
    copied: SmallVec<[AckedCopied; 2]>,
    /// Units that are reported later than units above them: they were reordered.
    late: Vec<LateUnit>,
    /// Whether a duplicate is reported of what was sent alone: the ACK answers that, and not what it acknowledges.
    pub(super) answers_duplicate: bool,
    /// Whether an ACK of the earliest unit restarts T3-rtx.
    pub(super) may_restart_t3: bool,
    pub(super) outcome: AckOutcome,
}

/// The effect of one ACK on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathAck {
    flight_before: u64,
    pub(super) bytes: u64,
    /// Bytes that the cumulative point passed.
    pub(super) cumulative_bytes: u64,
    has_acked_earliest: bool,
    /// Whether the cumulative point passed abandoned units that were sent over this path.
    has_passed_abandoned: bool,
    /// Whether the pseudo-cumulative point of this path has advanced (CUC).
    has_pseudo_advanced: bool,
    /// When the newest unit that makes an RTT sample was sent.
    sample_sent_at: Option<Instant>,
    /// When the earliest unit was sent that was sent after the last sample.
    marked_sent_at: Option<Instant>,
    /// When the oldest and the newest unit were sent for the first time, where the ACK delay is learned.
    first_sent: Option<(Instant, Instant)>,
}

impl PathAck {
    /// Called when a unit that was sent at `sent_at` makes an RTT sample of its path.
    fn on_sample(&mut self, sent_at: Option<Instant>, path: &Path) {
        self.sample_sent_at = self.sample_sent_at.max(sent_at);
        let marked = sent_at.filter(|&at| path.may_sample(at));
        self.marked_sent_at = self.marked_sent_at.into_iter().chain(marked).min();
    }

    /// Called when a unit that was sent for the first time at `first`, if that is known, is acknowledged.
    fn on_acked_first(&mut self, first: Option<Instant>) {
        let Some(first) = first else { return };
        let (oldest, newest) = self.first_sent.unwrap_or((first, first));
        self.first_sent = Some((oldest.min(first), newest.max(first)));
    }
}

/// Steps.
impl<'a, 't, 's, P> Acknowledging<'a, 't, 's, P> {
    fn new(recovery: &'a mut LossRecovery<P>, now: Instant, tracer: &'t mut Tracer<'s>) -> Self {
        Self {
            recovery,
            now,
            tracer,
            range: AckRange::default(),
            was_recovering: false,
            paths: SmallVec::new(),
            reneged: Vec::new(),
            copied: SmallVec::new(),
            late: Vec::new(),
            answers_duplicate: false,
            may_restart_t3: true,
            outcome: AckOutcome::default(),
        }
    }

    fn begin(&mut self, cumulative: u64) {
        let LossRecovery { state, loss, .. } = &mut *self.recovery;
        state.find_pseudo_cumulative();
        loss.begin_ack();
        let known = state.outstanding.cumulative();
        self.range.cumulative = cumulative;
        self.range.has_advanced = cumulative > known;
        self.range.highest_before = state.outstanding.acknowledged().max().unwrap_or(known);
        self.range.highest_in_blocks = cumulative;
        self.was_recovering = state.fast_recovery.is_on();
        self.outcome.has_advanced = self.range.has_advanced;
        let flight = |path| state.outstanding.flight(path).bytes;
        let path_ack = |path| PathAck { flight_before: flight(path), ..PathAck::default() };
        self.paths.extend(state.paths.numbers().map(path_ack));
    }

    fn advance(&mut self, skipped: &Skipped, mut on_delivered: impl FnMut(Unit<P>)) {
        loop {
            let first = self.recovery.state.outstanding.cumulative() + 1;
            if first > self.range.cumulative {
                break;
            }
            self.take_unit(first, skipped.at(first));
            let Some(unit) = self.recovery.state.outstanding.deliver_first() else { break };
            let path = &mut self.paths[usize::from(unit.last().path)];
            path.cumulative_bytes += u64::from(unit.bytes);
            on_delivered(unit);
        }
        self.recovery.state.outstanding.forget_passed();
        self.recovery.plan.on_cumulative(self.range.cumulative);
        self.recovery.loss.on_advanced(self.range.cumulative);
    }

    fn take_blocks(&mut self, blocks: impl Iterator<Item = (u64, u64)>) {
        let next = self.recovery.state.outstanding.next_unit();
        let known = self.outcome.newly_acked;
        let mut new = Runs::new();
        for (start, end) in blocks {
            // A block at or below the cumulative point, or of units never sent, says nothing.
            if start <= self.range.cumulative || end < start || end >= next {
                continue;
            }
            self.range.highest_in_blocks = self.range.highest_in_blocks.max(end);
            self.recovery.state.outstanding.add_acknowledged(start, end, &mut new);
        }
        for (from, to) in new {
            (from..=to).for_each(|unit| self.take_unit(unit, None));
        }
        let newly_acked = self.outcome.newly_acked - known;
        let LossRecovery { state, loss, .. } = &mut *self.recovery;
        loss.on_late_units(&self.late, newly_acked, state);
    }

    /// Acknowledges `unit`, and counts it if that is new. `skipped_at`: when a FORWARD-TSN asked the peer to skip it.
    fn take_unit(&mut self, unit: u64, skipped_at: Option<Instant>) {
        let LossRecovery { state, loss, probe, spurious, plan, .. } = &mut *self.recovery;
        let Some(acked) = state.outstanding.acknowledge(unit) else {
            return self.take_abandoned(unit, skipped_at);
        };
        if let Some(packet) = acked.packet {
            self.tracer.emit(|| TraceEvent::PacketAcked { packet: packet.0 });
        }
        let is_original = acked.is_first_transmission && !acked.is_copied;
        if !acked.was_in_flight {
            let path = acked.last.path;
            spurious.iter_mut().for_each(|it| it.on_lost_acked(path, is_original));
            if is_original && let Some(tolerance) = &mut loss.tolerance {
                tolerance.on_not_lost(path);
            }
        }
        let mut before_copies = None;
        if plan.is_any() {
            let repeats = state.outstanding.repeats_mut(unit);
            let is_reported = repeats.is_some_and(|repeats| repeats.is_reported);
            let rtt = probe.round_trip(state, acked.last.path, acked.group);
            before_copies = plan.on_acked(self.now, unit, is_reported, rtt);
            before_copies = before_copies.filter(|_| !acked.is_on_several_paths);
        }
        if let Some(diversity) = state.paths.diversity_mut()
            && let Some(number) = acked.packet
            && let Some(packet) = state.outstanding.packets().packet(number)
        {
            diversity.on_arrived(packet.path, packet.trial);
        }
        if state.groups.probed & (1 << acked.group) != 0 {
            probe.on_acked(self.now, &acked, before_copies, state);
        }
        if acked.is_copied {
            self.copied.extend(AckedCopied::of(&acked, state));
        }
        self.late.extend(loss.on_acked(self.now, &acked, &self.range, state));

        self.range.highest_newly_acked = self.range.highest_newly_acked.max(Some(unit));
        self.range.lowest_newly_acked.get_or_insert(unit);
        let sent_over = 1 << acked.last.path;
        self.outcome.newly_acked += 1;
        self.outcome.paths |= sent_over;
        self.outcome.certain_paths |= if acked.is_on_several_paths { 0 } else { sent_over };
        self.outcome.has_acked_retransmitted |= !acked.is_first_transmission;
        if acked.was_earliest {
            self.paths[usize::from(acked.path)].has_acked_earliest = true;
        }
        let path = &mut self.paths[usize::from(acked.last.path)];
        path.bytes += u64::from(acked.bytes);
        if let Some(multipath) = &state.paths[acked.last.path].multipath {
            let is_earliest = unit == multipath.earliest_first_sent;
            path.has_pseudo_advanced |= is_earliest || !acked.is_first_transmission;
        }
        if is_original || state.config.rto.sample == RttSample::WithoutKarn {
            path.on_sample(acked.sent_at, &state.paths[acked.last.path]);
        }
        if state.groups.has_mechanisms && state.groups.config(acked.group).ack_delay_samples {
            let first = state.outstanding.first_transmission(unit).map(|first| first.sent_at);
            let first = first.or(acked.sent_at.filter(|_| acked.is_first_transmission));
            path.on_acked_first(first);
        }
    }

    /// Called when the cumulative point passes `unit`. If it was abandoned, sent once, and its ACK does not
    /// answer `skipped_at`, the ACK gives a round-trip sample as that of any other unit. Without such samples
    /// the estimate would stay below the round trips of messages whose lifetime is shorter than those.
    fn take_abandoned(&mut self, unit: u64, skipped_at: Option<Instant>) {
        let LossRecovery { state, probe, .. } = &mut *self.recovery;
        let Some(unit) = state.outstanding.unit(unit) else { return };
        if unit.state() != UnitState::Abandoned {
            return;
        }
        self.outcome.has_passed_abandoned = true;
        if state.groups.probed & (1 << unit.group()) == 0 {
            return;
        }
        self.paths[usize::from(unit.last().path)].has_passed_abandoned = true;
        let is_only = unit.is_first_transmission() && !unit.is_copied;
        let repeats = unit.repeats().filter(|_| is_only);
        let Some(first) = repeats.and_then(|repeats| repeats.first) else { return };
        let path = &mut self.paths[usize::from(first.path)];
        if probe.precedes_any_answer(self.now, first.path, skipped_at) {
            path.on_sample(Some(first.sent_at), &state.paths[first.path]);
            probe.on_abandoned_acked(first.path, first.sent_at);
        }
    }

    fn check_reneging(&mut self, blocks: impl Iterator<Item = (u64, u64)>) {
        self.reneged = self.recovery.state.outstanding.check_reneging(blocks);
        self.outcome.has_reneged = !self.reneged.is_empty();
    }

    /// Records whether this ACK was delayed, and returns whether the receiver usually delays ACKs of `path`.
    /// ACKs while there is a gap are sent at once, and are not counted.
    fn note_ack_delay(&mut self, path: u8) -> bool {
        let Some((oldest, newest)) = self.paths[usize::from(path)].first_sent else { return false };
        let has_gap = self.range.highest_in_blocks > self.range.cumulative;
        let ack_delay = &mut self.recovery.state.paths[path].timer.ack_delay;
        if !has_gap {
            ack_delay.on_ack(oldest < newest);
        }
        !has_gap && ack_delay.is_usual()
    }

    /// Takes RTT samples, for T3-rtx and for the probe timer.
    fn measure(&mut self, echo: Option<Echo>) {
        let mut delayed = 0_u64;
        for path in self.recovery.state.paths.numbers() {
            delayed |= u64::from(self.note_ack_delay(path)) << path;
        }
        let LossRecovery { state, probe, plan, .. } = &mut *self.recovery;
        // The ACK of an earlier unit may have been lost, unless the receiver is known to delay ACKs.
        let lowest = self.range.lowest_newly_acked.filter(|_| delayed != 0);
        let highest = self.range.highest_newly_acked;
        // Copies are answered, too: then only an ACK of one unit is certain to be of that one.
        let is_ambiguous =
            plan.is_any() && (self.answers_duplicate || self.outcome.newly_acked != 1);
        let may_measure = self.outcome.has_acked_retransmitted && !is_ambiguous;
        for unit in lowest.into_iter().chain(highest).filter(|_| may_measure) {
            if let Some(repeats) = state.outstanding.repeats_mut(unit) {
                repeats.on_acked(self.now);
            }
        }
        // A copied unit makes a sample if no copy can have arrived.
        for acked in &self.copied {
            if !acked.may_be_of_copy(self.now, state, probe) {
                let path = acked.first.path;
                self.paths[usize::from(path)].on_sample(acked.first.sent_at, &state.paths[path]);
                probe.on_copied_acked(acked.first.path, acked.first.sent_at);
            }
        }
        let are_ambiguous = self.answers_duplicate && plan.is_any();
        for (path, ack) in (0..).zip(&self.paths) {
            if probe.is_on {
                let is_alive = ack.bytes > 0 || ack.has_passed_abandoned;
                probe.learn(self.now, path, is_alive, are_ambiguous, echo);
            }
        }
        for path in self.recovery.state.paths.numbers() {
            let ack = self.paths[usize::from(path)];
            let Some(newest) = ack.sample_sent_at else { continue };
            self.recovery.state.note_queueing(self.now, path, self.now - newest);
            // T3-rtx of a thin stream runs from its oldest packet, whose ACK the receiver delays.
            let p = &self.recovery.state.paths[path];
            let sample = self.recovery.state.config.rto.sample;
            let has_karn = sample != RttSample::WithoutKarn;
            let newest = Some(newest).filter(|&at| !has_karn || p.may_sample(at));
            let is_marked = sample == RttSample::Marked || delayed & 1 << path != 0;
            if let Some(sent_at) = if is_marked { ack.marked_sent_at } else { newest } {
                let rtt = self.now - sent_at;
                self.recovery.on_round_trip(self.now, path, rtt, self.tracer);
                self.outcome.has_sampled = true;
            }
        }
    }

    fn grow_windows(&mut self) {
        let state = &mut self.recovery.state;
        state.couple_windows();
        for (path, ack) in (0..).zip(&self.paths) {
            if ack.has_passed_abandoned {
                state.paths[path].gate.is_single_packet = false;
            }
            if ack.bytes == 0 {
                continue;
            }
            let flight_after = state.outstanding.flight(path).bytes;
            let in_fast_recovery =
                self.was_recovering || state.fast_recovery.is_on_path_alone(path);
            let may_grow = match state.cmt() {
                None => true,
                Some(cmt) if cmt.cwnd_update => ack.has_pseudo_advanced,
                Some(_) => self.outcome.has_advanced,
            };
            let p = &mut state.paths[path];
            p.gate.is_single_packet = false;
            if !may_grow {
                continue;
            }
            let before = p.window.cwnd();
            p.window.on_acked(Acked {
                now: self.now,
                bytes: ack.bytes,
                cumulative_bytes: ack.cumulative_bytes,
                srtt: p.timer.rtt().srtt(),
                rtt: ack.sample_sent_at.map(|sent_at| self.now - sent_at),
                flight_before: ack.flight_before,
                flight_after,
                in_fast_recovery,
            });
            if p.window.cwnd() != before {
                state.trace_window(path, self.tracer);
            }
        }
    }

    fn leave_recovery(&mut self) {
        if self.recovery.state.fast_recovery.on_acked(self.range.cumulative) {
            self.recovery.loss.on_recovery_left(None);
        }
    }

    /// The duplicate ACKs before this one do not count any more, unless they began a recovery.
    fn leave_duplicates(&mut self) {
        let LossRecovery { state, loss, .. } = &mut *self.recovery;
        state.fast_recovery.forget_beyond_window();
        if loss.duplicates.is_recovering() {
            self.advance_in_duplicates();
        } else {
            loss.duplicates.clear();
        }
    }

    /// Timers follow data in flight now.
    fn update_timers(&mut self) {
        for path in self.recovery.state.paths.numbers() {
            let ack = self.paths[usize::from(path)];
            let state = &mut self.recovery.state;
            let is_running = state.paths[path].t3.is_running();
            // T3-rtx stops when nothing is outstanding (R2), and restarts when the earliest unit is acknowledged (R3).
            if state.outstanding.on(path).outstanding == 0 {
                state.paths[path].t3.stop();
                state.paths[path].gate.close();
            } else if ack.has_acked_earliest {
                state.outstanding.advance_earliest(path);
                if self.may_restart_t3 || !is_running {
                    self.recovery.arm_t3(self.now, path);
                }
            } else if !is_running {
                self.recovery.arm_t3(self.now, path);
            }
            let LossRecovery { state, loss, .. } = &mut *self.recovery;
            let on_path = state.outstanding.on(path);
            let earliest = (on_path.outstanding > 0).then_some(on_path.earliest);
            if state.fast_recovery.on_path_acked(path, earliest) {
                loss.on_recovery_left(Some(path));
            }
        }
        let state = &mut self.recovery.state;
        state.settle_gates();
        state.outstanding.forget_ended();
        for path in self.recovery.state.paths.numbers() {
            self.recovery.renew_probe(path);
            self.recovery.restart_early(self.now, path);
        }
        self.recovery.state.trace_thinness(self.tracer);
    }
}

/// Losses.
impl<P> Acknowledging<'_, '_, '_, P> {
    /// A packet whose units arrived only as copies was lost: congestion as any other loss, once per window,
    /// unless the stream hides it.
    fn respond_to_repaired_losses(&mut self) {
        if self.copied.is_empty() {
            return;
        }
        let mut last = None;
        for acked in std::mem::take(&mut self.copied) {
            let LossRecovery { state, probe, .. } = &*self.recovery;
            let packet = acked.first.packet;
            let is_repaired = !acked.is_reported && acked.may_be_of_copy(self.now, state, probe);
            if is_repaired && last.replace(packet) != Some(packet) {
                self.on_repaired(&acked);
            }
        }
        // With nothing left of that window there is nothing to recover from.
        self.leave_recovery();
    }

    fn on_repaired(&mut self, acked: &AckedCopied) {
        let AckedCopied { unit, first, .. } = *acked;
        let LossRecovery { state, loss, spurious, .. } = &mut *self.recovery;
        state.statistics.packets_repaired += 1;
        let (packet, cause) = (first.packet.0, SendCause::Redundant);
        self.tracer.emit(|| TraceEvent::PacketLost { packet, cause });
        if state.groups.config(first.group).loss_hiding {
            return;
        }
        state.count_lost_packet();
        if state.paths.is_one() {
            state.paths[first.path].counters.packets_lost += 1;
        }
        state.note_first_lost(first.path);
        let is_new_window = state.fast_recovery.recover().is_none_or(|recover| unit > recover);
        // Something was lost: no episode before is to be undone.
        spurious.iter_mut().for_each(|it| it.mark_unprovable(first.path));
        if is_new_window && !state.fast_recovery.is_on() {
            state.reduce_window(first.path);
            state.trace_window(first.path, self.tracer);
            state.begin_recovery();
            let outstanding = &state.outstanding;
            loss.on_repaired(outstanding.cumulative(), outstanding.next_unit() - 1);
        }
    }

    /// Declares lost the units that this ACK shows to be lost.
    fn detect_losses(&mut self, packets_acked: u8) {
        if self.recovery.loss.is_by_time() {
            let lost = self.recovery.detect_by_time(self.now, self.tracer);
            self.outcome.newly_lost += lost;
            return;
        }
        let LossRecovery { state, loss, probe, .. } = &mut *self.recovery;
        let has_dac = state.config.sctp.cmt.is_some_and(|cmt| cmt.delayed_ack)
            && self.outcome.paths.is_power_of_two();
        self.range.reports = if has_dac { packets_acked.max(1).into() } else { 1 };
        let verdict = loss.detect(&self.range, &self.reneged, state, probe);
        let is_by_scoreboard = loss.is_by_scoreboard();
        let was_recovering = state.fast_recovery.is_on();
        let is_split = state.splits_fast_retransmit();
        let mut paths = 0u64;
        for &unit in &verdict.lost {
            let lost = self.recovery.declare_lost(unit, SendCause::FastRetransmit, self.tracer);
            self.outcome.newly_lost += 1;
            let Some(path) = lost.filter(|_| !is_by_scoreboard) else { continue };
            if is_split && !self.recovery.state.fast_recovery.is_on_path_alone(path) {
                self.recovery.state.begin_path_recovery(path);
                self.recovery.reduce_window(path, self.tracer);
            } else if !is_split && !was_recovering && paths & (1 << path) == 0 {
                paths |= 1 << path;
                self.recovery.reduce_window(path, self.tracer);
            }
        }
        if verdict.begins_recovery {
            let outstanding = &self.recovery.state.outstanding;
            let first = outstanding.unit(outstanding.cumulative() + 1);
            self.recovery.reduce_window(first.map_or(0, |unit| unit.path), self.tracer);
        }
        if verdict.begins_recovery || paths != 0 {
            self.recovery.state.begin_recovery();
        }
    }
}

/// Steps that timers and packets share with acknowledgements.
impl<P> LossRecovery<P> {
    /// A round trip over `path` was measured.
    pub(super) fn on_round_trip(
        &mut self,
        now: Instant,
        path: u8,
        rtt: Duration,
        tracer: &mut Tracer<'_>,
    ) {
        let State { paths, config, .. } = &mut self.state;
        let spurious = self.spurious.as_mut();
        let after = spurious.and_then(|it| it.take_spurious_before(path, now - rtt));
        if after.is_some()
            && let Some(tolerance) = &mut self.loss.tolerance
        {
            // The packets may take another way.
            tolerance.age(path);
        }
        let estimate = after.map(|after| after.estimate_from(rtt, &config.rto));
        paths[path].on_sample(now, rtt, estimate, &config.rto);
        let srtt = paths[path].timer.rtt().srtt().unwrap_or(rtt);
        tracer.emit(|| TraceEvent::RttSample { path, rtt, srtt, rto: self.state.rto(path) });
    }

    pub(super) fn arm_t3(&mut self, now: Instant, path: u8) {
        let has_probe_timer = self.state.groups.probed != 0;
        let least = has_probe_timer.then(|| self.probe.least_t3(&self.state, path)).flatten();
        self.state.arm_t3(now, path, least);
    }

    /// Called when the data in flight on `path` has changed: computes anew when its probe timer expires.
    #[inline]
    pub(super) fn renew_probe(&mut self, path: u8) {
        if self.probe.is_on {
            self.probe.renew(path, &self.state);
        }
    }

    /// Called when new data was sent over `path`, or with a SACK: starts the timer of Early Fast Retransmit.
    #[inline]
    pub(super) fn restart_early(&mut self, now: Instant, path: u8) {
        let flight = self.state.outstanding.flight(path).bytes;
        self.loss.restart_early(now, path, flight, &self.state);
    }
}
