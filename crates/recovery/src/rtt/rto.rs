//! The retransmission timeout of one path with its backoff (RFC 9260 §6.3.3 E2, RFC 6298 §5.5).

use std::time::Duration;

use super::ack_delay::AckDelay;
use super::{RtoConfig, RttEstimator};

/// The timeout before data if the setup had to be retransmitted (RFC 6298 §5.7).
const AFTER_SETUP_LOSS: Duration = Duration::from_secs(3);

/// The timeout that applies now: made from the round-trip time, doubled by every expiry until the
/// next sample (Karn).
#[derive(Clone, Debug)]
pub struct RtoTimer {
    rtt: RttEstimator,
    rto: Duration,
    backoffs: u32,
    /// Whether the receiver delays ACKs.
    pub(crate) ack_delay: AckDelay,
}

impl RtoTimer {
    /// A timer without a sample.
    #[must_use]
    pub const fn new(config: &RtoConfig) -> Self {
        let rtt = RttEstimator::Unmeasured;
        Self { rtt, rto: config.initial, backoffs: 0, ack_delay: AckDelay::NONE }
    }

    /// The timeout.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// The timeout with `min` for RTO.Min (Petlund 2009 §5.2).
    #[must_use]
    pub fn rto_within(&self, min: Duration, config: &RtoConfig) -> Duration {
        if self.rtt.srtt().is_none() {
            return self.rto;
        }
        let base = self.rtt.timeout_within(config, min);
        if self.backoffs == 0 {
            return base;
        }
        base.saturating_mul(1 << self.backoffs.min(31)).min(config.max)
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

    /// The first round trip measured after a spurious timeout: SRTT and RTTVAR are these, and the
    /// backoff collapses (RFC 4015 §3.1 step 11).
    pub(crate) fn restart(
        &mut self,
        sample: Duration,
        rtt: (Duration, Duration),
        config: &RtoConfig,
    ) {
        let (srtt, rttvar) = rtt;
        self.rtt = RttEstimator::Measured { srtt, rttvar, latest: sample };
        self.rto = self.rtt.timeout(config);
        self.backoffs = 0;
    }

    /// The setup is done, and had to be retransmitted: without a sample the first timeout over data is
    /// a long one, but no longer the backoff of the setup (RFC 6298 §5.7).
    pub fn on_setup_lost(&mut self, config: &RtoConfig) {
        if self.rtt == RttEstimator::Unmeasured {
            self.rto = config.initial.max(AFTER_SETUP_LOSS).min(config.max);
            self.backoffs = 0;
        }
    }

    /// What it was doubled for was no loss: the backoff collapses without a sample.
    pub fn forget_backoff(&mut self, config: &RtoConfig) {
        self.rto = match self.rtt {
            RttEstimator::Unmeasured => config.initial,
            _ => self.rtt.timeout(config),
        };
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

    /// Petlund 2009 §5.2: only the lower bound differs; the backoff and RTO.Max are the same.
    #[test]
    fn another_lower_bound_changes_nothing_else() {
        let config = RtoConfig::default();
        let min = Duration::from_millis(200);
        let mut timer = RtoTimer::new(&config);
        assert_eq!(timer.rto_within(min, &config), config.initial);
        timer.on_timeout(&config);
        assert_eq!(timer.rto_within(min, &config), 2 * config.initial);
        for (sample, base) in [(20, 200), (100, 300), (600, 1800)] {
            let mut timer = RtoTimer::new(&config);
            timer.on_sample(Duration::from_millis(sample), &config);
            let within: Vec<_> = (0..9)
                .map(|_| {
                    let within = timer.rto_within(min, &config).as_millis() as u64;
                    timer.on_timeout(&config);
                    within
                })
                .collect();
            let doubled: Vec<_> = (0..9).map(|n| (base << n).min(60_000)).collect();
            assert_eq!(within, doubled, "after a sample of {sample} ms");
            let standard = RtoTimer { backoffs: 3, ..timer.clone() };
            assert_eq!(
                standard.rto_within(config.min, &config).as_millis() as u64,
                8 * base.max(1000)
            );
        }
    }
}
