//! Loss by a scoreboard: `IsLost` and the last resorts of `NextSeg` (RFC 6675 §4).
//!
//! A unit counts as one SACKed sequence, whether or not its neighbours are SACKed, too: three small
//! units above a hole make it lost, which is what step 1 of RFC 6675 §5 does for the first hole.

use rexmit_core::RangeSet;

use super::tolerance::{Tolerance, is_last_report};
use super::{AckRange, Verdict, may_be_fast_retransmitted};
use crate::outstanding::{Outstanding, Unit};
use crate::state::State;

/// Units declared lost and units retransmitted in the current recovery.
///
/// `IsLost` can only become true while units above are acknowledged, so all units below a frontier are
/// decided, and each unit is visited once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// Every unit below is decided.
    frontier: u64,
    /// `HighRxt`: the highest unit retransmitted in this recovery, rescue retransmissions not counted.
    high_rxt: u64,
    /// `RescueRxt`: a rescue retransmission may be sent once the cumulative point is above.
    rescue_rxt: u64,
}

impl Scoreboard {
    /// Declares every hole lost that the frontier passes, and begins a recovery, once per window (RFC 6675
    /// §5). After a timeout nothing is lost until all data sent before is acknowledged (§5.1).
    pub(super) fn detect<P>(
        &mut self,
        range: &AckRange,
        state: &State<P>,
        tolerance: Option<&Tolerance>,
    ) -> Verdict {
        let is_recovering = state.fast_recovery.is_on();
        let recover = state.fast_recovery.recover();
        let may_detect = is_recovering || recover.is_none_or(|recover| range.cumulative >= recover);
        let outstanding = &state.outstanding;
        let acknowledged = outstanding.acknowledged();
        if !may_detect || acknowledged.is_empty() {
            return Verdict::default();
        }
        let frontier = if let Some(evidence) = tolerance.and_then(|it| it.on(0)) {
            let is_first = state.first_indication_groups() & 1 != 0;
            let threshold = evidence.threshold(is_first, is_last_report(state));
            Self::frontier_by_count(acknowledged, threshold)
        } else {
            let bytes_of = |unit| outstanding.unit(unit).map_or(0, |u| u.bytes.into());
            let packet = state.paths[0].window.packet();
            Self::frontier(acknowledged, state.loss_threshold(0), packet, bytes_of)
        };
        let first = outstanding.cumulative() + 1;
        let mut lost = Vec::new(); // Allocates only when something is lost.
        if let Some(frontier) = frontier {
            self.advance(acknowledged, first, frontier, |unit| {
                if may_be_fast_retransmitted(outstanding, unit) {
                    lost.push(unit);
                }
            });
        }
        // RFC 6675 §5 step 2: the first hole is lost, and something above was reported just now. It may have been declared
        // lost, and retransmitted, in the recovery before: what was sent after that began is another window.
        let newest = range.highest_newly_acked;
        let is_reported = newest.is_some_and(|unit| unit > range.cumulative) || !lost.is_empty();
        let begins_recovery = !is_recovering && is_reported && self.is_lost(first);
        if begins_recovery {
            (self.high_rxt, self.rescue_rxt) = (first, first);
        }
        Verdict { lost, begins_recovery }
    }

    /// A unit that may be lost, to be sent in a recovery that has nothing declared lost and nothing new to send, so
    /// that ACKs keep coming (`NextSeg` rules 3 and 4). First the units below the highest acknowledged one, each once;
    /// then, once per recovery and after the cumulative point moved, the highest unit not acknowledged.
    pub(super) fn next_rescue<P>(&self, outstanding: &Outstanding<P>) -> Option<u64> {
        let acknowledged = outstanding.acknowledged();
        let is_in_flight = |&unit: &u64| outstanding.unit(unit).is_some_and(Unit::is_in_flight);
        let (cumulative, last) = (outstanding.cumulative(), outstanding.next_unit() - 1);
        let hole = self.first_hole_not_retransmitted(acknowledged, cumulative + 1);
        hole.filter(is_in_flight)
            .or_else(|| self.rescue_unit(acknowledged, cumulative, last).filter(is_in_flight))
    }

