//! An endpoint under observation: all packets that it sends and receives are parsed, and those that it sends are
//! checked against the windows.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rexmit_core::serial::unwrap_u32;
use rexmit_core::{Ecn, Instant, Machine, Route};
use rexmit_sctp::wire::{
    Chunk, DATA_HEADER_LEN, Data, I_DATA_HEADER_LEN, IData, Packet, kind, padded,
};
use rexmit_sctp::{
    AssociationId, AssociationStatistics, Endpoint, Event, PathState, PathStatistics,
};

use crate::golden::Digest;

/// Invariants that are checked for every output of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The endpoint's largest packet.
    pub max_packet_bytes: usize,
    /// The endpoint's receive buffer.
    pub receive_buffer_bytes: usize,
    /// The window that its peer advertises at first.
    pub peer_window: usize,
    /// Whether outstanding data can be determined from the packets: not if messages may be abandoned.
    pub is_flight_visible: bool,
    /// Whether a thin stream may exceed the window by a packet, as with `by_stream`.
    pub may_exceed_window: bool,
}

/// An [`Endpoint`] whose packets are checked.
#[derive(Debug)]
pub struct Watched {
    /// The endpoint.
    pub endpoint: Endpoint,
    limits: Limits,
    associations: Vec<AssociationId>,
    wires: BTreeMap<AssociationId, Wire>,
    /// Chunks sent, by type.
    pub chunks_sent: BTreeMap<u8, u64>,
    /// The initial TSN in the first INIT or INIT ACK of this endpoint.
    pub first_tsn: Option<u32>,
    /// A hash of what was sent.
    pub sent: Digest,
}

/// One direction of an association, as seen in its packets.
#[derive(Debug)]
struct Wire {
    peer_tag: u32,
    a_rwnd: u64,
    cumulative: u64,
    highest: u64,
    /// Unacknowledged chunks by TSN.
    unacknowledged: BTreeMap<u64, Piece>,
}

/// A DATA or I-DATA chunk.
#[derive(Clone, Copy, Debug)]
struct Piece {
    tsn: u32,
    stream: u16,
    /// Bytes of the chunk's payload, and of its header.
    payload: usize,
    header: usize,
}

