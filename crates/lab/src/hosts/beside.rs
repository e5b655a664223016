//! SCTP with a greedy transfer on a second stream of each association that it opens.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Ecn, Instant, Machine, Route};
use rexmit_sctp::{AssociationId, Endpoint, Event, MessageId, OutboundMessage};

use super::sctp::send;
use super::sink::Counter;
use super::transport::{ConnectionEvent, ReadResult, Transport, WriteResult};

/// The stream of the program's messages, which has priority.
const MESSAGES: u16 = 0;
/// The stream of the transfer.
const TRANSFER: u16 = 1;
/// The priority of the program's stream; that of the transfer is the default, 256.
const PRIORITY: u16 = 1024;
/// Bytes of a message of the transfer.
const TRANSFER_BYTES: usize = 16 * 1024;

/// An SCTP transport for programs that adds a bulk transfer on another stream.
///
/// The sending side keeps as much of the transfer in the send buffer as `new` says, so that there is always
/// something to send. The receiving side passes the messages of the program on, and counts the bytes of the transfer.
/// Associations must report acknowledged messages (`report_acknowledged`).
#[derive(Debug)]
pub struct WithTransfer<C> {
    endpoint: Endpoint,
    is_unordered: bool,
    /// The most messages of the transfer that are accepted and not yet acknowledged.
    most: usize,
    /// The association that this side opened, once it is established.
    sends_to: Option<AssociationId>,
    unacknowledged: BTreeSet<MessageId>,
    received: C,
}

impl<C: Counter> WithTransfer<C> {
    /// `endpoint`, with `buffer_bytes` of the transfer in its send buffer. Messages of the program are delivered
    /// unordered if `is_unordered`.
    #[must_use]
    pub fn new(endpoint: Endpoint, is_unordered: bool, buffer_bytes: usize, received: C) -> Self {
        let most = (buffer_bytes / TRANSFER_BYTES).max(1);
        let unacknowledged = BTreeSet::new();
        Self { endpoint, is_unordered, most, sends_to: None, unacknowledged, received }
    }

    /// The counter of the bytes received of the transfer.
    #[must_use]
    pub const fn received(&self) -> &C {
        &self.received
    }

    fn fill(&mut self, now: Instant) {
        let Some(id) = self.sends_to else { return };
        while self.unacknowledged.len() < self.most {
            let message = OutboundMessage::new(TRANSFER, vec![0; TRANSFER_BYTES]);
            let Ok(message) = self.endpoint.send(now, id, message) else { return };
            self.unacknowledged.insert(message);
        }
    }

    /// Updates the transfer by `event`. Returns whether the event concerns the transfer alone.
    fn take_of_transfer(&mut self, (id, event): &(AssociationId, Event)) -> bool {
        match event {
            Event::Connected { incoming: false, .. } => {
                let is_set = self.endpoint.set_priority(Instant::ZERO, *id, MESSAGES, PRIORITY);
                self.sends_to = is_set.is_ok().then_some(*id);
                false
            }
            Event::MessageAcknowledged(message) => self.unacknowledged.remove(message),
            Event::Closed(_) => {
                self.sends_to = None;
                false
            }
            _ => false,
        }
    }
}

impl<C: Counter> Machine for WithTransfer<C> {
    type Event = (AssociationId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.endpoint.handle_input(now, route, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        self.endpoint.handle_input_with_ecn(now, route, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.fill(now);
        self.endpoint.poll_transmit(now, packet)
    }

    fn transmit_ecn(&self) -> Ecn {
        self.endpoint.transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        loop {
            let event = self.endpoint.poll_event()?;
            if !self.take_of_transfer(&event) {
                return Some(event);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}

impl<C: Counter> Transport for WithTransfer<C> {
    type Id = AssociationId;
    /// No packets are watched: a message counts as arrived when it is delivered.
    type Watch = ();
    const IP_PROTOCOL: u8 = Endpoint::IP_PROTOCOL;
    const KEEPS_BOUNDARIES: bool = true;
    const WRITE_BYTES: usize = Endpoint::WRITE_BYTES;

    fn begin(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<AssociationId> {
        self.endpoint.begin(now, local, remote)
    }

    fn connection_event(event: &Self::Event) -> Option<(AssociationId, ConnectionEvent)> {
        Endpoint::connection_event(event)
    }

    fn write(&mut self, now: Instant, id: AssociationId, bytes: &mut Bytes) -> WriteResult {
        let message = OutboundMessage::new(MESSAGES, bytes.clone()).unordered(self.is_unordered);
        send(&mut self.endpoint, now, id, message, bytes)
    }

    fn read(&mut self, now: Instant, id: AssociationId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        while let Some(message) = self.endpoint.receive(now, id) {
            if message.stream == TRANSFER {
                self.received.add(now, message.payload.len() as u64);
            } else {
                each(&message.payload);
            }
        }
        ReadResult::Open
    }

    fn finish(&mut self, now: Instant, id: AssociationId) {
        self.endpoint.finish(now, id);
    }

    fn abort(&mut self, now: Instant, id: AssociationId) {
        Transport::abort(&mut self.endpoint, now, id);
    }
}