    /// The highest acknowledged unit with at least `threshold - 1` others above it, or more than `(threshold
    /// - 1) · packet` bytes from it on: every hole below is lost. Costs `threshold` steps.
    fn frontier(
        acknowledged: &RangeSet,
        threshold: u8,
        packet: u64,
        mut bytes_of: impl FnMut(u64) -> u64,
    ) -> Option<u64> {
        let limit = (u64::from(threshold) - 1) * packet;
        let (mut units, mut bytes) = (0, 0);
        acknowledged.iter().rev().flat_map(Iterator::rev).find(|&unit| {
            units += 1;
            bytes += bytes_of(unit);
            units >= threshold || bytes > limit
        })
    }

    /// The frontier of an adaptive `threshold`, which counts units whatever their size. Costs a step per run
    /// of acknowledged units.
    fn frontier_by_count(acknowledged: &RangeSet, threshold: u16) -> Option<u64> {
        let mut left = u64::from(threshold.max(1));
        for range in acknowledged.iter().rev() {
            let len = range.end() - range.start() + 1;
            if len >= left {
                return Some(range.end() + 1 - left);
            }
            left -= len;
        }
        None
    }

    /// Moves the frontier up to `frontier`, and calls `on_hole` for each hole from `first` on that it passes.
    fn advance(
        &mut self,
        acknowledged: &RangeSet,
        first: u64,
        frontier: u64,
        mut on_hole: impl FnMut(u64),
    ) {
        let mut next = self.frontier.max(first);
        self.frontier = self.frontier.max(frontier);
        for range in acknowledged.iter_from(next) {
            if next >= frontier {
                break;
            }
            (next..(*range.start()).min(frontier)).for_each(&mut on_hole);
            next = next.max(*range.end() + 1);
        }
    }

    /// Whether `unit`, which is not acknowledged, is declared lost: `IsLost`.
    const fn is_lost(&self, unit: u64) -> bool {
        unit < self.frontier
    }

    /// Moves the frontier back, because the receiver dropped `unit`, whose loss has to be decided again.
    pub(super) fn on_reneged(&mut self, unit: u64) {
        self.frontier = self.frontier.min(unit);
    }

    /// Called when a recovery up to `exit` begins whose loss is repaired: nothing above `cumulative` was sent
    /// again in it, and nothing needs a rescue.
    pub(super) const fn on_repaired(&mut self, cumulative: u64, exit: u64) {
        self.high_rxt = cumulative;
        self.rescue_rxt = exit;
    }

    pub(super) fn on_retransmitted(&mut self, unit: u64) {
        self.high_rxt = self.high_rxt.max(unit);
    }

    /// Called when `unit` is sent as a rescue retransmission in a recovery that ends with `exit`.
    pub(super) fn on_rescued(&mut self, acknowledged: &RangeSet, unit: u64, exit: u64) {
        let is_hole = acknowledged.max().is_some_and(|max| unit < max);
        if is_hole && unit > self.high_rxt {
            self.high_rxt = unit;
        } else {
            self.rescue_rxt = exit;
        }
    }

    /// `NextSeg` rule 3: the first hole that was not retransmitted in this recovery, with something acknowledged above.
    fn first_hole_not_retransmitted(&self, acknowledged: &RangeSet, first: u64) -> Option<u64> {
        let mut next = first.max(self.high_rxt + 1);
        for range in acknowledged.iter_from(next) {
            if next < *range.start() {
                return Some(next);
            }
            next = next.max(*range.end() + 1);
        }
        None
    }

