//! The parts of the configuration of an association, a type for each topic.

use std::time::Duration;

use rexmit_core::config;
#[cfg(feature = "serde")]
use serde::Serialize;

use super::{
    ConfigError, MAX_AUTHENTICATED_CHUNKS, MAX_SACK_DELAY, MIN_PACKET_BYTES,
    MIN_RECEIVE_BUFFER_BYTES, bound,
};
use crate::Scheduling;
use crate::association::{MAX_SHARED_KEYS, SharedKey};
use crate::wire::may_be_authenticated;

config! {
    const
    /// Streams of an association, and which of them sends next.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct StreamConfig {
        /// Outgoing streams to request; the peer may allow fewer. Default 16.
        pub outbound: u16,
        /// Incoming streams to accept. Default 2048.
        pub max_inbound: u16,
        /// The stream scheduler: the order in which streams send. Default round robin; for `mixed` by
        /// priority.
        pub scheduling: Scheduling,
    }
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self { outbound: 16, max_inbound: 2048, scheduling: Scheduling::default() }
    }
}

impl StreamConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        bound("outbound_streams", self.outbound.into(), 1, 65_535)?;
        bound("max_inbound_streams", self.max_inbound.into(), 1, 65_535)
    }
}

config! {
    const
    /// Messages of an association: how large they may be, and what is reported of them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct MessageConfig {
        /// The largest message in bytes, sent or received. [`Endpoint::send`](crate::Endpoint::send) refuses
        /// a larger one; for one of the peer see `oversized`. Default 256 KiB.
        pub max_bytes: usize,
        /// What happens to a message of the peer that is larger than `max_bytes`. Default
        /// [`OversizedMessages::Drop`].
        pub oversized: OversizedMessages,
        /// Whether [`Event::MessageSent`](crate::Event::MessageSent) reports each message whose last chunk
        /// was sent. Default false.
        pub report_sent: bool,
        /// Whether [`Event::MessageAcknowledged`](crate::Event::MessageAcknowledged) reports each message
        /// that the peer has acknowledged. Default false.
        pub report_acknowledged: bool,
    }
}

impl Default for MessageConfig {
    fn default() -> Self {
        Self {
            max_bytes: 256 * 1024,
            oversized: OversizedMessages::Drop,
            report_sent: false,
            report_acknowledged: false,
        }
    }
}

config! {
    const
    /// Memory of an association for data sent and received.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct BufferConfig {
        /// Receive buffer in bytes, which is the receive window advertised to the peer. Default 1 MiB; 4 MiB for
        /// `bulk` and `mixed`.
        pub receive_bytes: usize,
        /// The most bytes accepted from the application and not yet acknowledged. Beyond 16,384 messages,
        /// each counts as at least 64
        /// bytes. Default 1 MiB; 4 MiB for `bulk` and `mixed`.
        pub send_bytes: usize,
        /// The most received DATA chunks that wait for reassembly or for earlier messages. Default 16,384.
        pub max_held_chunks: usize,
        /// The most ranges of TSNs received above the first missing one. Default 1024.
        pub max_gap_ranges: usize,
    }
}

impl Default for BufferConfig {
    fn default() -> Self {
        Self {
            receive_bytes: 1024 * 1024,
            send_bytes: 1024 * 1024,
            max_held_chunks: 16_384,
            max_gap_ranges: 1024,
        }
    }
}

impl BufferConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        bound("receive_buffer_bytes", self.receive_bytes, MIN_RECEIVE_BUFFER_BYTES, 1 << 30)?;
        bound("send_buffer_bytes", self.send_bytes, 1, 1 << 30)?;
        bound("max_held_chunks", self.max_held_chunks, 16, 1 << 24)?;
        bound("max_gap_ranges", self.max_gap_ranges, 1, 16_384)
    }
}

