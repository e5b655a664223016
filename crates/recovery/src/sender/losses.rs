//! What an acknowledgement says of the units that it does not acknowledge.

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::ack::Progress;
use super::{LossRecovery, Unit};
use crate::loss::scoreboard::Scoreboard;
use crate::spurious::events::Events;
use crate::{LossDetection, Reordering};

impl<P> LossRecovery<P> {
    /// Judges what this acknowledgement gives away.
    pub(super) fn detect_losses(
        &mut self,
        now: Instant,
        progress: &mut Progress,
        tracer: &mut Tracer<'_>,
    ) {
        match self.config.loss_detection {
            LossDetection::DuplicateAcks => {}
            _ if self.config.reordering == Reordering::Rack => {
                progress.outcome.newly_lost += self.judge_by_time(now, tracer);
            }
            LossDetection::MissingReports => {
                self.watch_overtaken(progress);
                self.count_missing_reports(progress, tracer);
                self.watch_reneged(progress);
            }
            LossDetection::Scoreboard => self.judge_by_scoreboard(progress, tracer),
        }
    }

    /// Every hole that the frontier passes is lost, and a recovery begins, once per window
    /// (RFC 6675 §5). After a timeout nothing is judged until what had been sent is acknowledged
    /// (§5.1).
    fn judge_by_scoreboard(&mut self, progress: &mut Progress, tracer: &mut Tracer<'_>) {
        progress.reneged.iter().for_each(|&unit| self.scoreboard.on_reneged(unit));
        let is_recovering = self.is_in_fast_recovery();
        let may_judge =
            is_recovering || self.recover.is_none_or(|recover| progress.cumulative >= recover);
        if !may_judge || self.acknowledged.is_empty() {
            return;
        }
        self.judge_holes(progress, tracer);
        // RFC 6675 §5 step 2: the first hole is lost, and something above was told just now. It may
        // have been judged, and sent again, in the recovery before: what left after that began is
        // another window.
        let newest = progress.highest_newly_acked;
        let is_told = newest.is_some_and(|unit| unit > progress.cumulative)
            || progress.outcome.newly_lost > 0;
        if !is_recovering && is_told && self.scoreboard.is_lost(self.first) {
            self.scoreboard.on_recovery(self.first);
            let path = self.unit(self.first).map_or(0, |u| u.path);
            self.reduce_window(path, tracer);
            self.begin_recovery();
        }
        self.learn_losses(0, progress.outcome.newly_lost);
    }

    fn judge_holes(&mut self, progress: &mut Progress, tracer: &mut Tracer<'_>) {
        let threshold_by_evidence = self.threshold_of_group(0);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        let packet = self.window(0).packet();
        let bytes_of = |unit| self.unit(unit).map_or(0, |u| u.bytes.into());
        let threshold = self.loss_threshold(0);
        let frontier = match threshold_by_evidence {
            Some(threshold) => Scoreboard::frontier_by_count(&acknowledged, threshold),
            None => Scoreboard::frontier(&acknowledged, threshold, packet, bytes_of),
        };
        if let Some(frontier) = frontier {
            let mut scoreboard = std::mem::take(&mut self.scoreboard);
            scoreboard.advance(&acknowledged, self.first, frontier, |unit| {
                if self.unit(unit).is_some_and(Unit::may_be_fast_retransmitted) {
                    self.mark_lost(unit, SendCause::FastRetransmit, tracer);
                    progress.outcome.newly_lost += 1;
                }
            });
            self.scoreboard = scoreboard;
        }
        self.acknowledged = acknowledged;
    }

    /// Units in flight below the newly highest acknowledged one are overtaken from now on.
    fn watch_overtaken(&mut self, progress: &Progress) {
        let known = progress.highest_before.max(progress.cumulative);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        let mut ranges = acknowledged.iter().rev().peekable();
        while let Some(range) = ranges.next().filter(|range| *range.end() > known) {
            let below = ranges.peek().map_or(progress.cumulative, |range| *range.end());
            for unit in below.max(known) + 1..*range.start() {
                if self.unit(unit).is_some_and(Unit::may_be_fast_retransmitted) {
                    self.missing.watch(unit, 0);
                }
            }
        }
        drop(ranges);
        self.acknowledged = acknowledged;
    }

