//! Loss detection: which units an ACK, or the time since it, shows to be lost.
//!
//! [`LossDetector`] owns the counts of the algorithms. It reads the sender's state and returns the units that
//! are lost; the sender declares them lost and reduces the window.

use crate::outstanding::{AckedUnit, Outstanding, PacketNumber, Unit};
use crate::paths::PerPath;
use crate::probe::ProbeTimer;
use crate::state::State;
use crate::{LossDetection, ReorderingState};
use early::early_wait;
pub(crate) use early::expired_early;
use rack::Rack;
use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, Tracer};
use scoreboard::Scoreboard;
use std::collections::BTreeMap;
use tolerance::{Tolerance, is_last_report};

mod early;
mod rack;
mod scoreboard;
mod tolerance;

#[cfg(test)]
mod tests;

/// The state of the detectors.
#[derive(Debug)]
pub(crate) struct LossDetector {
    kind: Kind,
    /// The deadline of the timer (of RACK, or of Early Fast Retransmit) of each path that ever had one; far
    /// in the future if it is not armed.
    timers: PerPath<Instant>,
    pub(crate) duplicates: DuplicateAcks,
    /// `None` if the threshold of missing reports is fixed.
    pub(crate) tolerance: Option<Tolerance>,
}

/// The algorithm for ACKs with gap ack blocks.
#[derive(Debug)]
enum Kind {
    /// With Early Fast Retransmit, or without.
    MissingReports {
        counts: Box<MissingReports>,
        is_early: bool,
    },
    Scoreboard(Scoreboard),
    Rack(Vec<Rack>),
    /// Duplicate ACKs are counted; no unit is looked at.
    DuplicateAcks,
}

/// A unit that is reported after units above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateUnit {
    unit: u64,
    path: u8,
    is_retransmitted: bool,
}

impl LossDetector {
    pub(crate) fn new(detection: LossDetection, threshold: u8) -> Self {
        let kind = match detection {
            LossDetection::MissingReports { early_retransmit: is_early, .. } => {
                Kind::MissingReports { counts: Box::default(), is_early }
            }
            LossDetection::Scoreboard { .. } => Kind::Scoreboard(Scoreboard::default()),
            LossDetection::DuplicateAcks => Kind::DuplicateAcks,
            LossDetection::Rack => Kind::Rack(Vec::new()),
        };
        let tolerance = detection.percentile().map(|first| Tolerance::new(threshold, first));
        Self { kind, timers: PerPath::default(), duplicates: DuplicateAcks::default(), tolerance }
    }

    /// Adds a path; `paths` is their number, the new one included.
    pub(crate) fn add_path(&mut self, paths: usize) {
        match &mut self.kind {
            Kind::MissingReports { counts: missing, .. } => missing.add_path(paths),
            Kind::Rack(paths) => {
                paths.reserve_exact(1); // One path is the rule.
                paths.push(Rack::default());
            }
            Kind::Scoreboard(_) | Kind::DuplicateAcks => {}
        }
    }

    /// Forgets what was learned about `path`, whose packets take another route from now on.
    pub(crate) fn renew_path(&mut self, path: u8) {
        self.tolerance.iter_mut().for_each(|it| it.renew_path(path));
        self.stop_timer(path);
        if let Kind::Rack(paths) = &mut self.kind {
            paths[usize::from(path)] = Rack::default();
        }
    }

    /// Another path takes the place of `path`.
    pub(crate) fn replace_path(&mut self, path: u8) {
        self.renew_path(path);
        if let Kind::MissingReports { counts: missing, .. } = &mut self.kind {
            missing.replace_path(path);
        }
    }

    /// Whether losses are detected by time (RACK).
    pub(crate) const fn is_by_time(&self) -> bool {
        matches!(self.kind, Kind::Rack(_))
    }

    pub(crate) const fn is_by_scoreboard(&self) -> bool {
        matches!(self.kind, Kind::Scoreboard(_))
    }

