//! A recovery configuration is a plain value: one field per mechanism, and named profiles that are
//! values of it.

mod fields;
mod profiles;
mod protocols;
mod thin;

use std::num::NonZeroU8;

use rexmit_core::{config, words};
use serde::{Deserialize, Serialize};

use crate::{CongestionControl, Coupling, LossDetection, RtoConfig, SpuriousConfig, TimerRestart};
pub use fields::Field;
pub use profiles::{PROFILES, TCP_PROFILES};
pub use protocols::{SctpConfig, TcpConfig, ThinSctpConfig, ThinTcpConfig};
pub use thin::ThinConfig;

config! {
    /// The loss recovery of a sender: a profile, such as [`interactive`](Self::interactive), whose fields may be
    /// changed. In a file a field that is not given is that of [`rfc9260`](Self::rfc9260).
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default = "RecoveryConfig::rfc9260", deny_unknown_fields)]
    pub struct RecoveryConfig {
        /// The retransmission timeout.
        pub rto: RtoConfig,
        /// What restarts the retransmission timer.
        pub timer_restart: TimerRestart,
        /// How a loss is detected.
        pub loss_detection: LossDetection,
        /// Missing reports that make a loss (RFC 9260 §7.2.4: 3); also DupThresh, the acknowledged
        /// units above a hole, or the duplicate acknowledgements, that do (RFC 6675 §2, RFC 5681 §3.2:
        /// 3).
        pub missing_reports: u8,
        /// How the congestion window grows and shrinks.
        pub congestion: CongestionControl,
        /// Max.Burst: data packets sent per opportunity; `None` is unlimited (RFC 9260 §6.1 D).
        #[serde(with = "words::or_off")]
        pub max_burst: Option<NonZeroU8>,
        /// Initial window in packets at most (RFC 9260 §7.2.1 and RFC 3390 §1: 4; RFC 6928 §2: 10).
        pub initial_window_packets: u32,
        /// Initial window in bytes at most, but two packets at least (RFC 9260 §7.2.1: 4404;
        /// RFC 3390 §1: 4380; RFC 6928 §2: 14600).
        pub initial_window_bytes: u32,
        /// After a timeout only one packet is in flight until something is acknowledged
        /// (RFC 9260 §7.2.1).
        pub single_packet_after_timeout: bool,
        /// A retransmission bundles other outstanding units that fit, though they are not judged
        /// lost (Petlund 2009 §3: the behaviour of lksctp).
        pub bundle_outstanding: bool,
        /// What says that a retransmission event was spurious: that nothing was lost.
        pub spurious: SpuriousConfig,
        /// After a spurious event the window goes back to where it was, by slow start, and after a
        /// spurious timeout the next round trip starts the timer's estimate anew (RR-SCTP §4.2,
        /// RFC 4015 §3.1). Without a detector there is nothing to undo.
        pub undo: bool,
        /// Additional mechanisms while a stream is thin.
        pub thin: ThinConfig as with_thin,
        /// What serves SCTP only.
        pub sctp: SctpConfig as with_sctp,
        /// What serves TCP only.
        pub tcp: TcpConfig as with_tcp,
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
    /// Checks the values once, so that they can be trusted from here on.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidRecovery> {
        let rto = &self.rto;
        let is_beyond_all = self.loss_detection.percentile().is_some_and(|percent| percent > 100);
        let is_coupled = self.sctp.cmt.coupling != Coupling::None;
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
            (
                is_coupled && !self.sctp.cmt.all_paths,
                "windows of paths not used at once are coupled",
            ),
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn contradictory_bounds_are_refused() {
        let mut config = RecoveryConfig::rfc9260();
        config.rto.min = Duration::from_secs(61);
        assert!(config.validate().is_err());
    }
}
