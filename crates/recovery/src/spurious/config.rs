//! The settings of the detection of spurious retransmissions.

use rexmit_core::config;
use serde::{Deserialize, Serialize};

config! {
    const
    /// The enabled detectors of spurious recovery episodes that serve both protocols. All are off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct SpuriousConfig {
        /// Every retransmission is reported as a duplicate: the duplicate TSNs of a SACK, DSACK in TCP (RFC 3708;
        /// RR-SCTP §4.1).
        pub duplicates: bool,
        /// After a timeout new data is sent before more is retransmitted, and data sent before the timeout is
        /// acknowledged (RFC 5682).
        pub f_rto: bool,
    }
}

impl SpuriousConfig {
    /// No detector.
    pub const OFF: Self = Self { duplicates: false, f_rto: false };

    /// Whether any detector is on.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.duplicates || self.f_rto
    }
}