    pub(crate) fn clear(&mut self) {
        self.release_memory();
        self.duplicates.clear();
        self.timers.iter_mut().for_each(|at| *at = Instant::FAR_FUTURE);
    }

    /// Releases memory that is not in use, with nothing outstanding.
    pub(crate) fn release_memory(&mut self) {
        if let Kind::MissingReports { counts: missing, .. } = &mut self.kind {
            missing.overtaken.clear();
        }
    }

    /// When a timer of `path` expires; far in the future if none runs.
    #[inline]
    pub(crate) fn deadline(&self, path: u8) -> Instant {
        self.timers.get(path).copied().unwrap_or(Instant::FAR_FUTURE)
    }

    fn arm(&mut self, path: u8, deadline: Instant) {
        *self.timers.get_or_insert_with(path, || deadline) = deadline;
    }

    pub(crate) fn stop_timer(&mut self, path: u8) {
        self.timers.get_mut(path).into_iter().for_each(|at| *at = Instant::FAR_FUTURE);
    }
}

/// Units, one by one.
impl LossDetector {
    /// Called before an acknowledgement is processed.
    pub(crate) fn begin_ack(&mut self) {
        if let Kind::MissingReports { counts: missing, .. } = &mut self.kind {
            missing.paths.iter_mut().for_each(|path| path.highest_newly_acked = 0);
        }
    }

    pub(crate) fn on_abandoned(&mut self, unit: u64) {
        if let Kind::MissingReports { counts: missing, .. } = &mut self.kind {
            missing.forget(unit);
        }
    }

    /// Called when `unit` is declared lost, or retransmitted while it is in flight. An adaptive threshold
    /// goes on counting reports of it.
    pub(crate) fn on_declared_lost(&mut self, unit: u64) {
        let Kind::MissingReports { counts: missing, .. } = &mut self.kind else { return };
        if self.tolerance.is_none() {
            missing.forget(unit);
        } else if let Some(known) = missing.overtaken.get_mut(&unit) {
            known.is_declared_lost = true;
        }
    }

    /// Called when `unit` is in flight again: counts missing reports of it from now on, if it is below acknowledged data and
    /// they may declare it lost.
    pub(crate) fn on_in_flight_again<P>(&mut self, unit: u64, state: &State<P>) {
        let Kind::MissingReports { counts: missing, .. } = &mut self.kind else { return };
        let is_overtaken = state.outstanding.acknowledged().max().is_some_and(|max| unit < max);
        let known = state.outstanding.unit(unit).filter(|unit| !unit.is_fast_retransmitted);
        if is_overtaken && known.is_some() {
            missing.count_reports_of(unit, 0);
        }
    }

    /// Called when `unit`, which was declared lost or acknowledged, counts as in flight again.
    pub(crate) fn on_returned(&mut self, unit: u64) {
        if let Kind::Scoreboard(board) = &mut self.kind {
            board.on_reneged(unit);
        }
    }

    pub(crate) fn on_retransmitted(&mut self, unit: u64) {
        if let Kind::Scoreboard(board) = &mut self.kind {
            board.on_retransmitted(unit);
        }
    }

    /// Called when a recovery begins whose loss a redundant copy repaired: nothing above `cumulative` was
    /// retransmitted in it, and nothing up to `highest` needs a rescue.
    pub(crate) fn on_repaired(&mut self, cumulative: u64, highest: u64) {
        if let Kind::Scoreboard(board) = &mut self.kind {
            board.on_repaired(cumulative, highest);
        }
    }

