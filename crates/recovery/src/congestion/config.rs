//! The setting of congestion control.

use serde::{Deserialize, Serialize};

/// How a window grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CongestionControl {
    /// SCTP: `partial_bytes_acked`, half of cwnd, the last packet may exceed it (RFC 9260 §7.2).
    #[default]
    Rfc9260,
    /// TCP: slow start and congestion avoidance by bytes acknowledged, half of outstanding data
    /// (RFC 5681 §3.1).
    NewReno,
    /// TCP: a cubic function of the time since the last reduction (RFC 9438 §4).
    Cubic,
}
