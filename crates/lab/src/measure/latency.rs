//! The distribution of latency, and its summary for tables.

use std::borrow::Cow;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::iterators::IterationValue;
use serde::{Deserialize, Serialize};

use super::millis;

/// The range of a histogram.
const LOWEST_NANOS: u64 = 1_000;
const HIGHEST_NANOS: u64 = 24 * 3_600 * 1_000_000_000;

/// Latencies of any number of messages in at most 236 KiB.
///
/// Quantiles are exact to one part in a thousand (and to a microsecond), and latencies above one
/// day count as one day; maximum and mean are exact.
#[derive(Clone, Debug, Default)]
pub struct LatencyDistribution {
    nanos: Values,
    sum_nanos: u128,
    max: Duration,
}

/// More latencies than this are kept as a histogram.
const FEW: usize = 1024;

/// Latencies in nanoseconds. A run of 10,000 connections has 100,000 distributions of some hundred latencies, or none.
#[derive(Clone, Debug)]
enum Values {
    /// In the order of recording.
    Few(Vec<u64>),
    /// Grows with the largest latency.
    Many(Histogram<u64>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Values {
    fn record(&mut self, nanos: u64, weight: u64) {
        match self {
            Self::Few(values) if weight == 1 && values.len() < FEW => values.push(nanos),
            _ => self.be_many().record_n(nanos, weight).expect("the histogram grows"),
        }
    }

    /// Turns few values into a histogram.
    fn be_many(&mut self) -> &mut Histogram<u64> {
        if let Self::Few(values) = self {
            *self = Self::Many(histogram(values));
        }
        match self {
            Self::Many(histogram) => histogram,
            Self::Few(_) => unreachable!("they are many"),
        }
    }

    fn histogram(&self) -> Cow<'_, Histogram<u64>> {
        match self {
            Self::Few(values) => Cow::Owned(histogram(values)),
            Self::Many(histogram) => Cow::Borrowed(histogram),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Few(values) => values.len() as u64,
            Self::Many(histogram) => histogram.len(),
        }
    }
}

/// A histogram of these values, which grows.
fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut nanos = Histogram::new_with_bounds(LOWEST_NANOS, 2 * LOWEST_NANOS, 3)
        .expect("constant bounds are valid");
    nanos.auto(true);
    for &value in values {
        nanos.record(value).expect("the histogram grows");
    }
    nanos
}

impl LatencyDistribution {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the latency of one message.
    pub fn record(&mut self, latency: Duration) {
        self.record_weighted(latency, 1);
    }

    /// Adds a latency with the weight `weight`.
    ///
    /// # Panics
    /// Never: a histogram that grows takes every value.
    pub fn record_weighted(&mut self, latency: Duration, weight: u64) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.record(nanos.min(HIGHEST_NANOS), weight);
        self.sum_nanos += u128::from(nanos) * u128::from(weight);
        self.max = self.max.max(latency);
    }

    /// The distinct latencies, rounded to one part in a thousand, in ascending order, each with its
    /// count.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let nanos = self.nanos.histogram();
        let step = |step: IterationValue<u64>| {
            let middle = nanos.median_equivalent(step.value_iterated_to());
            (Duration::from_nanos(middle).min(self.max), step.count_at_value())
        };
        nanos.iter_recorded().map(step).collect::<Vec<_>>().into_iter()
    }

    /// Adds the messages of `other`.
    pub fn merge(&mut self, other: &Self) {
        match &other.nanos {
            Values::Few(values) => values.iter().for_each(|&value| self.nanos.record(value, 1)),
            Values::Many(nanos) => *self.nanos.be_many() += nanos,
        }
        self.sum_nanos += other.sum_nanos;
        self.max = self.max.max(other.max);
    }

    /// The number of messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The latency that the share `quantile` (0 to 1) of the messages did not exceed; zero
    /// without messages.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        self.at(&self.nanos.histogram(), quantile)
    }

    fn at(&self, nanos: &Histogram<u64>, quantile: f64) -> Duration {
        // The bucket's upper edge may lie beyond what was measured.
        Duration::from_nanos(nanos.value_at_quantile(quantile)).min(self.max)
    }

    /// The arithmetic mean, or `None` if there are no messages.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum_nanos.checked_div(u128::from(self.count()))?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The summary, or `None` if there are no messages.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        let (mean, nanos) = (self.mean()?, self.nanos.histogram());
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|share| self.at(&nanos, share));
        Some(LatencySummary { p50, p90, p99, p999, max: self.max, mean })
    }
}

