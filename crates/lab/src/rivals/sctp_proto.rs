//! sctp-proto, the SCTP implementation of str0m and webrtc-rs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rexmit_core::{Instant, Route};
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ReliabilityType, ServerConfig, StreamEvent,
    TransportConfig,
};

use super::Role;
use super::stack::Stack;
use crate::hosts::{ConnectionEvent, WriteResult};

/// The SCTP port; messages use stream 0.
const PORT: u16 = 5000;
/// A placeholder address: there is one association, and the adapter has the real route.
const PEER: &str = "192.0.2.1:5000";

pub(super) struct SctpProto {
    /// The instant that represents the origin of virtual time.
    epoch: std::time::Instant,
    endpoint: Endpoint,
    transport: Arc<TransportConfig>,
    association: Option<(AssociationHandle, Association)>,
    peer: SocketAddr,
    is_unordered: bool,
    incoming: bool,
    packets: VecDeque<Bytes>,
    messages: VecDeque<Vec<u8>>,
    events: VecDeque<ConnectionEvent>,
}

impl SctpProto {
    pub(super) fn new(role: Role, is_unordered: bool) -> Self {
        let transport = TransportConfig::default().with_local_port(PORT).with_remote_port(PORT);
        let transport = Arc::new(transport);
        let mut server = ServerConfig::new();
        server.transport = Arc::clone(&transport);
        let server = (role == Role::Accepts).then(|| Arc::new(server));
        Self {
            epoch: epoch(Instant::ZERO),
            endpoint: Endpoint::new(Arc::new(EndpointConfig::new()), server),
            transport,
            association: None,
            peer: PEER.parse().expect("an address"),
            is_unordered,
            incoming: role == Role::Accepts,
            packets: VecDeque::new(),
            messages: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn at(&self, now: Instant) -> std::time::Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    fn sort_events(&mut self) {
        let Self { association: Some((_, association)), events, messages, incoming, .. } = self
        else {
            return;
        };
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => {
                    events.push_back(ConnectionEvent::Connected { incoming: *incoming });
                }
                Event::HandshakeFailed { .. } | Event::AssociationLost { .. } => {
                    events.push_back(ConnectionEvent::Closed { is_graceful: false });
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    let Ok(mut stream) = association.stream(id) else { continue };
                    while let Ok(Some(chunks)) = stream.read_sctp() {
                        let mut message = vec![0; chunks.len()];
                        if chunks.read(&mut message).is_ok() {
                            messages.push_back(message);
                        }
                    }
                    events.push_back(ConnectionEvent::Readable);
                }
                _ => {}
            }
        }
    }
}

/// The origin of virtual time, if the current time is `now`.
#[expect(clippy::disallowed_methods, reason = "its time is the standard library's")]
fn epoch(now: Instant) -> std::time::Instant {
    let clock = std::time::Instant::now();
    clock.checked_sub(Duration::from_nanos(now.as_nanos())).unwrap_or(clock)
}

impl Stack for SctpProto {
    fn connect(&mut self, now: Instant, _: SocketAddr) {
        let mut client = ClientConfig::new();
        client.transport = Arc::clone(&self.transport);
        // The library reads the machine's clock when the association begins, instead of taking a time.
        self.epoch = epoch(now);
        match self.endpoint.connect(client, self.peer) {
            Ok(association) => self.association = Some(association),
            Err(_) => self.events.push_back(ConnectionEvent::Closed { is_graceful: false }),
        }
    }

    fn handle_input(&mut self, now: Instant, _: Route, packet: &[u8]) {
        let at = self.at(now);
        let packet = Bytes::copy_from_slice(packet);
        match self.endpoint.handle(at, self.peer, None, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association.get_or_insert((handle, association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            None => {}
        }
        self.sort_events();
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.at(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(at);
        }
        self.sort_events();
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        if self.packets.is_empty() {
            let at = self.at(now);
            let of_endpoint = self.endpoint.poll_transmit();
            let transmit = of_endpoint.or_else(|| self.association.as_mut()?.1.poll_transmit(at));
            if let Some(Payload::RawEncode(packets)) = transmit.map(|transmit| transmit.payload) {
                self.packets.extend(packets);
            }
        }
        let next = self.packets.pop_front();
        next.map(|next| packet.extend_from_slice(&next)).is_some()
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        let at = self.association.as_ref()?.1.poll_timeout()?;
        Some(now + at.saturating_duration_since(self.at(now)))
    }

    fn write(&mut self, _: Instant, message: &Bytes) -> WriteResult {
        let Some((_, association)) = &mut self.association else { return WriteResult::Ended };
        let kind = PayloadProtocolIdentifier::Binary;
        if association.stream(0).is_err() && association.open_stream(0, kind).is_err() {
            return WriteResult::Ended;
        }
        let Ok(mut stream) = association.stream(0) else { return WriteResult::Ended };
        let reliable = ReliabilityType::Reliable;
        let sent = stream
            .set_reliability_params(self.is_unordered, reliable, 0)
            .and_then(|()| stream.write_sctp(message, kind));
        if sent.is_ok() { WriteResult::All } else { WriteResult::Ended }
    }

    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.messages.drain(..).for_each(|message| each(&message));
    }

    fn finish(&mut self, _: Instant) {
        if let Some((_, association)) = &mut self.association {
            // An association that is over already has nothing to end.
            let _ = association.shutdown();
        }
    }
}
