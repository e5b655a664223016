//! SCTP as a transport: one stream, ordered or (with [`Unordered`]) unordered.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::serial::unwrap_u32;
use rexmit_core::{Ecn, Instant, Machine, Route};
use rexmit_sctp::wire::{Chunk, Data, Packet};
use rexmit_sctp::{AssociationId, CloseReason, Endpoint, Event, OutboundMessage, SendError};

use super::transport::{Arrival, ConnectionEvent, ReadResult, Transport, Watch, WriteResult};

/// Programs send on this stream.
const STREAM: u16 = 0;

impl Transport for Endpoint {
    type Id = AssociationId;
    type Watch = FragmentWatch;
    const IP_PROTOCOL: u8 = 132;
    const KEEPS_BOUNDARIES: bool = true;
    /// The payload of a full packet of the default size.
    const WRITE_BYTES: usize = 1204;

    /// Begins an association; the port of `local` is ignored, because associations have the endpoint's port.
    fn begin(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<AssociationId> {
        let over_ip = |address: SocketAddr| SocketAddr::new(address.ip(), 0);
        let route = Route { local: over_ip(local), remote: over_ip(remote) };
        self.connect(now, route, remote.port()).ok()
    }

    fn connection_event(
        (id, event): &(AssociationId, Event),
    ) -> Option<(AssociationId, ConnectionEvent)> {
        let event = match event {
            Event::Connected { incoming, .. } => ConnectionEvent::Connected { incoming: *incoming },
            Event::Readable => ConnectionEvent::Readable,
            Event::Writable => ConnectionEvent::Writable,
            Event::Infeasible { .. } => ConnectionEvent::Infeasible,
            Event::Closed(reason) => {
                ConnectionEvent::Closed { is_graceful: *reason == CloseReason::Shutdown }
            }
            _ => return None,
        };
        Some((*id, event))
    }

    fn write(&mut self, now: Instant, id: AssociationId, bytes: &mut Bytes) -> WriteResult {
        send(self, now, id, OutboundMessage::new(STREAM, bytes.clone()), bytes)
    }

    fn read(&mut self, now: Instant, id: AssociationId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        while let Some(message) = self.receive(now, id) {
            each(&message.payload);
        }
        ReadResult::Open
    }

    fn finish(&mut self, now: Instant, id: AssociationId) {
        self.shutdown(now, id);
    }

    fn abort(&mut self, now: Instant, id: AssociationId) {
        Self::abort(self, now, id, b"");
    }
}

/// An SCTP endpoint that sends unordered messages.
#[derive(Debug)]
pub struct Unordered(pub Endpoint);

impl Machine for Unordered {
    type Event = (AssociationId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.0.handle_input(now, route, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        self.0.handle_input_with_ecn(now, route, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.0.poll_transmit(now, packet)
    }

    fn transmit_ecn(&self) -> Ecn {
        self.0.transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.0.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}

impl Transport for Unordered {
    type Id = AssociationId;
    type Watch = FragmentWatch;
    const IP_PROTOCOL: u8 = Endpoint::IP_PROTOCOL;
    const KEEPS_BOUNDARIES: bool = true;
    const WRITE_BYTES: usize = Endpoint::WRITE_BYTES;

    fn begin(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<AssociationId> {
        self.0.begin(now, local, remote)
    }

    fn connection_event(event: &Self::Event) -> Option<(AssociationId, ConnectionEvent)> {
        Endpoint::connection_event(event)
    }

    fn write(&mut self, now: Instant, id: AssociationId, bytes: &mut Bytes) -> WriteResult {
        let message = OutboundMessage::new(STREAM, bytes.clone());
        send(&mut self.0, now, id, message.unordered(true), bytes)
    }

    fn read(&mut self, now: Instant, id: AssociationId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        self.0.read(now, id, each)
    }

    fn finish(&mut self, now: Instant, id: AssociationId) {
        self.0.finish(now, id);
    }

    fn abort(&mut self, now: Instant, id: AssociationId) {
        Transport::abort(&mut self.0, now, id);
    }
}

/// Sends `message`, whose payload is `bytes`.
pub(super) fn send(
    endpoint: &mut Endpoint,
    now: Instant,
    id: AssociationId,
    message: OutboundMessage,
    bytes: &mut Bytes,
) -> WriteResult {
    match endpoint.send(now, id, message) {
        Ok(_) => {
            bytes.clear();
            WriteResult::All
        }
        Err(SendError::BufferFull) => WriteResult::Full,
        Err(_) => WriteResult::Ended,
    }
}

/// Detects from packets when the last fragment of a message has arrived, even if its delivery has
/// to wait for earlier messages.
#[derive(Clone, Debug, Default)]
pub struct FragmentWatch {
    /// Fragments of incomplete messages by their TSN, unwrapped.
    fragments: BTreeMap<u64, Fragment>,
    /// A TSN (unwrapped) near those that arrive.
    near: Option<u64>,
}

#[derive(Clone, Debug)]
struct Fragment {
    is_first: bool,
    is_last: bool,
    /// The first bytes of its payload.
    head: [u8; HEAD_BYTES],
    head_len: usize,
}

/// Number of bytes stored of the beginning of a message.
const HEAD_BYTES: usize = 8;
/// Largest number of stored fragments; duplicates that arrive after their message was complete are
/// never removed otherwise.
const MAX_FRAGMENTS: usize = 4096;

impl Watch for FragmentWatch {
    fn on_packet(&mut self, _: Route, packet: &[u8], found: &mut dyn FnMut(Arrival<'_>)) {
        let Ok(packet) = Packet::parse(packet) else { return };
        for chunk in packet.chunks().map_while(Result::ok) {
            if let Ok(Chunk::Data(data)) = chunk.decode() {
                self.on_data(&data, found);
            }
        }
    }
}

impl FragmentWatch {
    fn on_data(&mut self, data: &Data<'_>, found: &mut dyn FnMut(Arrival<'_>)) {
        let near = self.near.get_or_insert((1 << 32) + u64::from(data.tsn));
        let tsn = unwrap_u32(*near, data.tsn);
        *near = tsn.max(*near);
        let (is_first, is_last) = (data.flags.beginning, data.flags.ending);
        if is_first && is_last {
            found(Arrival::Message(data.payload));
            return;
        }
        let (mut head, head_len) = ([0; HEAD_BYTES], data.payload.len().min(HEAD_BYTES));
        head[..head_len].copy_from_slice(&data.payload[..head_len]);
        self.fragments.insert(tsn, Fragment { is_first, is_last, head, head_len });
        if let Some((first, last)) = self.whole_message(tsn) {
            let mut message = self.fragments.split_off(&first);
            self.fragments.append(&mut message.split_off(&(last + 1)));
            if let Some(Fragment { head, head_len, .. }) = message.get(&first) {
                found(Arrival::Message(&head[..*head_len]));
            }
        }
        while self.fragments.len() > MAX_FRAGMENTS {
            self.fragments.pop_first();
        }
    }

    /// The first and last TSN of the message with this fragment, if the message is complete.
    fn whole_message(&self, tsn: u64) -> Option<(u64, u64)> {
        let mut first = tsn;
        while !self.fragments.get(&first)?.is_first {
            first -= 1;
        }
        let mut last = tsn;
        while !self.fragments.get(&last)?.is_last {
            last += 1;
        }
        Some((first, last))
    }
}
