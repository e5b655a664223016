//! What the sender learns of reordering, and what threshold follows. See [`crate::loss::adaptive`].

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::ack::Progress;
use super::{LossRecovery, UnitState};
use crate::loss::adaptive::{Evidence, TimeoutCost};
use crate::loss::rack::Arrived;
use crate::spurious::events::Event;
use crate::{LossDetection, PacketNumber, Reordering, ReorderingState};

/// A unit that is acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) unit: u64,
    pub(super) path: u8,
    pub(super) packet: PacketNumber,
    pub(super) sent_at: Option<Instant>,
    /// It left once, but for copies on purpose.
    pub(super) is_first_copy: bool,
    pub(super) is_copied: bool,
    /// How often it was reported missing, if that was counted.
    pub(super) reports: Option<u16>,
}

/// A unit that blocks brought after units above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateUnit {
    unit: u64,
    path: u8,
    has_left_again: bool,
}

impl<P> LossRecovery<P> {
    /// How much reordering is borne on `path` now.
    #[must_use]
    pub fn reordering(&self, path: u8) -> ReorderingState {
        let standard = u16::from(self.config.missing_reports);
        match self.path(path).evidence() {
            None => ReorderingState { missing_reports: standard, ..ReorderingState::default() },
            Some(evidence) => ReorderingState {
                missing_reports: evidence.threshold().min(self.most_reports()).max(standard),
                percentile: evidence.percentile(),
                extent: evidence.extent(),
            },
        }
    }

    /// Reports that the oldest unit can get at most: the packets that left after it.
    fn most_reports(&self) -> u16 {
        let oldest = self.unit(self.first).map(|unit| unit.packet.0 + 1);
        let newer = oldest.map_or(0, |oldest| self.ledger.next_number().0.saturating_sub(oldest));
        if newer == 0 { u16::MAX } else { u16::try_from(newer).unwrap_or(u16::MAX) }
    }

    pub(super) fn is_adaptive(&self) -> bool {
        matches!(self.config.reordering, Reordering::Adaptive { .. })
    }

    /// Whether missing reports are counted.
    pub(super) fn counts_reports(&self) -> bool {
        self.config.loss_detection == LossDetection::MissingReports
            && self.config.reordering != Reordering::Rack
    }

    fn learn(&mut self, path: u8, lesson: impl FnOnce(&mut Evidence)) {
        let Reordering::Adaptive { percentile } = self.config.reordering else { return };
        let standard = self.config.missing_reports;
        let Some(scrutiny) = &mut self.path_mut(path).scrutiny else { return };
        lesson(
            scrutiny.evidence.get_or_insert_with(|| Box::new(Evidence::new(standard, percentile))),
        );
    }

    /// What a unit that arrives tells of reordering. Of one with copies on purpose nobody knows what
    /// arrived.
    pub(super) fn learn_from_arrival(
        &mut self,
        now: Instant,
        arrival: Arrival,
        progress: &mut Progress,
    ) {
        let Arrival { unit, path, packet, sent_at, is_first_copy, is_copied, reports } = arrival;
        let is_late = unit < progress.highest_before;
        let has_left_again = !is_first_copy;
        if let Some(sent_at) = sent_at {
            let is_ambiguous = has_left_again || is_copied;
            self.tell_rack(now, path, Arrived { packet, sent_at, is_ambiguous }, is_late);
        }
        if is_copied || !self.is_adaptive() {
            return;
        }
        if let Some(reports) = reports.filter(|&reports| reports > 0) {
            self.on_late(LateUnit { unit, path, has_left_again }, reports);
        } else if is_late && self.config.loss_detection == LossDetection::Scoreboard {
            let late = LateUnit { unit, path, has_left_again };
            if unit <= progress.cumulative {
                self.on_late(late, self.acknowledged_above(unit));
            } else {
                progress.late.push(late);
            }
        }
    }

    /// Blocks brought these, ascending, and `newest` others above all that was known.
    pub(super) fn learn_from_late(&mut self, late: &[LateUnit], newest: u64) {
        for (new, &unit) in (newest..).zip(late.iter().rev()) {
            let above = u64::from(self.acknowledged_above(unit.unit)).saturating_sub(new);
            self.on_late(unit, u16::try_from(above).unwrap_or(u16::MAX));
        }
    }

    /// So many reports, or units above, came before `late`. If it left again, only a duplicate report
    /// can tell that its original has arrived.
    fn on_late(&mut self, late: LateUnit, reports: u16) {
        let needed = reports.saturating_add(1);
        if late.has_left_again {
            self.log.iter_mut().for_each(|log| log.on_late(late.unit, needed));
        } else {
            self.learn(late.path, |evidence| evidence.on_late(needed));
        }
    }

    /// The threshold that would have waited for `unit` so far; zero if nothing above has arrived.
    pub(super) fn needed_so_far(&self, unit: u64) -> u16 {
        let above = match self.config.loss_detection {
            LossDetection::MissingReports => self.missing.reports_in_all(unit),
            _ => self.acknowledged_above(unit),
        };
        if above == 0 { 0 } else { above.saturating_add(1) }
    }