config! {
    const
    /// When a path, or the peer, counts as unreachable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct FailureConfig {
        /// The interval of HEARTBEATs on an idle path (HB.interval, 30 s); `None` sends none. At its
        /// heartbeat, an idle association also releases unused memory.
        pub heartbeat_interval: Option<Duration>,
        /// Association.Max.Retrans (10): with more consecutive timeouts the peer is unreachable (RFC 9260
        /// §8.1).
        pub association_max_retrans: u32,
        /// Path.Max.Retrans (5): with more consecutive errors a path is inactive (RFC 9260 §8.2).
        pub path_max_retrans: u32,
        /// The peer is unreachable, and the association ends with
        /// [`CloseReason::Unreachable`](crate::CloseReason::Unreachable), if nothing was received from it for
        /// this long while data, or the end of the association, is sent to it. The time runs from the first DATA, SHUTDOWN or
        /// SHUTDOWN ACK chunk after the peer's last packet, and at least two consecutive timeouts must have expired. Default 15 s for `mixed` and the profiles whose names begin with `interactive`; `None` for the others: then
        /// `association_max_retrans` decides (RFC 9260 §8.1), after minutes.
        pub dead_after: Option<Duration>,
    }
}

impl Default for FailureConfig {
    fn default() -> Self {
        Self {
            heartbeat_interval: Some(Duration::from_secs(30)),
            association_max_retrans: 10,
            path_max_retrans: 5,
            dead_after: None,
        }
    }
}

config! {
    const
    /// How an association is set up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct HandshakeConfig {
        /// Max.Init.Retransmits (8): the most retransmissions of INIT and of COOKIE ECHO. Those before
        /// RTO.Initial, which [`setup_by_rtt`](rexmit_recovery::RecoveryConfig::setup_by_rtt) causes, are not
        /// counted.
        pub max_init_retransmits: u32,
        /// The round trip time to the peer, if the application knows it;
        /// [`setup_by_rtt`](rexmit_recovery::RecoveryConfig::setup_by_rtt) then works for the first
        /// association, too. Default `None`.
        pub initial_rtt: Option<Duration>,
    }
}

impl Default for HandshakeConfig {
    fn default() -> Self {
        Self { max_init_retransmits: 8, initial_rtt: None }
    }
}

config! {
    const
    /// Extensions of SCTP that are offered to the peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct ExtensionConfig {
        /// Whether to offer interleaving of messages (I-DATA, RFC 8260): a large message then delays messages
        /// of other streams by one chunk instead of its whole length. Each chunk is 4 bytes longer. Default
        /// true for `mixed` and the profiles whose names begin with `interactive`, otherwise false.
        pub interleaving: bool,
        /// Whether to accept packets without a checksum, and to send them to a peer that accepts them, too
        /// (RFC 9653). Only for packets that DTLS protects: encrypted endpoints set it. Default false.
        pub zero_checksum: bool,
        /// Whether to offer explicit congestion notification (RFC 3168, RFC 4960 appendix A): packets with data say that
        /// routers may mark them instead of dropping them, and a mark reduces the window as a loss does, and stops
        /// redundant copies. The driver of an endpoint must pass the ECN field of packets on
        /// (`Machine::handle_input_with_ecn`, `transmit_ecn`), or nothing answers the marks of the peer's packets.
        /// Default true for `bulk`, `mixed` and the profiles whose names begin with `interactive`, otherwise false.
        pub ecn: bool,
        /// Whether to offer partial reliability (RFC 3758). Default true.
        pub partial_reliability: bool,
        /// Whether to offer stream reset (RFC 6525). Default true.
        pub stream_reset: bool,
        /// Whether to offer dynamic addresses (RFC 5061), and the authentication that they need (RFC 4895).
        /// INIT is 64 bytes longer; nothing else changes until an address does. Default true.
        pub dynamic_addresses: bool,
    }
}

impl Default for ExtensionConfig {
    fn default() -> Self {
        Self {
            interleaving: false,
            zero_checksum: false,
            ecn: false,
            partial_reliability: true,
            stream_reset: true,
            dynamic_addresses: true,
        }
    }
}

