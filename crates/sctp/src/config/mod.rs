//! Parameters of endpoints and associations. Names and values in parentheses are those of RFC 9260 §16.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;
use rexmit_recovery::RecoveryConfig;
#[cfg(feature = "serde")]
use serde::Serialize;

use error::bound;
pub use error::{
    ConfigError, MAX_ADDRESSES, MAX_AUTHENTICATED_CHUNKS, MAX_HOST_ADDRESSES, MAX_PACKET_BYTES,
    MAX_SACK_DELAY, MAX_SHARDS, MIN_PACKET_BYTES, MIN_RECEIVE_BUFFER_BYTES,
};
pub use parts::{
    AckCopies, AckCopyConfig, AuthenticationConfig, BufferConfig, ExtensionConfig, FailureConfig,
    HandshakeConfig, MessageConfig, MultihomingConfig, OversizedMessages, PathMtuConfig,
    SackConfig, SourceAddresses, StreamConfig,
};

use crate::Scheduling;
use crate::wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN};

pub(crate) mod error;
mod parts;
#[cfg(feature = "settings")]
mod settings;

/// The `dead_after` of the profiles for thin streams: a peer silent for this long is unreachable.
const DEAD_AFTER: Duration = Duration::from_secs(15);
/// The buffers of the profiles for large transfers: more than 300 Mbit/s over a round trip of 100 ms.
const BULK_BUFFER_BYTES: usize = 4 << 20;
/// The largest path MTU, in bytes, for which `bulk` and `mixed` search. Beyond Ethernet's a search costs packets that few
/// paths of the Internet carry.
const BULK_MAX_MTU: u16 = 1500;

config! {
    /// An SCTP endpoint: a local port and all associations on it.
    #[derive(Clone, Debug)]
    pub struct EndpointConfig {
        /// The local SCTP port. A driver may choose one for 0, as the crate `rexmit` does; the state machine itself
        /// refuses 0 (RFC 9260 §3.1). Default 5000.
        pub port: u16,
        /// Whether associations initiated by peers are accepted. Default false.
        pub accept: bool,
        /// The most simultaneous associations; further INITs are answered with ABORT "Out of Resource". Default
        /// 200,000.
        pub max_associations: usize,
        /// The most bytes that all associations hold of received data until the application reads it, with 256 more for each
        /// chunk and message. At the limit an association holds at most 16 KiB, or what it had; one without a message to
        /// read gets one packet at a time beyond that, up to its own receive buffer. Default 256 MiB.
        pub max_receive_bytes: usize,
        /// Lifetime of a state cookie (Valid.Cookie.Life, 60 s).
        pub cookie_lifetime: Duration,
        /// The time for which a secret signs cookies; cookies of the previous secret are still accepted (RFC 9260
        /// §5.1.3). Default one hour.
        pub cookie_secret_lifetime: Duration,
        /// Our addresses. INIT and INIT ACK list those whose scope is no smaller than that of the peer's
        /// address. An empty list makes the endpoint single-homed. At most [`MAX_ADDRESSES`]. Default empty.
        pub addresses: Vec<IpAddr>,
        /// Which of them packets are sent from. Default [`SourceAddresses::Paired`].
        pub source_addresses: SourceAddresses,
        /// Sockets of the endpoint, each with a task and a state machine of its own, for servers with several processors. A
        /// driver provides them, as the crate `rexmit` does on Linux; the state machine itself refuses more than one. Limits
        /// are those of all shards together, and each has an equal part. 1 to [`MAX_SHARDS`]. Default 1.
        pub shards: usize,
        /// The initial TSN of every association; `None` draws it at random, as RFC 9260 §3.3.2 recommends.
        /// Only for tests, which choose one near the wrap. Default `None`.
        pub initial_tsn: Option<u32>,
        /// The configuration of accepted associations, and of [`Endpoint::connect`]. Default
        /// [`AssociationConfig::interactive`].
        ///
        /// [`Endpoint::connect`]: crate::Endpoint::connect
        pub association: Arc<AssociationConfig>,
    }
}

