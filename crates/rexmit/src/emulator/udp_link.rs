//! The link between UDP sockets: clients on one side, a server on the other.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use mio::{Registry, Token};
use quinn_udp::{EcnCodepoint, RecvMeta};
use rexmit_core::{Ecn, Instant};
use rexmit_netsim::path::flow_key;

use super::capture::Shown;
use super::clients::{ClientId, Clients};
use super::config::EmulatorConfig;
use super::direction::{Bound, Packet, Tag};
use super::error::EmulatorError;
use super::relay::{FIRST_TOKEN, Link};
use super::socket::{Coalescing, RECEIVE_BUFFER_BYTES, RECEIVE_BUFFERS, RelaySocket};
use super::statistics::EmulatorStatistics;
use super::two_way::TwoWay;
use crate::clock;
use crate::error::BindError;

const LISTENER: Token = Token(FIRST_TOKEN);
const FIRST_CLIENT: ClientId = FIRST_TOKEN + 1;

/// The names of the capture's interfaces.
pub(super) const INTERFACES: [&str; 2] = ["to the server", "to the clients"];
/// UDP's IP protocol number.
const UDP: u8 = 17;
const REFUSED: &str = "dropped by the emulator: one client too many";

/// The ends of a packet's way, and the fields of its IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct UdpTag {
    client: ClientId,
    server: SocketAddr,
    ecn: Option<EcnCodepoint>,
}

/// All packets between a client and a server are one flow.
impl Tag for UdpTag {
    fn ecn(&self, _: &[u8]) -> Ecn {
        self.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8))
    }

    fn flow(&self, _: &[u8]) -> u64 {
        // The number of a client stands for its address.
        let client = Ipv6Addr::from_bits(self.client as u128);
        flow_key(SocketAddr::new(client.into(), 0), self.server, UDP)
    }

    fn mark(&mut self, _: &mut [u8]) {
        self.ecn = Some(EcnCodepoint::Ce);
    }
}

/// The sockets.
#[derive(Debug)]
pub(super) struct UdpLink {
    server: SocketAddr,
    /// Whether a server has the address that the client sent to, with the port of `server`.
    keep_destination: bool,
    listener: RelaySocket,
    /// How packets arrive at all sockets.
    coalescing: Coalescing,
    clients: Clients,
    /// The registry for the sockets of future clients.
    registry: Registry,
    buffers: Vec<u8>,
    refused: u64,
}