/// What happens to a message of the peer that is larger than
/// [`max_bytes`](MessageConfig::max_bytes).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OversizedMessages {
    /// The message is dropped, [`Event::MessageDropped`](crate::Event::MessageDropped) reports it, and the
    /// messages after it are delivered.
    #[default]
    Drop,
    /// As `Drop`, and the peer is asked to reset the stream (RFC 6525 §4.2), so that its application learns of it: a data
    /// channel closes. [`Event::PeerResetStreams`](crate::Event::PeerResetStreams) reports that it did. A peer without
    /// stream resets, or one that refuses, is not told.
    ResetStream,
    /// The association is aborted.
    Abort,
}

config! {
    /// Path MTU discovery by probes (DPLPMTUD, RFC 8899), for each path. The search begins at
    /// [`max_packet_bytes`](crate::AssociationConfig::max_packet_bytes), which every path must carry, when a packet
    /// is full for the first time and more data waits.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct PathMtuConfig {
        /// The largest path MTU to search for, in bytes of an IP packet. Default 9000.
        pub max_mtu: u16,
        /// The number of lost probes after which a size counts as too large (MAX_PROBES). Default 3.
        pub max_probes: u8,
        /// How long after a completed search larger packets are tried again (PMTU_RAISE_TIMER). Default 600
        /// s.
        pub raise_timer: Duration,
        /// Bytes that the layers between UDP and SCTP add to a packet, such as a DTLS record. Encrypted
        /// endpoints set it. Default 0.
        pub record_bytes: u16,
    }
}

impl Default for PathMtuConfig {
    fn default() -> Self {
        Self {
            max_mtu: 9000,
            max_probes: 3,
            raise_timer: Duration::from_secs(600),
            record_bytes: 0,
        }
    }
}

impl PathMtuConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        bound("path_mtu.max_mtu", self.max_mtu.into(), MIN_PACKET_BYTES, 65_535)?;
        bound("path_mtu.max_probes", self.max_probes.into(), 1, 255)?;
        bound("path_mtu.record_bytes", self.record_bytes.into(), 0, MIN_PACKET_BYTES)?;
        let raise_s = usize::try_from(self.raise_timer.as_secs()).unwrap_or(usize::MAX);
        bound("path_mtu.raise_timer (s)", raise_s, 60, usize::MAX)
    }
}

config! {
    const
    /// When SACKs are sent (RFC 9260 §6.2), and how often.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct SackConfig {
        /// Maximum delay of an acknowledgement (SACK.Delay, 200 ms); zero disables the delay.
        pub delay: Duration,
        /// A SACK is sent at the latest after this many packets with data. Default 2 (RFC 9260 §6.2).
        pub every: u8,
        /// Second copies of the SACKs of thin streams.
        pub ack_copies: AckCopyConfig,
    }
}

impl Default for SackConfig {
    fn default() -> Self {
        let delay = Duration::from_millis(200);
        Self { delay, every: 2, ack_copies: AckCopyConfig::default() }
    }
}

impl SackConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        bound("sack.every", self.every.into(), 1, 255)?;
        if self.delay > MAX_SACK_DELAY {
            return Err(ConfigError::SackDelay);
        }
        let delay_us = usize::try_from(self.ack_copies.delay.as_micros()).unwrap_or(usize::MAX);
        bound("sack.ack_copies.delay (µs)", delay_us, 100, 100_000)
    }
}

config! {
    const
    /// Second copies of the SACKs of a thin stream, so that the loss of one packet causes no spurious
    /// retransmission. The receiver of the data sends them while the peer sends at most 16 packets with DATA
    /// per round trip, and no full packet. A copy reports what has arrived until it is sent, except
    /// duplicate TSNs, which are reported once. Concurrent multipath transfer disables copies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct AckCopyConfig {
        /// For which peers this side sends them. Default [`AckCopies::OnRequest`].
        pub send: AckCopies,
        /// Ask the peer to send them, with a parameter of INIT and INIT ACK that other implementations skip. Default false.
        pub request: bool,
        /// The time between a SACK and its copy, 0.1 to 100 ms. DATA that is sent before carries the copy. The peer's
        /// probe timer waits for the copy, too. With a longer delay, copies survive
        /// longer bursts of loss. Default 1 ms.
        pub delay: Duration,
        /// The limit on packets sent only for a copy, in percent of the packets that carry the acknowledged DATA and of
        /// those that carry original SACKs. Copies bundled with DATA are not limited; with zero there are no others.
        /// Default 50: a copy for each message whose SACK is sent alone.
        pub packets_percent: u8,
    }
}

