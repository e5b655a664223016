//! Parameters of endpoints and associations. The names in parentheses are RFC 9260 §16's.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;
use rexmit_recovery::{InvalidRecovery, RecoveryConfig};
use serde::Serialize;

use crate::Scheduling;
use crate::association::{MAX_SHARED_KEYS, SharedKey};
use crate::wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN, may_be_authenticated};

/// The smallest packet limit: every IPv4 host accepts 576 bytes, less IP and UDP headers.
pub const MIN_PACKET_BYTES: usize = 512;
/// The largest packet limit: what an IPv4 datagram with a UDP header holds, less a margin.
pub const MAX_PACKET_BYTES: usize = 65_000;
/// The smallest receive buffer: RFC 9260 §3.3.2 demands a first window of 1500 bytes.
pub const MIN_RECEIVE_BUFFER_BYTES: usize = 4096;
/// The longest SACK delay (RFC 9260 §6.2).
pub const MAX_SACK_DELAY: Duration = Duration::from_millis(500);
/// After this time without an answer a peer is unreachable, in the profiles for thin streams.
const DEAD_AFTER: Duration = Duration::from_secs(15);
/// The buffers of the profiles for large transfers: more than 300 Mbit/s over a round trip of 100 ms.
const BULK_BUFFER_BYTES: usize = 4 << 20;
/// Most addresses told to a peer, and taken from one.
pub const MAX_ADDRESSES: usize = 8;

/// Most types of chunks that a peer can be asked to authenticate.
pub const MAX_AUTHENTICATED_CHUNKS: usize = 32;

config! {
    /// One SCTP endpoint: a local port and everything that is served on it.
    #[derive(Clone, Debug)]
    pub struct EndpointConfig {
        /// The local SCTP port. A driver may choose one for 0, as the crate `rexmit` does; the state machine itself
        /// refuses 0 (RFC 9260 §3.1). Default 5000.
        pub port: u16,
        /// Whether associations that peers ask for are accepted. Default false.
        pub accept: bool,
        /// Associations at one time; more are refused with "Out of Resource". Default 200,000.
        pub max_associations: usize,
        /// Lifetime of a state cookie (Valid.Cookie.Life, 60 s).
        pub cookie_lifetime: Duration,
        /// How long one secret signs cookies; the one before it still verifies (RFC 9260 §5.1.3). Default one
        /// hour.
        pub cookie_secret_lifetime: Duration,
        /// Our addresses: told to a peer in INIT and INIT ACK if their scope is no smaller than that of the
        /// peer's address, and sent from. None makes the endpoint single-homed. Default none.
        pub addresses: Vec<IpAddr>,
        /// The first TSN of every association; `None` draws it at random, as RFC 9260 §3.3.2 asks for
        /// on an open network. Tests choose one near the wrap.
        pub initial_tsn: Option<u32>,
        /// The configuration of accepted associations, and of [`Endpoint::connect`].
        ///
        /// [`Endpoint::connect`]: crate::Endpoint::connect
        pub association: Arc<AssociationConfig>,
    }
}