    /// Called when a unit is acknowledged for the first time. Returns the unit if it is late and the other
    /// blocks of the ACK decide how late.
    pub(crate) fn on_acked<P>(
        &mut self,
        now: Instant,
        acked: &AckedUnit,
        range: &AckRange,
        state: &mut State<P>,
    ) -> Option<LateUnit> {
        let path = acked.last.path;
        let is_late = acked.unit < range.highest_before;
        let (mut reports, mut is_by_scoreboard) = (None, false);
        match &mut self.kind {
            Kind::MissingReports { counts: missing, .. } => {
                reports = missing.on_acked(acked.unit, path);
            }
            Kind::Scoreboard(_) => is_by_scoreboard = true,
            Kind::Rack(paths) => {
                if let Some(sent_at) = acked.sent_at {
                    let is_ambiguous = !acked.is_first_transmission || acked.is_copied;
                    let is_only = paths.len() == 1;
                    let rack = &mut paths[usize::from(path)];
                    // Over another path what was sent later may well arrive first.
                    let packet = acked.last.packet;
                    let is_late = is_late && (is_only || rack.has_newer(packet));
                    rack.on_arrived(now, packet, sent_at, is_ambiguous);
                    rack.has_seen_reordering |= is_late && !is_ambiguous;
                }
                return None;
            }
            Kind::DuplicateAcks => return None,
        }
        // The transmission of a unit with redundant copies that arrived is unknown.
        if !(is_late || reports.is_some()) || acked.is_copied || self.tolerance.is_none() {
            return None;
        }
        let late =
            LateUnit { unit: acked.unit, path, is_retransmitted: !acked.is_first_transmission };
        if let Some(reports) = reports.filter(|&reports| reports > 0) {
            self.on_late(late, reports, state);
        } else if is_late && is_by_scoreboard {
            if acked.unit > range.cumulative {
                return Some(late);
            }
            self.on_late(late, state.outstanding.acknowledged_above(acked.unit), state);
        }
        None
    }

    /// Called when every unit up to `cumulative` is acknowledged.
    pub(crate) fn on_advanced(&mut self, cumulative: u64) {
        if let Kind::MissingReports { counts: missing, .. } = &mut self.kind {
            while missing.overtaken.first_key_value().is_some_and(|(&unit, _)| unit <= cumulative) {
                missing.overtaken.pop_first();
            }
        }
    }

    /// Called when gap ack blocks reported `newly_acked` units for the first time, of which `late` (ascending) were overtaken.
    pub(crate) fn on_late_units<P>(
        &mut self,
        late: &[LateUnit],
        newly_acked: u64,
        state: &mut State<P>,
    ) {
        let newest = newly_acked - late.len() as u64;
        for (new, &unit) in (newest..).zip(late.iter().rev()) {
            let above = u64::from(state.outstanding.acknowledged_above(unit.unit));
            let above = u16::try_from(above.saturating_sub(new)).unwrap_or(u16::MAX);
            self.on_late(unit, above, state);
        }
    }

    /// Called when `late` was acknowledged late, after `reports` reports of it, or acknowledgements of units
    /// above it: learns that this number is too few to declare a loss. If the unit was retransmitted, only a
    /// duplicate report can show that its original arrived.
    fn on_late<P>(&mut self, late: LateUnit, reports: u16, state: &mut State<P>) {
        let needed = reports.saturating_add(1);
        if late.is_retransmitted {
            let repeats = state.outstanding.repeats_mut(late.unit);
            repeats.into_iter().for_each(|repeats| repeats.on_late(needed));
        } else if let Some(tolerance) = &mut self.tolerance {
            tolerance.on_mut(late.path).on_late(needed);
        }
    }

    /// Called when a recovery of `path`, or of the association if `None`, is over.
    pub(crate) fn on_recovery_left(&mut self, path: Option<u8>) {
        let Kind::Rack(paths) = &mut self.kind else { return };
        match path {
            Some(path) => paths[usize::from(path)].on_recovery_left(),
            None => paths.iter_mut().for_each(Rack::on_recovery_left),
        }
    }
}

