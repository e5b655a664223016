//! QUIC, as implemented by quinn.
//!
//! An ordered flow is one stream of length-prefixed messages; an unordered flow uses one stream per
//! message. Datagrams would not be reliable.

mod keys;
mod messages;
mod transfer;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, MtuDiscoveryConfig,
    ServerConfig, StreamEvent, TransportConfig, VarInt, congestion::BbrConfig,
};
use rexmit_core::{Instant, Rng, Route, Seed};

use self::keys::Open;
use self::messages::Messages;
use self::transfer::Transfer;
use super::stack::Stack;
use super::{QuinnProfile, Role};
use crate::hosts::{ConnectionEvent, WriteResult};

/// Largest number of concurrent streams. An unordered message uses one; with a lower limit, packets
/// are sent only to raise it.
const MAX_STREAMS: u32 = 4096;
/// The flow control windows of a stream and of the sender, which must not limit a transfer; a stream fills its own
/// only, so that messages always have room.
const STREAM_WINDOW: u32 = 4 << 20;
const SEND_WINDOW: u64 = 16 << 20;
/// The largest datagram that path MTU discovery searches for: what an IPv4 packet of 1500 bytes carries in UDP.
const MAX_DATAGRAM_BYTES: u16 = 1472;
/// The maximum ACK delay that `tuned` requests from the peer: the granularity of its timers.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// The time threshold of `tuned` for declaring a packet lost, in round-trip times.
const TIME_THRESHOLD: f32 = 1.0;

pub(super) struct Quinn {
    /// The instant that represents the origin of virtual time.
    epoch: std::time::Instant,
    endpoint: Endpoint,
    client: ClientConfig,
    connection: Option<(ConnectionHandle, Connection)>,
    incoming: bool,
    messages: Messages,
    transfer: Transfer,
    /// Packets of the endpoint itself.
    packets: VecDeque<Vec<u8>>,
    events: VecDeque<ConnectionEvent>,
}

impl Quinn {
    pub(super) fn new(
        (role, profile): (Role, QuinnProfile),
        is_unordered: bool,
        has_transfer: bool,
        seed: &Seed,
    ) -> Self {
        let mut config = EndpointConfig::new(Arc::new(Open));
        let mut rng = seed.split("endpoint").rng();
        let mut bytes = [0; 32];
        rng.fill(&mut bytes);
        let ids = seed.split("connection ids");
        config.rng_seed(Some(bytes)).cid_generator(move || Box::new(Ids(ids.rng())));
        let transport = Arc::new(transport(profile));
        let mut server = ServerConfig::new(Arc::new(Open), Arc::new(Open));
        server.transport_config(Arc::clone(&transport));
        let server = (role == Role::Accepts).then(|| Arc::new(server));
        let mut client = ClientConfig::new(Arc::new(Open));
        client.transport_config(transport);
        let first_id = Ids(seed.split("first connection id").rng()).generate_cid();
        client.initial_dst_cid_provider(Arc::new(move || first_id));
        Self {
            epoch: epoch(),
            // Without a transfer, path MTU discovery would only send packets without messages.
            endpoint: Endpoint::new(Arc::new(config), server, has_transfer, None),
            client,
            connection: None,
            incoming: role == Role::Accepts,
            messages: Messages::new(is_unordered),
            transfer: Transfer::default(),
            packets: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn at(&self, now: Instant) -> std::time::Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    /// Passes events between the endpoint and the connection.
    fn sort_events(&mut self) {
        let Self {
            endpoint,
            connection: Some((handle, connection)),
            events,
            messages,
            transfer,
            ..
        } = self
        else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    events.push_back(ConnectionEvent::Connected { incoming: self.incoming });
                }
                Event::ConnectionLost { .. } => {
                    events.push_back(ConnectionEvent::Closed { is_graceful: false });
                }
                Event::Stream(StreamEvent::Opened { .. }) => {
                    messages.accept(connection);
                    transfer.accept(connection);
                }
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    transfer.read(connection, id);
                }
                Event::Stream(StreamEvent::Readable { id }) => messages.read(connection, id),
                Event::Stream(StreamEvent::Available { .. } | StreamEvent::Writable { .. }) => {
                    events.push_back(ConnectionEvent::Writable);
                }
                _ => {}
            }
        }
        if messages.are_waiting() {
            events.push_back(ConnectionEvent::Readable);
        }
    }
}

fn transport(profile: QuinnProfile) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.max_concurrent_uni_streams(MAX_STREAMS.into());
    config.stream_receive_window(STREAM_WINDOW.into()).send_window(SEND_WINDOW);
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(MAX_DATAGRAM_BYTES);
    config.mtu_discovery_config(Some(discovery));
    match profile {
        QuinnProfile::Default => {}
        QuinnProfile::Tuned => {
            let mut acks = AckFrequencyConfig::default();
            acks.ack_eliciting_threshold(VarInt::from_u32(0)).max_ack_delay(Some(ACK_DELAY));
            config.ack_frequency_config(Some(acks)).time_threshold(TIME_THRESHOLD);
        }
        QuinnProfile::Bbr => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
    }
    config
}

#[expect(clippy::disallowed_methods, reason = "its time is the standard library's")]
fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}

/// Connection IDs generated from the seed of the run, as long as quinn's.
struct Ids(Rng);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.u64().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl Stack for Quinn {
    fn connect(&mut self, now: Instant, remote: SocketAddr) {
        let at = self.at(now);
        match self.endpoint.connect(at, self.client.clone(), remote, "rival") {
            Ok(connection) => self.connection = Some(connection),
            Err(_) => self.events.push_back(ConnectionEvent::Closed { is_graceful: false }),
        }
    }

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        let at = self.at(now);
        let mut answer = Vec::new();
        let packet = BytesMut::from(packet);
        match self.endpoint.handle(at, route.remote, None, None, packet, &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                if let Ok(new) = self.endpoint.accept(incoming, at, &mut answer, None) {
                    self.connection.get_or_insert(new);
                }
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((known, connection)) = &mut self.connection
                    && *known == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) => self.packets.push_back(answer),
            None => {}
        }
        self.sort_events();
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        self.sort_events();
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        if let Some(own) = self.packets.pop_front() {
            *packet = own;
            return true;
        }
        let at = self.at(now);
        let Some((_, connection)) = &mut self.connection else { return false };
        let has_packet = connection.poll_transmit(at, 1, packet).is_some();
        self.sort_events();
        has_packet
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(now + at.saturating_duration_since(self.at(now)))
    }

    fn write(&mut self, _: Instant, message: &Bytes) -> WriteResult {
        let Some((_, connection)) = &mut self.connection else { return WriteResult::Ended };
        self.messages.write(connection, message)
    }

    fn fill_transfer(&mut self, _: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            self.transfer.fill(connection);
        }
    }

    fn take_transfer(&mut self) -> u64 {
        self.transfer.take_received()
    }

    fn hand_over(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.messages.take(each);
    }

    /// Does nothing: closing at once would lose outstanding data.
    fn finish(&mut self, _: Instant) {}
}
