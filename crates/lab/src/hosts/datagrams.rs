//! UDP as a transport.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route};

use super::transport::{ConnectionEvent, ReadResult, Transport, WriteResult};

/// UDP on a host: every message is a packet, and nothing is retransmitted. A "connection" is a pair
/// of addresses and ports; it is established at once and never ends.
///
/// Simulated links do not fragment packets of up to 65,507 bytes; larger messages are lost.
#[derive(Debug)]
pub struct Datagrams {
    port: Option<u16>,
    peers: Vec<Peer>,
    events: VecDeque<(usize, ConnectionEvent)>,
    outbound: VecDeque<(Route, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Peer {
    route: Route,
    inbound: VecDeque<Vec<u8>>,
}

impl Datagrams {
    /// Largest number of peers; packets of further peers are ignored.
    pub const MAX_PEERS: usize = 1024;
    /// Largest number of unread packets per peer; further ones are dropped.
    pub const MAX_WAITING: usize = 4096;

    /// With a `port`, packets that arrive on it open new connections.
    #[must_use]
    pub fn new(port: Option<u16>) -> Self {
        let (events, outbound) = (VecDeque::new(), VecDeque::new());
        Self { port, peers: Vec::new(), events, outbound, spare: Vec::new() }
    }

    /// The connection over `route`, opened if necessary.
    fn peer(&mut self, route: Route, incoming: bool) -> Option<usize> {
        if let Some(known) = self.peers.iter().position(|peer| peer.route == route) {
            return Some(known);
        }
        if self.peers.len() >= Self::MAX_PEERS {
            return None;
        }
        self.peers.push(Peer { route, inbound: VecDeque::new() });
        self.events.push_back((self.peers.len() - 1, ConnectionEvent::Connected { incoming }));
        Some(self.peers.len() - 1)
    }

    fn keep(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(bytes);
        packet
    }
}

impl Machine for Datagrams {
    type Event = (usize, ConnectionEvent);

    fn handle_input(&mut self, _: Instant, route: Route, packet: &[u8]) {
        let is_known = self.peers.iter().any(|peer| peer.route == route);
        if !is_known && self.port != Some(route.local.port()) {
            return;
        }
        let Some(id) = self.peer(route, true) else { return };
        if self.peers[id].inbound.len() < Self::MAX_WAITING {
            let packet = self.keep(packet);
            self.peers[id].inbound.push_back(packet);
            self.events.push_back((id, ConnectionEvent::Readable));
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let (route, mut next) = self.outbound.pop_front()?;
        std::mem::swap(packet, &mut next);
        self.spare.push(next);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Transport for Datagrams {
    type Id = usize;
    type Watch = ();
    const IP_PROTOCOL: u8 = super::UDP;
    const KEEPS_BOUNDARIES: bool = true;
    const WRITE_BYTES: usize = 1472;

    fn begin(&mut self, _: Instant, local: SocketAddr, remote: SocketAddr) -> Option<usize> {
        // A route without ports would be no UDP.
        if remote.port() == 0 { None } else { self.peer(Route { local, remote }, false) }
    }

    fn connection_event(event: &Self::Event) -> Option<Self::Event> {
        Some(*event)
    }

    fn write(&mut self, _: Instant, id: usize, bytes: &mut Bytes) -> WriteResult {
        let Some(route) = self.peers.get(id).map(|peer| peer.route) else {
            return WriteResult::Ended;
        };
        let packet = self.keep(bytes);
        self.outbound.push_back((route, packet));
        bytes.clear();
        WriteResult::All
    }

    fn read(&mut self, _: Instant, id: usize, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        while let Some(packet) = self.peers.get_mut(id).and_then(|peer| peer.inbound.pop_front()) {
            each(&packet);
            self.spare.push(packet);
        }
        ReadResult::Open
    }

    fn finish(&mut self, _: Instant, _: usize) {}

    fn abort(&mut self, _: Instant, _: usize) {}
}
