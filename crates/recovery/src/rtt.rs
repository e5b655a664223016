//! The round-trip time of a path, the retransmission timeout made from it, and T3-rtx.

#[cfg(test)]
mod tests;

use rexmit_core::{Instant, config, words};
use serde::{Deserialize, Serialize};
use std::time::Duration;

config! {
    const
    /// How the retransmission timeout is made (RFC 9260 §6.3.1, §16; RFC 6298 §2).
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct RtoConfig {
        /// RTO.Initial: the timeout before the first measurement.
        #[serde(with = "words::duration")]
        pub initial: Duration,
        /// RTO.Min: the lower bound.
        #[serde(with = "words::duration")]
        pub min: Duration,
        /// RTO.Max: the upper bound, also of the backoff.
        #[serde(with = "words::duration")]
        pub max: Duration,
        /// 1 / RTO.Alpha: the weight of the old smoothed time against a new sample.
        pub alpha_inverse: u32,
        /// 1 / RTO.Beta: the same for the variation.
        pub beta_inverse: u32,
        /// G: the variation used where a measured one would be zero.
        #[serde(with = "words::duration")]
        pub granularity: Duration,
        /// The lower bound of 4 · RTTVAR in the timeout: G in RFC 6298 §2.3, 200 ms in Linux, zero in
        /// RFC 9260.
        #[serde(with = "words::duration")]
        pub min_variation: Duration,
        /// Which packet of several that an ACK acknowledges makes the sample.
        pub sample: RttSample,
    }
}

impl RtoConfig {
    /// RFC 9260 §16.
    pub const RFC9260: Self = Self {
        initial: Duration::from_secs(1),
        min: Duration::from_secs(1),
        max: Duration::from_secs(60),
        alpha_inverse: 8,
        beta_inverse: 4,
        granularity: Duration::from_millis(1),
        min_variation: Duration::ZERO,
        sample: RttSample::Newest,
    };

    /// lksctp and FreeBSD 6.2: RTO.Initial is that of RFC 2960.
    pub const OF_2006: Self =
        Self { initial: Duration::from_secs(3), sample: RttSample::Marked, ..Self::RFC9260 };
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self::RFC9260
    }
}

/// Which packet gives the RTT sample, where an ACK acknowledges several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RttSample {
    /// The one sent last: the sample is free of the receiver's ACK delay.
    #[default]
    Newest,
    /// The first one that was sent after the sample before (Linux, FreeBSD): it is marked when it is sent, and its
    /// sample includes the ACK delay, or a lost ACK.
    Marked,
    /// The one sent last, even if it was retransmitted, and then from its last transmission: without Karn's
    /// algorithm, which RFC 9260 §6.3.1 C5 requires. The ACK may be of an earlier transmission. For comparison only
    /// (Petlund 2009 §8).
    WithoutKarn,
}

/// What restarts a running retransmission timer, besides an acknowledgement of the earliest unit
/// outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimerRestart {
    /// Sending that unit again (RFC 9260 §6.1, §6.3.2 R1; RFC 6675 §6 allows it).
    #[default]
    OnResend,
    /// Nothing (RFC 6298 §5.1 to §5.3); in a recovery without SACK the first partial
    /// acknowledgement does, the later ones do not (RFC 6582 §3.2 step 3).
    OnAdvance,
}

/// Acknowledgements that are looked at.
const RECENT: u32 = 16;
/// Fewer of them say nothing.
const LEAST: u8 = 4;

/// How many packets the latest acknowledgements of a thin stream acknowledged (RFC 9260 §6.2, RFC 9293 §3.8.6.3).
///
/// A receiver that delays acknowledgements answers every second packet. If it does not, an acknowledgement of
/// two packets follows one that was lost, which is the exception.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckDelay {
    /// A bit per acknowledgement, the latest lowest: whether it was of several packets.
    of_several: u16,
    /// Acknowledgements so far, at most [`RECENT`].
    seen: u8,
}

impl AckDelay {
    /// Before the first acknowledgement.
    const NONE: Self = Self { of_several: 0, seen: 0 };

    /// An acknowledgement without gaps acknowledged several packets, or one.
    pub(crate) fn on_ack(&mut self, is_of_several: bool) {
        self.of_several = self.of_several << 1 | u16::from(is_of_several);
        self.seen = (self.seen + 1).min(RECENT as u8);
    }

    /// Whether the receiver is taken to delay acknowledgements: most of them are of several packets.
    pub(crate) const fn is_usual(&self) -> bool {
        self.seen >= LEAST && 2 * self.of_several.count_ones() > self.seen as u32
    }
}

