//! The destinations of packets: the UDP port of the encapsulation is learned (RFC 6951 §5.4), and nothing is sent to an
//! unconfirmed address (RFC 9260 §5.4).

mod kit;

use std::net::SocketAddr;

use kit::*;
use rexmit_sctp::Event;

/// Asserts that the next packet is sent over this route.
#[track_caller]
fn expect_way(s: &mut Script, remote: SocketAddr) {
    assert_eq!(s.next_packet().route.remote, remote);
}

/// RFC 6951 §5.4: packets with the right tag from a new port make it the peer's port once a HEARTBEAT was answered from
/// there; until then everything is sent to the old one.
#[test]
fn encapsulation_port_follows_the_peer_once_it_is_validated() {
    let mut s = Script::established_server();
    s.send(b"one");
    expect_way(&mut s, address(2, 9899));
    s.peer.route.remote = address(2, 40_000);
    s.peer_acknowledges(tsn(0));
    let probe = s.take_probe();
    assert_eq!(probe.0, address(2, 40_000));
    s.send(b"two");
    expect_way(&mut s, address(2, 9899));
    s.answer_probe(&probe);
    s.send(b"three");
    expect_way(&mut s, address(2, 40_000));
    s.at(1_000);
    expect_way(&mut s, address(2, 40_000));
}

/// RFC 6951 §5.4: a port of 0 stands for no encapsulation, and is learned as well.
#[test]
fn peer_may_stop_the_encapsulation() {
    let mut s = Script::established_client();
    s.peer.route.remote = address(2, 0);
    s.peer_sends([Heartbeat(b"")]);
    expect_way(&mut s, address(2, 0));
    let probe = s.take_probe();
    s.answer_probe(&probe);
    s.send(b"plain");
    expect_way(&mut s, address(2, 0));
}

/// A HEARTBEAT ACK validates a port only if it comes from there, with the nonce that was sent there.
#[test]
fn changed_port_is_validated_by_its_own_nonce_alone() {
    let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
    s.peer.route.remote = address(2, 40_000);
    s.peer_sends([CookieAck]);
    let (at, info) = s.take_probe();
    let mut other = info.clone();
    other[0] ^= 1;
    s.answer_probe(&(at, other));
    s.answer_probe(&(address(2, 9899), info.clone()));
    s.answer_probe(&(address(2, 40_001), info.clone()));
    s.send(b"still there");
    expect_way(&mut s, address(2, 9899));
    s.answer_probe(&(at, info));
    s.send(b"there");
    expect_way(&mut s, at);
    s.peer_acknowledges(tsn(1));
}

/// A lost HEARTBEAT to a new port is retransmitted after one, two and four RTOs, and then not until another packet
/// arrives from there.
#[test]
fn heartbeats_to_a_new_port_are_repeated_and_limited() {
    let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
    s.peer.route.remote = address(2, 40_000);
    s.peer_sends([CookieAck]);
    assert_eq!(s.take_probe().0, address(2, 40_000));
    for ms in [1_000, 3_000, 7_000, 15_000] {
        assert_eq!(s.at(ms).take_probe().0, address(2, 40_000));
    }
    s.expect_silence_until(200_000);
    s.peer_sends([CookieAck]);
    let probe = s.take_probe();
    s.answer_probe(&probe);
    s.send(b"there");
    expect_way(&mut s, address(2, 40_000));
    s.peer_acknowledges(tsn(0));
}

/// RFC 6951 §5.4: a port is learned only from packets with the right verification tag.
#[test]
fn encapsulation_port_is_not_learned_from_forged_packets() {
    let mut s = Script::established_server();
    let old = s.peer.endpoint_tag;
    s.peer.route.remote = address(2, 666);
    s.peer_sends_under(old ^ 1, [Heartbeat(b"")]);
    expect_packet!(s, tag old ^ 1, [Abort { t_bit: true, .. }]);
    s.peer_sends_under(old ^ 1, [Abort { t_bit: false, causes: wire::Causes::default() }]);
    s.peer_writes_under(0, |p| p.init(&peer_init(0x666), extensions));
    expect_packet!(s, tag 0x666, [InitAck(_)]);
    s.peer_sends_under(old, []);
    s.send(b"to the peer");
    expect_way(&mut s, address(2, 9899));
}

/// RFC 6951 §5.4: during the setup, too.
#[test]
fn encapsulation_port_is_learned_from_init_ack() {
    let mut s = Script::client();
    s.take_init();
    s.peer.route.remote = address(2, 40_000);
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_way(&mut s, address(2, 40_000));
}

/// RFC 6951 §5.1: each address of the peer has its own port.
#[test]
fn encapsulation_port_belongs_to_an_address() {
    let mut s = Script::server();
    s.peer_begins_at(&[3]);
    assert_eq!(s.take_probe().0, address(3, 9899));
    s.peer.route.remote = address(3, 333);
    s.peer_sends([Heartbeat(b"")]);
    expect_way(&mut s, address(3, 333));
    let probe = s.take_probe();
    assert_eq!(probe.0, address(3, 333));
    s.answer_probe(&probe);
    expect_event!(s, Event::PathStatus { path: 1, address: at, .. } if at == address(3, 333));
    s.send(b"over the primary path");
    expect_way(&mut s, address(2, 9899));
}

/// RFC 9260 §5.4, §6.4: a packet from an unconfirmed address is answered to a confirmed one.
#[test]
fn nothing_but_heartbeat_ack_goes_to_an_unconfirmed_address() {
    let mut s = Script::server();
    s.peer_begins_at(&[3]);
    assert_eq!(s.take_probe().0, address(3, 9899));
    s.peer.route.remote = address(3, 9899);
    s.peer_sends([Data(data(0, b"over the other path"))]);
    expect_way(&mut s, address(2, 9899));
}