/// Detection.
impl LossDetector {
    /// The units that an ACK shows to be lost; none with RACK, which detects losses by time.
    pub(crate) fn detect<P>(
        &mut self,
        range: &AckRange,
        reneged: &[u64],
        state: &State<P>,
        probe: &ProbeTimer,
    ) -> Verdict {
        let tolerance = self.tolerance.as_ref();
        let verdict = match &mut self.kind {
            Kind::MissingReports { counts: missing, .. } => {
                missing.count_overtaken(range, &state.outstanding);
                let lost = missing.count(range, state, probe, tolerance);
                for &unit in reneged {
                    // One missing report, whatever else this acknowledgement says.
                    if may_be_fast_retransmitted(&state.outstanding, unit) {
                        missing.count_reports_of(unit, 1);
                    }
                }
                Verdict { lost, begins_recovery: false }
            }
            Kind::Scoreboard(board) => {
                reneged.iter().for_each(|&unit| board.on_reneged(unit));
                board.detect(range, state, tolerance)
            }
            Kind::Rack(_) | Kind::DuplicateAcks => Verdict::default(),
        };
        if let Some(tolerance) = &mut self.tolerance {
            let paths = verdict.lost.iter().filter_map(|&unit| state.outstanding.unit(unit));
            paths.for_each(|unit| tolerance.on_lost(unit.path));
        }
        verdict
    }

    /// The packets of `path` that are lost because a packet sent long enough after them has arrived (RFC 8985
    /// §6.2 step 5). Arms the timer for the next one.
    pub(crate) fn expired_by_time<P>(
        &mut self,
        now: Instant,
        path: u8,
        state: &State<P>,
        probe: &ProbeTimer,
    ) -> Vec<PacketNumber> {
        let Kind::Rack(paths) = &self.kind else { return Vec::new() };
        let (expired, next) = paths[usize::from(path)].expired(now, path, state, probe);
        self.arm(path, next);
        expired
    }

    /// Widens the reordering window of RACK, because the receiver reports a duplicate of an episode of
    /// `path`. `cumulative` is the cumulative point, `highest` the highest unit sent.
    pub(crate) fn widen_window(&mut self, path: u8, cumulative: u64, highest: u64) {
        if let Kind::Rack(paths) = &mut self.kind {
            paths[usize::from(path)].on_duplicate(cumulative, highest);
        }
    }

    /// Whether the timer is that of Early Fast Retransmit.
    pub(crate) const fn is_early(&self) -> bool {
        matches!(self.kind, Kind::MissingReports { is_early: true, .. })
    }

    /// Starts the timer of Early Fast Retransmit anew, if that is on, or stops it if nothing is outstanding or `flight`, the
    /// bytes in flight, fill the window.
    #[inline]
    pub(crate) fn restart_early<P>(
        &mut self,
        now: Instant,
        path: u8,
        flight: u64,
        state: &State<P>,
    ) {
        if self.is_early() {
            let p = &state.paths[path];
            let runs = state.outstanding.on(path).outstanding > 0 && flight < p.window.cwnd();
            let wait = early_wait(p.timer.rtt(), &state.config.rto);
            self.arm(path, if runs { now + wait } else { Instant::FAR_FUTURE });
        }
    }

    /// As [`Scoreboard::next_rescue`]; `None` without a scoreboard.
    pub(crate) fn rescue_unit<P>(&self, outstanding: &Outstanding<P>) -> Option<u64> {
        let Kind::Scoreboard(board) = &self.kind else { return None };
        board.next_rescue(outstanding)
    }

    /// Called when `unit`, which [`rescue_unit`](Self::rescue_unit) named, is retransmitted in a recovery that
    /// ends with `exit`.
    pub(crate) fn on_rescued<P>(&mut self, outstanding: &Outstanding<P>, unit: u64, exit: u64) {
        if let Kind::Scoreboard(board) = &mut self.kind {
            board.on_rescued(outstanding.acknowledged(), unit, exit);
        }
    }

    /// The threshold that would have waited for `unit` so far; zero if nothing above has arrived.
    pub(crate) fn needed_so_far<P>(&self, unit: u64, state: &State<P>) -> u16 {
        let above = match &self.kind {
            Kind::MissingReports { counts: missing, .. } => {
                missing.overtaken.get(&unit).map_or(0, Overtaken::in_all)
            }
            _ => state.outstanding.acknowledged_above(unit),
        };
        if above == 0 { 0 } else { above.saturating_add(1) }
    }