config! {
    /// One association: a recovery profile, and RFC 9260's suggested values of the rest. The default is
    /// [`interactive`](Self::interactive).
    #[derive(Clone, Debug, Serialize)]
    pub struct AssociationConfig {
        /// Loss recovery. Default `interactive`.
        pub recovery: RecoveryConfig,
        /// Outgoing streams to ask for. Default 16.
        pub outbound_streams: u16,
        /// Incoming streams to accept. Default 2048.
        pub max_inbound_streams: u16,
        /// The largest SCTP packet, common header included; the path MTU less what is below SCTP.
        /// The default of 1232 fits the smallest IPv6 MTU, with UDP encapsulation. With `path_mtu` packets become
        /// larger where the path takes them.
        pub max_packet_bytes: usize,
        /// Path MTU discovery; `None` is off. Default `None`.
        pub path_mtu: Option<PathMtuConfig>,
        /// The largest message, in and out: a larger one is not accepted from the application, and one of the
        /// peer is treated as `oversized_messages` says. Default 256 KiB.
        pub max_message_bytes: usize,
        /// What happens to a message of the peer that is larger. Default [`OversizedMessages::Drop`].
        pub oversized_messages: OversizedMessages,
        /// Receive buffer in bytes; the receive window advertised to the peer. Default 1 MiB.
        pub receive_buffer_bytes: usize,
        /// Bytes accepted from the application and not yet acknowledged, at most; beyond 16,384 messages
        /// each counts as 64 bytes at least. Default 1 MiB.
        pub send_buffer_bytes: usize,
        /// DATA chunks that wait for reassembly or order, at most. Default 16,384.
        pub max_held_chunks: usize,
        /// Ranges of TSNs received above the first one missing, at most. Default 1024.
        pub max_gap_ranges: usize,
        /// When SACKs are sent, and how often.
        pub sack: SackConfig,
        /// HB.interval (30 s); `None` sends no HEARTBEAT. An association that is idle at its heartbeat
        /// gives back the memory that a burst has needed.
        pub heartbeat_interval: Option<Duration>,
        /// Association.Max.Retrans (10).
        pub association_max_retrans: u32,
        /// A peer that is silent for this long while data is sent to it is unreachable: the association
        /// ends with [`CloseReason::Unreachable`](crate::CloseReason::Unreachable). The time counts from
        /// the first DATA chunk after the peer's last packet, and at least two timeouts in a row must have
        /// expired. 15 s for `interactive`, `interactive_redundant` and `mixed`; `None` leaves it to
        /// `association_max_retrans`, as RFC 9260 §8.1 does (minutes), and is the default of the others.
        pub dead_after: Option<Duration>,
        /// Path.Max.Retrans (5).
        pub path_max_retrans: u32,
        /// Peers with several addresses.
        pub multihoming: MultihomingConfig,
        /// Max.Init.Retransmits (8). What is transmitted before RTO.Initial, by a known round-trip time, is not
        /// counted.
        pub max_init_retransmits: u32,
        /// The round-trip time to the peer, where it is known: the setup uses it as with
        /// [`setup_by_rtt`](RecoveryConfig::setup_by_rtt), before an earlier association told one. Default
        /// `None`.
        pub initial_rtt: Option<Duration>,
        /// T5-shutdown-guard; `None` takes five times RTO.Max (RFC 9260 §9.2). Default `None`.
        pub shutdown_guard: Option<Duration>,
        /// The order in which streams send (the stream scheduler). Default round robin.
        pub scheduling: Scheduling,
        /// Offer to interleave messages of different streams (I-DATA, RFC 8260): a large message then delays
        /// those of other streams by one chunk instead of the whole of it. It takes 4 bytes more of each
        /// chunk. Default true for `interactive`, `interactive_redundant` and `mixed`, otherwise false.
        pub interleaving: bool,
        /// Take packets without a checksum, and send them to a peer that takes them, too (RFC 9653). Only for
        /// packets that DTLS protects: the encrypted endpoints set it. Default false.
        pub zero_checksum: bool,
        /// Offer partial reliability (RFC 3758). Default true.
        pub partial_reliability: bool,
        /// Offer stream reset (RFC 6525). Default true.
        pub stream_reset: bool,
        /// Offer that either side's addresses may come and go (RFC 5061), with the authentication that this needs
        /// (RFC 4895). It costs 64 bytes of INIT, and nothing else until addresses change. Default true.
        pub dynamic_addresses: bool,
        /// Chunks that must be authenticated, and the keys for that.
        pub authentication: AuthenticationConfig,
        /// Report each message whose last chunk was sent. Default false.
        pub report_sent: bool,
        /// Report each message that the peer has acknowledged. Default false.
        pub report_acknowledged: bool,
    }
}

/// What happens to a message of the peer that is larger than
/// [`max_message_bytes`](AssociationConfig::max_message_bytes).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OversizedMessages {
    /// It is dropped, [`Event::MessageDropped`](crate::Event::MessageDropped) tells the application, and the
    /// messages after it are delivered.
    #[default]
    Drop,
    /// The association is aborted.
    Abort,
}

