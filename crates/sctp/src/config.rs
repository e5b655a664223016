//! Parameters of endpoints and associations. Names and values in parentheses are those of RFC 9260 §16.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;
use rexmit_recovery::{InvalidRecovery, RecoveryConfig};
use serde::Serialize;

use crate::Scheduling;
use crate::association::{MAX_SHARED_KEYS, SharedKey};
use crate::wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN, may_be_authenticated};

/// The least value of `max_packet_bytes`: every IPv4 host accepts datagrams of 576 bytes, of which IP and UDP
/// headers use some.
pub const MIN_PACKET_BYTES: usize = 512;
/// The largest value of `max_packet_bytes`: an IPv4 datagram with a UDP header, less a margin.
pub const MAX_PACKET_BYTES: usize = 65_000;
/// The least value of `receive_buffer_bytes`. RFC 9260 §3.3.2 requires a first window of at least 1500 bytes.
pub const MIN_RECEIVE_BUFFER_BYTES: usize = 4096;
/// The longest SACK delay (RFC 9260 §6.2).
pub const MAX_SACK_DELAY: Duration = Duration::from_millis(500);
/// The `dead_after` of the profiles for thin streams: a peer silent for this long is unreachable.
const DEAD_AFTER: Duration = Duration::from_secs(15);
/// The buffers of the profiles for large transfers: more than 300 Mbit/s over a round trip of 100 ms.
const BULK_BUFFER_BYTES: usize = 4 << 20;
/// The most addresses of either side of an association; those of a peer beyond it are ignored.
pub const MAX_ADDRESSES: usize = 8;

/// The most types of chunks that a peer can be asked to authenticate.
pub const MAX_AUTHENTICATED_CHUNKS: usize = 32;

config! {
    /// An SCTP endpoint: a local port and all associations on it.
    #[derive(Clone, Debug)]
    pub struct EndpointConfig {
        /// The local SCTP port. A driver may choose one for 0, as the crate `rexmit` does; the state machine itself
        /// refuses 0 (RFC 9260 §3.1). Default 5000.
        pub port: u16,
        /// Whether associations that peers ask for are accepted. Default false.
        pub accept: bool,
        /// The most associations at one time; an INIT beyond it is answered with ABORT "Out of Resource".
        /// Default 200,000.
        pub max_associations: usize,
        /// Lifetime of a state cookie (Valid.Cookie.Life, 60 s).
        pub cookie_lifetime: Duration,
        /// How long a secret signs cookies; cookies of the previous secret are still accepted (RFC 9260
        /// §5.1.3). Default one hour.
        pub cookie_secret_lifetime: Duration,
        /// Our addresses. INIT and INIT ACK list those whose scope is no smaller than that of the peer's
        /// address, and packets are sent from them. An empty list makes the endpoint single-homed. At most
        /// [`MAX_ADDRESSES`]. Default empty.
        pub addresses: Vec<IpAddr>,
        /// The initial TSN of every association; `None` draws it at random, as RFC 9260 §3.3.2 recommends.
        /// Only for tests, which choose one near the wrap. Default `None`.
        pub initial_tsn: Option<u32>,
        /// The configuration of accepted associations, and of [`Endpoint::connect`].
        ///
        /// [`Endpoint::connect`]: crate::Endpoint::connect
        pub association: Arc<AssociationConfig>,
    }
}