    pub(super) fn acknowledged_above(&self, unit: u64) -> u16 {
        let above = self.acknowledged.iter().rev().take_while(|range| *range.end() > unit);
        let count: u64 =
            above.map(|range| range.end() - (range.start().max(&(unit + 1))) + 1).sum();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// The original of a unit that left again in the latest event had arrived.
    pub(super) fn learn_from_report(&mut self, path: u8, cause: SendCause, needed: u16) {
        self.learn(path, |evidence| {
            if cause == SendCause::FastRetransmit {
                evidence.on_not_lost();
            }
            if needed > 0 {
                evidence.on_late(needed);
            }
        });
    }

    /// So many units of `path` were judged lost by what was acknowledged above them. Without evidence
    /// of reordering there is nothing to weigh them against.
    pub(super) fn learn_losses(&mut self, path: u8, units: u64) {
        if let Some(evidence) = self.path_mut(path).evidence_mut() {
            evidence.on_lost(units);
        }
    }

    /// A spurious fast retransmit has cost, for as many round trips as it took to find out and one
    /// more to return, what the window is short of.
    pub(super) fn learn_from_spurious(
        &mut self,
        now: Instant,
        path: u8,
        event: &Event,
        tracer: &mut Tracer<'_>,
    ) {
        if !self.is_adaptive() || event.kind != SendCause::FastRetransmit {
            return;
        }
        let p = self.path(path);
        let packet = p.window.packet().max(1) as f64;
        let short = event.before.window.cwnd().saturating_sub(p.window.cwnd()) as f64 / packet;
        let srtt = p.timer.rtt().srtt().unwrap_or_default().as_secs_f64();
        let since = now - event.resent_at.unwrap_or(now);
        let round_trips = if srtt > 0.0 { (since.as_secs_f64() / srtt).max(1.0) } else { 1.0 };
        let cost = short * (round_trips + 1.0);
        self.learn(path, |evidence| evidence.on_spurious_retransmit(cost));
        self.tell_threshold(path, tracer);
    }

    /// T3-rtx of `path` expired; a threshold that waits for reordering may be to blame.
    pub(super) fn learn_from_timeout(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let standard = u16::from(self.config.missing_reports);
        let p = self.path(path);
        let Some(evidence) = p.evidence() else { return };
        let is_higher = evidence.threshold() > standard;
        let is_avoidable = self.unit(p.earliest).is_some_and(|unit| {
            unit.state == UnitState::InFlight && unit.transmissions == 1 && unit.path == path
        }) && self.needed_so_far(p.earliest) > standard;
        if !is_higher || !is_avoidable {
            return;
        }
        let window = p.window.cwnd() as f64 / p.window.packet().max(1) as f64;
        let srtt = p.timer.rtt().srtt().unwrap_or(p.timer.rto()).as_secs_f64();
        let idle = if srtt > 0.0 { p.timer.rto().as_secs_f64() / srtt } else { 1.0 };
        self.learn(path, |evidence| evidence.on_avoidable_timeout(TimeoutCost { window, idle }));
        self.tell_threshold(path, tracer);
    }

    /// `units` were delivered, over whichever paths: evidence grows older.
    pub(super) fn age_evidence(&mut self, units: u64, tracer: &mut Tracer<'_>) {
        for path in 0..self.paths.len() as u8 {
            if let Some(evidence) = self.path_mut(path).evidence_mut() {
                evidence.on_delivered(units);
                self.tell_threshold(path, tracer);
            }
        }
    }

    /// Reports, or units acknowledged above, that make `unit` lost. With `is_first`, one does as long
    /// as nothing is known to the contrary; with `is_last`, no further report is to be expected.
    pub(super) fn threshold_of(&self, path: u8, is_first: bool, is_last: bool) -> u16 {
        let standard = u16::from(self.config.missing_reports);
        match self.path(path).evidence() {
            None if is_first => 1,
            Some(evidence) if is_first => evidence.thin_threshold(),
            Some(evidence) if !is_last => evidence.threshold(),
            _ => standard,
        }
    }

    /// Whether no packet is left whose acknowledgement could report the missing ones once more: none
    /// is in flight that left after the newest that has arrived.
    pub(super) fn is_last_report(&self) -> bool {
        let newest = self.acknowledged.max().and_then(|unit| self.unit(unit));
        newest.is_none_or(|unit| {
            let mut paths = 0..self.paths.len() as u8;
            !paths.any(|path| self.ledger.has_in_flight_after(path, unit.packet))
        })
    }

    /// The paths of which the same is true, as a bit set, where only what leaves over a path reports
    /// what left over it (SFR).
    pub(super) fn paths_without_report(&self) -> u64 {
        if !self.is_adaptive() || self.missing.is_empty() {
            return 0;
        }
        let has_none = |&path: &u8| {
            let concurrent = self.path(path).concurrent.as_ref();
            let newest = concurrent.and_then(|known| self.unit(known.highest_acked?));
            newest.is_none_or(|unit| !self.ledger.has_in_flight_after(path, unit.packet))
        };
        (0..self.paths.len() as u8).filter(has_none).fold(0, |set, path| set | 1 << path)
    }

    /// Tells that the threshold has changed, if it has.
    pub(super) fn tell_threshold(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let Some(evidence) = self.path_mut(path).evidence_mut() else { return };
        if let Some(missing_reports) = evidence.take_change() {
            let percentile = evidence.percentile();
            tracer.emit(|| TraceEvent::LossThreshold { path, missing_reports, percentile });
        }
    }
}
