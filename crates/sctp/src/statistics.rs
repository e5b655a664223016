//! Counters and state that an application can read.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_recovery::{PathCounters, PathState, RecoveryStatistics, ReorderingState, Thinness};
#[cfg(feature = "serde")]
use serde::Serialize;

/// Counters of an association since its start, and its present state.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct AssociationStatistics {
    /// The traffic.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub traffic: Traffic,
    /// Packets that routers marked.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub marks: CongestionMarks,
    /// Losses and retransmissions.
    pub recovery: RecoveryStatistics,
    /// Whether the association is thin, not counting the streams that were singled out.
    pub thin: Thinness,
    /// Whether each stream that was singled out is thin, with the number of the stream.
    pub thin_streams: Vec<(u16, Thinness)>,
    /// Bytes accepted from the application and not yet acknowledged.
    pub send_buffered_bytes: usize,
    /// Bytes received and not yet taken by the application.
    pub receive_buffered_bytes: usize,
    /// Whether messages of different streams are interleaved (I-DATA, RFC 8260).
    pub interleaving: bool,
    /// The paths; the index is the path's number.
    pub paths: Vec<PathStatistics>,
}

/// The traffic of an association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Traffic {
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// Bytes of the packets sent, from the common header on.
    pub bytes_sent: u64,
    /// SCTP packets received.
    pub packets_received: u64,
    /// Bytes of these.
    pub bytes_received: u64,
    /// Messages accepted from the application.
    pub messages_accepted: u64,
    /// Messages handed to the application.
    pub messages_delivered: u64,
    /// Messages that failed.
    pub messages_failed: u64,
    /// Payload bytes accepted from the application.
    pub payload_accepted_bytes: u64,
    /// Payload bytes handed to the application.
    pub payload_delivered_bytes: u64,
    /// DATA chunks received that had been received before.
    pub duplicates_received: u64,
    /// DATA chunks dropped because a limit was reached.
    pub chunks_dropped: u64,
    /// Messages of the peer that were dropped: [`Event::MessageDropped`](crate::Event::MessageDropped).
    pub messages_dropped: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// Second copies among the SACKs sent: [`AckCopyConfig`](crate::AckCopyConfig).
    pub ack_copies_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
}

/// Packets of an association that routers marked instead of dropping them (ECN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct CongestionMarks {
    /// Packets with data received that were marked.
    pub marks_received: u64,
    /// Reports received that packets of ours were marked.
    pub echoes_received: u64,
}

/// One path of an association.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct PathStatistics {
    /// Our address of the path; unspecified if the driver chooses it.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The state of the path.
    pub state: PathState,
    /// Whether the path is the primary one, which new data uses while it is active.
    pub is_primary: bool,
    /// Timeouts and unanswered HEARTBEATs in a row.
    pub errors: u32,
    /// Smoothed round-trip time, if measured; `srtt_ms` in JSON.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "srtt_ms", serialize_with = "rexmit_core::millis::serialize_optional")
    )]
    pub srtt: Option<Duration>,
    /// Retransmission timeout; `rto_ms` in JSON.
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
    /// Data packets in flight.
    pub packets_in_flight: u32,
    /// Bytes of DATA chunks in flight.
    pub bytes_in_flight: u64,
    /// The largest SCTP packet that may be sent now, in bytes.
    pub max_packet_bytes: usize,
    /// The state of path MTU discovery.
    pub mtu_discovery: PathMtuState,
    /// Packets sent and lost, retransmissions, and timeouts.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub counters: PathCounters,
}

/// The state of path MTU discovery on one path (RFC 8899 §5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PathMtuState {
    /// Discovery is disabled.
    #[default]
    Off,
    /// Packets of the configured size are used, and not yet confirmed by a probe.
    Base,
    /// Discovery probes larger sizes while there is data for them.
    Searching,
    /// The search is complete.
    SearchComplete,
    /// Probes of the configured size were lost.
    Error,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct EndpointStatistics {
    /// Packets dropped because they were malformed or their checksum was wrong.
    pub malformed: u64,
    /// Malformed packets that had no checksum although that was not negotiated with the peer (RFC 9653).
    pub zero_checksums_refused: u64,
    /// Packets dropped because of their verification tag, ports or address.
    pub misdirected: u64,
    /// Packets that belonged to no association.
    pub out_of_the_blue: u64,
    /// INITs answered.
    pub inits_answered: u64,
    /// State cookies refused because they were forged, altered, too old, or of an association that has
    /// ended.
    pub cookies_refused: u64,
    /// Associations refused because of `max_associations`.
    pub refused_for_limit: u64,
    /// Addresses in INIT, INIT ACK and ASCONF that were refused: not of a single host, out of scope,
    /// repeated, or more than [`MAX_ADDRESSES`](crate::MAX_ADDRESSES). Also other requests of an ASCONF that
    /// were refused.
    pub addresses_refused: u64,
    /// Chunks dropped because they were not authenticated, and invalid AUTH chunks.
    pub unauthenticated: u64,
    /// ICMP reports of packets that were too big which were not plausible, or concerned no association.
    pub too_big_refused: u64,
    /// ASCONFs dropped because of a wrong serial number, or because they were malformed.
    pub asconfs_refused: u64,
}

impl std::ops::AddAssign for EndpointStatistics {
    fn add_assign(&mut self, other: Self) {
        let Self {
            malformed,
            zero_checksums_refused,
            misdirected,
            out_of_the_blue,
            inits_answered,
            cookies_refused,
            refused_for_limit,
            addresses_refused,
            unauthenticated,
            too_big_refused,
            asconfs_refused,
        } = other;
        self.malformed += malformed;
        self.zero_checksums_refused += zero_checksums_refused;
        self.misdirected += misdirected;
        self.out_of_the_blue += out_of_the_blue;
        self.inits_answered += inits_answered;
        self.cookies_refused += cookies_refused;
        self.refused_for_limit += refused_for_limit;
        self.addresses_refused += addresses_refused;
        self.unauthenticated += unauthenticated;
        self.too_big_refused += too_big_refused;
        self.asconfs_refused += asconfs_refused;
    }
}