    /// Traces the reordering threshold of `path`, if it has changed.
    #[inline]
    pub(crate) fn trace_threshold(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let change = self.tolerance.as_mut().and_then(|it| it.take_change(path));
        if let Some((missing_reports, percentile)) = change {
            tracer.emit(|| TraceEvent::LossThreshold { path, missing_reports, percentile });
        }
    }

    /// Called when T3-rtx of `path` expires, perhaps because a high reordering threshold delayed the detection.
    pub(crate) fn on_timeout<P>(&mut self, path: u8, state: &State<P>) {
        let needed = self.needed_so_far(state.outstanding.on(path).earliest, state);
        self.tolerance.iter_mut().for_each(|it| it.on_timeout(path, needed, state));
    }

    /// The reordering tolerated on `path` now.
    pub(crate) fn reordering<P>(&self, path: u8, state: &State<P>) -> ReorderingState {
        let missing_reports = state.config.missing_reports.into();
        let evidence = self.tolerance.as_ref().and_then(|it| it.on(path));
        let standard = || ReorderingState { missing_reports, ..ReorderingState::default() };
        evidence.map_or_else(standard, |it| it.reordering(state))
    }
}

/// With more overtaken units than this, an adaptive threshold acts as a fixed one, and reports of units
/// already declared lost are not counted. Every ACK visits each counted unit, so a receiver could otherwise
/// have every unit of the window visited by each ACK (docs/security.md).
const MAX_WEIGHED: usize = 256;

