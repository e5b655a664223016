//! A set of numbers kept as disjoint ranges: received TSNs, acknowledged TSNs, SACK blocks.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// A set of `u64` as sorted, disjoint, non-adjacent inclusive ranges.
///
/// Inserting at either end costs O(1), elsewhere O(log n + shift), where n is the number of
/// *ranges*; removing a prefix costs O(number of ranges removed).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: VecDeque::new() }
    }

    /// Whether no number is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of disjoint ranges.
    #[must_use]
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// The number of elements. Costs one step per range.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start + 1).sum()
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + '_ {
        self.ranges.iter().map(|&(start, end)| start..=end)
    }

    /// The ranges in ascending order, from the first that ends at or above `value`. Costs a search,
    /// not a walk over the ranges below.
    pub fn iter_from(&self, value: u64) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.ranges.range(self.position(value)..).map(|&(start, end)| start..=end)
    }

    /// The lowest range.
    #[must_use]
    pub fn first(&self) -> Option<RangeInclusive<u64>> {
        self.ranges.front().map(|&(start, end)| start..=end)
    }

    /// The highest number.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.ranges.back().map(|&(_, end)| end)
    }

    /// The index of the first range whose end is at or above `value`.
    fn position(&self, value: u64) -> usize {
        match self.ranges.back() {
            Some(&(_, end)) if end < value => self.ranges.len(),
            _ => self.ranges.partition_point(|&(_, end)| end < value),
        }
    }

    /// Whether `value` is in the set.
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        self.ranges.get(self.position(value)).is_some_and(|&(start, _)| start <= value)
    }

    /// Adds `value`; returns whether it was new.
    pub fn insert(&mut self, value: u64) -> bool {
        let at = self.position(value);
        if self.ranges.get(at).is_some_and(|&(start, _)| start <= value) {
            return false;
        }
        let joins_left = at > 0 && self.ranges[at - 1].1 + 1 == value;
        let joins_right = self.ranges.get(at).is_some_and(|&(start, _)| start == value + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = value,
            (false, true) => self.ranges[at].0 = value,
            (false, false) => self.ranges.insert(at, (value, value)),
        }
        true
    }

    /// Calls `on_new` for each maximal range of `start..=end` that is not yet in the set, in
    /// ascending order, and adds it.
    pub fn insert_range(&mut self, start: u64, end: u64, mut on_new: impl FnMut(u64, u64)) {
        if start > end {
            return;
        }
        // The ranges that touch or overlap [start, end]: they become one.
        let first = self.ranges.partition_point(|&(_, e)| e.saturating_add(1) < start);
        let mut last = first;
        let (mut low, mut high, mut next_new) = (start, end, start);
        while let Some(&(s, e)) = self.ranges.get(last) {
            if s > end.saturating_add(1) {
                break;
            }
            if s > next_new {
                on_new(next_new, (s - 1).min(end));
            }
            next_new = next_new.max(e.saturating_add(1));
            low = low.min(s);
            high = high.max(e);
            last += 1;
        }
        if next_new <= end {
            on_new(next_new, end);
        }
        if first == last {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            self.ranges.drain(first + 1..last);
        }
    }

    /// Removes every number below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.1 < bound {
                self.ranges.pop_front();
            } else {
                front.0 = front.0.max(bound);
                return;
            }
        }
    }

    /// Releases memory that is not in use.
    pub fn release_memory(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Removes everything, keeping the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Removes and returns the lowest number.
    pub fn pop_first(&mut self) -> Option<u64> {
        let front = self.ranges.front_mut()?;
        let value = front.0;
        if front.0 == front.1 {
            self.ranges.pop_front();
        } else {
            front.0 += 1;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_plain_set_under_random_operations() {
        for seed in 0..200 {
            let mut rng = Seed::from_u64(seed).rng();
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            for _ in 0..200 {
                let value = rng.below(64);
                match rng.below(8) {
                    0 => {
                        set.remove_below(value);
                        model.retain(|&v| v >= value);
                    }
                    1 => assert_eq!(set.pop_first(), model.pop_first()),
                    2 | 3 => {
                        let end = value + rng.below(10);
                        let mut new = Vec::new();
                        set.insert_range(value, end, |s, e| new.extend(s..=e));
                        let want: Vec<u64> = (value..=end).filter(|v| model.insert(*v)).collect();
                        assert_eq!(new, want);
                    }
                    _ => assert_eq!(set.insert(value), model.insert(value)),
                }
                let listed: Vec<u64> = set.iter().flatten().collect();
                assert_eq!(listed, model.iter().copied().collect::<Vec<_>>());
                let whole: Vec<_> = set.iter().filter(|range| *range.end() >= value).collect();
                assert_eq!(set.iter_from(value).collect::<Vec<_>>(), whole);
                assert_eq!(set.len(), model.len() as u64);
                assert_eq!(set.contains(value), model.contains(&value));
                for (left, right) in set.iter().zip(set.iter().skip(1)) {
                    assert!(left.end() + 1 < *right.start(), "ranges must not touch");
                }
            }
        }
    }
}
