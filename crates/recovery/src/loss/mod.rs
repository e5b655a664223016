//! Detectors of loss.

pub(crate) mod adaptive;
pub(crate) mod duplicates;
pub(crate) mod early;
pub(crate) mod rack;
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

/// How much reordering a sender bears before it takes what is missing for lost. Only where
/// acknowledgements tell what arrived above it: with [`LossDetection::DuplicateAcks`], and with a TCP
/// peer without SACK, `missing_reports` applies as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reordering {
    /// `missing_reports` of it.
    #[default]
    Fixed,
    /// As much as the path has shown, `missing_reports` at least (RR-SCTP §4.3).
    Adaptive {
        /// `pef` to begin with, in per cent: the fraction of reordered packets that the threshold
        /// spares a retransmission. It follows what each kind of mistake costs.
        percentile: u8,
    },
    /// Not reports but time tells a loss: a round trip and a reordering window (RFC 8985 §6).
    Rack,
}