config! {
    /// The configuration of an association: a recovery profile, and the values of RFC 9260 §16 for everything
    /// else. The default is [`interactive`](Self::interactive).
    #[derive(Clone, Debug, Serialize)]
    pub struct AssociationConfig {
        /// Loss recovery and congestion control. Default [`interactive`](RecoveryConfig::interactive).
        pub recovery: RecoveryConfig,
        /// Outgoing streams to request; the peer may allow fewer. Default 16.
        pub outbound_streams: u16,
        /// Incoming streams to accept. Default 2048.
        pub max_inbound_streams: u16,
        /// The largest SCTP packet in bytes, common header included: the path MTU less the headers below
        /// SCTP. The default of 1232 fits the smallest IPv6 MTU with UDP encapsulation. With `path_mtu`,
        /// packets become larger if the path allows it.
        pub max_packet_bytes: usize,
        /// Path MTU discovery; `None` is off. Default `None`.
        pub path_mtu: Option<PathMtuConfig>,
        /// The largest message in bytes, sent or received. [`Endpoint::send`](crate::Endpoint::send) refuses
        /// a larger one; for one of the peer see `oversized_messages`. Default 256 KiB.
        pub max_message_bytes: usize,
        /// What happens to a message of the peer that is larger than `max_message_bytes`. Default
        /// [`OversizedMessages::Drop`].
        pub oversized_messages: OversizedMessages,
        /// Receive buffer in bytes, which is the receive window advertised to the peer. Default 1 MiB.
        pub receive_buffer_bytes: usize,
        /// The most bytes accepted from the application and not yet acknowledged. Beyond 16,384 messages,
        /// each counts as at least 64 bytes. Default 1 MiB.
        pub send_buffer_bytes: usize,
        /// The most received DATA chunks that wait for reassembly or for earlier messages. Default 16,384.
        pub max_held_chunks: usize,
        /// The most ranges of TSNs received above the first missing one. Default 1024.
        pub max_gap_ranges: usize,
        /// When SACKs are sent, and how often.
        pub sack: SackConfig,
        /// The interval of HEARTBEATs on an idle path (HB.interval, 30 s); `None` sends none. At its
        /// heartbeat, an idle association also releases unused memory.
        pub heartbeat_interval: Option<Duration>,
        /// Association.Max.Retrans (10): with more consecutive timeouts the peer is unreachable (RFC 9260
        /// §8.1).
        pub association_max_retrans: u32,
        /// The peer is unreachable, and the association ends with
        /// [`CloseReason::Unreachable`](crate::CloseReason::Unreachable), if nothing was received from it for
        /// this long while data is sent to it. The time runs from the first DATA chunk after the peer's last
        /// packet, and at least two consecutive timeouts must have expired. Default 15 s for `interactive`,
        /// `interactive_redundant` and `mixed`; `None` for the others, which leaves it to
        /// `association_max_retrans` (RFC 9260 §8.1), that is, minutes.
        pub dead_after: Option<Duration>,
        /// Path.Max.Retrans (5): with more consecutive errors a path is inactive (RFC 9260 §8.2).
        pub path_max_retrans: u32,
        /// Settings for peers with several addresses.
        pub multihoming: MultihomingConfig,
        /// Max.Init.Retransmits (8): the most retransmissions of INIT and of COOKIE ECHO. Those before
        /// RTO.Initial, which [`setup_by_rtt`](RecoveryConfig::setup_by_rtt) causes, are not counted.
        pub max_init_retransmits: u32,
        /// The round trip time to the peer, if the application knows it;
        /// [`setup_by_rtt`](RecoveryConfig::setup_by_rtt) then works for the first association, too. Default
        /// `None`.
        pub initial_rtt: Option<Duration>,
        /// T5-shutdown-guard: the association is aborted if a shutdown takes longer; `None` is five times
        /// RTO.Max (RFC 9260 §9.2). Default `None`.
        pub shutdown_guard: Option<Duration>,
        /// The stream scheduler, that is, the order in which streams send. Default round robin.
        pub scheduling: Scheduling,
        /// Whether to offer interleaving of messages (I-DATA, RFC 8260): a large message then delays messages
        /// of other streams by one chunk instead of its whole length. Each chunk is 4 bytes longer. Default
        /// true for `interactive`, `interactive_redundant` and `mixed`, otherwise false.
        pub interleaving: bool,
        /// Whether to accept packets without a checksum, and to send them to a peer that accepts them, too
        /// (RFC 9653). Only for packets that DTLS protects: encrypted endpoints set it. Default false.
        pub zero_checksum: bool,
        /// Whether to offer partial reliability (RFC 3758). Default true.
        pub partial_reliability: bool,
        /// Whether to offer stream reset (RFC 6525). Default true.
        pub stream_reset: bool,
        /// Whether to offer dynamic addresses (RFC 5061), and the authentication that they need (RFC 4895).
        /// INIT is 64 bytes longer; nothing else changes until an address does. Default true.
        pub dynamic_addresses: bool,
        /// Chunks that must be authenticated, and the keys for it (RFC 4895).
        pub authentication: AuthenticationConfig,
        /// Whether [`Event::MessageSent`](crate::Event::MessageSent) reports each message whose last chunk
        /// was sent. Default false.
        pub report_sent: bool,
        /// Whether [`Event::MessageAcknowledged`](crate::Event::MessageAcknowledged) reports each message
        /// that the peer has acknowledged. Default false.
        pub report_acknowledged: bool,
    }
}

