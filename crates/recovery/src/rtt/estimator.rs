//! The smoothed round-trip time and its variation (RFC 9260 §6.3.1 C1–C3, G1).

use std::time::Duration;

use super::RtoConfig;

/// The estimate of a path's round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RttEstimator {
    /// No sample yet.
    #[default]
    Unmeasured,
    /// At least one sample.
    Measured {
        /// SRTT.
        srtt: Duration,
        /// RTTVAR.
        rttvar: Duration,
        /// The newest sample.
        latest: Duration,
    },
}

impl RttEstimator {
    /// Takes a sample in.
    pub fn on_sample(&mut self, sample: Duration, config: &RtoConfig) {
        let (srtt, rttvar) = match *self {
            Self::Unmeasured => (sample, sample / 2),
            Self::Measured { srtt, rttvar, .. } => (
                blend(srtt, sample, config.alpha_inverse),
                blend(rttvar, srtt.abs_diff(sample), config.beta_inverse),
            ),
        };
        let rttvar = if rttvar.is_zero() { config.granularity } else { rttvar };
        *self = Self::Measured { srtt, rttvar, latest: sample };
    }

    /// SRTT, if measured.
    #[must_use]
    pub const fn srtt(&self) -> Option<Duration> {
        match self {
            Self::Unmeasured => None,
            Self::Measured { srtt, .. } => Some(*srtt),
        }
    }

    /// SRTT and RTTVAR, if measured.
    pub(crate) const fn estimate(&self) -> Option<(Duration, Duration)> {
        match *self {
            Self::Unmeasured => None,
            Self::Measured { srtt, rttvar, .. } => Some((srtt, rttvar)),
        }
    }

    /// SRTT + max(`min_variation`, 4 · RTTVAR) within the bounds, or RTO.Initial without a sample.
    #[must_use]
    pub fn timeout(&self, config: &RtoConfig) -> Duration {
        self.timeout_within(config, config.min)
    }

    /// The same with `min` for RTO.Min.
    #[must_use]
    #[inline]
    pub fn timeout_within(&self, config: &RtoConfig, min: Duration) -> Duration {
        match *self {
            Self::Unmeasured => config.initial,
            Self::Measured { srtt, rttvar, .. } => {
                (srtt + config.min_variation.max(4 * rttvar)).max(min).min(config.max)
            }
        }
    }
}

/// `old · (1 − 1/n) + new / n`, in nanoseconds.
fn blend(old: Duration, new: Duration, n: u32) -> Duration {
    old - old / n + new / n
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn unbounded() -> RtoConfig {
        RtoConfig { min: Duration::ZERO, ..RtoConfig::default() }
    }

    #[test]
    fn first_sample_sets_srtt_and_half_of_it_as_variation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(&unbounded()), MS(1000));
        rtt.on_sample(MS(100), &unbounded());
        assert_eq!(rtt.srtt(), Some(MS(100)));
        assert_eq!(rtt.timeout(&unbounded()), MS(100 + 4 * 50));
    }

    #[test]
    fn later_samples_are_weighted_by_alpha_and_beta() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(MS(80), &unbounded());
        rtt.on_sample(MS(160), &unbounded());
        // RTTVAR = 3/4·40 + 1/4·|80−160| = 50; SRTT = 7/8·80 + 1/8·160 = 90.
        assert_eq!(rtt.srtt(), Some(MS(90)));
        assert_eq!(rtt.timeout(&unbounded()), MS(90 + 4 * 50));
    }

    #[test]
    fn timeout_respects_its_bounds_and_variation_is_never_zero() {
        let config = RtoConfig::default();
        let mut rtt = RttEstimator::default();
        rtt.on_sample(MS(10), &config);
        assert_eq!(rtt.timeout(&config), MS(1000));
        rtt.on_sample(Duration::from_secs(3600), &config);
        assert_eq!(rtt.timeout(&config), MS(60_000));
        let mut still = RttEstimator::default();
        still.on_sample(Duration::ZERO, &unbounded());
        assert_eq!(still.timeout(&unbounded()), 4 * MS(1));
    }
}
