//! Loss by missing reports: the threshold rule with HTNA (RFC 9260 §7.2.4).

use std::collections::BTreeMap;

use super::tolerance::{Tolerance, is_last_report};
use super::{AckRange, may_be_fast_retransmitted};
use crate::outstanding::Outstanding;
use crate::probe::ProbeTimer;
use crate::state::State;

/// With more overtaken units than this, an adaptive threshold acts as a fixed one, and reports of units
/// already declared lost are not counted. Every ACK visits each counted unit, so a receiver could otherwise
/// make each ACK cost as much as the window (docs/security.md).
const MAX_WEIGHED: usize = 256;

/// Counts how often each overtaken unit was reported missing: a unit in flight below an acknowledged one.
///
/// Only overtaken units are stored. Each is removed when it is acknowledged or, unless its count is needed
/// later, declared lost; so the cost depends on the reports, not on the window.
#[derive(Debug, Default)]
pub(crate) struct MissingReports {
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
    /// Whether the unit was declared lost already; further reports are counted but do not declare it lost
    /// again.
    is_judged: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfPath {
    /// The highest acknowledged unit that was sent over this path, and the highest in the ACK being
    /// processed; 0 if none.
    highest_acked: u64,
    highest_newly_acked: u64,
}

impl Overtaken {
    const fn in_all(&self) -> u16 {
        self.earlier.saturating_add(self.reports)
    }
}

impl MissingReports {
    /// Adds a path; `paths` is their number, the new one included.
    pub(super) fn add_path(&mut self, paths: usize) {
        if paths > 1 {
            let mut list = std::mem::take(&mut self.paths).into_vec();
            list.resize(paths, OfPath::default());
            self.paths = list.into_boxed_slice();
        }
    }

    /// Another path takes the place of `path`.
    pub(super) fn replace_path(&mut self, path: u8) {
        self.paths.get_mut(usize::from(path)).into_iter().for_each(|it| *it = OfPath::default());
    }

    /// Called before an acknowledgement is processed.
    pub(super) fn begin_ack(&mut self) {
        self.paths.iter_mut().for_each(|path| path.highest_newly_acked = 0);
    }

    /// Called when `unit`, which was sent over `path`, is acknowledged. Returns how often it was reported
    /// missing, if it was overtaken.
    pub(super) fn on_acked(&mut self, unit: u64, path: u8) -> Option<u16> {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.highest_newly_acked = path.highest_newly_acked.max(unit);
        }
        self.forget(unit)
    }

    /// Counts missing reports of `unit` from now on: it is in flight below acknowledged data. `reports` is
    /// the least number of them so far.
    pub(super) fn watch(&mut self, unit: u64, reports: u16) {
        let known = self.overtaken.entry(unit).or_default();
        if std::mem::take(&mut known.is_judged) {
            known.earlier = known.earlier.saturating_add(known.reports);
            known.reports = 0;
        }
        known.reports = reports.max(known.reports);
    }

    /// Starts counting reports of the units in flight below the new highest acknowledged one.
    pub(super) fn watch_overtaken<P>(&mut self, range: &AckRange, outstanding: &Outstanding<P>) {
        let known = range.highest_before.max(range.cumulative);
        let mut ranges = outstanding.acknowledged().iter().rev().peekable();
        while let Some(above) = ranges.next().filter(|above| *above.end() > known) {
            let below = ranges.peek().map_or(range.cumulative, |below| *below.end());
            for unit in below.max(known) + 1..*above.start() {
                if may_be_fast_retransmitted(outstanding, unit) {
                    self.watch(unit, 0);
                }
            }
        }
    }

    /// Stops counting reports of `unit`, because it was acknowledged, retransmitted or abandoned. Returns how
    /// often it was reported missing, if it was overtaken.
    pub(super) fn forget(&mut self, unit: u64) -> Option<u16> {
        if self.overtaken.is_empty() {
            return None;
        }
        self.overtaken.remove(&unit).as_ref().map(Overtaken::in_all)
    }

    /// Marks `unit` as declared lost; reports of it are still counted.
    pub(super) fn judge(&mut self, unit: u64) {
        if let Some(known) = self.overtaken.get_mut(&unit) {
            known.is_judged = true;
        }
    }

