//! A recovery configuration is a plain value: one field per mechanism, and named profiles that are
//! values of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the retransmission timeout is made (RFC 9260 §6.3.1, §16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RtoConfig {
    /// RTO.Initial: the timeout before the first measurement.
    pub initial: Duration,
    /// RTO.Min: the lower bound.
    pub min: Duration,
    /// RTO.Max: the upper bound, also of the backoff.
    pub max: Duration,
    /// 1 / RTO.Alpha: the weight of the old smoothed time against a new sample.
    pub alpha_inverse: u32,
    /// 1 / RTO.Beta: the same for the variation.
    pub beta_inverse: u32,
    /// G: the variation used where a measured one would be zero.
    pub granularity: Duration,
}

/// What a sender does about loss. The default is the profile `rfc9260`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryConfig {
    /// The retransmission timeout.
    pub rto: RtoConfig,
    /// Missing reports that make a loss (RFC 9260 §7.2.4: 3).
    pub missing_reports: u8,
    /// Max.Burst: data packets sent per opportunity; 0 is unlimited (RFC 9260 §6.1 D).
    pub max_burst: u8,
    /// Initial window in bytes before the limits of 2 and 4 packets (RFC 9260 §7.2.1: 4404).
    pub initial_window_bytes: u32,
    /// After a timeout only one packet is in flight until something is acknowledged
    /// (RFC 9260 §7.2.1).
    pub single_packet_after_timeout: bool,
    /// A retransmission takes along other outstanding units that fit, though they are not judged
    /// lost (Petlund 2009 §3: the behaviour of lksctp).
    pub bundle_outstanding: bool,
}

/// The names that [`RecoveryConfig::profile`] knows, with a line on each.
pub const PROFILES: &[(&str, &str)] = &[
    ("rfc9260", "RFC 9260 with its suggested values"),
    ("lksctp", "Linux: RTO.initial 3 s, outstanding data bundled into retransmissions"),
    ("freebsd", "FreeBSD 6.2: RTO.initial 3 s, otherwise as rfc9260"),
];

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
            alpha_inverse: 8,
            beta_inverse: 4,
            granularity: Duration::from_millis(1),
        }
    }
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            rto: RtoConfig::default(),
            missing_reports: 3,
            max_burst: 4,
            initial_window_bytes: 4404,
            single_packet_after_timeout: true,
            bundle_outstanding: false,
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
    /// The profile called `name`, one of [`PROFILES`].
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        let slow_start_of_timer =
            RtoConfig { initial: Duration::from_secs(3), ..RtoConfig::default() };
        match name {
            "rfc9260" => Some(Self::default()),
            "lksctp" => Some(Self {
                rto: slow_start_of_timer,
                single_packet_after_timeout: false,
                bundle_outstanding: true,
                ..Self::default()
            }),
            "freebsd" => Some(Self { rto: slow_start_of_timer, ..Self::default() }),
            _ => None,
        }
    }

    /// Checks the values once, so that they can be trusted from here on.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidRecovery> {
        let rto = &self.rto;
        let checks = [
            (rto.min > rto.max, "RTO.Min is above RTO.Max"),
            (rto.initial > rto.max, "RTO.Initial is above RTO.Max"),
            (rto.initial.is_zero(), "RTO.Initial is zero"),
            (rto.max.is_zero(), "RTO.Max is zero"),
            (rto.granularity.is_zero(), "the clock granularity is zero"),
            (rto.alpha_inverse == 0 || rto.beta_inverse == 0, "1/alpha or 1/beta is zero"),
            (self.missing_reports == 0, "zero missing reports would make everything a loss"),
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
    fn every_listed_profile_exists_and_is_valid() {
        for (name, _) in PROFILES {
            let profile = RecoveryConfig::profile(name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(profile.validate(), Ok(()), "{name}");
        }
        assert_eq!(RecoveryConfig::profile("no such profile"), None);
    }

    #[test]
    fn contradictory_bounds_are_refused() {
        let mut config = RecoveryConfig::default();
        config.rto.min = Duration::from_secs(61);
        assert!(config.validate().is_err());
    }
}
