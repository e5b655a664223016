//! The parts of a scenario, as they stand in files.

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::path::PathConfig;
use serde::{Deserialize, Serialize};

use super::overrides::Overrides;
use super::traffic::Traffic;
use super::words::{Size, Time, Words};

/// One run.
///
/// Words are those of people: times as `250ms` or `2h`, sizes as `64kb`, paths as netem has them
/// (`delay 50ms loss 5%`), traffic as the [words of traffic](super::Traffic).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How long messages are sent; what is still under way then may arrive, for [`drain`](Self::drain).
    pub duration: Words<Time>,
    /// How long what is under way at the end may take to arrive. Default 300 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Words<Time>>,
    /// On which clock it runs. Default the virtual one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub clock: Clock,
    /// Whether the outcome has a [`MessageRow`](super::MessageRow) per message. Default not; memory
    /// grows with the run if it has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rows: bool,
    /// The length of the bins in which goodput is counted. Default 100 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin: Option<Words<Time>>,
    /// What lies between the ends of all flows.
    pub network: NetworkSpec,
    /// A second network: flows over both have an address on each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_network: Option<NetworkSpec>,
    /// Streams of messages, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thin: BTreeMap<String, ThinFlow>,
    /// Transfers that take what they get, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bulk: BTreeMap<String, BulkFlow>,
    /// Web clients and the server they ask, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub web: BTreeMap<String, WebFlow>,
    /// UDP packets, without repair or congestion control, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub udp: BTreeMap<String, UdpFlow>,
}

/// The clock of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Virtual time: as fast as the processor goes, and the same every time.
    #[default]
    Virtual,
    /// Real sockets, through the emulator.
    Real,
}

/// The network of a scenario: one path in each direction, shared by all flows.
///
/// A single flow without an edge runs between two hosts at the ends of this path. Several flows
/// have two hosts each, on both sides of two routers, and the path lies between the routers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// From the senders of the flows to their receivers.
    pub forward: Words<PathConfig>,
    /// Back; as [`forward`](Self::forward) if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Words<PathConfig>>,
    /// Both ways between the sender of a flow and its router, if the flow does not say otherwise;
    /// perfect if neither does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
    /// Both ways between the receiver of every flow and its router; perfect if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_edge: Option<Words<PathConfig>>,
    /// How the shared path is from some time on; one that dies loses everything: `loss 100%`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// A change of the shared path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From when on.
    pub at: Words<Time>,
    /// How it is then, forward; as before if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Words<PathConfig>>,
    /// How it is then, backward; as before if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Words<PathConfig>>,
}

/// The networks that a flow is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// [`Scenario::network`].
    #[default]
    First,
    /// [`Scenario::second_network`].
    Second,
    /// Both: SCTP alone.
    Both,
}

impl Over {
    /// Whether it is the first or the second network, or has an address on it.
    pub(super) const fn is_on(self, network: usize) -> bool {
        match self {
            Self::First => network == 0,
            Self::Second => network == 1,
            Self::Both => true,
        }
    }
}

/// Which protocol carries a flow.
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
    /// A [rival](crate::rivals).
    #[serde(rename = "dcsctp")]
    DcSctp,
    /// A rival.
    #[serde(rename = "sctp-proto")]
    SctpProto,
    /// A rival, over UDP.
    Kcp,
    /// A rival, over UDP.
    Quinn,
}

/// What lies between SCTP and IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encapsulation {
    /// Nothing.
    #[default]
    None,
    /// UDP (RFC 6951), with a header of 8 bytes in each packet.
    Udp,
}

/// The other end of a flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverSpec {
    /// Its recovery profile, which matters while the connection is set up. Default that of the
    /// sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How long it may delay acknowledgements. Default that of the transport: 200 ms with SCTP,
    /// 40 ms with TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Words<Time>>,
    /// Its receive buffer. Default 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Words<Size>>,
    /// Changes to the profile: `cmt.delayed_ack` concerns both ends.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
}

/// A [bound](crate::bound) that a flow is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// Of [`Strategy::Reactive`](crate::bound::Strategy::Reactive).
    Reactive,
    /// Of [`Strategy::Doubled`](crate::bound::Strategy::Doubled).
    Doubled,
    /// Of [`Strategy::Bundled`](crate::bound::Strategy::Bundled), for messages at even intervals.
    Bundled,
}