impl Default for AckCopyConfig {
    fn default() -> Self {
        Self {
            send: AckCopies::OnRequest,
            request: false,
            delay: Duration::from_millis(1),
            packets_percent: 50,
        }
    }
}

/// For which peers the SACKs of thin streams are sent twice.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum AckCopies {
    /// For none.
    Off,
    /// For those that ask for it when the association is set up: [`AckCopyConfig::request`].
    #[default]
    OnRequest,
    /// For all, whatever implementation they run.
    Always,
}

/// Who chooses the local address of a path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SourceAddresses {
    /// The endpoint, which pairs its addresses with those of the peer: each address of the peer is reached from the one
    /// with the longest common prefix, and an address of ours that no path uses gets one of its own.
    #[default]
    Paired,
    /// The routes of the host, as for a socket of a kernel that is bound to a wildcard: our addresses are only listed, and
    /// a path to another address of the peer begins at the unspecified address, which the driver replaces.
    Routed,
}

config! {
    /// Settings for peers with several addresses.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct MultihomingConfig {
        /// HB.Max.Burst: how many unconfirmed addresses are probed at the same time. Default 1.
        pub heartbeat_max_burst: u8,
        /// Primary.Switchover.Max.Retrans: after more consecutive errors on the primary path, the path in use
        /// becomes the primary one, so that data does not return to the old one (RFC 7829 §5). With `None` it
        /// returns. Default `None`.
        pub primary_switchover_max_retrans: Option<u32>,
        /// Whether events and statistics show potentially failed paths as such; otherwise as active (RFC 7829
        /// §3.2 rule 12). Default true.
        pub report_potentially_failed: bool,
    }
}

config! {
    /// Authenticated chunks (RFC 4895).
    #[derive(Clone, Debug, Default)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct AuthenticationConfig {
        /// Types of chunks that are accepted only if authenticated, in addition to ASCONF and ASCONF-ACK (RFC
        /// 4895 §3.2), also from peers without RFC 4895. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH are not
        /// allowed here. At most [`MAX_AUTHENTICATED_CHUNKS`]. Default none.
        pub chunks: Vec<u8>,
        /// The endpoint pair shared keys; the first is used at the beginning. Without any, the key is
        /// computed from the handshake alone (RFC 4895 §6.1), which does not protect against an attacker who
        /// saw it. Never shown by `Debug`, nor stored in files. Default none.
        #[cfg_attr(feature = "serde", serde(skip))]
        pub keys: Vec<SharedKey>,
    }
}

impl Default for MultihomingConfig {
    fn default() -> Self {
        Self {
            heartbeat_max_burst: 1,
            primary_switchover_max_retrans: None,
            report_potentially_failed: true,
        }
    }
}

impl MultihomingConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        bound("multihoming.heartbeat_max_burst", self.heartbeat_max_burst.into(), 1, 255)
    }
}

impl AuthenticationConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        bound("authentication.chunks", self.chunks.len(), 0, MAX_AUTHENTICATED_CHUNKS)?;
        bound("authentication.keys", self.keys.len(), 0, MAX_SHARED_KEYS)?;
        let is_wrong = |chunk: &&u8| !may_be_authenticated(**chunk);
        let wrong = self.chunks.iter().find(is_wrong);
        wrong.map_or(Ok(()), |&chunk| Err(ConfigError::AuthenticatedChunk(chunk)))
    }
}