/// The estimate of a path's round-trip time (RFC 9260 §6.3.1 C1–C3, G1).
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

/// The timeout before data if the setup had to be retransmitted (RFC 6298 §5.7).
const AFTER_SETUP_LOSS: Duration = Duration::from_secs(3);

/// The timeout that applies now: made from the round-trip time, doubled by every expiry until the
/// next sample (Karn; RFC 9260 §6.3.3 E2, RFC 6298 §5.5).
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

    /// Called when a round trip was measured: updates the estimate and ends the backoff.
    pub fn on_sample(&mut self, sample: Duration, config: &RtoConfig) {
        self.rtt.on_sample(sample, config);
        self.forget_backoff(config);
    }

    /// The first round trip was measured after a spurious timeout: the estimate is `rtt`, and the
    /// backoff collapses (RFC 4015 §3.1 step 11).
    pub(crate) fn restart(&mut self, rtt: RttEstimator, config: &RtoConfig) {
        self.rtt = rtt;
        self.forget_backoff(config);
    }

    /// Called when the setup is done, and had to be retransmitted: without a sample the first timeout over
    /// data is a long one, but no longer the backoff of the setup (RFC 6298 §5.7).
    pub fn on_setup_lost(&mut self, config: &RtoConfig) {
        if self.rtt == RttEstimator::Unmeasured {
            self.rto = config.initial.max(AFTER_SETUP_LOSS).min(config.max);
            self.backoffs = 0;
        }
    }

    /// What it was doubled for was no loss: the backoff collapses without a sample.
    pub fn forget_backoff(&mut self, config: &RtoConfig) {
        self.rto = self.rtt.timeout(config);
        self.backoffs = 0;
    }

    /// Called when the timer expired: doubles the timeout (RFC 6298 §5.5).
    pub fn on_timeout(&mut self, config: &RtoConfig) {
        self.rto = (self.rto * 2).min(config.max);
        self.backoffs += 1;
    }
}

/// T3-rtx of a path: when it expires, thin or not (RFC 9260 §6.3.2, Petlund 2009 §5.2), and its latest expiries.
///
/// A running timer keeps both deadlines, and which one counts is decided when it is looked at: a stream that
/// becomes thick leaves the mechanisms at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct T3 {
    running: Option<Running>,
    /// The earliest unit outstanding when the timer last expired over a loss; `u64::MAX` before.
    expired_over: u64,
    /// Expiries over that unit that did not double the timeout.
    linear: u8,
}

/// A running timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Running {
    pub(crate) started_at: Instant,
    /// When it expires.
    pub(crate) standard: Instant,
    /// When it expires while the stream of the earliest unit outstanding is thin.
    pub(crate) thin: Instant,
}

impl Default for T3 {
    fn default() -> Self {
        Self { running: None, expired_over: u64::MAX, linear: 0 }
    }
}

impl Running {
    /// When it expires, if that is the same thin or thick.
    #[inline]
    pub(crate) fn only(&self) -> Option<Instant> {
        (self.standard == self.thin).then_some(self.standard)
    }
}

impl T3 {
    #[inline]
    pub(crate) const fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    #[inline]
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) const fn start(&mut self, running: Running) {
        self.running = Some(running);
    }

    pub(crate) const fn stop(&mut self) {
        self.running = None;
    }

    /// Whether the timer expired before with `earliest` as the earliest unit outstanding.
    pub(crate) const fn has_expired_over(&self, earliest: u64) -> bool {
        self.expired_over == earliest
    }

    /// Called when the timer expired over a loss, with `earliest` as the earliest unit outstanding.
    pub(crate) const fn on_expired_over(&mut self, earliest: u64) {
        self.expired_over = earliest;
    }

    /// Whether an expiry over `earliest` does not double the timeout: while thin, up to `bound` for the same
    /// unit, so that a dead path is not flooded (Petlund 2009 §5.3). Counts it.
    pub(crate) const fn take_linear(&mut self, earliest: u64, is_thin: bool, bound: u8) -> bool {
        if bound == 0 {
            return false;
        }
        if !self.has_expired_over(earliest) {
            self.linear = 0;
        }
        let is_linear = is_thin && self.linear < bound;
        self.linear += is_linear as u8;
        is_linear
    }

    /// The path leads another way: its expiries are forgotten.
    pub(crate) fn forget_expiries(&mut self) {
        *self = Self { running: self.running, ..Self::default() };
    }
}
