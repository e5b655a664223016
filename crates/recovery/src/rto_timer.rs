//! The retransmission timeout of one path with its backoff (RFC 9260 §6.3.3 E2).

use std::time::Duration;

use crate::{RtoConfig, RttEstimator};

/// The timeout that applies now: made from the round-trip time, doubled by every expiry until the
/// next sample (Karn).
#[derive(Clone, Debug)]
pub struct RtoTimer {
    rtt: RttEstimator,
    rto: Duration,
    backoffs: u32,
}

impl RtoTimer {
    /// A timer without a sample.
    #[must_use]
    pub const fn new(config: &RtoConfig) -> Self {
        Self { rtt: RttEstimator::Unmeasured, rto: config.initial, backoffs: 0 }
    }

    /// The timeout.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// The round-trip time behind it.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// How often it was doubled since the last sample.
    #[must_use]
    pub const fn backoffs(&self) -> u32 {
        self.backoffs
    }

    /// A round trip was measured: the backoff collapses.
    pub fn on_sample(&mut self, sample: Duration, config: &RtoConfig) {
        self.rtt.on_sample(sample, config);
        self.rto = self.rtt.timeout(config);
        self.backoffs = 0;
    }

    /// The timer expired: back off.
    pub fn on_timeout(&mut self, config: &RtoConfig) {
        self.rto = (self.rto * 2).min(config.max);
        self.backoffs += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_its_maximum_and_collapses_with_a_sample() {
        let config = RtoConfig::default();
        let mut timer = RtoTimer::new(&config);
        let seen: Vec<u64> = (0..8)
            .map(|_| {
                let rto = timer.rto().as_secs();
                timer.on_timeout(&config);
                rto
            })
            .collect();
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        timer.on_sample(Duration::from_millis(100), &config);
        assert_eq!((timer.rto(), timer.backoffs()), (Duration::from_secs(1), 0));
    }
}