config! {
    /// The configuration of an association: a recovery profile, and the values of RFC 9260 §16 for everything
    /// else. The default is [`interactive`](Self::interactive).
    #[derive(Clone, Debug)]
    #[cfg_attr(feature = "serde", derive(Serialize))]
    pub struct AssociationConfig {
        /// Loss recovery and congestion control. Default [`interactive`](RecoveryConfig::interactive).
        pub recovery: RecoveryConfig,
        /// Streams, and which of them sends next.
        pub streams: StreamConfig as with_streams,
        /// Messages: how large they may be, and what is reported of them.
        pub messages: MessageConfig as with_messages,
        /// Memory for data sent and received.
        pub buffers: BufferConfig as with_buffers,
        /// The largest SCTP packet in bytes, common header included: the path MTU less the headers below
        /// SCTP. The default of 1232 fits the smallest IPv6 MTU with UDP encapsulation. With `path_mtu`,
        /// packets become larger if the path allows it.
        pub max_packet_bytes: usize,
        /// Path MTU discovery; `None` is off. Default `None`; `bulk` and `mixed` search for up to 1500 bytes.
        pub path_mtu: Option<PathMtuConfig>,
        /// When SACKs are sent, and how often.
        pub sack: SackConfig,
        /// When a path, or the peer, counts as unreachable.
        pub failure: FailureConfig as with_failure,
        /// Settings for peers with several addresses.
        pub multihoming: MultihomingConfig,
        /// How the association is set up.
        pub handshake: HandshakeConfig as with_handshake,
        /// T5-shutdown-guard: the association is aborted if a shutdown takes longer; `None` is five times
        /// RTO.Max (RFC 9260 §9.2). Default `None`.
        pub shutdown_guard: Option<Duration>,
        /// Extensions of SCTP that are offered to the peer.
        pub extensions: ExtensionConfig as with_extensions,
        /// Chunks that must be authenticated, and the keys for it (RFC 4895).
        pub authentication: AuthenticationConfig,
    }
}

/// Setters of fields in the parts of an [`AssociationConfig`].
macro_rules! setters_of_parts {
    ($($part:ident: $type:ident { $($setter:ident => $field:ident: $kind:ty),* $(,)? })*) => {
        impl AssociationConfig {$($(
            #[doc = concat!(
                "Sets [`", stringify!($field), "`](", stringify!($type), "#structfield.", stringify!($field),
                ") of [`", stringify!($part), "`](Self#structfield.", stringify!($part), ")."
            )]
            #[must_use]
            pub const fn $setter(mut self, $setter: $kind) -> Self {
                self.$part.$field = $setter;
                self
            }
        )*)*}
    };
}

