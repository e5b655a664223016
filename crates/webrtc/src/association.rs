//! The SCTP association with a peer (RFC 8831 §6.2, RFC 8261); each has its own endpoint.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Ecn, Instant, Machine as _, Route, Seed};
use rexmit_sctp::{
    AssociationId, AssociationStatistics, CloseReason, Endpoint, EndpointConfig, Event,
    InboundMessage, MessageId, OutboundMessage,
};

/// Placeholder addresses: packets are sent through DTLS, which knows the peer's address.
const ROUTE: Route = Route {
    local: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9),
    remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 9),
};
/// The longest round-trip time that the setup is based on: a longer one includes retransmissions.
const MAX_INITIAL_RTT: Duration = Duration::from_millis(500);

pub(crate) struct Association {
    endpoint: Endpoint,
    id: Option<AssociationId>,
    /// Whether there may be messages to receive.
    is_readable: bool,
}

impl Association {
    pub(crate) fn new(config: &EndpointConfig, seed: &Seed) -> Self {
        let endpoint = Endpoint::new(config.clone(), seed);
        let endpoint = endpoint.expect("a configuration that was checked");
        Self { endpoint, id: None, is_readable: false }
    }

    /// Begins the association; the peer does the same (RFC 9260 §5.2.1).
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        config: &EndpointConfig,
        port: u16,
        round_trip: Option<Duration>,
    ) {
        let round_trip = round_trip.filter(|&it| it <= MAX_INITIAL_RTT);
        let association = (*config.association).clone().initial_rtt(round_trip);
        let id = self.endpoint.connect_with(now, ROUTE, port, Arc::new(association));
        // The peer may have been faster.
        self.id = id.ok().or(self.id);
    }

    /// Whether messages are accepted.
    pub(crate) const fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    pub(crate) fn handle_input(&mut self, now: Instant, ecn: Ecn, packet: &[u8]) {
        self.endpoint.handle_input_with_ecn(now, ROUTE, ecn, packet);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.endpoint.poll_transmit(now, packet).is_some()
    }

    /// The ECN field for the packet that was polled last.
    pub(crate) fn transmit_ecn(&self) -> Ecn {
        self.endpoint.transmit_ecn()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let (id, event) = self.endpoint.poll_event()?;
        match event {
            Event::Connected { .. } => self.id = Some(id),
            Event::Readable => self.is_readable = true,
            _ => {}
        }
        Some(event)
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        message: OutboundMessage,
    ) -> Result<MessageId, rexmit_sctp::SendError> {
        let id = self.id.ok_or(rexmit_sctp::SendError::UnknownAssociation)?;
        self.endpoint.send(now, id, message)
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<InboundMessage> {
        let id = self.id.filter(|_| self.is_readable)?;
        let message = self.endpoint.receive(now, id);
        self.is_readable = message.is_some();
        message
    }

    pub(crate) fn reset_streams(
        &mut self,
        now: Instant,
        streams: &[u16],
    ) -> Result<(), rexmit_sctp::ResetError> {
        let id = self.id.ok_or(rexmit_sctp::ResetError::UnknownAssociation)?;
        self.endpoint.reset_streams(now, id, streams)
    }

    /// Sets the priority of an outgoing stream, if a stream of this number exists.
    pub(crate) fn set_priority(&mut self, now: Instant, stream: u16, priority: u16) {
        if let Some(id) = self.id {
            let _ = self.endpoint.set_priority(now, id, stream, priority);
        }
    }

    pub(crate) fn abort(&mut self, now: Instant) {
        if let Some(id) = self.id {
            self.endpoint.abort(now, id, b"");
        }
    }

    pub(crate) fn statistics(&self) -> Option<AssociationStatistics> {
        self.endpoint.statistics(self.id?)
    }
}

/// The reason for the end of a connection whose association has ended.
pub(crate) fn close_reason(reason: CloseReason) -> crate::CloseReason {
    match reason {
        CloseReason::Shutdown | CloseReason::AbortedByPeer { .. } => crate::CloseReason::Peer,
        reason => crate::CloseReason::Association(reason),
    }
}