    /// `NextSeg` rule 4: the highest unit not acknowledged, up to `last`, once per recovery.
    fn rescue_unit(&self, acknowledged: &RangeSet, cumulative: u64, last: u64) -> Option<u64> {
        let highest = match acknowledged.iter().next_back() {
            Some(range) if *range.end() >= last => *range.start() - 1,
            _ => last,
        };
        (cumulative > self.rescue_rxt && highest > cumulative).then_some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frontier if units up to number 100 have 1000 bytes, which fill a packet, and later ones 10 bytes.
    fn frontier(blocks: &[(u64, u64)]) -> Option<u64> {
        let bytes_of = |unit| if unit > 100 { 10 } else { 1000 };
        Scoreboard::frontier(&set(blocks), 3, 1000, bytes_of)
    }

    fn set(blocks: &[(u64, u64)]) -> RangeSet {
        let mut set = RangeSet::new();
        for &(start, end) in blocks {
            set.insert_range(start, end, |_, _| ());
        }
        set
    }

    /// RFC 6675 §4 `IsLost`: three SACKed sequences above, or more than two packets of bytes.
    #[test]
    fn a_hole_is_lost_below_three_acknowledged_units() {
        assert_eq!(frontier(&[]), None);
        assert_eq!(frontier(&[(4, 5)]), None);
        assert_eq!(frontier(&[(4, 6)]), Some(4));
        assert_eq!(frontier(&[(2, 2), (4, 4), (8, 8)]), Some(2));
        assert_eq!(frontier(&[(2, 2), (4, 4), (8, 9)]), Some(4));
        assert_eq!(frontier(&[(110, 111)]), None, "two, however small");
        assert_eq!(frontier(&[(90, 90), (110, 111)]), Some(90), "three, however small");
    }

    #[test]
    fn a_frontier_by_count_agrees_with_the_one_by_units() {
        let sets: [&[(u64, u64)]; 4] = [&[], &[(4, 5)], &[(2, 2), (4, 4), (8, 9)], &[(1, 90)]];
        for blocks in sets {
            for threshold in 1..=9 {
                let by_units = Scoreboard::frontier(&set(blocks), threshold, 1000, |_| 0);
                let by_count = Scoreboard::frontier_by_count(&set(blocks), threshold.into());
                assert_eq!(by_count, by_units, "{blocks:?}, {threshold}");
            }
        }
    }

    /// After the packet size has shrunk a unit may be larger than a packet: two of them are more than two packets.
    #[test]
    fn a_hole_is_lost_below_more_bytes_than_two_packets() {
        let of = |blocks, bytes| Scoreboard::frontier(&set(blocks), 3, 1000, |_| bytes);
        assert_eq!(of(&[(4, 5)], 1000), None, "two packets are not more than two");
        assert_eq!(of(&[(4, 5)], 1001), Some(4));
        assert_eq!(of(&[(5, 5)], 2001), Some(5));
    }

    #[test]
    fn the_frontier_passes_each_hole_once() {
        let mut board = Scoreboard::default();
        let mut advance = |blocks: &[(u64, u64)], first, frontier| {
            let mut judged = Vec::new();
            board.advance(&set(blocks), first, frontier, |unit| judged.push(unit));
            judged
        };
        assert_eq!(advance(&[(3, 3), (6, 8)], 1, 6), [1, 2, 4, 5]);
        assert_eq!(advance(&[(3, 3), (6, 8)], 1, 6), []);
        assert_eq!(advance(&[(6, 8), (11, 13), (15, 20)], 4, 12), [9, 10]);
        assert_eq!(advance(&[(15, 20)], 14, 18), [14]);
    }

    #[test]
    fn reneged_data_is_declared_lost_again() {
        let mut board = Scoreboard::default();
        board.advance(&set(&[(3, 9)]), 1, 7, |_| ());
        assert!(board.is_lost(4));
        board.on_reneged(4);
        assert!(!board.is_lost(4));
        let mut judged = Vec::new();
        board.advance(&set(&[(6, 9)]), 4, 7, |unit| judged.push(unit));
        assert_eq!(judged, [4, 5]);
    }
}
