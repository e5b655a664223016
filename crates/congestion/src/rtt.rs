//! The round-trip time of a path, the retransmission timeout made from it, and T3-rtx.

#[cfg(test)]
mod tests;

use rexmit_core::{Instant, config};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::num::NonZeroU8;
use std::time::Duration;

config! {
    const
    /// The parameters of the retransmission timeout (RFC 9260 §6.3.1, §16; RFC 6298 §2). The default is
    /// [`RFC9260`](Self::RFC9260).
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct RtoConfig {
        /// RTO.Initial: the timeout before the first RTT sample (RFC 9260 §16: 1 s).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub initial: Duration,
        /// RTO.Min: the lower bound of the timeout (RFC 9260 §16: 1 s).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub min: Duration,
        /// RTO.Max: the upper bound of the timeout, also when it backs off (RFC 9260 §16: 60 s).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub max: Duration,
        /// 1 / RTO.Alpha: a new sample has the weight 1 / `alpha_inverse` in SRTT (RFC 9260 §16: 8).
        pub alpha_inverse: u32,
        /// 1 / RTO.Beta: a new deviation has the weight 1 / `beta_inverse` in RTTVAR (RFC 9260 §16: 4).
        pub beta_inverse: u32,
        /// G, the clock granularity: replaces an RTTVAR of zero (RFC 9260 §6.3.1 G1).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub granularity: Duration,
        /// The lower bound of 4 · RTTVAR in the timeout: G in RFC 6298 §2.3, 200 ms in Linux, zero in
        /// RFC 9260.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub min_variation: Duration,
        /// Which packet of several that an ACK acknowledges makes the sample.
        pub sample: RttSample,
    }
}

impl RtoConfig {
    /// The values that RFC 9260 §16 recommends.
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

    /// The values of lksctp and FreeBSD 6.2: RTO.Initial is 3 s (RFC 2960), and [`RttSample::Marked`].
    pub const OF_2006: Self =
        Self { initial: Duration::from_secs(3), sample: RttSample::Marked, ..Self::RFC9260 };
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self::RFC9260
    }
}

/// Which packet gives the RTT sample, where an ACK acknowledges several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RttSample {
    /// The one sent last: the sample is free of the receiver's ACK delay.
    #[default]
    Newest,
    /// The first one sent after the last sample was taken (Linux, FreeBSD). The sample includes the ACK
    /// delay, and the time until a later ACK if its own was lost.
    Marked,
    /// The one sent last, measured from its last transmission even if it was retransmitted: without Karn's
    /// algorithm, which RFC 9260 §6.3.1 C5 requires. The ACK may be for an earlier transmission. For
    /// comparison only (Petlund 2009 §8).
    WithoutKarn,
}

/// Which events restart a running retransmission timer, besides an ACK of the earliest unit outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TimerRestart {
    /// Retransmission of the earliest unit outstanding (RFC 9260 §6.1, §6.3.2 R1; RFC 6675 §6 allows it).
    #[default]
    OnResend,
    /// No other event (RFC 6298 §5.1 to §5.3). In a recovery without SACK, only the first partial ACK
    /// restarts the timer (RFC 6582 §3.2 step 3).
    OnAdvance,
}

/// The echo of a timestamp (RFC 7323).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// When the packet was sent whose timestamp is echoed, rounded down to a tick of the timestamp clock.
    pub sent_at: Instant,
    /// The length of that tick.
    pub tick: Duration,
}

/// The number of ACKs that are remembered.
const RECENT: u32 = 16;
/// The least number of ACKs from which anything is concluded.
const LEAST: u8 = 4;

/// Whether the receiver of a thin stream delays ACKs, from the number of packets that the latest ACKs covered
/// (RFC 9260 §6.2, RFC 9293 §3.8.6.3).
///
/// A receiver that delays ACKs acknowledges every second packet. With one that does not, an ACK covers two
/// packets only if the ACK before it was lost.
#[derive(Clone, Copy, Debug)]
pub struct AckDelay {
    /// One bit per ACK, the latest in the lowest: whether it covered several packets.
    of_several: u16,
    /// Acknowledgements so far, at most [`RECENT`].
    seen: u8,
}

impl AckDelay {
    /// The state before the first ACK.
    const NONE: Self = Self { of_several: 0, seen: 0 };

    /// Called for an ACK without gaps; `is_of_several` if it covered more than one packet.
    pub fn on_ack(&mut self, is_of_several: bool) {
        self.of_several = self.of_several << 1 | u16::from(is_of_several);
        self.seen = (self.seen + 1).min(RECENT as u8);
    }

