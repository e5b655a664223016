//! Goodput: total, in bins, and over time.

use std::time::Duration;

use hdrhistogram::Histogram;
use rexmit_core::Instant;

use crate::hosts::Counter;
use crate::scenario::outcome::{Distribution, Series};
use crate::scenario::spec::Scenario;
use crate::scenario::words::{Time, Words};

/// Bytes that applications received from `begin` to `end`, in bins of equal length.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct RateMeter {
    bin: Duration,
    begin: Instant,
    /// Number of complete bins.
    bins: u64,
    end: Instant,
    total: u64,
    /// The current bin, and its bytes.
    filling: (u64, u64),
    bytes_per_bin: Histogram<u64>,
    /// Sums of `per_point` bins each.
    points: Vec<u64>,
    per_point: u64,
}

impl RateMeter {
    /// Largest number of points of the series.
    const LIMIT: usize = 4096;

    /// A meter from `begin` to `end`; `bin` must be above zero.
    pub(in crate::scenario) fn new(bin: Duration, begin: Instant, end: Instant) -> Self {
        let bins = (end - begin).as_nanos() / bin.as_nanos().max(1);
        let per_point = bins.div_ceil(Self::LIMIT as u128).max(1);
        Self {
            bin,
            begin,
            bins: u64::try_from(bins).unwrap_or(u64::MAX),
            end,
            total: 0,
            filling: (0, 0),
            // More than a terabyte in a bin is not supported.
            bytes_per_bin: Histogram::new_with_max(1 << 40, 3).expect("constant bounds are valid"),
            points: Vec::new(),
            per_point: u64::try_from(per_point).unwrap_or(u64::MAX),
        }
    }

    /// Completes the bins before `bin`.
    fn close_before(&mut self, bin: u64) {
        let (filling, bytes) = self.filling;
        if bin <= filling || filling >= self.bins {
            return;
        }
        self.bytes_per_bin.saturating_record(bytes);
        let point = (filling / self.per_point) as usize;
        self.points.resize(self.points.len().max(point + 1), 0);
        self.points[point] += bytes;
        let empty = bin.min(self.bins) - filling - 1;
        self.bytes_per_bin.saturating_record_n(0, empty);
        self.filling = (bin, 0);
    }

    /// Completes all bins.
    pub(in crate::scenario) fn finish(&mut self) {
        self.close_before(self.bins);
        let points = self.bins.div_ceil(self.per_point);
        self.points.resize(usize::try_from(points).unwrap_or(Self::LIMIT), 0);
    }

    /// Total number of bytes.
    pub(in crate::scenario) const fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Mean in bits per second; `None` if the duration is zero.
    pub(in crate::scenario) fn mean(&self) -> Option<f64> {
        self.rate(self.total)
    }

    /// Bits per second for `bytes` over the whole duration; `None` if it is zero.
    pub(in crate::scenario) fn rate(&self, bytes: u64) -> Option<f64> {
        let seconds = (self.end - self.begin).as_secs_f64();
        (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
    }

    fn bits_per_second(&self, bytes: u64, bins: u64) -> f64 {
        bytes as f64 * 8.0 / (self.bin.as_secs_f64() * bins as f64)
    }

    /// Bits per second in each bin.
    pub(in crate::scenario) fn distribution(&self) -> Distribution {
        let steps = self.bytes_per_bin.iter_recorded();
        let (values, counts) = steps
            .map(|step| {
                let bytes = self.bytes_per_bin.median_equivalent(step.value_iterated_to());
                (self.bits_per_second(bytes, 1), step.count_at_value())
            })
            .unzip();
        Distribution { values, counts }
    }

    /// Bits per second at the middle of the interval of each point.
    pub(in crate::scenario) fn series(&self) -> Series {
        let mut series = Series::default();
        for (n, &bytes) in (0..).zip(&self.points) {
            let first = n * self.per_point;
            let bins = self.per_point.min(self.bins - first);
            let middle = (first as f64 + bins as f64 / 2.0) * self.bin.as_secs_f64();
            series.seconds.push(self.begin.as_secs_f64() + middle);
            series.values.push(self.bits_per_second(bytes, bins));
        }
        series
    }
}

impl Counter for RateMeter {
    fn add(&mut self, now: Instant, bytes: u64) {
        if now < self.begin || now >= self.end {
            return;
        }
        let bin = (now - self.begin).as_nanos() / self.bin.as_nanos().max(1);
        let bin = u64::try_from(bin).unwrap_or(u64::MAX);
        self.close_before(bin);
        self.filling.1 += bytes;
        self.total += bytes;
    }
}

impl Scenario {
    /// A meter of goodput from `start` to the end.
    pub(in crate::scenario) fn rate_meter(&self, start: Option<&Words<Time>>) -> RateMeter {
        let bin = self.bin.as_ref().map_or(Self::BIN, |bin| ***bin);
        let start = Instant::ZERO + start.map_or(Duration::ZERO, |start| ***start);
        RateMeter::new(bin, start, self.end())
    }

    const BIN: Duration = Duration::from_millis(100);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(bins: u64) -> RateMeter {
        let begin = Instant::from_millis(1000);
        RateMeter::new(
            Duration::from_millis(100),
            begin,
            begin + Duration::from_millis(100) * bins as u32,
        )
    }

    #[test]
    fn bytes_fall_into_the_bin_of_their_time_and_empty_bins_count() {
        let mut meter = meter(5);
        for (ms, bytes) in [(999, 1000), (1000, 1), (1099, 2), (1350, 8), (1500, 1000)] {
            meter.add(Instant::from_millis(ms), bytes);
        }
        meter.finish();
        assert_eq!(meter.mean(), Some(11.0 * 8.0 / 0.5));
        let bins = meter.distribution();
        assert_eq!(bins.values, [0.0, 240.0, 640.0]);
        assert_eq!(bins.counts, [3, 1, 1]);
        let series = meter.series();
        assert_eq!(series.values, [240.0, 0.0, 0.0, 640.0, 0.0]);
        assert_eq!(series.seconds, [1.05, 1.15, 1.25, 1.35, 1.45]);
    }

    #[test]
    fn a_long_series_is_of_larger_bins() {
        let mut meter = meter(100_000);
        (0..100_000).for_each(|n| meter.add(Instant::from_millis(1000 + 100 * n), 10));
        meter.finish();
        assert_eq!(meter.distribution().counts, [100_000]);
        let series = meter.series();
        assert!((RateMeter::LIMIT / 2..=RateMeter::LIMIT).contains(&series.values.len()));
        assert!(series.values.iter().all(|rate| (rate - 800.0).abs() < 1e-6));
    }

    #[test]
    fn bins_without_arrivals_are_zero() {
        let mut meter = meter(7);
        meter.finish();
        assert_eq!((meter.mean(), meter.distribution().counts), (Some(0.0), vec![7]));
        assert_eq!(meter.series().values, [0.0; 7]);
    }
}
