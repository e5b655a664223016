//! Random delays: a mean and a distribution.

use std::time::Duration;

use rexmit_core::Rng;
use serde::{Deserialize, Serialize};

use crate::draw::{standard_exponential, standard_normal};
use crate::units;

/// A delay: its mean and its variation from packet to packet. Never below zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delay {
    /// The mean, before negative values are set to zero.
    #[serde(with = "units::duration")]
    pub mean: Duration,
    /// The variation around the mean.
    pub jitter: Jitter,
}

/// How a [`Delay`] varies around its mean.
///
/// The names are netem's. Delays of different packets are independent. The normal and Pareto
/// distributions are computed, whereas netem's tables are truncated at four standard deviations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// No variation.
    #[default]
    Constant,
    /// Uniform between the mean minus and the mean plus this value.
    Uniform(#[serde(with = "units::duration")] Duration),
    /// Normal with this standard deviation.
    Normal(#[serde(with = "units::duration")] Duration),
    /// Pareto of shape 3, shifted to mean zero, with this standard deviation: at most 0.58 standard
    /// deviations below the mean, with a long tail above.
    Pareto(#[serde(with = "units::duration")] Duration),
    /// Exponential with this standard deviation, shifted to the mean: at most one standard
    /// deviation below the mean, so that a deviation equal to the mean gives a minimum of zero. Not
    /// in netem.
    Exponential(#[serde(with = "units::duration")] Duration),
}

impl Delay {
    /// A constant delay.
    #[must_use]
    pub const fn constant(mean: Duration) -> Self {
        Self { mean, jitter: Jitter::Constant }
    }

    /// Whether the delay is zero for every packet.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.mean.is_zero() && self.jitter.spread().is_zero()
    }

    /// A lower bound of all delays.
    pub(crate) fn least(&self) -> Duration {
        match self.jitter {
            Jitter::Constant => self.mean,
            // A nanosecond for rounding.
            Jitter::Uniform(spread) => self.mean.saturating_sub(spread + Duration::from_nanos(1)),
            Jitter::Normal(_) | Jitter::Pareto(_) | Jitter::Exponential(_) => Duration::ZERO,
        }
    }

    /// A random delay. A constant delay uses no random number.
    #[must_use]
    pub fn sample(&self, rng: &mut Rng) -> Duration {
        let deviations = match self.jitter {
            Jitter::Constant => return self.mean,
            Jitter::Uniform(_) => 2.0 * rng.unit() - 1.0,
            Jitter::Normal(_) => standard_normal(rng),
            Jitter::Pareto(_) => standard_pareto(rng),
            Jitter::Exponential(_) => standard_exponential(rng) - 1.0,
        };
        let nanos = nanos(self.mean) + deviations * nanos(self.jitter.spread());
        Duration::from_nanos(nanos.max(0.0).round() as u64)
    }
}

impl Jitter {
    /// The half width or standard deviation; zero for a constant delay.
    #[must_use]
    pub const fn spread(&self) -> Duration {
        match *self {
            Self::Constant => Duration::ZERO,
            Self::Uniform(spread)
            | Self::Normal(spread)
            | Self::Pareto(spread)
            | Self::Exponential(spread) => spread,
        }
    }
}

fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

fn standard_pareto(rng: &mut Rng) -> f64 {
    // Shape 3 and minimum 1: mean 3/2, variance 3/4.
    let value = 1.0 / libm::cbrt(1.0 - rng.unit());
    (value - 1.5) / 0.75_f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_core::Seed;

    const MEAN: Duration = Duration::from_millis(50);
    const SPREAD: Duration = Duration::from_millis(5);

    fn draw(jitter: Jitter, count: usize) -> Vec<f64> {
        let mut rng = Seed::from_u64(3).rng();
        let delay = Delay { mean: MEAN, jitter };
        (0..count).map(|_| delay.sample(&mut rng).as_secs_f64() * 1e3).collect()
    }

    fn mean_and_deviation(samples: &[f64]) -> (f64, f64) {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }

    #[test]
    fn each_distribution_has_its_mean_and_deviation() {
        // The variance of the Pareto's sample deviation is infinite, hence its wide margin.
        for (jitter, deviation, margin) in [
            (Jitter::Constant, 0.0, 0.0),
            (Jitter::Uniform(SPREAD), 5.0 / 3_f64.sqrt(), 0.05),
            (Jitter::Normal(SPREAD), 5.0, 0.05),
            (Jitter::Pareto(SPREAD), 5.0, 0.5),
            (Jitter::Exponential(SPREAD), 5.0, 0.05),
        ] {
            let (mean, sampled) = mean_and_deviation(&draw(jitter, 200_000));
            assert!((mean - 50.0).abs() < 0.06, "{jitter:?}: mean {mean}");
            assert!((sampled - deviation).abs() <= margin, "{jitter:?}: deviation {sampled}");
        }
    }

    #[test]
    fn bounded_distributions_keep_their_bounds() {
        let uniform = draw(Jitter::Uniform(SPREAD), 100_000);
        assert!(uniform.iter().all(|x| (45.0..=55.0).contains(x)));
        let least = 50.0 - 5.0 * 0.5 / 0.75_f64.sqrt();
        assert!(draw(Jitter::Pareto(SPREAD), 100_000).iter().all(|&x| x >= least - 1e-6));
        let exponential = draw(Jitter::Exponential(SPREAD), 100_000);
        assert!(exponential.iter().all(|&x| x >= 45.0 - 1e-6));
        // Half of it lies below ln 2 of its spread.
        let below = exponential.iter().filter(|&&x| x < 45.0 + 5.0 * 2_f64.ln()).count();
        assert!((49_000..51_000).contains(&below), "{below}");
        assert!(draw(Jitter::Normal(MEAN * 2), 10_000).iter().all(|&x| x >= 0.0));
        assert!(draw(Jitter::Normal(MEAN * 2), 10_000).contains(&0.0));
    }
}