/// What happens to a message of the peer that is larger than
/// [`max_message_bytes`](AssociationConfig::max_message_bytes).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OversizedMessages {
    /// The message is dropped, [`Event::MessageDropped`](crate::Event::MessageDropped) reports it, and the
    /// messages after it are delivered.
    #[default]
    Drop,
    /// The association is aborted.
    Abort,
}

config! {
    /// Path MTU discovery by probes (DPLPMTUD, RFC 8899), for each path. The search begins at
    /// [`max_packet_bytes`](AssociationConfig::max_packet_bytes), which every path must carry, when a packet
    /// is full for the first time and more data waits.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    fn validate(&self) -> Result<(), ConfigError> {
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
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    fn validate(&self) -> Result<(), ConfigError> {
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
    /// Second copies of the SACKs of a thin stream, so that one lost packet does not cost the sender of the data
    /// a retransmission that was not needed. The receiver of the data sends them, from at most 16 packets with DATA
    /// per round trip, none of which is full. A copy reports what has arrived until it is sent, except
    /// duplicate TSNs, which are reported once. Concurrent multipath transfer disables copies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    pub struct AckCopyConfig {
        /// For which peers this side sends them. Default [`AckCopies::OnRequest`].
        pub send: AckCopies,
        /// Ask the peer to send them, with a parameter of INIT and INIT ACK that others skip. Default false.
        pub request: bool,
        /// The time between a SACK and its copy, 0.1 to 100 ms. DATA that is sent before carries the copy. The peer's
        /// probe timer waits for the copy, too. A longer one survives longer bursts of loss. Default 1 ms.
        pub delay: Duration,
        /// The budget: packets that carry nothing but a copy, in percent of the packets of both directions with the
        /// DATA that they acknowledge and with first SACKs. Copies beside DATA are not limited, and zero leaves only
        /// those. Default 50: a copy for each message that is acknowledged alone.
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
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
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

config! {
    /// Settings for peers with several addresses.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct AuthenticationConfig {
        /// Types of chunks that are accepted only if authenticated, in addition to ASCONF and ASCONF-ACK (RFC
        /// 4895 §3.2), also from peers without RFC 4895. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH are not
        /// allowed here. At most [`MAX_AUTHENTICATED_CHUNKS`]. Default none.
        pub chunks: Vec<u8>,
        /// The endpoint pair shared keys; the first is used at the beginning. Without any, the key is
        /// computed from the handshake alone (RFC 4895 §6.1), which does not protect against an attacker who
        /// saw it. Never shown by `Debug`, nor stored in files. Default none.
        #[serde(skip)]
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

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            port: 5000,
            accept: false,
            max_associations: 200_000,
            cookie_lifetime: Duration::from_secs(60),
            cookie_secret_lifetime: Duration::from_secs(3600),
            addresses: Vec::new(),
            initial_tsn: None,
            association: Arc::default(),
        }
    }
}