/// Counts how often each overtaken unit was reported missing: a unit in flight below an acknowledged one.
///
/// Only overtaken units are stored. Each is removed when it is acknowledged or, unless its count is needed
/// later, declared lost; so the cost depends on the reports, not on the window.
#[derive(Debug, Default)]
struct MissingReports {
    overtaken: BTreeMap<u64, Overtaken>,
    /// State of each path, for SFR; empty with one path.
    paths: Box<[OfPath]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Overtaken {
    /// Reports since the unit was last sent.
    reports: u16,
    /// Reports of earlier transmissions.
    earlier: u16,
    /// Whether the unit was declared lost already; further reports are counted but do not declare it lost again.
    is_declared_lost: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfPath {
    /// The highest acknowledged unit that was sent over this path, and the highest in the ACK being processed; 0 if none.
    highest_acked: u64,
    highest_newly_acked: u64,
}

impl Overtaken {
    const fn in_all(&self) -> u16 {
        self.earlier.saturating_add(self.reports)
    }
}

impl MissingReports {
    fn add_path(&mut self, paths: usize) {
        if paths > 1 {
            let mut list = std::mem::take(&mut self.paths).into_vec();
            list.resize(paths, OfPath::default());
            self.paths = list.into_boxed_slice();
        }
    }

    fn replace_path(&mut self, path: u8) {
        self.paths.get_mut(usize::from(path)).into_iter().for_each(|it| *it = OfPath::default());
    }

    /// Called when `unit`, which was sent over `path`, is acknowledged. Returns how often it was reported
    /// missing, if it was overtaken.
    fn on_acked(&mut self, unit: u64, path: u8) -> Option<u16> {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.highest_newly_acked = path.highest_newly_acked.max(unit);
        }
        self.forget(unit)
    }

    /// Counts missing reports of `unit` from now on: it is in flight below acknowledged data. `reports` is
    /// the least number of them so far.
    fn count_reports_of(&mut self, unit: u64, reports: u16) {
        let known = self.overtaken.entry(unit).or_default();
        if std::mem::take(&mut known.is_declared_lost) {
            known.earlier = known.earlier.saturating_add(known.reports);
            known.reports = 0;
        }
        known.reports = reports.max(known.reports);
    }

    /// Starts counting reports of the units in flight below the new highest acknowledged one.
    fn count_overtaken<P>(&mut self, range: &AckRange, outstanding: &Outstanding<P>) {
        let known = range.highest_before.max(range.cumulative);
        let mut ranges = outstanding.acknowledged().iter().rev().peekable();
        while let Some(above) = ranges.next().filter(|above| *above.end() > known) {
            let below = ranges.peek().map_or(range.cumulative, |below| *below.end());
            for unit in below.max(known) + 1..*above.start() {
                if may_be_fast_retransmitted(outstanding, unit) {
                    self.count_reports_of(unit, 0);
                }
            }
        }
    }

    /// Stops counting reports of `unit`, because it was acknowledged, retransmitted or abandoned. Returns how
    /// often it was reported missing, if it was overtaken.
    fn forget(&mut self, unit: u64) -> Option<u16> {
        if self.overtaken.is_empty() {
            return None;
        }
        self.overtaken.remove(&unit).as_ref().map(Overtaken::in_all)
    }

    /// Counts the missing reports of an ACK, and returns the units that reach their threshold, in ascending order. With
    /// SFR a unit is reported missing only by the ACK of a later unit that was sent over the same path.
    fn count<P>(
        &mut self,
        range: &AckRange,
        state: &State<P>,
        probe: &ProbeTimer,
        tolerance: Option<&Tolerance>,
    ) -> Vec<u64> {
        let is_split = state.splits_fast_retransmit();
        if is_split {
            for path in &mut self.paths {
                path.highest_acked = path.highest_acked.max(path.highest_newly_acked);
            }
        }
        if self.overtaken.is_empty() {
            return Vec::new();
        }
        let htna = range.highest_newly_acked.unwrap_or(0);
        let is_after_advance = !is_split && state.fast_recovery.is_on() && range.has_advanced;
        let bound = if is_after_advance { htna.max(range.highest_in_blocks) } else { htna };
        let early = state.first_indication_groups();
        let is_adaptive = tolerance.is_some();
        let keeps = is_adaptive && self.overtaken.len() <= MAX_WEIGHED;
        let last = match (is_adaptive, keeps) {
            (false, _) => 0,
            (true, false) => u64::MAX,
            (true, true) if is_split => self.paths_without_report(state),
            (true, true) if is_last_report(state) => u64::MAX,
            (true, true) => 0,
        };
        let may_be_covered = !is_split && state.groups.probed != 0;
        let Self { overtaken, paths } = self;
        report(overtaken, bound, keeps, |number| {
            let unit = state.outstanding.unit(number)?;
            let path = unit.path;
            if is_split && paths[usize::from(path)].highest_newly_acked <= number {
                return None;
            }
            let is_before = range.lowest_newly_acked.is_some_and(|lowest| number < lowest);
            let reports = if is_split && is_before { range.reports } else { 1 };
            if may_be_covered && probe.covers(state, path, 1 << unit.group()) {
                return Some((reports, u16::MAX)); // The probe timer sees to it.
            }
            let (is_first, is_last) = (early & (1 << unit.group()) != 0, last & (1 << path) != 0);
            let threshold = match tolerance.and_then(|it| it.on(path)) {
                Some(evidence) => evidence.threshold(is_first, is_last),
                None if is_first => 1,
                None => state.config.missing_reports.into(),
            };
            Some((reports, threshold))
        })
    }

    /// With SFR: the paths, one bit each, that have nothing in flight whose ACK could report a missing unit again.
    fn paths_without_report<P>(&self, state: &State<P>) -> u64 {
        let has_none = |&path: &u8| {
            let outstanding = &state.outstanding;
            let newest = outstanding.unit(self.paths[usize::from(path)].highest_acked);
            newest.is_none_or(|unit| {
                !outstanding.packets().has_in_flight_after(path, unit.last().packet)
            })
        };
        state.paths.numbers().filter(has_none).fold(0, |set, path| set | 1 << path)
    }
}

/// Counts the reports of one ACK for the overtaken units below `bound`. `reported` returns the number of
/// reports of a unit and its threshold, or `None` if the unit is not reported. Returns the units that reach
/// their threshold, in ascending order; they are counted further only if `keeps` is set.
fn report(
    overtaken: &mut BTreeMap<u64, Overtaken>,
    bound: u64,
    keeps: bool,
    mut reported: impl FnMut(u64) -> Option<(u16, u16)>,
) -> Vec<u64> {
    let mut lost = Vec::new(); // Allocates only when something is lost.
    let forgotten = overtaken.extract_if(..bound, |&unit, known| {
        let Some((count, threshold)) = reported(unit) else { return false };
        known.reports = known.reports.saturating_add(count);
        if !known.is_declared_lost && known.reports >= threshold {
            lost.push(unit);
            known.is_declared_lost = true;
        }
        known.is_declared_lost && !keeps
    });
    forgotten.for_each(drop);
    lost
}

/// The state of all units after an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckRange {
    pub(crate) cumulative: u64,
    pub(crate) has_advanced: bool,
    pub(crate) highest_before: u64,
    pub(crate) highest_in_blocks: u64,
    pub(crate) highest_newly_acked: Option<u64>,
    pub(crate) lowest_newly_acked: Option<u64>,
    /// DAC: the number of reports that this ACK counts as, for units sent before everything newly acknowledged.
    pub(crate) reports: u16,
}

