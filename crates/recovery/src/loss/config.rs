//! The settings of loss detection.

use serde::{Deserialize, Serialize};

/// How a loss is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum LossDetection {
    /// SCTP: missing reports by HTNA (RFC 9260 §7.2.4).
    MissingReports {
        /// The reordering tolerated.
        #[serde(default)]
        reordering: Reordering,
        /// Early Fast Retransmit of FreeBSD: while cwnd exceeds data in flight, a unit that is not
        /// acknowledged SRTT + RTTVAR after it was first sent is retransmitted, and cwnd falls by a packet
        /// (Petlund 2009 §2).
        #[serde(default)]
        early_retransmit: bool,
    },
    /// TCP with SACK: `IsLost` over a scoreboard (RFC 6675 §4). A peer without SACK is served by
    /// duplicate acknowledgements.
    Scoreboard {
        /// The reordering tolerated.
        #[serde(default)]
        reordering: Reordering,
    },
    /// TCP without SACK: duplicate acknowledgements (RFC 5681 §3.2, RFC 6582).
    DuplicateAcks,
    /// Time: a packet is lost if one that was sent a round trip and a reordering window later has arrived
    /// (RFC 8985 §6). A TCP peer without SACK is served by duplicate acknowledgements.
    Rack,
}

/// How the threshold of missing reports tolerates reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reordering {
    /// `missing_reports` of it.
    #[default]
    Fixed,
    /// The measured reordering of the path, `missing_reports` at least (RR-SCTP §4.3).
    Adaptive {
        /// The initial `pef`, in percent, at most 100: the fraction of reordered packets that the threshold
        /// spares a retransmission. It follows what each kind of mistake costs.
        percentile: u8,
    },
}

impl LossDetection {
    /// Missing reports with a fixed threshold: RFC 9260.
    pub const RFC_9260: Self =
        Self::MissingReports { reordering: Reordering::Fixed, early_retransmit: false };

    /// Whether Early Fast Retransmit is on.
    #[must_use]
    pub const fn is_early(self) -> bool {
        matches!(self, Self::MissingReports { early_retransmit: true, .. })
    }

    /// The initial percentile of a threshold that follows reordering.
    #[must_use]
    pub const fn percentile(self) -> Option<u8> {
        match self {
            Self::MissingReports { reordering, .. } | Self::Scoreboard { reordering } => {
                reordering.percentile()
            }
            Self::DuplicateAcks | Self::Rack => None,
        }
    }

    /// The same with a threshold that follows reordering, if it has one.
    #[must_use]
    pub const fn adaptive(self, percentile: u8) -> Self {
        let reordering = Reordering::Adaptive { percentile };
        match self {
            Self::MissingReports { early_retransmit, .. } => {
                Self::MissingReports { reordering, early_retransmit }
            }
            Self::Scoreboard { .. } => Self::Scoreboard { reordering },
            Self::DuplicateAcks | Self::Rack => self,
        }
    }
}

impl Reordering {
    pub(super) const fn percentile(self) -> Option<u8> {
        match self {
            Self::Fixed => None,
            Self::Adaptive { percentile } => Some(percentile),
        }
    }
}

impl Default for LossDetection {
    fn default() -> Self {
        Self::RFC_9260
    }
}
