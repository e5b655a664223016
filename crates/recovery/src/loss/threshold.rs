//! Loss by missing reports: the threshold rule with HTNA (RFC 9260 §7.2.4).

use std::collections::BTreeMap;

/// Counts, for each unit in flight that something later has overtaken, how often it was reported
/// missing.
///
/// Only overtaken units are kept, and each leaves when it is acknowledged or judged lost, so the
/// cost is that of the reports, not of the window.
#[derive(Clone, Debug, Default)]
pub struct MissingReports {
    overtaken: BTreeMap<u64, u8>,
}

impl MissingReports {
    /// `unit` is in flight and below something acknowledged; it has at least `reports` so far.
    pub fn watch(&mut self, unit: u64, reports: u8) {
        let known = self.overtaken.entry(unit).or_default();
        *known = reports.max(*known);
    }

    /// `unit` needs no watching: acknowledged, retransmitted, or given up.
    pub fn forget(&mut self, unit: u64) {
        if !self.overtaken.is_empty() {
            self.overtaken.remove(&unit);
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

    /// An acknowledgement reports every watched unit below `bound` missing. Calls `on_lost` for
    /// each that has reached its `threshold` of reports, in ascending order, and forgets it.
    pub fn on_report(
        &mut self,
        bound: u64,
        mut threshold: impl FnMut(u64) -> u8,
        on_lost: impl FnMut(u64),
    ) {
        self.on_reports(bound, |unit| Some((1, threshold(unit))), on_lost);
    }

    /// The same, where `reported` says of each unit how often it is reported, and what its threshold
    /// is; a unit for which it says nothing is not reported.
    pub fn on_reports(
        &mut self,
        bound: u64,
        mut reported: impl FnMut(u64) -> Option<(u8, u8)>,
        mut on_lost: impl FnMut(u64),
    ) {
        let lost = self.overtaken.extract_if(..bound, |&unit, reports| {
            let Some((count, threshold)) = reported(unit) else { return false };
            *reports = reports.saturating_add(count);
            *reports >= threshold
        });
        lost.for_each(|(unit, _)| on_lost(unit));
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
}
