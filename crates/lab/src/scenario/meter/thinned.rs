//! Values over time, reduced to a limited number.

use rexmit_core::Instant;

use crate::scenario::Series;

/// Keeps every n-th value, with the smallest n that respects the limit.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct Thinned {
    points: Vec<(Instant, f64)>,
    /// n, a power of two.
    stride: u64,
    seen: u64,
}

impl Thinned {
    /// Largest number of points.
    const LIMIT: usize = 4096;

    pub(in crate::scenario) fn push(&mut self, now: Instant, value: f64) {
        if self.seen.is_multiple_of(self.stride) {
            if self.points.len() == Self::LIMIT {
                let mut place = 0;
                self.points.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
            // The value that reached the limit may not be a multiple of the new stride.
            if self.seen.is_multiple_of(self.stride) {
                self.points.push((now, value));
            }
        }
        self.seen += 1;
    }

    /// Copies the values of `other` if it has none.
    pub(in crate::scenario) fn or(&mut self, other: &Self) {
        if self.points.is_empty() {
            self.clone_from(other);
        }
    }

    pub(in crate::scenario) fn series(&self) -> Series {
        let (seconds, values) = self.points.iter().map(|(at, v)| (at.as_secs_f64(), *v)).unzip();
        Series { seconds, values }
    }
}

impl Default for Thinned {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, seen: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64) -> Series {
        let mut thinned = Thinned::default();
        (0..count).for_each(|n| thinned.push(Instant::from_millis(1000 * n), n as f64));
        thinned.series()
    }

    #[test]
    fn a_short_series_is_whole_and_a_long_one_even() {
        assert_eq!(of(100).values, (0..100).map(f64::from).collect::<Vec<_>>());
        let long = of(1_000_000);
        assert!((Thinned::LIMIT / 2..=Thinned::LIMIT).contains(&long.values.len()));
        assert_eq!(long.seconds, long.values);
        assert!(long.values.windows(2).all(|pair| pair[1] - pair[0] == long.values[1]));
        assert!(1_000_000.0 - long.values[long.values.len() - 1] <= long.values[1]);
    }
}
