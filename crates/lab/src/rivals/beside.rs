//! Another implementation that sends messages and, in the same connection, a greedy transfer.

use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Ecn, Instant, Machine, Route};

use super::RivalEndpoint;
use crate::hosts::{ConnectionEvent, Counter, ReadResult, Transport, WriteResult};

/// One host's end of a connection with messages and a transfer. The side that opened it sends both.
#[derive(Debug)]
pub struct RivalWithTransfer<C> {
    endpoint: RivalEndpoint,
    is_sending: bool,
    received: C,
}

impl<C: Counter> RivalWithTransfer<C> {
    /// `endpoint`, with a transfer in addition to the messages.
    #[must_use]
    pub const fn new(endpoint: RivalEndpoint, received: C) -> Self {
        Self { endpoint, is_sending: false, received }
    }

    /// The counter of the transfer's received bytes.
    #[must_use]
    pub const fn received(&self) -> &C {
        &self.received
    }

    fn count(&mut self, now: Instant) {
        let bytes = self.endpoint.take_transfer();
        if bytes > 0 {
            self.received.add(now, bytes);
        }
    }
}

impl<C: Counter> Machine for RivalWithTransfer<C> {
    type Event = ConnectionEvent;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        self.endpoint.handle_input_with_ecn(now, route, ecn, packet);
        self.count(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if self.is_sending {
            self.endpoint.fill_transfer(now);
        }
        self.endpoint.poll_transmit(now, packet)
    }

    fn transmit_ecn(&self) -> Ecn {
        self.endpoint.transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        let event = self.endpoint.poll_event()?;
        match event {
            ConnectionEvent::Connected { incoming } => self.is_sending = !incoming,
            ConnectionEvent::Closed { .. } => self.is_sending = false,
            ConnectionEvent::Readable | ConnectionEvent::Writable | ConnectionEvent::Infeasible => {
            }
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}

impl<C: Counter> Transport for RivalWithTransfer<C> {
    type Id = ();
    /// A message counts as arrived when it is delivered.
    type Watch = ();
    const IP_PROTOCOL: u8 = RivalEndpoint::IP_PROTOCOL;
    const KEEPS_BOUNDARIES: bool = true;
    const WRITE_BYTES: usize = RivalEndpoint::WRITE_BYTES;

    fn ip_protocol(&self) -> u8 {
        self.endpoint.ip_protocol()
    }

    fn begin(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Option<()> {
        self.endpoint.begin(now, local, remote)
    }

    fn connection_event(event: &ConnectionEvent) -> Option<((), ConnectionEvent)> {
        RivalEndpoint::connection_event(event)
    }

    fn write(&mut self, now: Instant, id: (), bytes: &mut Bytes) -> WriteResult {
        self.endpoint.write(now, id, bytes)
    }

    fn read(&mut self, now: Instant, id: (), each: &mut dyn FnMut(&[u8])) -> ReadResult {
        let taken = self.endpoint.read(now, id, each);
        self.count(now);
        taken
    }

    fn finish(&mut self, now: Instant, id: ()) {
        self.endpoint.finish(now, id);
    }

    fn abort(&mut self, now: Instant, id: ()) {
        Transport::abort(&mut self.endpoint, now, id);
    }
}