config! {
    /// Path MTU discovery by probes (DPLPMTUD, RFC 8899), for each path. It begins with
    /// [`max_packet_bytes`](AssociationConfig::max_packet_bytes), and with the first packet that was full while more data
    /// waited. Every path must take packets of that size.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct PathMtuConfig {
        /// The largest path MTU that is searched for, in bytes of an IP packet. Default 9000.
        pub max_mtu: u16,
        /// Lost probes of a size after which it is too large (MAX_PROBES, 3).
        pub max_probes: u8,
        /// After this time larger packets are tried again (PMTU_RAISE_TIMER, 600 s).
        pub raise_timer: Duration,
        /// Bytes of a packet below SCTP without its IP and UDP headers. The encrypted endpoints set it. Default 0.
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
        /// Packets after which an acknowledgement waits no longer. Default 2.
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
    /// What concerns peers with several addresses.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct MultihomingConfig {
        /// HB.Max.Burst (1): addresses that are probed at the same time until they are confirmed.
        pub heartbeat_max_burst: u8,
        /// Primary.Switchover.Max.Retrans: errors in a row on the primary path beyond which the path that works
        /// becomes the primary one, so that data do not return (RFC 7829 §5). `None` has them return. Default
        /// `None`.
        pub primary_switchover_max_retrans: Option<u32>,
        /// Report paths that may have failed; otherwise they count as active to the application (RFC 7829 §3.2
        /// rule 12). Default true.
        pub report_potentially_failed: bool,
    }
}

config! {
    /// Authenticated chunks (RFC 4895).
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct AuthenticationConfig {
        /// Types of chunks that are taken from a peer only if they are authenticated (RFC 4895 §3.2), beside
        /// ASCONF and ASCONF-ACK; also from peers that do not speak RFC 4895. INIT, INIT ACK, SHUTDOWN COMPLETE
        /// and AUTH cannot be. Default none.
        pub chunks: Vec<u8>,
        /// Keys that only the peers know, the one first that is used to begin with. Without any, what
        /// authenticates is what both said in the setup. Never shown nor stored. Default none.
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
    /// The four mechanisms for thin streams of Petlund 2009, and nothing else.
    thin_2009
    /// `thin`; packets with new data bundle copies of data in flight.
    thin_bundling
    /// RFC 9260, robust to reordering and to sudden delays (RR-SCTP).
    rr
    /// `thin`, robust as `rr`.
    thin_rr
    /// RFC 9260 with F-RTO (RFC 5682).
    f_rto
    /// For small messages at a low rate that are needed in time, as in games, terminals and signalling;
    /// bulk data lose nothing by it. The default.
    interactive
    /// `interactive` with redundant copies within a budget, where bytes matter less than time.
    interactive_redundant
    /// RFC 9260 with the reordering window of RACK (RFC 8985).
    rack
    /// For large transfers alone: CUBIC, paced, with RACK, and buffers of 4 MiB. It fills the queue of the path.
    bulk
    /// `interactive` for small messages beside large transfers in one association: it keeps the queue of the path
    /// short, judges each stream by itself, schedules by priority, and has buffers of 4 MiB.
    mixed
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Port 0 cannot be used (RFC 9260 §3.1).
    #[error("the SCTP port is 0; choose one from 1 to 65535")]
    PortZero,
    /// A limit is out of its bounds.
    #[error("{name} is {value}; it must be from {min} to {max}")]
    OutOfBounds {
        /// The field.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The least it may be.
        min: usize,
        /// The most it may be.
        max: usize,
    },
    /// A chunk of this type cannot be authenticated (RFC 4895 §3.2).
    #[error("chunks of type {0} cannot be authenticated")]
    AuthenticatedChunk(u8),
    /// Primary.Switchover.Max.Retrans must not be below the errors that make data leave a path.
    #[error("primary_switchover_max_retrans is below the errors that make data leave a path")]
    Switchover,
    /// SACK.Delay must not be above 500 ms (RFC 9260 §6.2).
    #[error("the SACK delay is above 500 ms, which RFC 9260 §6.2 forbids")]
    SackDelay,
    /// The recovery part makes no sense.
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
    /// Checks the values once, so that they can be trusted from here on.
    ///
    /// # Errors
    /// The first field that makes no sense.
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

    /// RFC 9260's suggested values (§16) with a recovery of one's own.
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

    /// Checks the values once, so that they can be trusted from here on.
    ///
    /// # Errors
    /// The first field that makes no sense.
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

    /// The largest payload of a DATA chunk: what fits beside nothing else.
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
