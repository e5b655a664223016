//! Packet scripts of packets without a checksum (RFC 9653), in exact virtual time.

mod kit;

use kit::*;
use rexmit_sctp::Event;
use rexmit_sctp::wire::{Packet, PacketError, ParamsWriter, SCTP_OVER_DTLS};

fn accepts(params: &mut ParamsWriter<'_, '_>) {
    params.push(&Param::ZeroChecksumAcceptable(SCTP_OVER_DTLS));
}

/// Established from the peer's side, whose INIT has these parameters.
fn server(zero_checksum: bool, params: impl FnOnce(&mut ParamsWriter<'_, '_>)) -> Raw {
    let mut s = Script::with(|_, association| association.extensions.zero_checksum = zero_checksum);
    let init = peer_init(s.peer.tag);
    s.peer_writes_under(0, |p| p.init(&init, params));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    while s.endpoint_packet().is_some() {}
    expect_event!(s, Event::Connected { .. });
    Raw(s)
}

/// A script whose packets the kit does not parse: they may have no checksum.
struct Raw(Script);

impl Script {
    fn endpoint_packet(&mut self) -> Option<Vec<u8>> {
        use rexmit_core::Machine as _;
        let (mut bytes, now) = (Vec::new(), self.run().now);
        self.endpoint.poll_transmit(now, &mut bytes).map(|_| bytes)
    }
}

impl Raw {
    /// Delivers a packet without a checksum. Returns whether it was answered, and whether the answer has no checksum.
    fn deliver_without(&mut self, chunk: Chunk<'_>) -> Option<bool> {
        let tag = self.0.peer.endpoint_tag;
        let mut bytes = self.0.peer_packet(tag, |p| p.chunk(&chunk));
        bytes[8..12].fill(0);
        self.0.deliver(&bytes);
        self.0.endpoint_packet().map(|bytes| bytes[8..12] == [0; 4])
    }

    fn refused(&self) -> u64 {
        self.0.endpoint.endpoint_statistics().zero_checksums_refused
    }
}

#[test]
fn negotiated_packets_have_no_checksum() {
    let mut s = server(true, accepts);
    assert_eq!(s.deliver_without(Chunk::Heartbeat(b"there?")), Some(true));
    assert_eq!(s.refused(), 0);
    let bytes = {
        s.0.send(b"hello");
        s.0.endpoint_packet().expect("a packet with DATA")
    };
    assert_eq!(Packet::parse(&bytes), Err(PacketError::Checksum));
    assert!(Packet::parse_without_checksum(&bytes).is_some());
    // A packet with a checksum is accepted, too.
    s.0.peer_sends([Chunk::Heartbeat(b"there?")]);
    assert!(s.0.endpoint_packet().is_some());
}

/// RFC 9653 §5.3: an endpoint that has not announced zero checksums drops such packets.
#[test]
fn a_packet_without_a_checksum_that_was_not_agreed_on_is_dropped() {
    let mut s = server(false, accepts);
    assert_eq!(s.deliver_without(Chunk::Heartbeat(b"there?")), None);
    assert_eq!(s.refused(), 1);
    s.0.peer_sends([Chunk::Heartbeat(b"there?")]);
    let answer = s.0.endpoint_packet().expect("a checksum is right");
    assert!(Packet::parse(&answer).is_ok());
}

/// RFC 9653 §5.2: a peer that has not announced zero checksums, or only with another error detection method, gets a
/// checksum.
#[test]
fn a_peer_that_has_not_announced_zero_checksums_gets_checksums() {
    for method in [None, Some(2)] {
        let mut s = server(true, |params| {
            if let Some(method) = method {
                params.push(&Param::ZeroChecksumAcceptable(method));
            }
        });
        s.0.send(b"hello");
        let bytes = s.0.endpoint_packet().expect("a packet with DATA");
        assert!(Packet::parse(&bytes).is_ok());
    }
}

/// RFC 9653 §5.2: INIT, COOKIE ECHO, and packets that belong to no association have checksums.
#[test]
fn packets_of_the_setup_keep_their_checksum() {
    let mut s = Script::client_with(|_, association| association.extensions.zero_checksum = true);
    let init = s.take_init();
    let listed = Packet::parse(&init).expect("a checksum").chunks().next();
    let Some(Ok(raw)) = listed else { panic!("{listed:?}") };
    let Ok(Init(init)) = raw.decode() else { panic!("{raw:?}") };
    let has_it = |param: Param<'_>| param == Param::ZeroChecksumAcceptable(SCTP_OVER_DTLS);
    assert!(init.params.flatten().any(|param| param.decode().is_ok_and(has_it)));
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            answer_params(params);
            accepts(params);
        })
    });
    expect_packet!(s, [CookieEcho(_)]); // The kit reads none without a checksum.
    s.peer_sends([CookieAck]);
    let mut s = Raw(s);
    for chunk in [Init(peer_init(7)), CookieEcho(b"cookie")] {
        assert_eq!(s.deliver_without(chunk), None);
    }
    assert_eq!(s.refused(), 2);
    s.0.peer.endpoint_tag ^= 1;
    assert_eq!(s.deliver_without(Chunk::ShutdownAck), None);
    assert_eq!(s.refused(), 3);
    s.0.peer.endpoint_tag ^= 1;
    assert_eq!(s.deliver_without(Chunk::Heartbeat(b"there?")), Some(true));
}

/// A peer whose SHUTDOWN COMPLETE was lost has forgotten that it accepts packets without a checksum, and would drop a
/// SHUTDOWN ACK without one.
#[test]
fn shutdown_ack_keeps_its_checksum() {
    let mut s = server(true, accepts);
    let shutdown = Chunk::Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) };
    assert_eq!(s.deliver_without(shutdown), Some(false));
    s.0.at(1_000);
    let again = s.0.endpoint_packet().expect("SHUTDOWN ACK again");
    assert!(Packet::parse(&again).is_ok());
}
