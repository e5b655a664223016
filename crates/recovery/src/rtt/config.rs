//! The settings of the retransmission timer.

use std::time::Duration;

use rexmit_core::{config, words};
use serde::{Deserialize, Serialize};

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
