//! Loss by missing reports: the threshold rule with HTNA (RFC 9260 §7.2.4).

use std::collections::BTreeMap;

/// Counts, for each unit in flight that something later has overtaken, how often it was reported
/// missing.
///
/// Only overtaken units are kept, and each leaves when it is acknowledged or, unless the count is
/// asked for later, judged lost; so the cost is that of the reports, not of the window.
#[derive(Clone, Debug, Default)]
pub struct MissingReports {
    overtaken: BTreeMap<u64, Watched>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    /// Since it last left.
    reports: u16,
    /// Before.
    earlier: u16,
    /// It is judged, and no further report makes it a loss.
    is_judged: bool,
}

impl Watched {
    const fn in_all(&self) -> u16 {
        self.earlier.saturating_add(self.reports)
    }
}

impl MissingReports {
    /// `unit` is in flight and below something acknowledged; it has at least `reports` so far.
    pub fn watch(&mut self, unit: u64, reports: u16) {
        let known = self.overtaken.entry(unit).or_default();
        if std::mem::take(&mut known.is_judged) {
            known.earlier = known.earlier.saturating_add(known.reports);
            known.reports = 0;
        }
        known.reports = reports.max(known.reports);
    }

    /// `unit` needs no watching: acknowledged, retransmitted, or given up. Returns how often it was
    /// reported missing, if it was watched.
    pub fn forget(&mut self, unit: u64) -> Option<u16> {
        if self.overtaken.is_empty() {
            return None;
        }
        self.overtaken.remove(&unit).as_ref().map(Watched::in_all)
    }

    /// `unit` is judged lost, but what is reported of it still counts.
    pub fn judge(&mut self, unit: u64) {
        if let Some(known) = self.overtaken.get_mut(&unit) {
            known.is_judged = true;
        }
    }

    /// Every unit up to `cumulative` is acknowledged.
    pub fn forget_through(&mut self, cumulative: u64) {
        while self.overtaken.first_key_value().is_some_and(|(&unit, _)| unit <= cumulative) {
            self.overtaken.pop_first();
        }
    }

    /// Every unit is judged lost at once (timeout).
    pub fn clear(&mut self) {
        self.overtaken.clear();
    }

    /// Whether no unit is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.overtaken.is_empty()
    }

    /// How often `unit` was reported missing, over all its transmissions.
    #[must_use]
    pub fn reports_in_all(&self, unit: u64) -> u16 {
        self.overtaken.get(&unit).map_or(0, Watched::in_all)
    }

    /// An acknowledgement reports every watched unit below `bound` missing. Calls `on_lost` for
    /// each that has reached its `threshold` of reports, in ascending order, and forgets it.
    pub fn on_report(
        &mut self,
        bound: u64,
        mut threshold: impl FnMut(u64) -> u16,
        on_lost: impl FnMut(u64),
    ) {
        self.on_reports(bound, |unit| Some((1, threshold(unit))), on_lost);
    }

    /// The same, where `reported` says of each unit how often it is reported, and what its threshold
    /// is; a unit for which it says nothing is not reported.
    pub fn on_reports(
        &mut self,
        bound: u64,
        mut reported: impl FnMut(u64) -> Option<(u16, u16)>,
        mut on_lost: impl FnMut(u64),
    ) {
        let lost = self.overtaken.extract_if(..bound, |&unit, known| {
            let Some((count, threshold)) = reported(unit) else { return false };
            known.reports = known.reports.saturating_add(count);
            known.reports >= threshold
        });
        lost.for_each(|(unit, _)| on_lost(unit));
    }

    /// The same, but what is lost is not forgotten: what is reported of it still counts.
    pub fn on_reports_counting(
        &mut self,
        bound: u64,
        mut reported: impl FnMut(u64) -> Option<(u16, u16)>,
        mut on_lost: impl FnMut(u64),
    ) {
        for (&unit, known) in self.overtaken.range_mut(..bound) {
            let Some((count, threshold)) = reported(unit) else { continue };
            known.reports = known.reports.saturating_add(count);
            if !known.is_judged && known.reports >= threshold {
                known.is_judged = true;
                on_lost(unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(missing: &mut MissingReports, bound: u64) -> Vec<u64> {
        let mut lost = Vec::new();
        missing.on_report(bound, |_| 3, |unit| lost.push(unit));
        lost
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

    /// What was judged is counted on until it is acknowledged, and over several transmissions.
    #[test]
    fn a_judged_unit_is_counted_on_if_that_is_asked_for() {
        let mut missing = MissingReports::default();
        missing.watch(10, 0);
        let mut lost = Vec::new();
        for _ in 0..5 {
            missing.on_reports_counting(20, |_| Some((1, 3)), |unit| lost.push(unit));
        }
        assert_eq!((&lost[..], missing.reports_in_all(10)), (&[10][..], 5));
        missing.watch(10, 0); // It left again, and may be lost once more.
        (0..3).for_each(|_| {
            missing.on_reports_counting(20, |_| Some((1, 3)), |unit| lost.push(unit));
        });
        assert_eq!((lost, missing.forget(10)), (vec![10, 10], Some(8)));
        assert_eq!(missing.forget(10), None);
    }
}