/// Quantiles, maximum and mean of the latency of the delivered messages; milliseconds in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Half of the messages took no longer.
    #[serde(rename = "p50_ms", with = "millis")]
    pub p50: Duration,
    /// 90 % of the messages took no longer.
    #[serde(rename = "p90_ms", with = "millis")]
    pub p90: Duration,
    /// 99 % of the messages took no longer.
    #[serde(rename = "p99_ms", with = "millis")]
    pub p99: Duration,
    /// 99.9 % of the messages took no longer.
    #[serde(rename = "p99.9_ms", with = "millis")]
    pub p999: Duration,
    /// The maximum.
    #[serde(rename = "max_ms", with = "millis")]
    pub max: Duration,
    /// The arithmetic mean.
    #[serde(rename = "mean_ms", with = "millis")]
    pub mean: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(measured: Duration, exact_ms: u64) -> bool {
        let exact = Duration::from_millis(exact_ms);
        measured.abs_diff(exact) <= exact / 1000 + Duration::from_micros(2)
    }

    #[test]
    fn quantiles_of_one_to_a_thousand_milliseconds() {
        let mut distribution = LatencyDistribution::new();
        // Largest first: the order of arrival must not matter.
        (1..=1000).rev().for_each(|ms| distribution.record(Duration::from_millis(ms)));
        let summary = distribution.summary().unwrap();
        assert!(near(summary.p50, 500), "{summary:?}");
        assert!(near(summary.p90, 900), "{summary:?}");
        assert!(near(summary.p99, 990), "{summary:?}");
        assert!(near(summary.p999, 999), "{summary:?}");
        assert_eq!(summary.max, Duration::from_millis(1000));
        assert_eq!(summary.mean, Duration::from_micros(500_500));
    }

    #[test]
    fn merged_distributions_are_one_of_all_their_messages() {
        let of = |range: std::ops::RangeInclusive<u64>| {
            let mut distribution = LatencyDistribution::new();
            range.for_each(|ms| distribution.record(Duration::from_millis(ms)));
            distribution
        };
        let mut merged = of(501..=1000);
        merged.merge(&of(1..=500));
        assert_eq!(merged.count(), 1000);
        assert_eq!(merged.summary(), of(1..=1000).summary());
    }

    #[test]
    fn few_latencies_and_many_give_the_same() {
        let mut rng = rexmit_core::Seed::from_u64(3).rng();
        // One distribution stays small, the other is a histogram from the start.
        let (mut few, mut many) = (LatencyDistribution::new(), LatencyDistribution::new());
        let _ = many.nanos.be_many();
        for n in 0..3 * FEW as u64 {
            let latency = Duration::from_nanos(rng.below(1 << (10 + n % 40)));
            few.record(latency);
            many.record(latency);
            if n % 100 != 0 {
                continue;
            }
            let mut merged = [few.clone(), many.clone()];
            merged.iter_mut().for_each(|it| it.merge(&few));
            for (one, other) in [(&few, &many), (&merged[0], &merged[1])] {
                assert_eq!((one.count(), one.summary()), (other.count(), other.summary()));
                assert!(one.steps().eq(other.steps()));
            }
        }
    }

    #[test]
    fn no_quantile_exceeds_the_maximum() {
        let mut distribution = LatencyDistribution::new();
        distribution.record(Duration::from_nanos(100_000_001));
        assert_eq!(distribution.quantile(0.5), Duration::from_nanos(100_000_001));
    }

    #[test]
    fn a_wait_of_hours_is_kept() {
        let mut distribution = LatencyDistribution::new();
        distribution.record(Duration::from_secs(7200));
        assert!(near(distribution.quantile(1.0), 7_200_000));
    }

    #[test]
    fn more_than_a_day_counts_as_a_day() {
        let mut distribution = LatencyDistribution::new();
        distribution.record(Duration::from_millis(1));
        distribution.record(Duration::from_secs(48 * 3600));
        assert!(near(distribution.quantile(0.5), 1));
        assert!(near(distribution.quantile(1.0), 24 * 3_600_000));
        assert_eq!(distribution.summary().unwrap().max, Duration::from_secs(48 * 3600));
    }

    #[test]
    fn the_memory_grows_with_the_largest_latency() {
        let mut distribution = LatencyDistribution::new();
        let buckets = |it: &LatencyDistribution| match &it.nanos {
            Values::Few(_) => 0,
            Values::Many(histogram) => histogram.buckets(),
        };
        for _ in 0..FEW {
            assert_eq!(buckets(&distribution), 0);
            distribution.record(Duration::from_millis(1));
        }
        distribution.record(Duration::from_millis(1));
        let small = buckets(&distribution);
        distribution.record(Duration::from_secs(48 * 3600));
        assert!(small > 0 && small < buckets(&distribution) / 2);
        // The limit in the documentation of the type, with 8 bytes per count.
        let counts = distribution.nanos.histogram().distinct_values();
        assert!(counts * 8 <= 236 << 10, "{counts}");
    }

    #[test]
    fn nothing_delivered_has_no_summary() {
        assert_eq!(LatencyDistribution::new().summary(), None);
    }

    #[test]
    fn json_is_in_milliseconds_and_reads_back() {
        let mut distribution = LatencyDistribution::new();
        distribution.record(Duration::from_micros(100_250));
        let summary = distribution.summary().unwrap();
        let json = serde_json::to_value(summary).unwrap();
        assert_eq!(json["p99.9_ms"], 100.25);
        assert_eq!(serde_json::from_value::<LatencySummary>(json).unwrap(), summary);
    }
}