setters_of_parts! {
    streams: StreamConfig {
        outbound_streams => outbound: u16,
        max_inbound_streams => max_inbound: u16,
        scheduling => scheduling: Scheduling,
    }
    messages: MessageConfig {
        max_message_bytes => max_bytes: usize,
        oversized_messages => oversized: OversizedMessages,
        report_sent => report_sent: bool,
        report_acknowledged => report_acknowledged: bool,
    }
    buffers: BufferConfig {
        receive_buffer_bytes => receive_bytes: usize,
        send_buffer_bytes => send_bytes: usize,
        max_held_chunks => max_held_chunks: usize,
        max_gap_ranges => max_gap_ranges: usize,
    }
    sack: SackConfig {
        sack_delay => delay: Duration,
        sack_every => every: u8,
        ack_copies => ack_copies: AckCopyConfig,
    }
    failure: FailureConfig {
        heartbeat_interval => heartbeat_interval: Option<Duration>,
        association_max_retrans => association_max_retrans: u32,
        path_max_retrans => path_max_retrans: u32,
        dead_after => dead_after: Option<Duration>,
    }
    handshake: HandshakeConfig {
        max_init_retransmits => max_init_retransmits: u32,
        initial_rtt => initial_rtt: Option<Duration>,
    }
    extensions: ExtensionConfig {
        interleaving => interleaving: bool,
        zero_checksum => zero_checksum: bool,
        ecn => ecn: bool,
        partial_reliability => partial_reliability: bool,
        stream_reset => stream_reset: bool,
        dynamic_addresses => dynamic_addresses: bool,
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            port: 5000,
            accept: false,
            max_associations: 200_000,
            max_receive_bytes: 256 << 20,
            cookie_lifetime: Duration::from_secs(60),
            cookie_secret_lifetime: Duration::from_secs(3600),
            addresses: Vec::new(),
            source_addresses: SourceAddresses::default(),
            shards: 1,
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
    /// Linux 6: [`lksctp`](Self::lksctp), but T3-rtx keeps running when the oldest chunk is fast retransmitted.
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
    /// `interactive` with one redundant copy of most messages, bundled with the next one: nearly no more packets, and
    /// less than twice the bytes. For messages less than a round trip apart.
    interactive_bundling
    /// `interactive` with redundant copies within a budget, for when latency matters more than bytes.
    interactive_redundant
    /// `interactive` for associations with several paths: retransmissions take the path that loses packets least
    /// often when the path of the first transmission has just lost one; new data takes the path with the lowest tail latency.
    interactive_multipath
    /// RFC 9260 with the reordering window of RACK (RFC 8985).
    rack
    /// For large transfers alone: CUBIC, paced, with RACK, buffers of 4 MiB, and packets as large as the path allows, up to
    /// 1500 bytes. It fills the queue of the path.
    bulk
    /// `interactive` for small messages beside large transfers in one association: keeps the queue of the
    /// path short, decides for each stream whether it is thin, schedules by priority, and has buffers of 4
    /// MiB and packets as large as the path allows, up to 1500 bytes.
    mixed
}

impl EndpointConfig {
    /// Checks that all values are within their ranges and fit together.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        bound("shards", self.shards, 1, MAX_SHARDS)?;
        let least = MIN_RECEIVE_BUFFER_BYTES * self.shards;
        bound("max_associations", self.max_associations, self.shards, 16 << 20)?;
        bound("max_receive_bytes", self.max_receive_bytes, least, usize::MAX)?;
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
    /// large transfers have buffers of [`BULK_BUFFER_BYTES`], and search for packets of up to [`BULK_MAX_MTU`]. All of these
    /// offer ECN.
    fn of_profile(name: &str, recovery: RecoveryConfig) -> Self {
        let mut config = Self::new(recovery);
        let is_mixed = name == "mixed";
        if is_mixed || name.starts_with("interactive") {
            config = config.dead_after(Some(DEAD_AFTER)).interleaving(true).ecn(true);
        }
        if is_mixed {
            config = config.scheduling(Scheduling::Priority);
        }
        if is_mixed || name == "bulk" {
            config.extensions.ecn = true;
            config.buffers.receive_bytes = BULK_BUFFER_BYTES;
            config.buffers.send_bytes = BULK_BUFFER_BYTES;
            config.path_mtu = Some(PathMtuConfig::default().max_mtu(BULK_MAX_MTU));
        }
        config
    }

    /// The values of RFC 9260 §16 with the given loss recovery.
    #[must_use]
    pub fn new(recovery: RecoveryConfig) -> Self {
        Self {
            recovery,
            streams: StreamConfig::default(),
            messages: MessageConfig::default(),
            buffers: BufferConfig::default(),
            max_packet_bytes: 1232,
            path_mtu: None,
            sack: SackConfig::default(),
            failure: FailureConfig::default(),
            multihoming: MultihomingConfig::default(),
            handshake: HandshakeConfig::default(),
            shutdown_guard: None,
            extensions: ExtensionConfig::default(),
            authentication: AuthenticationConfig::default(),
        }
    }

    /// Checks that all values are within their ranges and fit together.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        bound("max_packet_bytes", self.max_packet_bytes, MIN_PACKET_BYTES, MAX_PACKET_BYTES)?;
        self.path_mtu.as_ref().map_or(Ok(()), PathMtuConfig::validate)?;
        self.streams.validate()?;
        bound("max_message_bytes", self.messages.max_bytes, 1, self.buffers.receive_bytes)?;
        self.buffers.validate()?;
        self.sack.validate()?;
        self.multihoming.validate()?;
        self.authentication.validate()?;
        // Less ends every handshake, and more sends nothing for days.
        bound("rto.max (ms)", self.recovery.rto.max.as_millis() as usize, 10, 86_400_000)?;
        let limit = self.failure.path_max_retrans;
        let leaves_at =
            self.recovery.sctp.potentially_failed_max_retrans.unwrap_or(limit).min(limit);
        if self.multihoming.primary_switchover_max_retrans.is_some_and(|most| most < leaves_at) {
            return Err(ConfigError::Switchover);
        }
        Ok(self.recovery.validate_for_sctp()?)
    }

    /// Whether authentication is offered (RFC 4895).
    pub(crate) const fn offers_authentication(&self) -> bool {
        self.extensions.dynamic_addresses || !self.authentication.chunks.is_empty()
    }

    /// The window that INIT and INIT ACK offer.
    pub(crate) fn a_rwnd(&self) -> u32 {
        u32::try_from(self.buffers.receive_bytes).unwrap_or(u32::MAX)
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
    use crate::association::SharedKey;
    use rexmit_recovery::RtoConfig;

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
            AssociationConfig::interactive_bundling,
            AssociationConfig::interactive_redundant,
            AssociationConfig::interactive_multipath,
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
        let attempts = (
            config.failure.association_max_retrans,
            config.failure.path_max_retrans,
            config.handshake.max_init_retransmits,
        );
        assert_eq!(attempts, (10, 5, 8));
        assert_eq!(config.multihoming.heartbeat_max_burst, 1);
        assert_eq!(config.failure.heartbeat_interval, Some(Duration::from_secs(30)));
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
        assert!(refused(|c| c.streams.outbound = 0));
        assert!(refused(|c| c.streams.max_inbound = 0));
        assert!(refused(|c| c.buffers.receive_bytes = 1000));
        assert!(refused(|c| c.messages.max_bytes = c.buffers.receive_bytes + 1));
        assert!(refused(|c| c.buffers.send_bytes = 0));
        assert!(refused(|c| c.buffers.max_held_chunks = 0));
        assert!(refused(|c| c.buffers.max_gap_ranges = 0));
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
        for max in [Duration::from_micros(1), Duration::from_secs(86_401)] {
            let rto = RtoConfig::default().initial(max).min(max).max(max);
            let recovery = RecoveryConfig::rfc9260().rto(rto);
            assert!(AssociationConfig::new(recovery).validate().is_err());
        }
    }

    #[test]
    fn detectors_that_sctp_would_ignore_are_refused() {
        use rexmit_recovery::{LossDetection, Reordering};
        let check = |loss_detection| {
            let mut config = AssociationConfig::default();
            config.recovery.loss_detection = loss_detection;
            config.validate().map_err(|error| error.to_string())
        };
        assert_eq!(check(LossDetection::RFC_9260), Ok(()));
        assert_eq!(check(LossDetection::Rack), Ok(()));
        let scoreboard = LossDetection::Scoreboard { reordering: Reordering::Fixed };
        for detection in [LossDetection::DuplicateAcks, scoreboard] {
            let error = check(detection).expect_err("it is of TCP");
            assert!(error.contains("use missing_reports or rack"), "{error}");
        }
    }

    /// The endpoint refuses port 0, but the check of its configuration does not, because a driver may draw a port
    /// afterwards.
    #[test]
    fn port_0_is_refused_by_the_endpoint_and_not_before() {
        let config = EndpointConfig::default().port(0);
        assert_eq!(config.validate(), Ok(()));
        let refused = crate::Endpoint::new(config, &rexmit_core::Seed::from_u64(1));
        assert_eq!(refused.err(), Some(ConfigError::PortZero));
    }
}
