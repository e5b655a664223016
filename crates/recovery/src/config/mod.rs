//! A recovery configuration is a plain value: one field per mechanism, and named profiles that are
//! values of it.

mod fields;
mod profiles;

use std::time::Duration;

use rexmit_core::words;
use serde::{Deserialize, Serialize};

use crate::{
    CmtConfig, CongestionControl, Coupling, LossDetection, Reordering, RetransmissionDestination,
    SpuriousConfig, ThinConfig, TimerRestart,
};
pub use fields::Field;
pub use profiles::{PROFILES, TCP_PROFILES};

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
}

/// What a sender does about loss. The default is the profile `rfc9260`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryConfig {
    /// The retransmission timeout.
    pub rto: RtoConfig,
    /// What restarts the retransmission timer.
    pub timer_restart: TimerRestart,
    /// How acknowledgements tell a loss.
    pub loss_detection: LossDetection,
    /// Missing reports that make a loss (RFC 9260 §7.2.4: 3); also DupThresh, the acknowledged
    /// units above a hole, or the duplicate acknowledgements, that do (RFC 6675 §2, RFC 5681 §3.2:
    /// 3).
    pub missing_reports: u8,
    /// How much reordering is borne before that: `missing_reports` is the least where it varies.
    pub reordering: Reordering,
    /// The first two duplicate acknowledgements let a new unit leave each, beyond the window
    /// (RFC 3042 §2). Only for a peer without SACK: with a scoreboard what is acknowledged above a
    /// hole has left the flight, so the window lets a new unit leave for it in any case
    /// (RFC 6675 §5 step 3).
    pub limited_transmit: bool,
    /// How the congestion window grows and shrinks.
    pub congestion: CongestionControl,
    /// Max.Burst: data packets sent per opportunity; 0 is unlimited (RFC 9260 §6.1 D).
    pub max_burst: u8,
    /// Initial window in packets at most (RFC 9260 §7.2.1 and RFC 3390 §1: 4; RFC 6928 §2: 10).
    pub initial_window_packets: u32,
    /// Initial window in bytes at most, but two packets at least (RFC 9260 §7.2.1: 4404;
    /// RFC 3390 §1: 4380; RFC 6928 §2: 14600).
    pub initial_window_bytes: u32,
    /// After a timeout only one packet is in flight until something is acknowledged
    /// (RFC 9260 §7.2.1).
    pub single_packet_after_timeout: bool,
    /// A retransmission takes along other outstanding units that fit, though they are not judged
    /// lost (Petlund 2009 §3: the behaviour of lksctp).
    pub bundle_outstanding: bool,
    /// Early Fast Retransmit of FreeBSD: while cwnd exceeds what is in flight, a unit that is not
    /// acknowledged SRTT + RTTVAR after its first sending leaves again; cwnd falls by a packet
    /// (Petlund 2009 §2).
    pub early_retransmit: bool,
    /// Which of several paths a retransmission takes.
    pub retransmission_destination: RetransmissionDestination,
    /// PotentiallyFailed.Max.Retrans: errors in a row beyond which a path gets no data while
    /// another is active, though it is not given up (RFC 7829 §3.2, which recommends 0). `None`
    /// leaves it at RFC 9260 §8.2.
    pub potentially_failed_max_retrans: Option<u32>,
    /// Using all paths at once.
    pub cmt: CmtConfig,
    /// What tells that a retransmission event was spurious: that nothing was lost.
    pub spurious: SpuriousConfig,
    /// After a spurious event the window goes back to where it was, by slow start, and after a
    /// spurious timeout the next round trip starts the timer's estimate anew (RR-SCTP §4.2,
    /// RFC 4015 §3.1). Without a detector there is nothing to undo.
    pub undo: bool,
    /// INIT and COOKIE ECHO are repeated after one and a half round trips, doubling up to the RTO, where
    /// the round-trip time is known from this setup or from an association before: a lost first packet
    /// does not cost RTO.Initial. The setup is not given up sooner: the repetitions that the RTO would
    /// have, follow. A path that became longer costs needless ones (SCTP).
    pub setup_by_rtt: bool,
    /// What is done besides while a stream is thin.
    pub thin: ThinConfig,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
            alpha_inverse: 8,
            beta_inverse: 4,
            granularity: Duration::from_millis(1),
            min_variation: Duration::ZERO,
        }
    }
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            rto: RtoConfig::default(),
            timer_restart: TimerRestart::default(),
            loss_detection: LossDetection::default(),
            missing_reports: 3,
            reordering: Reordering::Fixed,
            limited_transmit: false,
            congestion: CongestionControl::default(),
            max_burst: 4,
            initial_window_packets: 4,
            initial_window_bytes: 4404,
            single_packet_after_timeout: true,
            bundle_outstanding: false,
            early_retransmit: false,
            retransmission_destination: RetransmissionDestination::default(),
            potentially_failed_max_retrans: None,
            cmt: CmtConfig::default(),
            spurious: SpuriousConfig::OFF,
            undo: false,
            setup_by_rtt: false,
            thin: ThinConfig::OFF,
        }
    }
}

/// Why a [`RecoveryConfig`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRecovery(pub &'static str);

impl std::fmt::Display for InvalidRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidRecovery {}

impl RecoveryConfig {
    /// Whether anything depends on what becomes of retransmission events: detectors do, and so does
    /// what learns of reordering from needless copies.
    pub(crate) fn follows_events(&self) -> bool {
        self.spurious.is_any() || self.reordering != Reordering::Fixed
    }

    /// Checks the values once, so that they can be trusted from here on.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidRecovery> {
        let rto = &self.rto;
        let is_rack = self.reordering == Reordering::Rack;
        let is_beyond_all =
            matches!(self.reordering, Reordering::Adaptive { percentile } if percentile > 100);
        let is_coupled = self.cmt.coupling != Coupling::None;
        let checks = [
            (rto.min > rto.max, "RTO.Min is above RTO.Max"),
            (rto.initial > rto.max, "RTO.Initial is above RTO.Max"),
            (rto.initial.is_zero(), "RTO.Initial is zero"),
            (rto.max.is_zero(), "RTO.Max is zero"),
            (rto.granularity.is_zero(), "the clock granularity is zero"),
            (rto.alpha_inverse == 0 || rto.beta_inverse == 0, "1/alpha or 1/beta is zero"),
            (self.missing_reports == 0, "zero missing reports would make everything a loss"),
            (self.initial_window_packets == 0, "the initial window holds no packet"),
            (rto.min_variation > rto.max, "the variation's lower bound is above RTO.Max"),
            (is_beyond_all, "the percentile of reordering is above 100"),
            (is_rack && self.early_retransmit, "RACK and Early Fast Retransmit share a timer"),
            (is_coupled && !self.cmt.all_paths, "windows of paths not used at once are coupled"),
            (
                is_coupled && self.congestion != CongestionControl::Rfc9260,
                "only windows of RFC 9260 can be coupled",
            ),
            (!self.thin.is_valid(), "a bound of the timers of thin streams is out of range"),
        ];
        match checks.iter().find(|(bad, _)| *bad) {
            Some((_, why)) => Err(InvalidRecovery(why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_bounds_are_refused() {
        let mut config = RecoveryConfig::default();
        config.rto.min = Duration::from_secs(61);
        assert!(config.validate().is_err());
    }
}
