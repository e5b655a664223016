//! The settings that are one of several: which detector, which window, which path.

use rexmit_core::config;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// How a loss is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub enum LossDetection {
    /// SCTP: missing reports by HTNA (RFC 9260 §7.2.4).
    MissingReports {
        /// The reordering tolerated.
        #[cfg_attr(feature = "serde", serde(default))]
        reordering: Reordering,
        /// Early Fast Retransmit of FreeBSD: SRTT + 2 RTTVAR (250 ms at least) after the last SACK or
        /// new data, what was sent at least as long ago is retransmitted while cwnd exceeds data in flight, and
        /// cwnd falls by a packet (Petlund 2009 §2).
        #[cfg_attr(feature = "serde", serde(default))]
        early_retransmit: bool,
    },
    /// TCP with SACK: `IsLost` on the scoreboard (RFC 6675 §4). Duplicate ACKs are counted if the peer has no SACK.
    Scoreboard {
        /// The reordering tolerated.
        #[cfg_attr(feature = "serde", serde(default))]
        reordering: Reordering,
    },
    /// TCP without SACK: duplicate acknowledgements (RFC 5681 §3.2, RFC 6582).
    DuplicateAcks,
    /// RACK: a packet is lost if a packet sent later has arrived, and a round trip and a reordering window have passed
    /// since the first was sent (RFC 8985 §6). Duplicate ACKs are counted if a TCP peer has no SACK.
    Rack,
}

/// How the threshold of missing reports tolerates reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Reordering {
    /// A constant threshold, [`RecoveryConfig::missing_reports`](crate::RecoveryConfig::missing_reports).
    #[default]
    Fixed,
    /// The measured reordering of the path, but at least `missing_reports` (RR-SCTP §4.3).
    Adaptive {
        /// The initial `pef`, in percent, at most 100: the share of reordered packets that the threshold is to save from a
        /// spurious retransmission. It is adapted to the cost of spurious retransmissions and of avoidable timeouts.
        percentile: u8,
    },
}

impl LossDetection {
    /// Missing reports with a fixed threshold: RFC 9260.
    pub const RFC_9260: Self =
        Self::MissingReports { reordering: Reordering::Fixed, early_retransmit: false };

    /// The initial percentile of an adaptive threshold; `None` if the threshold is fixed.
    #[must_use]
    pub const fn percentile(self) -> Option<u8> {
        match self {
            Self::MissingReports { reordering: Reordering::Adaptive { percentile }, .. }
            | Self::Scoreboard { reordering: Reordering::Adaptive { percentile } } => {
                Some(percentile)
            }
            _ => None,
        }
    }

    /// The same detector with an adaptive reordering threshold that begins at `percentile`; unchanged if the
    /// detector has no such threshold.
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

impl Default for LossDetection {
    fn default() -> Self {
        Self::RFC_9260
    }
}

/// How the windows of paths that are used at once depend on each other. Resource pooling makes them together as
/// aggressive as one flow (Dreibholz, Becke, Adhari and Rathgeb 2011; draft-tuexen-tsvwg-sctp-multipath, "CMT/RPv2").
///
/// With cᵢ for the window of path i and rᵢ for its smoothed round-trip time, path P has the share
///
/// > î = (c_P / r_P) / Σ (cᵢ / rᵢ)
///
/// of the association's rate. Its window grows by î times what it would on its own, and a loss takes
/// half of the *whole* rate from it: d̂ = max(½, ½ Σ (cᵢ / rᵢ) / (c_P / r_P)) of its own window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Coupling {
    /// The windows together are as aggressive as one flow (resource pooling v2). Paths that share a bottleneck take one
    /// flow's share there. Disjoint paths are filled if their queues hold some round trips of data, and less if the
    /// queues are shorter, since a loss on either path halves the rate of both.
    ResourcePoolingV2,
}

/// What follows from the detection of a spurious recovery episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SpuriousResponse {
    /// The episode is counted and reported. The window stays reduced.
    Count,
    /// The episode is undone, too: slow start restores the window, and after a spurious timeout the next sample
    /// restarts the RTT estimate (RR-SCTP §4.2, RFC 4015 §3.1).
    Undo,
}

config! {
    const
    /// The enabled detectors of spurious recovery episodes that serve both protocols. All are off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct SpuriousConfig {
        /// An episode was spurious if every retransmission is reported as a duplicate: by the duplicate TSNs
        /// of a SACK, or DSACK in TCP (RFC 3708; RR-SCTP §4.1). What follows from that; `None` is off.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub duplicates: Option<SpuriousResponse>,
        /// F-RTO (RFC 5682): after a timeout new data is sent before more is retransmitted. The timeout was
        /// spurious if the next ACKs cover data sent before it. What follows from that; `None` is off.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub f_rto: Option<SpuriousResponse>,
    }
}