/// Units that are lost, and whether a scoreboard's recovery begins.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) lost: Vec<u64>,
    pub(crate) begins_recovery: bool,
}

fn may_be_fast_retransmitted<P>(outstanding: &Outstanding<P>, unit: u64) -> bool {
    outstanding.unit(unit).is_some_and(Unit::may_be_fast_retransmitted)
}

/// Duplicate acknowledgements since the cumulative point moved: loss detection for a peer without SACK (RFC 5681 §3.2, RFC 6582).
///
/// Each shows that some segment has left the network, but not which. RFC 5681 inflates cwnd by a segment; here the
/// segment is subtracted from the flight, which allows the same transmissions and leaves the window unchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct DuplicateAcks {
    count: u32,
    /// Bytes that duplicate ACKs show to be no longer in flight, although it is unknown which segments.
    departed: u64,
    /// The number of partial ACKs in this recovery; `None` outside a recovery.
    partial: Option<u32>,
}

impl DuplicateAcks {
    /// Counts a duplicate ACK with `flight` bytes in flight, which bounds what can have left the network (RFC
    /// 5681 §3.2, Note). Returns how many there were.
    pub(crate) fn on_duplicate(&mut self, packet: u64, flight: u64) -> u32 {
        self.count = self.count.saturating_add(1);
        self.departed = (self.departed + packet).min(flight);
        self.count
    }

    pub(crate) const fn on_recovery(&mut self) {
        self.partial = Some(0);
    }

    /// Whether duplicate ACKs began the present recovery.
    pub(crate) const fn is_recovering(&self) -> bool {
        self.partial.is_some()
    }

    /// Called for a partial ACK of `acked` bytes. Bytes counted as departed are now known to have arrived, except the
    /// segment retransmitted (RFC 6582 §3.2 step 3). Returns whether this is the first partial ACK of the recovery.
    pub(crate) fn on_partial(&mut self, acked: u64, packet: u64) -> bool {
        let sent_again = if acked >= packet { packet } else { 0 };
        self.departed = self.departed.saturating_sub(acked - sent_again);
        let partial = self.partial.get_or_insert(0);
        *partial = partial.saturating_add(1);
        *partial == 1
    }

    /// Forgets the duplicate ACKs, because the cumulative point left the recovery or the timer expired.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes that duplicate ACKs have shown to be no longer in flight in this recovery; 0 outside a recovery.
    pub(crate) const fn departed(&self) -> u64 {
        if self.is_recovering() { self.departed } else { 0 }
    }

    /// Bytes that the first two duplicate ACKs, before a recovery, allow beyond the window (RFC 3042 §2).
    pub(crate) fn limited_transmit(&self, packet: u64) -> u64 {
        if self.is_recovering() { 0 } else { packet * u64::from(self.count.min(2)) }
    }

    /// Whether no duplicate ACK came since the cumulative point moved.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