    /// Missing reports by HTNA, and what the threshold makes of them (RFC 9260 §7.2.4).
    fn count_missing_reports(&mut self, progress: &mut Progress, tracer: &mut Tracer<'_>) {
        if self.splits_fast_retransmit() {
            return self.count_missing_by_path(progress, tracer);
        }
        let htna = progress.highest_newly_acked.unwrap_or(0);
        let is_recovering = self.is_in_fast_recovery();
        let bound = if is_recovering && progress.outcome.has_advanced {
            htna.max(progress.highest_in_blocks)
        } else {
            htna
        };
        let lost = self.take_reports(bound);
        progress.outcome.newly_lost = lost.len() as u64;
        let mut reduced = 0u64;
        for unit in lost {
            let Some(path) = self.unit(unit).map(|u| u.path) else { continue };
            self.mark_lost(unit, SendCause::FastRetransmit, tracer);
            self.learn_losses(path, 1);
            if !is_recovering && reduced & (1 << path) == 0 {
                reduced |= 1 << path;
                self.reduce_window(path, tracer);
            }
        }
        if reduced != 0 {
            self.begin_recovery();
        }
    }

    /// Every unit below `bound` that is watched is reported missing; which of them are lost.
    fn take_reports(&mut self, bound: u64) -> Vec<u64> {
        let early = self.first_indication_groups();
        let is_adaptive = self.is_adaptive();
        if early == 0 && !is_adaptive && self.groups.timed() == 0 {
            let threshold = u16::from(self.config.missing_reports);
            let mut lost = Vec::new(); // Allocates only when something is lost.
            self.missing.on_report(bound, |_| threshold, |unit| lost.push(unit));
            return lost;
        }
        let is_last = is_adaptive && self.is_last_report();
        self.take_reports_by(bound, |sender, unit| {
            let path = sender.unit(unit).map_or(0, |unit| unit.path);
            if sender.is_timed(unit) {
                return Some((1, u16::MAX)); // The recovery timer sees to it.
            }
            Some((1, sender.threshold_of(path, sender.is_of(unit, early), is_last)))
        })
    }

    /// The same, where `reported` says how often each is reported, and what its threshold is.
    pub(super) fn take_reports_by(
        &mut self,
        bound: u64,
        reported: impl Fn(&Self, u64) -> Option<(u16, u16)>,
    ) -> Vec<u64> {
        let mut lost = Vec::new(); // Allocates only when something is lost.
        if self.missing.is_empty() {
            return lost;
        }
        let mut missing = std::mem::take(&mut self.missing);
        let of_unit = |unit| reported(self, unit);
        if self.is_adaptive() {
            missing.on_reports_counting(bound, of_unit, |unit| lost.push(unit));
        } else {
            missing.on_reports(bound, of_unit, |unit| lost.push(unit));
        }
        self.missing = missing;
        lost
    }

    /// The threshold for units of `group`, all on one path, if it follows reordering and there was
    /// any.
    fn threshold_of_group(&self, group: u8) -> Option<u16> {
        self.path(0).evidence()?;
        let is_first = self.first_indication_groups() & (1 << group) != 0;
        Some(self.threshold_of(0, is_first, self.is_last_report()))
    }

    /// Everything sent so far belongs to the recovery that begins now.
    pub(super) fn begin_recovery(&mut self) {
        self.statistics.fast_recoveries += 1;
        let highest = self.next_unit() - 1;
        self.fast_recovery_exit = Some(highest);
        self.recover = Some(highest);
        self.beyond_window = 0;
    }

    /// A fast retransmit begins on `path`.
    pub(super) fn reduce_window(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let kind = SendCause::FastRetransmit;
        self.begin_event(path, kind);
        if !self.path(path).is_awaiting() {
            // What it is about was sent again in the recovery before.
            self.path_mut(path).events().into_iter().for_each(Events::clear);
        } else {
            tracer.emit(|| TraceEvent::RetransmissionEvent { path, kind });
        }
        self.reduce_window_for(path, tracer);
    }

    /// Something on `path` was lost.
    pub(super) fn reduce_window_for(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let flight_size = self.outstanding_bytes - self.beyond_window;
        self.couple_windows();
        let p = self.path_mut(path);
        p.window.on_fast_retransmit(flight_size);
        self.resend_now(path);
        self.trace_window(path, tracer);
    }

    /// What was reneged has one missing report, whatever else this acknowledgement says.
    fn watch_reneged(&mut self, progress: &Progress) {
        for &unit in &progress.reneged {
            if self.unit(unit).is_some_and(Unit::may_be_fast_retransmitted) {
                self.missing.watch(unit, 1);
            }
        }
    }
}