impl UdpLink {
    pub(super) fn open(
        registry: &Registry,
        config: &EmulatorConfig,
    ) -> Result<Self, EmulatorError> {
        let marks = config.forward.marks_packets() || config.backward.marks_packets();
        let coalescing = if marks { Coalescing::Off } else { Coalescing::On };
        let listener = RelaySocket::open(registry, LISTENER, config.listen, coalescing)
            .map_err(|source| BindError::new(config.listen, source))?;
        Ok(Self {
            server: config.to,
            keep_destination: config.keep_destination,
            listener,
            coalescing,
            clients: Clients::new(FIRST_CLIENT, config.max_clients, config.client_idle_timeout),
            registry: registry.try_clone()?,
            buffers: vec![0; RECEIVE_BUFFERS * RECEIVE_BUFFER_BYTES],
            refused: 0,
        })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Called when a packet arrived at one of the sockets.
    fn on_packet(
        &mut self,
        arrival: Instant,
        (from, meta): (Token, &RecvMeta),
        bytes: &[u8],
        paths: &mut TwoWay<UdpTag>,
    ) {
        let (bound, client, server) = if from == LISTENER {
            let server = self.server_of(meta);
            let Some(client) = self.sender(arrival, meta.addr) else {
                self.refused += 1;
                let shown = Shown::Between(meta.addr, server);
                paths.on_dropped(arrival, (Bound::Forward, shown), bytes, REFUSED);
                return;
            };
            (Bound::Forward, client, server)
        } else if self.is_server(meta.addr) {
            self.clients.touch(arrival, from.0);
            (Bound::Backward, from.0, meta.addr)
        } else {
            return; // A stranger's: the client did not ask it anything.
        };
        let tag = UdpTag { client, server, ecn: meta.ecn };
        if let Some(shown) = self.shown(bound, &tag) {
            paths.offer(arrival, (bound, shown), tag, bytes);
        }
    }

    /// The server to which a client's packet is forwarded.
    fn server_of(&self, meta: &RecvMeta) -> SocketAddr {
        let kept = meta.dst_ip.filter(|_| self.keep_destination);
        kept.map_or(self.server, |ip| SocketAddr::new(ip, self.server.port()))
    }

    /// Whether packets from this address are a server's.
    fn is_server(&self, address: SocketAddr) -> bool {
        address.port() == self.server.port()
            && (self.keep_destination || address.ip() == self.server.ip())
    }

    /// The client with this address, which is added if it is new; `None` if there are too many.
    fn sender(&mut self, now: Instant, address: SocketAddr) -> Option<ClientId> {
        if let Some(id) = self.clients.find(now, address) {
            return Some(id);
        }
        let any: SocketAddr = match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let (registry, coalescing) = (&self.registry, self.coalescing);
        let open = |id| RelaySocket::open(registry, Token(id), any, coalescing);
        // Without a free file descriptor, the client is refused, as one beyond the limit.
        self.clients.insert(now, address, open).ok().flatten()
    }
}

impl Link for UdpLink {
    type Tag = UdpTag;

    fn receive(&mut self, token: Token, paths: &mut TwoWay<UdpTag>) -> bool {
        let mut buffers = std::mem::take(&mut self.buffers);
        let mut meta = [RecvMeta::default(); RECEIVE_BUFFERS];
        let socket = match token {
            LISTENER => Some(&self.listener),
            Token(id) => self.clients.client(id).map(|client| &client.socket),
        };
        // An error means that there is nothing to read, or that one packet is dropped.
        let received = socket.map_or(Ok(0), |socket| socket.receive(&mut buffers, &mut meta));
        let received = received.unwrap_or(0);
        let (now, offset) = (clock::now(), clock::wall_clock_offset());
        for (buffer, meta) in buffers.chunks(RECEIVE_BUFFER_BYTES).zip(&meta[..received]) {
            // A time stamp from before the wall clock was set may be wrong, but must not be in the future.
            let stamp = meta.timestamp.and_then(|stamp| stamp.checked_sub(offset));
            let arrival = stamp.map_or(now, |stamp| (Instant::ZERO + stamp).min(now));
            for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                self.on_packet(arrival, (token, meta), bytes, paths);
            }
        }
        self.buffers = buffers;
        received == RECEIVE_BUFFERS
    }

    fn send(&mut self, bound: Bound, packet: &Packet<UdpTag>) -> io::Result<()> {
        let UdpTag { client, server, ecn } = packet.tag;
        let client = self.clients.client(client).ok_or(io::ErrorKind::NotFound)?;
        match bound {
            Bound::Forward => client.socket.send((None, server), ecn, &packet.bytes),
            Bound::Backward => {
                let source = self.keep_destination.then_some(server.ip());
                self.listener.send((source, client.address), ecn, &packet.bytes)
            }
        }
    }

    fn shown(&self, bound: Bound, tag: &UdpTag) -> Option<Shown> {
        let client = self.clients.client(tag.client)?.address;
        Some(match bound {
            Bound::Forward => Shown::Between(client, tag.server),
            Bound::Backward => Shown::Between(tag.server, client),
        })
    }

    fn next_expiry(&self) -> Instant {
        self.clients.next_expiry()
    }

    fn expire(&mut self, now: Instant) {
        self.clients.expire(now);
    }

    fn count(&self, statistics: &mut EmulatorStatistics) {
        statistics.clients = self.clients.len();
        statistics.refused = self.refused;
    }
}