/// An endpoint with this configuration of its associations, and defaults otherwise.
impl From<AssociationConfig> for EndpointConfig {
    fn from(association: AssociationConfig) -> Self {
        Self::default().association(Arc::new(association))
    }
}

impl Default for AssociationConfig {
    fn default() -> Self {
        Self::interactive()
    }
}

/// A constructor for each profile of SCTP.
macro_rules! profiles {
    ($($(#[$meaning:meta])* $name:ident)*) => {
        impl AssociationConfig {
            $(
                $(#[$meaning])*
                ///
                #[doc = concat!("The recovery is [`RecoveryConfig::", stringify!($name), "`].")]
                #[must_use]
                pub fn $name() -> Self {
                    Self::of_profile(stringify!($name), RecoveryConfig::$name())
                }
            )*
        }
    };
}

profiles! {
    /// RFC 9260 with its suggested values (§16).
    rfc9260
    /// Linux of 2006: RTO.Initial is 3 s, and a retransmission bundles outstanding data.
    lksctp
    /// Linux 6: [`lksctp`](Self::lksctp) whose T3-rtx keeps running when the oldest chunk is retransmitted fast.
    linux
    /// FreeBSD 6.2: RTO.Initial is 3 s, otherwise RFC 9260.
    freebsd
    /// FreeBSD 6.2 with Early Fast Retransmit.
    freebsd_efr
    /// `thin_2009`, with RTT samples of delayed ACKs.
    thin
    /// The four mechanisms for thin streams of Petlund 2009, as published.
    thin_2009
    /// `thin`; packets with new data bundle copies of data in flight.
    thin_bundling
    /// RFC 9260, robust to reordering and to sudden delays (RR-SCTP).
    rr
    /// `thin` with the mechanisms of `rr`.
    thin_rr
    /// RFC 9260 with F-RTO (RFC 5682).
    f_rto
    /// For small messages at a low rate that are urgent, as in games, terminals and signalling; bulk
    /// transfers are as fast as without it. The default.
    interactive
    /// `interactive` with redundant copies within a budget, for when latency matters more than bytes.
    interactive_redundant
    /// RFC 9260 with the reordering window of RACK (RFC 8985).
    rack
    /// For large transfers alone: CUBIC, paced, with RACK, and buffers of 4 MiB. It fills the queue of the path.
    bulk
    /// `interactive` for small messages beside large transfers in one association: keeps the queue of the
    /// path short, decides for each stream whether it is thin, schedules by priority, and has buffers of 4
    /// MiB.
    mixed
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Port 0 cannot be used (RFC 9260 §3.1).
    #[error("the SCTP port is 0; choose one from 1 to 65535")]
    PortZero,
    /// A value is out of its range.
    #[error("{name} is {value}; it must be from {min} to {max}")]
    OutOfBounds {
        /// The field.
        name: &'static str,
        /// The value given.
        value: usize,
        /// The least it may be.
        min: usize,
        /// The most it may be.
        max: usize,
    },
    /// A chunk of this type cannot be authenticated (RFC 4895 §3.2).
    #[error("chunks of type {0} cannot be authenticated")]
    AuthenticatedChunk(u8),
    /// Primary.Switchover.Max.Retrans is below the number of errors after which data leaves a path.
    #[error("primary_switchover_max_retrans is below the errors that make data leave a path")]
    Switchover,
    /// SACK.Delay must not be above 500 ms (RFC 9260 §6.2).
    #[error("the SACK delay is above 500 ms, which RFC 9260 §6.2 forbids")]
    SackDelay,
    /// The recovery configuration is invalid.
    #[error("recovery: {0}")]
    Recovery(#[from] InvalidRecovery),
}

fn bound(name: &'static str, value: usize, min: usize, max: usize) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::OutOfBounds { name, value, min, max })
    }
}

impl EndpointConfig {
    /// Checks that all values are within their ranges and fit together.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        bound("max_associations", self.max_associations, 1, 16 << 20)?;
        bound("addresses", self.addresses.len(), 0, MAX_ADDRESSES)?;
        bound(
            "cookie_secret_lifetime (s)",
            self.cookie_secret_lifetime.as_secs() as usize,
            self.cookie_lifetime.as_secs() as usize + 1,
            usize::MAX,
        )?;
        self.association.validate()
    }
}

impl AssociationConfig {
    /// The profile called `name`, one of [`PROFILES`](rexmit_recovery::PROFILES): for commands and files.
    /// A program that knows its profile calls the constructor of that name.
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        RecoveryConfig::profile(name).map(|recovery| Self::of_profile(name, recovery))
    }

    /// The profile called `name`; the interactive ones report a dead peer soon, and interleave messages. Those for
    /// large transfers have buffers of [`BULK_BUFFER_BYTES`].
    fn of_profile(name: &str, recovery: RecoveryConfig) -> Self {
        let is_mixed = name == "mixed";
        let interleaving = is_mixed || name.starts_with("interactive");
        let dead_after = interleaving.then_some(DEAD_AFTER);
        let config = Self { dead_after, interleaving, ..Self::new(recovery) };
        let scheduling = if is_mixed { Scheduling::Priority } else { config.scheduling };
        if !is_mixed && name != "bulk" {
            return config;
        }
        let (receive_buffer_bytes, send_buffer_bytes) = (BULK_BUFFER_BYTES, BULK_BUFFER_BYTES);
        Self { scheduling, receive_buffer_bytes, send_buffer_bytes, ..config }
    }

    /// The values of RFC 9260 §16 with the given loss recovery.
    #[must_use]
    pub fn new(recovery: RecoveryConfig) -> Self {
        Self {
            recovery,
            outbound_streams: 16,
            max_inbound_streams: 2048,
            max_packet_bytes: 1232,
            path_mtu: None,
            max_message_bytes: 256 * 1024,
            oversized_messages: OversizedMessages::Drop,
            receive_buffer_bytes: 1024 * 1024,
            send_buffer_bytes: 1024 * 1024,
            max_held_chunks: 16_384,
            max_gap_ranges: 1024,
            sack: SackConfig::default(),
            heartbeat_interval: Some(Duration::from_secs(30)),
            association_max_retrans: 10,
            dead_after: None,
            path_max_retrans: 5,
            multihoming: MultihomingConfig::default(),
            max_init_retransmits: 8,
            initial_rtt: None,
            shutdown_guard: None,
            scheduling: Scheduling::default(),
            interleaving: false,
            zero_checksum: false,
            partial_reliability: true,
            stream_reset: true,
            dynamic_addresses: true,
            authentication: AuthenticationConfig::default(),
            report_sent: false,
            report_acknowledged: false,
        }
    }

    /// Checks that all values are within their ranges and fit together.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        bound("max_packet_bytes", self.max_packet_bytes, MIN_PACKET_BYTES, MAX_PACKET_BYTES)?;
        self.path_mtu.as_ref().map_or(Ok(()), PathMtuConfig::validate)?;
        bound("outbound_streams", self.outbound_streams.into(), 1, 65_535)?;
        bound("max_inbound_streams", self.max_inbound_streams.into(), 1, 65_535)?;
        bound("max_message_bytes", self.max_message_bytes, 1, self.receive_buffer_bytes)?;
        bound(
            "receive_buffer_bytes",
            self.receive_buffer_bytes,
            MIN_RECEIVE_BUFFER_BYTES,
            1 << 30,
        )?;
        bound("send_buffer_bytes", self.send_buffer_bytes, 1, 1 << 30)?;
        bound("max_held_chunks", self.max_held_chunks, 16, 1 << 24)?;
        bound("max_gap_ranges", self.max_gap_ranges, 1, 16_384)?;
        self.sack.validate()?;
        bound(
            "multihoming.heartbeat_max_burst",
            self.multihoming.heartbeat_max_burst.into(),
            1,
            255,
        )?;
        bound(
            "authentication.chunks",
            self.authentication.chunks.len(),
            0,
            MAX_AUTHENTICATED_CHUNKS,
        )?;
        bound("authentication.keys", self.authentication.keys.len(), 0, MAX_SHARED_KEYS)?;
        let is_wrong = |chunk: &&u8| !may_be_authenticated(**chunk);
        if let Some(&chunk) = self.authentication.chunks.iter().find(is_wrong) {
            return Err(ConfigError::AuthenticatedChunk(chunk));
        }
        let limit = self.path_max_retrans;
        let leaves_at =
            self.recovery.sctp.potentially_failed_max_retrans.unwrap_or(limit).min(limit);
        if self.multihoming.primary_switchover_max_retrans.is_some_and(|most| most < leaves_at) {
            return Err(ConfigError::Switchover);
        }
        Ok(self.recovery.validate()?)
    }

    /// Sets the [`delay`](SackConfig::delay) of `sack`.
    #[must_use]
    pub const fn sack_delay(mut self, delay: Duration) -> Self {
        self.sack.delay = delay;
        self
    }

    /// Sets [`every`](SackConfig::every) of `sack`.
    #[must_use]
    pub const fn sack_every(mut self, every: u8) -> Self {
        self.sack.every = every;
        self
    }

    /// Sets the [`ack_copies`](SackConfig::ack_copies) of `sack`.
    #[must_use]
    pub const fn ack_copies(mut self, ack_copies: AckCopyConfig) -> Self {
        self.sack.ack_copies = ack_copies;
        self
    }

    /// Whether authentication is offered (RFC 4895).
    pub(crate) const fn offers_authentication(&self) -> bool {
        self.dynamic_addresses || !self.authentication.chunks.is_empty()
    }

    /// The window that INIT and INIT ACK offer.
    pub(crate) fn a_rwnd(&self) -> u32 {
        u32::try_from(self.receive_buffer_bytes).unwrap_or(u32::MAX)
    }

    /// PMDCS: the largest DATA chunk of a packet, header included.
    pub(crate) const fn pmdcs(&self) -> u32 {
        pmdcs_of(self.max_packet_bytes)
    }

    /// The largest payload of a DATA chunk: that of a packet with this chunk only.
    pub(crate) const fn max_fragment(&self) -> usize {
        self.pmdcs() as usize - DATA_HEADER_LEN
    }

    pub(crate) fn guard_of_shutdown(&self) -> Duration {
        self.shutdown_guard.unwrap_or(self.recovery.rto.max * 5)
    }
}

