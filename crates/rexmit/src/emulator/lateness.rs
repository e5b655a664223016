//! How late packets were sent, as the emulator measures it.

use std::time::Duration;

use hdrhistogram::Histogram;
use rexmit_core::Instant;
#[cfg(feature = "serde")]
use serde::Serialize;

/// The largest lateness that is recorded; larger values are counted as this one.
const LONGEST: Duration = Duration::from_secs(60);

/// The time from when packets were due until they were sent; in JSON `p50_ms`, `p99_ms`, `p99.9_ms` and
/// `max_ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Lateness {
    /// Packets measured.
    pub count: u64,
    /// The median.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "p50_ms", serialize_with = "rexmit_core::millis::serialize")
    )]
    pub p50: Duration,
    /// The 99th percentile.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "p99_ms", serialize_with = "rexmit_core::millis::serialize")
    )]
    pub p99: Duration,
    /// The 99.9th percentile.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "p99.9_ms", serialize_with = "rexmit_core::millis::serialize")
    )]
    pub p999: Duration,
    /// The maximum.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "max_ms", serialize_with = "rexmit_core::millis::serialize")
    )]
    pub max: Duration,
}

/// The distribution behind [`Lateness`], to three significant digits.
#[derive(Debug)]
pub(super) struct LatenessHistogram(Histogram<u64>);

impl Default for LatenessHistogram {
    fn default() -> Self {
        let highest = LONGEST.as_nanos() as u64;
        // The bounds are constants that the histogram accepts; the tests would not start if not.
        Self(Histogram::new_with_max(highest, 3).expect("constant bounds"))
    }
}

impl LatenessHistogram {
    pub(super) fn record(&mut self, due: Instant, sent: Instant) {
        self.0.saturating_record((sent - due).as_nanos() as u64);
    }

    pub(super) fn snapshot(&self) -> Lateness {
        let at = |quantile| Duration::from_nanos(self.0.value_at_quantile(quantile));
        Lateness {
            count: self.0.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Duration::from_nanos(self.0.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut histogram = LatenessHistogram::default();
        let due = Instant::from_millis(5);
        for micros in 1..=1000 {
            histogram.record(due, due + Duration::from_micros(micros));
        }
        let lateness = histogram.snapshot();
        assert_eq!(lateness.count, 1000);
        for (value, micros) in [(lateness.p50, 500), (lateness.p99, 990), (lateness.max, 1000)] {
            let off = value.abs_diff(Duration::from_micros(micros));
            assert!(off <= Duration::from_micros(1), "{value:?} for {micros} us");
        }
        histogram.record(due, due + Duration::from_secs(3600));
        assert!(histogram.snapshot().max >= LONGEST);
    }
}