/// A stream of messages over one connection, or over several alike.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinFlow {
    /// When it sends, and how much.
    pub traffic: Words<Traffic>,
    /// How many connections send this, each its own messages, all over the shared path and measured
    /// together; they begin evenly spread over a second. Default 1, at most 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// What carries it. Default SCTP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: TransportKind,
    /// What carries SCTP, ours or that of a rival. Default IP itself. Rivals over UDP are as they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encapsulation: Encapsulation,
    /// The recovery profile of the sender. Default that of the standard: `rfc9260` or `tcp-sack`.
    /// Of a rival: the profile of both ends, `default` or `turbo` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Changes to the profile.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
    /// The largest IP packet of the connection. Default that of the transport: 1252 bytes with
    /// SCTP, 1500 with TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Words<Size>>,
    /// The send buffer: data accepted and not acknowledged. Default 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Words<Size>>,
    /// Whether messages need not wait for earlier ones (SCTP). Default not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unordered: bool,
    /// Whether small segments wait for what is unacknowledged (TCP). Default not: these are
    /// interactive applications.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nagle: bool,
    /// The other end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub receiver: ReceiverSpec,
    /// When its connection begins; the first message is meant to be sent when it stands. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// Over which of two networks, if not over the first; SCTP takes both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Its edge, if not that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
    /// The best possible latency, measured for comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundKind>,
    /// Latencies of which the share of later messages is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Words<Time>>,
}

/// A greedy transfer over one connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkFlow {
    /// What carries it. Default SCTP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: TransportKind,
    /// The recovery profile of the sender. Default that of the standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Changes to the profile.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
    /// The largest IP packet of the connection. Default that of the transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Words<Size>>,
    /// The send buffer: data accepted and not acknowledged. Default 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Words<Size>>,
    /// Whether messages, each a packet, need not wait for earlier ones (SCTP). Default not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unordered: bool,
    /// Whether only its goodput is measured, which makes runs with many flows faster. Default not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub background: bool,
    /// The other end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub receiver: ReceiverSpec,
    /// When its connection begins. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// Over which of two networks, if not over the first; SCTP takes both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Its edge, if not that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
}

/// Web clients that ask a server for files over TCP, each file over a connection of its own; the
/// server is on the side of the senders. The defaults are the load of Petlund 2009 §6.2.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebFlow {
    /// How many clients. Default 81.
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
    /// Changes to the profile.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub recovery: Overrides,
    /// When the first client may ask. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// Over which of two networks, if not over the first; SCTP takes both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Its edge, if not that of the network: between the server and the shared path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
}

/// Packets over UDP.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpFlow {
    /// When it sends, and how much.
    pub traffic: Words<Traffic>,
    /// The most payload of a packet, in bytes; what is larger leaves in several. Default 1472.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_bytes: Option<usize>,
    /// When it begins. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Words<Time>>,
    /// Over which of two networks, if not over the first; SCTP takes both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Its edge, if not that of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Words<PathConfig>>,
}

impl Scenario {
    /// The networks, with the names by which they go.
    pub(super) fn networks(&self) -> impl Iterator<Item = (&'static str, &NetworkSpec)> {
        let second = self.second_network.iter().map(|network| (SECOND_NETWORK, network));
        std::iter::once((NETWORK, &self.network)).chain(second)
    }

    /// The networks of a flow with `over`.
    pub(super) fn over(&self, transport: TransportKind, over: Option<Over>) -> Over {
        let takes_both = transport == TransportKind::Sctp && self.second_network.is_some();
        over.unwrap_or(if takes_both { Over::Both } else { Over::First })
    }

    /// When nothing more is sent.
    pub(super) fn end(&self) -> Instant {
        Instant::ZERO + **self.duration
    }
}

impl ThinFlow {
    /// Connections at most: the emulator of a real run has room for no more.
    pub(super) const MAX_CONNECTIONS: u32 = 1024;
    /// Over how long several connections spread their beginnings, so that not all of them want the
    /// processor of a real run at once.
    const SPREAD: Duration = Duration::from_secs(1);

    /// How many connections there are.
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

/// The names of the networks in those of what is measured.
pub(super) const NETWORK: &str = "network";
pub(super) const SECOND_NETWORK: &str = "second_network";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