    /// Stops counting reports of all units up to `cumulative`.
    pub(super) fn forget_through(&mut self, cumulative: u64) {
        while self.overtaken.first_key_value().is_some_and(|(&unit, _)| unit <= cumulative) {
            self.overtaken.pop_first();
        }
    }

    /// Stops counting, because a timeout declared every unit lost.
    pub(super) fn clear(&mut self) {
        self.overtaken.clear();
    }

    /// How often `unit` was reported missing, over all its transmissions.
    pub(super) fn reports_in_all(&self, unit: u64) -> u16 {
        self.overtaken.get(&unit).map_or(0, Overtaken::in_all)
    }

    /// Counts the missing reports of an ACK, and returns the units that reach their threshold, in ascending
    /// order. With SFR a unit is reported missing only by the ACK of a later unit that was sent over the same
    /// path.
    pub(super) fn count<P>(
        &mut self,
        range: &AckRange,
        state: &State<P>,
        probe: &ProbeTimer,
        tolerance: &Tolerance,
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
        let is_adaptive = tolerance.is_adaptive();
        let keeps = is_adaptive && self.overtaken.len() <= MAX_WEIGHED;
        let last = match (is_adaptive, keeps) {
            (false, _) => 0,
            (true, false) => u64::MAX,
            (true, true) if is_split => self.paths_without_report(state),
            (true, true) if is_last_report(state) => u64::MAX,
            (true, true) => 0,
        };
        let Self { overtaken, paths } = self;
        report(overtaken, bound, keeps, |number| {
            let unit = state.outstanding.unit(number)?;
            let path = unit.path;
            if is_split && paths[usize::from(path)].highest_newly_acked <= number {
                return None;
            }
            let is_before = range.lowest_newly_acked.is_some_and(|lowest| number < lowest);
            let reports = if is_split && is_before { range.reports } else { 1 };
            if !is_split && probe.covers_unit(state, unit) {
                return Some((reports, u16::MAX)); // The probe timer sees to it.
            }
            let (is_first, is_last) = (early & (1 << unit.group()) != 0, last & (1 << path) != 0);
            Some((reports, tolerance.threshold(path, is_first, is_last)))
        })
    }

    /// With SFR: the paths, one bit each, that have nothing in flight whose ACK could report a missing unit
    /// again.
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
        if !known.is_judged && known.reports >= threshold {
            lost.push(unit);
            known.is_judged = true;
        }
        known.is_judged && !keeps
    });
    forgotten.for_each(drop);
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(missing: &mut MissingReports, bound: u64) -> Vec<u64> {
        super::report(&mut missing.overtaken, bound, false, |_| Some((1, 3)))
    }

    #[test]
    fn the_third_report_makes_a_loss_and_only_below_the_newest_acknowledgement() {
        let mut missing = MissingReports::default();
        missing.watch(10, 0);
        missing.watch(12, 0);
        assert_eq!(report(&mut missing, 12), []);
        assert_eq!(report(&mut missing, 14), []);
        assert_eq!(report(&mut missing, 15), [10]);
        assert_eq!(report(&mut missing, 16), [12]);
        assert_eq!(report(&mut missing, 17), []);
    }

    #[test]
    fn an_acknowledged_unit_is_never_lost() {
        let mut missing = MissingReports::default();
        missing.watch(10, 2);
        missing.watch(11, 2);
        missing.watch(12, 2);
        missing.forget(12);
        missing.forget_through(10);
        assert_eq!(report(&mut missing, 20), [11]);
    }

    /// A unit declared lost is counted until it is acknowledged, over several transmissions.
    #[test]
    fn a_judged_unit_is_counted_on_if_that_is_asked_for() {
        let mut missing = MissingReports::default();
        missing.watch(10, 0);
        let mut lost = Vec::new();
        for _ in 0..5 {
            lost.extend(super::report(&mut missing.overtaken, 20, true, |_| Some((1, 3))));
        }
        assert_eq!((&lost[..], missing.reports_in_all(10)), (&[10][..], 5));
        missing.watch(10, 0); // It was retransmitted, and may be lost once more.
        (0..3).for_each(|_| {
            lost.extend(super::report(&mut missing.overtaken, 20, true, |_| Some((1, 3))));
        });
        assert_eq!((lost, missing.forget(10)), (vec![10, 10], Some(8)));
        assert_eq!(missing.forget(10), None);
    }
}
