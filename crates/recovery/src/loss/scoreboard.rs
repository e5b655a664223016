//! Loss by a scoreboard: `IsLost` and the last resorts of `NextSeg` (RFC 6675 §4).
//!
//! A unit counts as one SACKed sequence, whether or not its neighbours are SACKed, too: three small
//! units above a hole make it lost, which is what step 1 of RFC 6675 §5 does for the first hole.

use rexmit_core::RangeSet;

/// What is judged and what was sent again, in the current recovery.
///
/// `IsLost` can only become true while units above are acknowledged, so everything below a frontier
/// is judged, and each unit is passed over once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// Every unit below is judged.
    frontier: u64,
    /// `HighRxt`: the highest unit sent again in this recovery, but for rescues.
    high_rxt: u64,
    /// `RescueRxt`: a rescue may leave once the cumulative point is above.
    rescue_rxt: u64,
}

impl Scoreboard {
    /// The highest acknowledged unit that has `threshold - 1` others, or more than
    /// `(threshold - 1) · packet` bytes with its own, at or above it: every hole below is lost.
    /// Costs `threshold` steps.
    pub(crate) fn frontier(
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

    /// The same for a `threshold` that follows reordering: of so many units, whatever their bytes.
    /// Costs a step per run of acknowledged units.
    pub(crate) fn frontier_by_count(acknowledged: &RangeSet, threshold: u16) -> Option<u64> {
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

    /// Moves the frontier up to `frontier`, and calls `judge` for each hole from `first` on that it
    /// passes.
    pub(crate) fn advance(
        &mut self,
        acknowledged: &RangeSet,
        first: u64,
        frontier: u64,
        mut judge: impl FnMut(u64),
    ) {
        let mut next = self.frontier.max(first);
        self.frontier = self.frontier.max(frontier);
        for range in acknowledged.iter_from(next) {
            if next >= frontier {
                break;
            }
            (next..(*range.start()).min(frontier)).for_each(&mut judge);
            next = next.max(*range.end() + 1);
        }
    }

    /// Whether `unit`, which is not acknowledged, is judged lost: `IsLost`.
    pub(crate) const fn is_lost(&self, unit: u64) -> bool {
        unit < self.frontier
    }

    /// The receiver dropped `unit`: it is to be judged again.
    pub(crate) fn on_reneged(&mut self, unit: u64) {
        self.frontier = self.frontier.min(unit);
    }

    /// Recovery begins with `first`, the first hole.
    pub(crate) const fn on_recovery(&mut self, first: u64) {
        self.high_rxt = first;
        self.rescue_rxt = first;
    }

    /// A recovery up to `exit` begins whose loss is repaired: nothing above `cumulative` was sent
    /// again in it, and nothing needs a rescue.
    pub(crate) const fn on_repaired(&mut self, cumulative: u64, exit: u64) {
        self.high_rxt = cumulative;
        self.rescue_rxt = exit;
    }

    /// `unit` was sent again in recovery.
    pub(crate) fn on_resent(&mut self, unit: u64) {
        self.high_rxt = self.high_rxt.max(unit);
    }

    /// `unit` left as a rescue in a recovery that ends with `exit`.
    pub(crate) fn on_rescued(&mut self, acknowledged: &RangeSet, unit: u64, exit: u64) {
        if self.is_hole_not_sent_again(acknowledged, unit) {
            self.high_rxt = unit;
        } else {
            self.rescue_rxt = exit;
        }
    }

    fn is_hole_not_sent_again(&self, acknowledged: &RangeSet, unit: u64) -> bool {
        unit > self.high_rxt && acknowledged.max().is_some_and(|max| unit < max)
    }

    /// `NextSeg` rule 3: the first hole that was not sent again in this recovery, with something
    /// acknowledged above.
    pub(crate) fn hole_not_sent_again(&self, acknowledged: &RangeSet, first: u64) -> Option<u64> {
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
    pub(crate) fn to_rescue(
        &self,
        acknowledged: &RangeSet,
        cumulative: u64,
        last: u64,
    ) -> Option<u64> {
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

    /// Units of 1000 bytes fill a packet, those above 100 have 10 bytes.
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

    /// After the packet size has shrunk a unit may be larger than a packet: two of them are more
    /// than two packets.
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
    fn what_was_reneged_is_judged_again() {
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