/// The largest chunk of a packet of `packet_bytes`, header included.
pub(crate) const fn pmdcs_of(packet_bytes: usize) -> u32 {
    ((packet_bytes & !3) - COMMON_HEADER_LEN) as u32
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use super::*;

    #[test]
    fn the_default_is_interactive() {
        assert_eq!(EndpointConfig::default().validate(), Ok(()));
        for config in
            [AssociationConfig::default(), (*EndpointConfig::default().association).clone()]
        {
            assert_eq!(Some(&config.recovery), RecoveryConfig::profile("interactive").as_ref());
        }
    }

    #[test]
    fn each_constructor_is_the_profile_of_its_name() {
        let constructors = [
            AssociationConfig::rfc9260,
            AssociationConfig::lksctp,
            AssociationConfig::linux,
            AssociationConfig::freebsd,
            AssociationConfig::freebsd_efr,
            AssociationConfig::thin,
            AssociationConfig::thin_2009,
            AssociationConfig::thin_bundling,
            AssociationConfig::rr,
            AssociationConfig::thin_rr,
            AssociationConfig::f_rto,
            AssociationConfig::interactive,
            AssociationConfig::interactive_redundant,
            AssociationConfig::rack,
            AssociationConfig::bulk,
            AssociationConfig::mixed,
        ];
        let names: Vec<_> = rexmit_recovery::PROFILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), constructors.len());
        for (name, constructor) in names.into_iter().zip(constructors) {
            let by_name = AssociationConfig::profile(name).expect("a profile");
            assert_eq!(by_name.recovery, constructor().recovery, "{name}");
            assert_eq!(constructor().validate(), Ok(()), "{name}");
        }
    }

    #[test]
    fn the_profile_rfc9260_has_the_values_of_its_section_16() {
        let config = AssociationConfig::rfc9260();
        let rto = &config.recovery.rto;
        let seconds = [rto.initial, rto.min, rto.max].map(|duration| duration.as_secs());
        assert_eq!(seconds, [1, 1, 60]);
        assert_eq!((rto.alpha_inverse, rto.beta_inverse), (8, 4));
        assert_eq!(config.recovery.max_burst, NonZeroU8::new(4));
        assert_eq!(EndpointConfig::default().cookie_lifetime, Duration::from_secs(60));
        let attempts =
            (config.association_max_retrans, config.path_max_retrans, config.max_init_retransmits);
        assert_eq!(attempts, (10, 5, 8));
        assert_eq!(config.multihoming.heartbeat_max_burst, 1);
        assert_eq!(config.heartbeat_interval, Some(Duration::from_secs(30)));
        assert_eq!(config.sack.delay, Duration::from_millis(200));
    }

    #[test]
    fn each_bound_is_checked() {
        let refused = |change: fn(&mut AssociationConfig)| {
            let mut config = AssociationConfig::default();
            change(&mut config);
            config.validate().is_err()
        };
        assert!(refused(|c| c.max_packet_bytes = 100));
        assert!(!refused(|c| c.path_mtu = Some(PathMtuConfig::default())));
        assert!(refused(|c| c.path_mtu = Some(PathMtuConfig::default().max_mtu(500))));
        assert!(refused(|c| c.path_mtu = Some(PathMtuConfig::default().max_probes(0))));
        assert!(refused(|c| c.path_mtu = Some(PathMtuConfig::default().record_bytes(513))));
        assert!(PathMtuConfig::default().raise_timer(Duration::from_secs(59)).validate().is_err());
        assert!(refused(|c| c.outbound_streams = 0));
        assert!(refused(|c| c.max_inbound_streams = 0));
        assert!(refused(|c| c.receive_buffer_bytes = 1000));
        assert!(refused(|c| c.max_message_bytes = c.receive_buffer_bytes + 1));
        assert!(refused(|c| c.send_buffer_bytes = 0));
        assert!(refused(|c| c.max_held_chunks = 0));
        assert!(refused(|c| c.max_gap_ranges = 0));
        assert!(refused(|c| c.sack.every = 0));
        assert!(refused(|c| c.sack.delay = Duration::from_millis(501)));
        assert!(refused(|c| c.sack.ack_copies.delay = Duration::from_micros(99)));
        assert!(refused(|c| c.sack.ack_copies.delay = Duration::from_millis(101)));
        assert!(refused(|c| c.multihoming.heartbeat_max_burst = 0));
        assert!(refused(|c| c.multihoming.primary_switchover_max_retrans = Some(4)));
        assert!(refused(|c| c.authentication.chunks = vec![1]));
        assert!(refused(|c| c.authentication.chunks = vec![0; 33]));
        assert!(refused(|c| c.authentication.keys = vec![SharedKey::new(1, b""); 9]));
        assert!(refused(|c| c.recovery.missing_reports = 0));
    }

    /// A driver may draw a port for 0 after the configuration was checked.
    #[test]
    fn port_0_is_refused_by_the_endpoint_and_not_before() {
        let config = EndpointConfig::default().port(0);
        assert_eq!(config.validate(), Ok(()));
        let refused = crate::Endpoint::new(config, &rexmit_core::Seed::from_u64(1));
        assert_eq!(refused.err(), Some(ConfigError::PortZero));
    }
}