impl Watched {
    /// Watches `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        Self {
            endpoint,
            limits,
            associations: Vec::new(),
            wires: BTreeMap::new(),
            chunks_sent: BTreeMap::new(),
            first_tsn: None,
            sent: Digest::default(),
        }
    }

    /// Watches this association, too. Incoming ones are noticed by their first event.
    pub fn watch(&mut self, id: AssociationId) {
        if !self.associations.contains(&id) {
            self.associations.push(id);
        }
    }

    fn statistics(&self) -> Vec<(AssociationId, AssociationStatistics)> {
        let of = |&id: &AssociationId| Some((id, self.endpoint.statistics(id)?));
        self.associations.iter().filter_map(of).collect()
    }

    fn on_sent(
        &mut self,
        before: &[(AssociationId, AssociationStatistics)],
        route: Route,
        packet: &[u8],
    ) {
        let parsed = Packet::parse(packet).expect("a malformed packet was sent");
        let mut new_data = Vec::new();
        for raw in parsed.chunks() {
            let raw = raw.expect("a malformed chunk was sent");
            *self.chunks_sent.entry(raw.kind).or_default() += 1;
            match raw.decode().expect("a malformed chunk was sent") {
                Chunk::Data(Data { tsn, stream, payload, .. }) => {
                    let (payload, header) = (payload.len(), DATA_HEADER_LEN);
                    new_data.push(Piece { tsn, stream, payload, header });
                }
                Chunk::IData(IData { tsn, stream, payload, .. }) => {
                    let (payload, header) = (payload.len(), I_DATA_HEADER_LEN);
                    new_data.push(Piece { tsn, stream, payload, header });
                }
                Chunk::Init(init) | Chunk::InitAck(init) => {
                    self.first_tsn.get_or_insert(init.initial_tsn);
                }
                _ => {}
            }
        }
        let is_cookie = parsed.chunks().flatten().any(|raw| raw.kind == kind::COOKIE_ECHO);
        let len = packet.len();
        assert!(is_cookie || len <= self.limits.max_packet_bytes, "a packet of {len} bytes");
        if !new_data.is_empty() {
            self.on_data_sent(before, (route, parsed.header.verification_tag), &new_data);
        }
    }

    fn on_data_sent(
        &mut self,
        before: &[(AssociationId, AssociationStatistics)],
        (route, peer_tag): (Route, u32),
        data: &[Piece],
    ) {
        let has_sent = |(id, before): &&(AssociationId, AssociationStatistics)| {
            let after = self.endpoint.statistics(*id);
            after.is_some_and(|after| after.traffic.packets_sent > before.traffic.packets_sent)
        };
        let Some((id, _)) = before.iter().find(has_sent) else { return };
        let first = unwrap_u32(1 << 32, data[0].tsn);
        let fresh = || Wire {
            peer_tag,
            a_rwnd: self.limits.peer_window as u64,
            cumulative: first - 1,
            highest: first - 1,
            unacknowledged: BTreeMap::new(),
        };
        let wire = self.wires.entry(*id).or_insert_with(fresh);
        if wire.peer_tag != peer_tag {
            *wire = fresh();
        }
        let was_quiet = wire.unacknowledged.is_empty();
        let mut first_new = None;
        let mut is_beside_others = false;
        for piece in data {
            let tsn = unwrap_u32(wire.cumulative, piece.tsn);
            if tsn > wire.highest && first_new.is_none() {
                first_new = Some(piece);
                let mut before = wire.unacknowledged.values();
                is_beside_others = before.any(|other| other.stream != piece.stream);
            }
            wire.highest = wire.highest.max(tsn);
            if tsn > wire.cumulative {
                wire.unacknowledged.insert(tsn, *piece);
            }
        }
        if first_new.is_none() {
            return;
        }
        let outstanding: usize = wire.unacknowledged.values().map(|piece| piece.payload).sum();
        let is_probe = was_quiet && data.len() == 1;
        assert!(
            is_probe || !self.limits.is_flight_visible || outstanding as u64 <= wire.a_rwnd,
            "{outstanding} bytes outstanding with a window of {}",
            wire.a_rwnd
        );
        let Some(after) = self.endpoint.statistics(*id) else { return };
        // Abandoned units were already removed from flight accounting.
        let is_its =
            |path: &&PathStatistics| (path.local, path.remote) == (route.local, route.remote);
        let path = after.paths.iter().find(is_its).expect("data over a path");
        assert_ne!(path.state, PathState::Unconfirmed, "data to an address not confirmed");
        let packet = data.iter().map(|piece| padded(piece.header + piece.payload) as u64);
        let flight = path.bytes_in_flight.saturating_sub(packet.sum());
        let cwnd = path.cwnd;
        // Data in flight leave room for one byte at least (RFC 9260 §6.1 B), or for none if the packet belongs to a thin
        // stream beside others: then this packet is all that exceeds the window.
        let may_exceed = self.limits.may_exceed_window && is_beside_others;
        assert!(
            flight < cwnd || may_exceed && flight == cwnd,
            "new data with {flight} bytes in flight and a cwnd of {cwnd}, beside others: {is_beside_others}"
        );
    }

    fn on_received(&mut self, before: &[(AssociationId, AssociationStatistics)], packet: &[u8]) {
        for (id, before) in before {
            let Some(after) = self.endpoint.statistics(*id) else { continue };
            let (held, buffer) = (after.receive_buffered_bytes, self.limits.receive_buffer_bytes);
            assert!(held <= 2 * buffer, "{held} bytes held in a buffer of {buffer}");
            if after.traffic.packets_received == before.traffic.packets_received {
                continue;
            }
            let is_sack_taken = after.traffic.sacks_received > before.traffic.sacks_received;
            let (Ok(packet), Some(wire)) = (Packet::parse(packet), self.wires.get_mut(id)) else {
                continue;
            };
            for chunk in packet.chunks().flatten().flat_map(|raw| raw.decode()) {
                match chunk {
                    Chunk::Sack(sack) if is_sack_taken => wire.on_sack(&sack),
                    Chunk::Shutdown { cumulative_tsn_ack } => wire.advance(cumulative_tsn_ack),
                    _ => {}
                }
            }
        }
    }
}

impl Wire {
    fn advance(&mut self, cumulative_tsn_ack: u32) {
        let cumulative = unwrap_u32(self.cumulative, cumulative_tsn_ack);
        if (self.cumulative..=self.highest).contains(&cumulative) {
            self.cumulative = cumulative;
            self.unacknowledged = self.unacknowledged.split_off(&(cumulative + 1));
        }
    }

    fn on_sack(&mut self, sack: &rexmit_sctp::wire::Sack<'_>) {
        let cumulative = unwrap_u32(self.cumulative, sack.cumulative_tsn_ack);
        if cumulative < self.cumulative {
            return;
        }
        self.cumulative = cumulative;
        self.a_rwnd = sack.a_rwnd.into();
        self.unacknowledged = self.unacknowledged.split_off(&(cumulative + 1));
        for (start, end) in sack.gap_ack_blocks() {
            for tsn in cumulative + u64::from(start)..=cumulative + u64::from(end) {
                self.unacknowledged.remove(&tsn);
            }
        }
    }
}

impl Machine for Watched {
    type Event = (AssociationId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        let before = self.statistics();
        self.endpoint.handle_input_with_ecn(now, route, ecn, packet);
        self.on_received(&before, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let before = self.statistics();
        let route = self.endpoint.poll_transmit(now, packet)?;
        self.sent.add_packet(now, route, packet);
        self.on_sent(&before, route, packet);
        Some(route)
    }

    fn transmit_ecn(&self) -> Ecn {
        self.endpoint.transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        let (id, event) = self.endpoint.poll_event()?;
        self.watch(id);
        Some((id, event))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}

/// The address of `host` in pair number `pair`.
#[must_use]
pub fn address(host: usize, pair: usize) -> IpAddr {
    IpAddr::from([10, 0, pair as u8, 1 + host as u8])
}

/// The address that `host` has in pair number `pair` at a second link.
#[must_use]
pub fn second_address(host: usize, pair: usize) -> IpAddr {
    IpAddr::from([10, 1, pair as u8, 1 + host as u8])
}
