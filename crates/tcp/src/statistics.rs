//! Counters and state that an application can read.

use std::time::Duration;

use rexmit_recovery::{RecoveryStatistics, ReorderingState, Thinness};
#[cfg(feature = "serde")]
use serde::Serialize;

/// Counters of a connection since its start, and its present state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct ConnectionStatistics {
    /// The traffic.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub traffic: Traffic,
    /// Losses and retransmissions.
    pub recovery: RecoveryStatistics,
    /// Whether the connection is thin, with the measurements that decide it.
    pub thin: Thinness,
    /// Smoothed round-trip time, if measured; `srtt_ms` in JSON.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "srtt_ms", serialize_with = "rexmit_core::millis::serialize_optional")
    )]
    pub srtt: Option<Duration>,
    /// Retransmission timeout, as it applies now; `rto_ms` in JSON.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "rto_ms", serialize_with = "rexmit_core::millis::serialize")
    )]
    pub rto: Duration,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes.
    pub ssthresh: u64,
    /// Reordering tolerated before a packet is declared lost.
    pub reordering: ReorderingState,
    /// Bytes of sequence space in flight: payload, and one for a FIN.
    pub bytes_in_flight: u64,
    /// SND.WND: the window that the peer advertised last, in bytes.
    pub send_window: u64,
    /// Bytes accepted from the application and not yet acknowledged.
    pub send_buffered_bytes: usize,
    /// Bytes received and not yet taken by the application, those held out of order included.
    pub receive_buffered_bytes: usize,
}

/// The traffic of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Traffic {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Bytes of the segments sent, TCP headers included.
    pub bytes_sent: u64,
    /// Segments with new data that also carried copies of outstanding data (RDB).
    pub redundant_segments_sent: u64,
    /// Segments received, of any kind.
    pub segments_received: u64,
    /// Bytes of the segments received, TCP headers included.
    pub bytes_received: u64,
    /// Payload bytes accepted from the application.
    pub payload_accepted_bytes: u64,
    /// Payload bytes handed to the application.
    pub payload_delivered_bytes: u64,
    /// Segments sent with neither payload nor SYN, FIN or RST.
    pub acks_sent: u64,
    /// Segments received whose data had all been received before.
    pub duplicates_received: u64,
    /// Segments received before one that comes earlier in the stream.
    pub out_of_order_received: u64,
    /// Segments received and dropped.
    pub dropped: DroppedSegments,
    /// Segments answered with a challenge ACK, because a blind attacker might have sent them (RFC 5961): RST
    /// and SYN in the window, and ACKs of data that cannot be outstanding.
    pub challenged: u64,
    /// Windows that closed.
    pub zero_windows: ZeroWindows,
    /// Probes of a silent peer that were sent (RFC 9293 §3.8.4).
    pub keep_alives_sent: u64,
}

/// Segments that a connection received and dropped, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct DroppedSegments {
    /// With payload, because a limit was reached.
    pub for_limit: u64,
    /// Outside the receive window (RFC 9293 §3.10.7.4).
    pub out_of_window: u64,
    /// With an old timestamp (RFC 7323 §5, PAWS).
    pub old_timestamps: u64,
    /// Without the negotiated timestamps (RFC 7323 §3.2).
    pub missing_timestamps: u64,
}

/// Windows that closed, and what was done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct ZeroWindows {
    /// How often the peer closed its window.
    pub received: u64,
    /// Number of times that the local receive window closed.
    pub sent: u64,
    /// Probes of a closed window that were sent (RFC 9293 §3.8.6.1).
    pub probes_sent: u64,
}

/// SYN cookies of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct CookieStatistics {
    /// SYNs answered with a SYN cookie because of `syn_backlog`.
    pub sent: u64,
    /// SYN cookies that were returned and created a connection.
    pub accepted: u64,
    /// ACKs to a listening port whose SYN cookie was forged, too old, or used before.
    pub refused: u64,
}

/// Connections of an endpoint in TIME-WAIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct TimeWaitStatistics {
    /// Acknowledgements sent for them.
    pub acks_sent: u64,
    /// Forgotten early because of `max_time_wait`.
    pub evicted: u64,
    /// Reopened by a SYN (RFC 6191).
    pub reopened: u64,
}

/// Counters of an endpoint. Dropped segments of its connections are counted here, too, because they may
/// indicate an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct EndpointStatistics {
    /// Packets shorter than their header, or whose data offset points into it.
    pub malformed_header: u64,
    /// Packets with an option of an impossible length.
    pub malformed_options: u64,
    /// Packets with a wrong checksum.
    pub bad_checksum: u64,
    /// Segments from or to an address that is not that of a single host, from or to port 0, or from an end to itself.
    pub misdirected: u64,
    /// Segments for which no connection exists and no port listens (RFC 9293 §3.10.7.1, CLOSED).
    pub out_of_the_blue: u64,
    /// RSTs sent in response to segments of no connection (RFC 9293 §3.10.7.1).
    pub resets_sent: u64,
    /// RSTs, and ACKs of connections in TIME-WAIT, not sent because of `out_of_the_blue_responses_per_second`.
    pub out_of_the_blue_responses_suppressed: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks_sent: u64,
    /// Challenge ACKs not sent because of `challenge_acks_per_second`.
    pub challenge_acks_suppressed: u64,
    /// SYN cookies.
    pub cookies: CookieStatistics,
    /// Connections in TIME-WAIT.
    pub time_wait: TimeWaitStatistics,
    /// Connections refused because of `max_connections`.
    pub refused_for_limit: u64,
    /// Segments dropped because of an old timestamp (RFC 7323 §5, PAWS).
    pub paws_drops: u64,
    /// Segments dropped because they lay outside the receive window.
    pub out_of_window: u64,
}

impl EndpointStatistics {
    /// Packets that were no TCP segments.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed_header + self.malformed_options + self.bad_checksum
    }
}
