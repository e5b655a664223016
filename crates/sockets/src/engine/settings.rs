//! The options that a program has set on a socket, and the configuration that follows from them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_sctp::{
    AssociationConfig, MAX_PACKET_BYTES, MAX_SACK_DELAY, MIN_PACKET_BYTES, Scheduling,
};

use super::notifications::Type;
use super::option_names as options;
use crate::protocol::marks::Marks;
use crate::protocol::request::Key;

/// The packet size on routes of this machine to itself.
const LOOPBACK_PACKET_BYTES: usize = 32_000;
/// The least MTU of a route that counts as local.
pub(super) const LOOPBACK_MTU: usize = 60_000;
/// Header bytes of a packet with one DATA chunk.
const CHUNK_HEADERS: usize = 28;
/// The largest message of a peer: a message that fills the receive buffer cannot be reassembled.
const MAX_INBOUND_MESSAGE_BYTES: usize = 512 * 1024;

/// The send parameters if the program does not specify them (`SCTP_DEFAULT_SEND_PARAM`, `SCTP_DEFAULT_SNDINFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendDefaults {
    pub(super) stream: u16,
    pub(super) flags: u16,
    pub(super) ppid: u32,
    pub(super) context: u32,
    pub(super) time_to_live: u32,
}

/// The versions of IP that a socket uses: IPv4 of the family `AF_INET`; of `AF_INET6` both, or IPv6 alone (`IPV6_V6ONLY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    V4,
    V6,
    Both,
}

impl Versions {
    pub(super) fn include(self, ip: IpAddr) -> bool {
        match self {
            Self::V4 => ip.is_ipv4(),
            Self::V6 => !ip.to_canonical().is_ipv4(),
            Self::Both => true,
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) versions: Versions,
    /// The profile of the program, with its options applied.
    pub(super) config: AssociationConfig,
    /// Whether all associations share the receive window: those of a one-to-many socket.
    pub(super) shares_window: bool,
    /// The UDP port of peers.
    pub(super) peer_port: u16,
    /// The key of the program.
    pub(super) key: Key,
    pub(super) send: SendDefaults,
    /// The notifications that the program wants: `Type::bit`.
    pub(super) events: u16,
    /// Options that are kept for reading only, by name.
    pub(super) kept: BTreeMap<i32, u32>,
    /// `SCTP_MAXSEG`, 0 if not set.
    pub(super) max_segment: u32,
    /// Whether `close` aborts: `SO_LINGER` with a time of zero.
    pub(super) aborts_on_close: bool,
    /// Whether `close` waits for the end of the association: `SO_LINGER` with another time, which the caller measures.
    pub(super) lingers: bool,
    /// `SO_RCVLOWAT`, which is only kept: it has no effect for messages.
    pub(super) low_water: i32,
    /// `SO_REUSEPORT`.
    pub(super) reuses_port: bool,
    /// `SCTP_INITMSG`'s `sinit_max_init_timeo`, which is only kept.
    pub(super) max_init_timeout_ms: u16,
    /// `SCTP_ASSOCINFO`'s `sasoc_cookie_life`, which is only kept.
    pub(super) cookie_life_ms: u32,
}

impl Settings {
    pub(super) fn new(
        versions: Versions,
        mut profile: AssociationConfig,
        peer_port: u16,
        key: Key,
    ) -> Self {
        // The kernel's default.
        profile.streams.outbound = 10;
        if profile.streams.scheduling == Scheduling::RoundRobin {
            // The kernel's default, so that messages that wait are sent in the order of the calls.
            profile.streams.scheduling = Scheduling::FirstComeFirstServed;
        }
        // As the kernel (`pf_retrans`, `pf_expose`): after one timeout new data takes another path (RFC 7829), and programs do not
        // hear of it.
        profile.recovery.sctp.potentially_failed_max_retrans = Some(0);
        profile.multihoming.report_potentially_failed = false;
        profile.messages.max_bytes = MAX_INBOUND_MESSAGE_BYTES.min(profile.buffers.receive_bytes);
        Self {
            versions,
            config: profile,
            shares_window: false,
            peer_port,
            key,
            send: SendDefaults::default(),
            events: 0,
            kept: BTreeMap::new(),
            max_segment: 0,
            aborts_on_close: false,
            lingers: false,
            low_water: 1,
            reuses_port: false,
            max_init_timeout_ms: 60_000,
            cookie_life_ms: 60_000,
        }
    }

    /// The configuration of associations over a route with this MTU.
    pub(super) fn association(&self, mtu: usize) -> Arc<AssociationConfig> {
        let mut config = self.config.clone();
        if mtu >= LOOPBACK_MTU {
            config.max_packet_bytes = LOOPBACK_PACKET_BYTES;
        }
        if self.max_segment != 0 {
            let most = self.max_segment as usize + CHUNK_HEADERS;
            let least = MIN_PACKET_BYTES.min(config.max_packet_bytes);
            config.max_packet_bytes = most.clamp(least, config.max_packet_bytes);
        }
        debug_assert!(config.max_packet_bytes <= MAX_PACKET_BYTES);
        Arc::new(config)
    }

    /// The options that the library has to know.
    pub(super) fn marks(&self) -> Marks {
        let is_set = |name: i32| self.kept.get(&name).is_some_and(|value| *value != 0);
        Marks {
            has_sndrcv: self.events & Type::DataIo.bit() != 0,
            has_rcvinfo: is_set(options::RECV_RCVINFO),
            has_nxtinfo: is_set(options::RECV_NXTINFO),
            is_unfragmented: is_set(options::DISABLE_FRAGMENTS),
            is_ipv6_only: self.versions == Versions::V6,
            was_over: false,
        }
    }

    /// The time without data after which an association ends; none: never.
    pub(super) fn autoclose(&self) -> Option<Duration> {
        let seconds = self.kept.get(&options::AUTO_CLOSE).filter(|seconds| **seconds != 0);
        seconds.map(|seconds| Duration::from_secs((*seconds).into()))
    }

    /// The largest payload of a chunk, whatever the path.
    pub(super) fn fragment_bytes(&self) -> u32 {
        self.fragment_of(None)
    }

    /// The largest payload of a chunk in packets of this size.
    pub(super) fn fragment_of(&self, packet_bytes: Option<usize>) -> u32 {
        let packet_bytes = packet_bytes.unwrap_or(self.config.max_packet_bytes);
        let most = packet_bytes.saturating_sub(CHUNK_HEADERS) as u32;
        if self.max_segment == 0 { most } else { self.max_segment.min(most) }
    }

    pub(super) fn set_receive_buffer(&mut self, bytes: usize) {
        let least = self.config.messages.max_bytes;
        self.config.buffers.receive_bytes = bytes.clamp(least, 16 << 20);
    }

    pub(super) fn set_send_buffer(&mut self, bytes: usize) {
        // A message that fits must be accepted whatever was set.
        self.config.buffers.send_bytes = bytes.clamp(super::pair::MAX_MESSAGE_BYTES, 16 << 20);
    }

    pub(super) fn set_sack_delay(&mut self, delay_ms: u32) {
        self.config.sack.delay = Duration::from_millis(delay_ms.into()).min(MAX_SACK_DELAY);
    }
}