    /// Whether the receiver is assumed to delay ACKs: most of the remembered ones covered several packets.
    pub const fn is_usual(&self) -> bool {
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
    /// Updates the estimate with `sample`.
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

    /// The retransmission timeout: SRTT + max(`min_variation`, 4 · RTTVAR) within the bounds of `config`, or
    /// RTO.Initial without a sample. No backoff.
    #[must_use]
    pub fn timeout(&self, config: &RtoConfig) -> Duration {
        self.timeout_within(config, config.min)
    }

    /// As [`timeout`](Self::timeout), with `min` in place of RTO.Min.
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
pub fn blend(old: Duration, new: Duration, n: u32) -> Duration {
    old - old / n + new / n
}

/// The timeout for data if the handshake had to be retransmitted (RFC 6298 §5.7).
const AFTER_SETUP_LOSS: Duration = Duration::from_secs(3);

/// The current retransmission timeout: computed from the RTT estimate, and doubled by every expiry until the
/// next sample (Karn; RFC 9260 §6.3.3 E2, RFC 6298 §5.5).
#[derive(Clone, Debug)]
pub struct RtoTimer {
    rtt: RttEstimator,
    rto: Duration,
    backoffs: u32,
    /// Whether the receiver delays ACKs.
    pub ack_delay: AckDelay,
}

impl RtoTimer {
    /// A timer without a sample.
    #[must_use]
    pub const fn new(config: &RtoConfig) -> Self {
        let rtt = RttEstimator::Unmeasured;
        Self { rtt, rto: config.initial, backoffs: 0, ack_delay: AckDelay::NONE }
    }

    /// The current timeout, with its backoff.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// The current timeout with `min` in place of RTO.Min (Petlund 2009 §5.2).
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

    /// The RTT estimate.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// How often the timeout was doubled since the last sample.
    #[must_use]
    pub const fn backoffs(&self) -> u32 {
        self.backoffs
    }

    /// Called when a round trip was measured: updates the estimate and ends the backoff.
    pub fn on_sample(&mut self, sample: Duration, config: &RtoConfig) {
        self.rtt.on_sample(sample, config);
        self.forget_backoff(config);
    }

    /// Restarts the estimate at `rtt`, and resets the backoff, at the first sample after a spurious timeout
    /// (RFC 4015 §3.1 step 11).
    pub fn restart(&mut self, rtt: RttEstimator, config: &RtoConfig) {
        self.rtt = rtt;
        self.forget_backoff(config);
    }

    /// Called when the handshake is complete, and had to be retransmitted: without a sample the first timeout
    /// for data is 3 s, and no longer has the backoff of the handshake (RFC 6298 §5.7).
    pub fn on_setup_lost(&mut self, config: &RtoConfig) {
        if self.rtt == RttEstimator::Unmeasured {
            self.rto = config.initial.max(AFTER_SETUP_LOSS).min(config.max);
            self.backoffs = 0;
        }
    }

    /// Resets the backoff without a sample, because the expiries were not for losses.
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
/// A running timer has both deadlines; which one applies is decided when it is checked, so that a stream that
/// becomes thick has the standard deadline at once.
#[derive(Clone, Copy, Debug)]
pub struct T3 {
    running: Option<RunningT3>,
    /// The earliest unit outstanding when the timer last expired over a loss; `u64::MAX` before.
    expired_over: u64,
    /// The number of expiries over that unit that did not double the timeout.
    linear: u8,
}

/// A running T3-rtx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunningT3 {
    /// When the timer was started.
    pub started_at: Instant,
    /// When the timer expires while the stream is not thin.
    pub standard: Instant,
    /// When the timer expires while the stream of the earliest unit outstanding is thin.
    pub thin: Instant,
}

impl Default for T3 {
    fn default() -> Self {
        Self { running: None, expired_over: u64::MAX, linear: 0 }
    }
}

impl RunningT3 {
    /// When the timer expires, if thin and standard deadline are the same.
    #[inline]
    pub fn only(&self) -> Option<Instant> {
        (self.standard == self.thin).then_some(self.standard)
    }
}

impl T3 {
    /// The deadlines of the timer, while it runs.
    #[must_use]
    #[inline]
    pub const fn running(&self) -> Option<&RunningT3> {
        self.running.as_ref()
    }

    /// Whether the timer runs.
    #[must_use]
    #[inline]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts it, or restarts it.
    pub const fn start(&mut self, running: RunningT3) {
        self.running = Some(running);
    }

    /// Stops it.
    pub const fn stop(&mut self) {
        self.running = None;
    }

    /// Whether its latest expiry over a loss was for `earliest`, the earliest unit outstanding.
    #[must_use]
    pub const fn has_expired_over(&self, earliest: u64) -> bool {
        self.expired_over == earliest
    }

    /// Called when it expired over a loss, with `earliest` the earliest unit outstanding.
    pub const fn on_expired_over(&mut self, earliest: u64) {
        self.expired_over = earliest;
    }

    /// Whether an expiry over `earliest` leaves the timeout as it is, and counts it if so: while thin, up to
    /// `bound` expiries for the same unit do, so that a dead path is not flooded (Petlund 2009 §5.3).
    pub const fn take_linear(&mut self, earliest: u64, is_thin: bool, bound: NonZeroU8) -> bool {
        if !self.has_expired_over(earliest) {
            self.linear = 0;
        }
        let is_linear = is_thin && self.linear < bound.get();
        self.linear += is_linear as u8;
        is_linear
    }

    /// Forgets the expiries, because the path takes another route.
    pub fn forget_expiries(&mut self) {
        *self = Self { running: self.running, ..Self::default() };
    }
}
