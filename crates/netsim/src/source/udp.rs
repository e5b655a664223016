//! Sending any source over UDP.

use std::convert::Infallible;

use rexmit_core::{Instant, Machine, Route, checksum};

use super::Source;

/// Bytes of the header in which [`UdpSender`] sends its packet number and time to
/// [`UdpSink`](super::UdpSink). Shorter packets have no header.
pub const HEADER_BYTES: usize = 20;

/// Sends the messages of a source in UDP packets, each at its time. A message that is larger than a
/// packet is sent in several packets at once, all full except the last.
///
/// The route must have a port, which selects UDP. Received packets are ignored.
#[derive(Clone, Debug)]
pub struct UdpSender<S> {
    route: Route,
    source: S,
    /// The message that is being sent: its time, and its remaining bytes.
    message: Option<(Instant, usize)>,
    packet_bytes: usize,
    next_number: u64,
    packets: u64,
    bytes: u64,
}

impl<S: Source> UdpSender<S> {
    /// The largest payload of a UDP packet over IPv4.
    pub const MAX_PACKET: usize = 65_507;

    /// Sends `source` over `route` in packets with at most `packet_bytes` of payload, which is
    /// limited to the range from 1 to [`MAX_PACKET`](Self::MAX_PACKET).
    ///
    /// # Panics
    /// If neither end of the route has a port, so that the packets would not be UDP.
    #[must_use]
    pub fn new(route: Route, mut source: S, packet_bytes: usize) -> Self {
        assert!(route.local.port() != 0 || route.remote.port() != 0, "UDP needs a port: {route:?}");
        let message = source.next();
        let packet_bytes = packet_bytes.clamp(1, Self::MAX_PACKET);
        Self { route, source, message, packet_bytes, next_number: 0, packets: 0, bytes: 0 }
    }

    /// Number of packets sent.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Payload sent, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of packets sent with a header.
    #[must_use]
    pub fn numbered(&self) -> u64 {
        self.next_number
    }
}

impl<S: Source> Machine for UdpSender<S> {
    type Event = Infallible;

    fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let (at, left) = self.message.filter(|&(at, _)| at <= now)?;
        let len = left.min(self.packet_bytes);
        self.message = if left > len { Some((at, left - len)) } else { self.source.next() };
        packet.clear();
        packet.resize(len, 0);
        if let Some(header) = packet.first_chunk_mut() {
            *header = Header { number: self.next_number, sent: now }.encode();
            self.next_number += 1;
        }
        self.packets += 1;
        self.bytes += len as u64;
        Some(self.route)
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.message.map(|(at, _)| at)
    }
}

/// The header of a packet, evaluated by the sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// The packet's number, from 0.
    pub(super) number: u64,
    pub(super) sent: Instant,
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        let checksum = checksum::crc32c(&bytes[..16]);
        bytes[16..].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Parses the header of a packet that is long enough to have one; `None` if it is damaged.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| bytes[at..].first_chunk().map(|word| u64::from_be_bytes(*word));
        let header = Self { number: word(0)?, sent: Instant::from_nanos(word(8)?) };
        (header.encode() == *bytes).then_some(header)
    }
}
