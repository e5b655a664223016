//! A packet sent by the endpoint, and the rules that every such packet follows.

use std::fmt;

use rexmit_core::{Instant, Route};
use rexmit_sctp::wire::{Chunk, Header, Packet, kind};

use super::PORT;

/// A packet that was sent. These rules were checked: checksum and ports are right, every chunk can be read, the chunks
/// may be bundled in this order (RFC 9260 §6.10), and only INIT has the tag 0 (RFC 9260 §8.5.1 A).
pub struct Sent {
    pub at: Instant,
    pub route: Route,
    pub header: Header,
    pub bytes: Vec<u8>,
}

impl Sent {
    #[track_caller]
    pub fn new(at: Instant, route: Route, bytes: Vec<u8>, peer_port: u16) -> Self {
        let packet = Packet::parse(&bytes).expect("a packet that can be read");
        let sent = Self { at, route, header: packet.header, bytes };
        let ports = (sent.header.source_port, sent.header.destination_port);
        assert_eq!(ports, (PORT, peer_port), "ports of {sent:?}");
        assert_eq!(sent.bytes.len() % 4, 0, "padding of {sent:?}");
        sent.check_bundling();
        sent
    }

    /// The chunks of the packet.
    pub fn chunks(&self) -> Vec<Chunk<'_>> {
        let packet = Packet::parse(&self.bytes).expect("it was read before");
        let decode =
            |raw: Result<_, _>| raw.and_then(|raw: rexmit_sctp::wire::RawChunk<'_>| raw.decode());
        packet.chunks().map(decode).collect::<Result<_, _>>().expect("chunks that can be read")
    }

    /// When it was sent, in milliseconds, rounded down.
    pub fn at_ms(&self) -> u64 {
        self.at.as_nanos() / 1_000_000
    }

    #[track_caller]
    fn check_bundling(&self) {
        let packet = Packet::parse(&self.bytes).expect("it was read before");
        let mut kinds: Vec<u8> = packet.chunks().flatten().map(|raw| raw.kind).collect();
        // AUTH stands before what it covers, which is all of our packets or none (RFC 4895 §6.2).
        if kinds.first() == Some(&kind::AUTH) {
            kinds.remove(0);
        }
        let alone = [kind::INIT, kind::INIT_ACK, kind::SHUTDOWN_COMPLETE];
        assert!(!kinds.is_empty(), "an empty packet");
        assert!(kinds.len() == 1 || !kinds.iter().any(|k| alone.contains(k)), "{self:?}");
        let first = [kind::COOKIE_ECHO, kind::COOKIE_ACK];
        assert!(!kinds[1..].iter().any(|k| first.contains(k)), "a cookie comes first: {self:?}");
        let is_data = |k: u8| k == kind::DATA || k == kind::I_DATA;
        let first_data = kinds.iter().position(|&k| is_data(k)).unwrap_or(kinds.len());
        assert!(kinds[first_data..].iter().all(|&k| is_data(k)), "DATA come last: {self:?}");
        let is_with_data = |k| kinds.contains(&k) && first_data < kinds.len();
        for never in [kind::ABORT, kind::SHUTDOWN, kind::SHUTDOWN_ACK] {
            assert!(!is_with_data(never), "this never travels with DATA: {self:?}");
        }
        let is_init = kinds[0] == kind::INIT;
        assert_eq!(self.header.verification_tag == 0, is_init, "tag 0 is for INIT: {self:?}");
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = self.header.verification_tag;
        write!(f, "at {:?} to {} under {tag:#x}: {:?}", self.at, self.route.remote, self.chunks())
    }
}
