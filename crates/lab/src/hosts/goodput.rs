//! Received bytes over time.

use std::time::Duration;

use rexmit_core::Instant;
use serde::Serialize;

/// Payload that an application received: total, and in bins of equal length.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Goodput {
    bin: Duration,
    bins: Vec<u64>,
    total: u64,
    span: Option<(Instant, Instant)>,
}

/// Largest number of bins; later bytes count in the last one.
const MAX_BINS: usize = 10_000_000;

impl Goodput {
    /// No bytes yet; bins of length `bin` begin at the origin of time. Zero means a single bin.
    #[must_use]
    pub const fn new(bin: Duration) -> Self {
        Self { bin, bins: Vec::new(), total: 0, span: None }
    }

    /// Adds `bytes` that arrived at `now`.
    pub fn add(&mut self, now: Instant, bytes: u64) {
        let place = now.as_nanos().checked_div(self.bin.as_nanos() as u64).unwrap_or(0);
        let place = usize::try_from(place).unwrap_or(MAX_BINS).min(MAX_BINS - 1);
        if place >= self.bins.len() {
            self.bins.resize(place + 1, 0);
        }
        self.bins[place] += bytes;
        self.total += bytes;
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }

    /// Total number of bytes.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.total
    }

    /// The length of a bin.
    #[must_use]
    pub const fn bin(&self) -> Duration {
        self.bin
    }

    /// Bytes per bin, from the origin of time to the last arrival.
    #[must_use]
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Total number of bytes at the end of each bin.
    pub fn cumulative(&self) -> impl Iterator<Item = u64> + '_ {
        self.bins.iter().scan(0, |sum, bytes| {
            *sum += bytes;
            Some(*sum)
        })
    }

    /// The times of the first and the last arrival.
    #[must_use]
    pub const fn span(&self) -> Option<(Instant, Instant)> {
        self.span
    }

    /// Bits per second over the whole bins between `from` and `to`; 0 without a whole bin.
    #[must_use]
    pub fn bits_per_second(&self, from: Instant, to: Instant) -> f64 {
        let bin = self.bin.as_nanos() as u64;
        if bin == 0 {
            return 0.0;
        }
        let (first, end) = (from.as_nanos().div_ceil(bin), to.as_nanos() / bin);
        let bytes: u64 = (first..end).filter_map(|n| self.bins.get(n as usize)).sum();
        let seconds = end.saturating_sub(first) as f64 * self.bin.as_secs_f64();
        if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fall_into_the_bin_of_their_time() {
        let mut goodput = Goodput::new(Duration::from_millis(100));
        for (ms, bytes) in [(0, 1), (99, 2), (100, 4), (350, 8)] {
            goodput.add(Instant::from_millis(ms), bytes);
        }
        assert_eq!(goodput.bins(), [3, 4, 0, 8]);
        assert_eq!(goodput.cumulative().collect::<Vec<_>>(), [3, 7, 7, 15]);
        assert_eq!(goodput.total_bytes(), 15);
        assert_eq!(goodput.span(), Some((Instant::ZERO, Instant::from_millis(350))));
    }

    #[test]
    fn a_rate_counts_complete_bins_only() {
        let mut goodput = Goodput::new(Duration::from_millis(100));
        (0..10).for_each(|n| goodput.add(Instant::from_millis(100 * n), 1000));
        let rate = |from, to| {
            goodput.bits_per_second(Instant::from_millis(from), Instant::from_millis(to))
        };
        assert_eq!(rate(0, 1000), 80_000.0);
        assert_eq!(rate(150, 450), 80_000.0);
        assert_eq!(rate(500, 2000), 80_000.0 / 3.0);
        assert_eq!(rate(150, 250), 0.0);
        assert_eq!(Goodput::new(Duration::ZERO).bits_per_second(Instant::ZERO, Instant::ZERO), 0.0);
    }
}
