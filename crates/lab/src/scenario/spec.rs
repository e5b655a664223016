//! The parts of a scenario, as in scenario files.

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::path::PathConfig;
use serde::{Deserialize, Serialize};

use super::kernel_hosts::KernelHosts;
use super::overrides::Overrides;
use super::traffic::Traffic;
use super::words::{Size, Time, Words};

/// One run.
///
/// Values are text: times such as `250ms` or `2h`, sizes such as `64kb`, paths in netem's notation
/// (`delay 50ms loss 5%`), traffic in the [notation of `Traffic`](super::Traffic).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Length of the sending phase; outstanding data may still arrive within
    /// [`drain`](Self::drain).
    pub duration: Words<Time>,
    /// Time limit for outstanding data to arrive at the end. Default 300 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Words<Time>>,
    /// The clock of the run. Default virtual time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub clock: Clock,
    /// Whether the outcome has a [`MessageRow`](super::MessageRow) per message; memory then grows
    /// with the run. Default `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rows: bool,
    /// The length of the bins in which goodput is counted. Default 100 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin: Option<Words<Time>>,
    /// A label that is mixed into the seed: scenarios of the same seed and different labels draw
    /// different random numbers. By default, scenarios of the same seed draw the same, so that
    /// differences between them are not due to chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<String>,
    /// The network between the ends of all flows.
    pub network: NetworkSpec,
    /// A second network: flows over both have an address on each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_network: Option<NetworkSpec>,
    /// Flows between hosts of a kernel, by name, for `clock = "kernel"`. The other flows use the transports of this
    /// program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, KernelHosts>,
    /// Thin streams, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thin: BTreeMap<String, ThinFlow>,
    /// Greedy transfers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bulk: BTreeMap<String, BulkFlow>,
    /// Web clients and their server, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub web: BTreeMap<String, WebFlow>,
    /// UDP packets, without retransmission or congestion control, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub udp: BTreeMap<String, UdpFlow>,
}

/// The clock of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Virtual time: as fast as the processor allows, and reproducible.
    #[default]
    Virtual,
    /// Real sockets, through the emulator.
    Real,
    /// Virtual time inside a kernel, whose namespaces are the [hosts](Scenario::hosts) of flows.
    Kernel,
}

/// The network of a scenario: one path in each direction, shared by all flows.
///
/// A single flow without an edge runs between two hosts at the ends of this path. Several flows
/// have two hosts each, on both sides of two routers, and the path lies between the routers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// The path from the senders of the flows to their receivers.
    pub forward: Words<PathConfig>,
    /// The path back; default [`forward`](Self::forward).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Words<PathConfig>>,
    /// The path, in both directions, between the sender of a flow and its router, unless the flow
    /// overrides it. Default perfect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
    /// The path, in both directions, between the receiver of every flow and its router. Default
    /// perfect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_edge: Option<Words<PathConfig>>,
    /// Changes of the shared path over time; `loss 100%` for a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// A change of the shared path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The time of the change.
    pub at: Words<Time>,
    /// The forward path from then on; unchanged if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Words<PathConfig>>,
    /// The backward path from then on; unchanged if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Words<PathConfig>>,
}

/// The networks that a flow uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// [`Scenario::network`].
    #[default]
    First,
    /// [`Scenario::second_network`].
    Second,
    /// Both networks; SCTP only.
    Both,
}

impl Over {
    /// Whether the flow has an address on the first or the second network.
    pub(super) const fn is_on(self, network: usize) -> bool {
        match self {
            Self::First => network == 0,
            Self::Second => network == 1,
            Self::Both => true,
        }
    }
}

/// The protocol and implementation that carries a flow.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// SCTP over IP.
    #[default]
    Sctp,
    /// TCP over IP.
    Tcp,
    /// dcsctp, see [`rivals`](crate::rivals).
    #[serde(rename = "dcsctp")]
    DcSctp,
    /// sctp-proto, see [`rivals`](crate::rivals).
    #[serde(rename = "sctp-proto")]
    SctpProto,
    /// KCP over UDP, see [`rivals`](crate::rivals).
    Kcp,
    /// quinn (QUIC) over UDP, see [`rivals`](crate::rivals).
    Quinn,
}

/// The protocol between SCTP and IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encapsulation {
    /// None: SCTP directly over IP.
    #[default]
    None,
    /// UDP (RFC 6951), with a header of 8 bytes in each packet.
    Udp,
}

/// The receiving end of a flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverSpec {
    /// The receiver's recovery profile, which is relevant during the handshake. Default that of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The delay of its acknowledgements. Default that of the transport: 200 ms for SCTP, 40 ms for
    /// TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Words<Time>>,
    /// SCTP: the sender asks for a second copy of each SACK, which the receiver sends this time after the first, within
    /// its default budget. Default no copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_copies: Option<Words<Time>>,
    /// The size of its receive buffer. Default 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Words<Size>>,
    /// Overrides of the profile: `cmt.delayed_ack` concerns both ends.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
}

/// A [bound](crate::bound) with which a flow is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// The bound of [`Strategy::Reactive`](crate::bound::Strategy::Reactive).
    Reactive,
    /// The bound of [`Strategy::Doubled`](crate::bound::Strategy::Doubled).
    Doubled,
    /// The bound of [`Strategy::Bundled`](crate::bound::Strategy::Bundled), for messages at
    /// constant intervals.
    Bundled,
    /// The bound of [`Strategy::BundledOnce`](crate::bound::Strategy::BundledOnce), for messages at
    /// constant intervals.
    BundledOnce,
}

