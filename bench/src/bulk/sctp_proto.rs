//! sctp-proto, the SCTP of str0m and webrtc-rs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rexmit_core::Instant;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ServerConfig, StreamEvent, Transmit, TransportConfig,
};

use super::{MAX_PACKET_BYTES, PORT, RECEIVE_BUFFER_BYTES, Stack};

/// Bytes that its configuration excludes: the common header and the header of a DATA chunk.
const HEADER_BYTES: u32 = 12 + 16;

pub(super) struct SctpProto {
    /// The instant that corresponds to the origin of virtual time.
    epoch: std::time::Instant,
    endpoint: Endpoint,
    transport: Arc<TransportConfig>,
    association: Option<(AssociationHandle, Association)>,
    remote: SocketAddr,
    packets: VecDeque<Bytes>,
    is_connected: bool,
    is_readable: bool,
    buffer: Vec<u8>,
}

impl SctpProto {
    fn at(&self, now: Instant) -> std::time::Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    fn queue(&mut self, transmit: Transmit) {
        if let Payload::RawEncode(packets) = transmit.payload {
            self.packets.extend(packets);
        }
    }

    fn take_events(&mut self) {
        let Some((_, association)) = &mut self.association else { return };
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Stream(StreamEvent::Readable { .. }) => self.is_readable = true,
                Event::HandshakeFailed { reason } | Event::AssociationLost { reason } => {
                    panic!("sctp-proto: {reason}");
                }
                _ => {}
            }
        }
    }
}

impl Stack for SctpProto {
    const NAME: &'static str = "sctp-proto 0.10.8";
    type Packet = Bytes;

    #[expect(clippy::disallowed_methods, reason = "its time is the standard library's")]
    fn new(is_client: bool) -> Self {
        let transport = Arc::new(
            TransportConfig::default()
                .with_max_receive_buffer_size(RECEIVE_BUFFER_BYTES as u32)
                .with_local_port(PORT)
                .with_remote_port(PORT),
        );
        let mut config = EndpointConfig::new();
        config.max_payload_size(MAX_PACKET_BYTES as u32 - HEADER_BYTES);
        let mut server = ServerConfig::new();
        server.transport = Arc::clone(&transport);
        let server = (!is_client).then(|| Arc::new(server));
        let remote = if is_client { "192.0.2.2:9899" } else { "192.0.2.1:9899" };
        Self {
            epoch: std::time::Instant::now(),
            endpoint: Endpoint::new(Arc::new(config), server),
            transport,
            association: None,
            remote: remote.parse().expect("an address"),
            packets: VecDeque::new(),
            is_connected: false,
            is_readable: false,
            buffer: Vec::new(),
        }
    }

    fn connect(&mut self, _: Instant) {
        let mut client = ClientConfig::new();
        client.transport = Arc::clone(&self.transport);
        let association = self.endpoint.connect(client, self.remote).expect("the first");
        self.association = Some(association);
    }

    fn is_connected(&mut self) -> bool {
        self.take_events();
        self.is_connected
    }

    fn send(&mut self, _: Instant, message: Vec<u8>) {
        let (_, association) = self.association.as_mut().expect("connected");
        let ppid = PayloadProtocolIdentifier::Binary;
        if association.stream(0).is_err() {
            association.open_stream(0, ppid).expect("the stream is new");
        }
        let mut stream = association.stream(0).expect("the stream is open");
        stream.write_sctp(&Bytes::from(message), ppid).expect("there is room");
    }

    fn receive(&mut self, _: Instant, check: &mut impl FnMut(&[u8])) -> bool {
        self.take_events();
        if !self.is_readable {
            return false;
        }
        let (_, association) = self.association.as_mut().expect("connected");
        let mut stream = association.stream(0).expect("the stream is open");
        if let Ok(Some(chunks)) = stream.read_sctp() {
            self.buffer.resize(chunks.len(), 0);
            chunks.read(&mut self.buffer).expect("it has room");
            check(&self.buffer);
            return true;
        }
        self.is_readable = false;
        false
    }

    fn handle_input(&mut self, now: Instant, packet: Bytes, _: &mut Vec<Bytes>) {
        let at = self.at(now);
        match self.endpoint.handle(at, self.remote, None, None, packet) {
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
    }

    fn poll_transmit(&mut self, now: Instant, _: &mut Vec<Bytes>) -> Option<Bytes> {
        if self.packets.is_empty() {
            let at = self.at(now);
            let of_endpoint = self.endpoint.poll_transmit();
            let transmit =
                of_endpoint.or_else(|| self.association.as_mut()?.1.poll_transmit(at))?;
            self.queue(transmit);
        }
        self.packets.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let at = self.association.as_ref()?.1.poll_timeout()?;
        Some(Instant::ZERO + at.saturating_duration_since(self.epoch))
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.at(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(at);
        }
    }
}
