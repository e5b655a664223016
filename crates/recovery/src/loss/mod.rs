//! Detectors of loss.

pub(crate) mod duplicates;
pub(crate) mod early;
pub(crate) mod scoreboard;
pub(crate) mod threshold;

use serde::{Deserialize, Serialize};

/// How acknowledgements tell a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossDetection {
    /// SCTP: missing reports by HTNA (RFC 9260 §7.2.4).
    #[default]
    MissingReports,
    /// TCP with SACK: `IsLost` over a scoreboard (RFC 6675 §4). A peer without SACK is served by
    /// duplicate acknowledgements.
    Scoreboard,
    /// TCP without SACK: duplicate acknowledgements (RFC 5681 §3.2, RFC 6582).
    DuplicateAcks,
}