/// A stream of messages over one connection, or over several of the same kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinFlow {
    /// The times and sizes of the messages.
    pub traffic: Words<Traffic>,
    /// Number of connections, each with its own messages, all over the shared path and measured
    /// together. Their start times are spread over one second. Default 1, at most 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// The transport. Default SCTP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: TransportKind,
    /// The encapsulation of SCTP, of rexmit or another implementation. Default IP without UDP. Not
    /// applicable to implementations over UDP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encapsulation: Encapsulation,
    /// The recovery profile of the sender. Default that of the standard: `rfc9260` or `tcp-sack`.
    /// For another implementation: the profile of both ends, by default `default` or `turbo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Overrides of the profile.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
    /// The largest IP packet of the connection. Default that of the transport: 1252 bytes for SCTP,
    /// 1500 for TCP. Without it, the profiles `bulk` and `mixed` search for up to 1500 bytes (DPLPMTUD).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Words<Size>>,
    /// The size of the send buffer, which contains accepted and unacknowledged data. Default 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Words<Size>>,
    /// Whether messages are delivered unordered (SCTP). Default `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unordered: bool,
    /// Whether a greedy transfer uses another stream of the same association, with a lower priority than the messages
    /// (SCTP). Its goodput is `transfer.goodput`; both ends then have the settings of the profile, and buffers of 8
    /// MiB. Default `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transfer: bool,
    /// Whether Nagle's algorithm is enabled (TCP). Default `false`, as in interactive applications.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nagle: bool,
    /// The receiving end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub receiver: ReceiverSpec,
    /// When its connection is opened; the first message is due when it is established. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// The networks that it uses. Default the first; SCTP may use both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// The edge path of this flow; default that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
    /// Theoretical bounds with which its latency is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundKind>,
    /// Latency limits; the share of messages that exceed each is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Words<Time>>,
}

/// A greedy transfer over one connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkFlow {
    /// The transport. Default SCTP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: TransportKind,
    /// The recovery profile of the sender. Default that of the standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Overrides of the profile.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
    /// The largest IP packet of the connection. Default that of the transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Words<Size>>,
    /// The size of the send buffer, which contains accepted and unacknowledged data. Default 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Words<Size>>,
    /// Whether messages, one per packet, are delivered unordered (SCTP). Default `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unordered: bool,
    /// Whether only its goodput is measured, which makes runs with many flows faster. Default
    /// `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub background: bool,
    /// The receiving end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub receiver: ReceiverSpec,
    /// When its connection is opened. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// The networks that it uses. Default the first; SCTP may use both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// The edge path of this flow; default that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
}

/// Web clients that request files from a server over TCP, each over a connection of its own; the
/// server is on the side of the senders. The defaults are the load of Petlund 2009 §6.2.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebFlow {
    /// Number of clients. Default 81.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Mean time between two requests of a client. Default 655 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Words<Time>>,
    /// The smallest file, in bytes. Default 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u32>,
    /// The mean size of a file, in bytes. Default 9200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bytes: Option<f64>,
    /// The largest file, in bytes. Default 64,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
    /// The recovery profile of the server. Default `tcp-sack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Overrides of the profile.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
    /// Begin of the requests. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// The networks that it uses. Default the first; SCTP may use both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// The edge path of this flow, between the server and the shared path; default that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
}

/// Packets over UDP.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpFlow {
    /// The times and sizes of the packets.
    pub traffic: Words<Traffic>,
    /// Largest payload of a packet, in bytes; larger messages are sent in several packets. Default
    /// 1472.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_bytes: Option<usize>,
    /// When it begins. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// The networks that it uses. Default the first; SCTP may use both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// The edge path of this flow; default that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
}

impl Scenario {
    /// The seed from which everything random of a run is drawn.
    pub(super) fn seed(&self, number: u64) -> Seed {
        let seed = Seed::from_u64(number);
        self.draws
            .as_ref()
            .map_or_else(|| seed.clone(), |label| seed.split(&format!("draws {label}")))
    }

    /// The networks with their names.
    pub(super) fn networks(&self) -> impl Iterator<Item = (&'static str, &NetworkSpec)> {
        let second = self.second_network.iter().map(|network| (SECOND_NETWORK, network));
        std::iter::once((NETWORK, &self.network)).chain(second)
    }

    /// The networks of a flow, given its `over` field.
    pub(super) fn over(&self, transport: TransportKind, over: Option<Over>) -> Over {
        let takes_both = transport == TransportKind::Sctp && self.second_network.is_some();
        over.unwrap_or(if takes_both { Over::Both } else { Over::First })
    }

    /// The end of the sending phase.
    pub(super) fn end(&self) -> Instant {
        Instant::ZERO + **self.duration
    }
}

impl ThinFlow {
    /// Largest number of connections, limited by the emulator of a run on real sockets.
    pub(super) const MAX_CONNECTIONS: u32 = 1024;
    /// Interval over which the start times of several connections are spread, to limit the
    /// processor load of a run on real sockets.
    const SPREAD: Duration = Duration::from_secs(1);

    /// The number of connections.
    pub(super) fn connections(&self) -> u32 {
        self.connections.unwrap_or(1)
    }

    /// When connection `n` begins.
    pub(super) fn start_of(&self, n: u32) -> Instant {
        let start = self.start.as_ref().map_or(Duration::ZERO, |start| ***start);
        Instant::ZERO + start + Self::SPREAD * n / self.connections().max(1)
    }
}

impl WebFlow {
    pub(super) const CLIENTS: u32 = 81;
}

impl UdpFlow {
    pub(super) const PACKET_BYTES: usize = 1472;
}

/// The names of the networks in the names of quantities.
pub(super) const NETWORK: &str = "network";
pub(super) const SECOND_NETWORK: &str = "second_network";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
