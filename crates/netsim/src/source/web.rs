//! A web client: requests files of widely varying sizes at random times.

use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

use super::SourceError;
use crate::draw::exponential;

/// A web client. File sizes have a Pareto distribution, truncated at the largest size; the times
/// between requests are exponential, whether earlier files have arrived or not.
///
/// The shape is chosen so that the mean of the truncated distribution is `mean_bytes`. The default
/// is the load of Petlund 2009 §6.2: 81 such clients cause about 5 % loss on a 10 Mbit/s link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WebClient {
    /// Smallest file, in bytes. Default 1000.
    pub min_bytes: u32,
    /// Mean size of a file, in bytes. Default 9200.
    pub mean_bytes: f64,
    /// Largest file, in bytes. Default 64,000,000.
    pub max_bytes: u32,
    /// Mean time between two requests. Default 655 ms.
    pub mean_interval: Duration,
    /// Begin of the requests; the first one is sent after an interval. Default 0.
    pub start: Instant,
    /// No request is sent from this time on. Default never.
    pub stop: Instant,
}

impl Default for WebClient {
    fn default() -> Self {
        Self {
            min_bytes: 1000,
            mean_bytes: 9200.0,
            max_bytes: 64_000_000,
            mean_interval: Duration::from_millis(655),
            start: Instant::ZERO,
            stop: Instant::FAR_FUTURE,
        }
    }
}

/// The range in which the shape is searched. Without truncation, the mean is finite only above 1.
const SHAPES: (f64, f64) = (0.01, 100.0);

impl WebClient {
    /// The requests: the time of each, and the size of the file. All randomness comes from `seed`.
    ///
    /// # Errors
    /// If the smallest file or the interval is zero, or no shape from 0.01 to 100 gives the mean.
    pub fn source(&self, seed: &Seed) -> Result<WebClientSource, SourceError> {
        if self.min_bytes == 0 {
            return Err(SourceError::ZeroSize("a file"));
        }
        if self.mean_interval.is_zero() {
            return Err(SourceError::ZeroInterval("mean interval of requests"));
        }
        let shape = self.shape()?;
        Ok(WebClientSource {
            config: *self,
            shape,
            last: self.start,
            times: seed.split("times").rng(),
            sizes: seed.split("sizes").rng(),
        })
    }

    /// The shape for which the mean of the truncated distribution is `mean_bytes`.
    fn shape(&self) -> Result<f64, SourceError> {
        let (mut low, mut high) = SHAPES;
        // The larger the shape, the smaller the mean.
        let is_range = self.min_bytes < self.max_bytes;
        if !is_range || !(self.mean_of(high)..=self.mean_of(low)).contains(&self.mean_bytes) {
            return Err(SourceError::ImpossibleMean {
                mean: self.mean_bytes,
                min: f64::from(self.min_bytes),
                max: f64::from(self.max_bytes),
            });
        }
        for _ in 0..64 {
            let middle = f64::midpoint(low, high);
            if self.mean_of(middle) > self.mean_bytes {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The mean of the Pareto distribution of this shape, given that the value is at most the
    /// largest size.
    fn mean_of(&self, shape: f64) -> f64 {
        let min = f64::from(self.min_bytes);
        let log_ratio = libm::log(f64::from(self.max_bytes) / min);
        // ∫ x^-shape over 1…ratio, which is the logarithm at shape 1.
        let exponent = 1.0 - shape;
        let integral = if exponent.abs() < 1e-9 {
            log_ratio
        } else {
            libm::expm1(exponent * log_ratio) / exponent
        };
        min * shape * integral / -libm::expm1(-shape * log_ratio)
    }

    /// The quantile `u` of the file size.
    fn quantile(&self, shape: f64, u: f64) -> f64 {
        let (min, max) = (f64::from(self.min_bytes), f64::from(self.max_bytes));
        let share_below_cap = -libm::expm1(-shape * libm::log(max / min));
        min * libm::exp(-libm::log1p(-u * share_below_cap) / shape)
    }
}

/// The requests of a [`WebClient`].
#[derive(Clone, Debug)]
pub struct WebClientSource {
    config: WebClient,
    shape: f64,
    last: Instant,
    times: Rng,
    sizes: Rng,
}

impl Iterator for WebClientSource {
    /// Time, and size of the file in bytes.
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let mean = self.config.mean_interval.as_nanos() as f64;
        self.last += exponential(&mut self.times, mean);
        let size = self.config.quantile(self.shape, self.sizes.unit()).round() as usize;
        (self.last < self.config.stop).then_some((self.last, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truncated_mean_is_the_stated_one() {
        // By the law of the distribution itself, over evenly spread quantiles.
        const COUNT: u32 = 2_000_000;
        for (min_bytes, mean_bytes, max_bytes) in
            [(1000, 9200.0, 64_000_000), (1, 15.0, 100), (100, 150.0, 1_000_000_000)]
        {
            let client = WebClient { min_bytes, mean_bytes, max_bytes, ..WebClient::default() };
            let shape = client.shape().unwrap();
            let quantile = |n| client.quantile(shape, (f64::from(n) + 0.5) / f64::from(COUNT));
            let mean = (0..COUNT).map(quantile).sum::<f64>() / f64::from(COUNT);
            assert!((mean / mean_bytes - 1.0).abs() < 0.005, "{mean} for {mean_bytes}");
            assert!(quantile(0) >= f64::from(min_bytes));
            assert!(quantile(COUNT - 1) <= f64::from(max_bytes));
        }
    }

    #[test]
    fn a_mean_out_of_reach_is_refused() {
        for mean_bytes in [999.0, 70_000_000.0, f64::NAN] {
            let client = WebClient { mean_bytes, ..WebClient::default() };
            assert!(matches!(client.shape(), Err(SourceError::ImpossibleMean { .. })));
        }
        let inverted = WebClient { max_bytes: 10, ..WebClient::default() };
        assert!(inverted.shape().is_err());
    }
}