impl SpuriousConfig {
    /// No detector.
    pub const OFF: Self = Self { duplicates: None, f_rto: None };

    /// Duplicate reports detect spurious episodes, which are undone.
    pub const DUPLICATES: Self = Self { duplicates: Some(SpuriousResponse::Undo), f_rto: None };

    /// Whether any detector is on.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.duplicates.is_some() || self.f_rto.is_some()
    }
}

/// Which path a retransmission takes.
///
/// An inactive path is used only if no path is active, the one with the fewest errors first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RetransmissionDestination {
    /// The path over which the data was sent.
    Same,
    /// After a timeout another active path, otherwise the path over which the data was sent (RFC 9260 §6.4).
    #[default]
    Alternate,
    /// Another active path, however the loss was detected (RFC 2960 §6.4).
    Elsewhere,
    /// Any path whose window has room, chosen at random, so that the retransmission is sent as soon as possible.
    Asap,
    /// The path with the lowest loss rate; of equals one at random.
    LossRate,
    /// The path with the largest window; of equals one at random.
    Cwnd,
    /// The path with the largest slow start threshold; of equals one at random.
    Ssthresh,
    /// The path with the largest window; of equals, the one with the largest slow start threshold, then with the fewest
    /// timeouts within 30 s, then with the longest time since the last one; then one at random.
    Csi,
    /// The active path that loses least of what was just lost over the path of the first transmission, as measured for
    /// each pair of paths; another one while little was measured. Redundant copies in packets of their own take it, too.
    LeastCorrelated,
}

impl RetransmissionDestination {
    /// Whether the path is chosen when the packet is sent, and not when the loss is detected.
    pub(crate) const fn is_chosen_late(self) -> bool {
        !matches!(self, Self::Same | Self::Alternate | Self::Elsewhere | Self::LeastCorrelated)
    }
}

config! {
    const
    /// Concurrent multipath transfer: new data is sent over every active path, as the window of each allows (Iyengar,
    /// Amer and Stewart 2006). The algorithms that go with it are off by default; [`ON`](Self::ON) has those it needs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct CmtConfig {
        /// SFR, split fast retransmit: a unit is reported missing only by the acknowledgement of a later
        /// one that was sent over the same path, and each path has a fast recovery of its own.
        pub split_fast_retransmit: bool,
        /// CUC, cwnd update: the window of a path grows when the earliest unit outstanding on that path is
        /// acknowledged; retransmitted units and others are tracked separately (CUCv2). Otherwise it grows
        /// only when the cumulative point of the association advances (RFC 4960 §7.2.1).
        pub cwnd_update: bool,
        /// Delayed acknowledgements (DAC). As a receiver: a gap does not trigger an immediate SACK, and the
        /// SACK says how many packets it acknowledges. As a sender: a SACK counts as that many missing
        /// reports, if all newly acknowledged data was sent over one path and after the missing chunk.
        pub delayed_ack: bool,
        /// Receive buffer splitting: the data outstanding on a path is limited to its share of the peer's
        /// receive window, so that a slow path with a long queue cannot fill the whole window (Dreibholz,
        /// Becke, Rathgeb and Tüxen 2010). Data that has arrived out of order counts for no path.
        pub split_buffer: bool,
        /// Blocking estimation: no new data is sent over a slower path if faster paths would have to wait for the peer's window
        /// because of it, since their data could not be delivered before it (BLEST: Ferlin, Alay, Mehani and Boreli 2016).
        pub avoid_blocking: bool,
        /// How the windows of the paths are coupled, which requires
        /// [`CongestionControl::Rfc9260`](crate::CongestionControl::Rfc9260). `None`: each path's window is that of an
        /// independent flow, so paths that share a bottleneck take one flow's share each.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub coupling: Option<Coupling>,
    }
}

impl CmtConfig {
    /// Concurrent multipath transfer with the three algorithms that it needs.
    pub const ON: Self = Self {
        split_fast_retransmit: true,
        cwnd_update: true,
        delayed_ack: true,
        split_buffer: false,
        avoid_blocking: false,
        coupling: None,
    };
}

/// What makes a stream thin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ThinTest {
    /// `in_flight <= (pttfr + 1) / (1 - lossrate)`, over packets (Petlund 2009 §5.1, Fig. 3).
    #[default]
    PacketsInFlight,
    /// Fewer than four packets in flight, and not in the initial slow start: the test of Linux (`tcp_stream_is_thin`).
    Linux,
    /// At most this many packets in flight, for a sender whose mechanisms do not wait for ACKs of later packets.
    Packets(u8),
}
