//! Packets out of the blue, and wrong verification tags (RFC 9260 §8.4, §8.5).

mod kit;

use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{CloseReason, Endpoint, EndpointConfig, Event};

use kit::*;

const STRAY_TAG: u32 = 0xB10E;

/// Asserts that a packet out of the blue with these chunks gets no answer.
#[track_caller]
fn expect_no_answer<'c>(chunks: impl IntoIterator<Item = Chunk<'c>>) {
    let mut s = Script::server();
    s.peer_sends_under(STRAY_TAG, chunks);
    s.expect_silence();
}

/// An association that waits for SHUTDOWN COMPLETE.
fn shutdown_ack_sent() -> Script {
    let mut s = Script::established_server();
    s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    expect_packet!(s, [ShutdownAck]);
    expect_event!(s, Event::PeerShutdown);
    s
}

fn stale_cookie<'c>() -> Cause<'c> {
    Cause::StaleCookie { measure_of_staleness_us: 0 }
}

/// RFC 9260 §8.4 (1): packets from or to addresses that are not unicast are discarded.
#[test]
fn packet_out_of_the_blue_to_or_from_many_hosts_is_discarded() {
    for many in ["224.0.0.1:9899", "255.255.255.255:9899", "0.0.0.0:9899", "[ff02::1]:9899"] {
        let mut s = Script::server();
        s.peer.route.remote = many.parse().unwrap();
        s.peer_sends_under(STRAY_TAG, [Heartbeat(b"")]);
        s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
        s.expect_silence();
    }
    for many in ["224.0.0.1:9899", "255.255.255.255:9899", "[ff02::1]:9899"] {
        let mut s = Script::server();
        s.peer.route.local = many.parse().unwrap();
        s.peer_sends_under(STRAY_TAG, [Heartbeat(b"")]);
        s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
        s.expect_silence();
    }
}

/// RFC 9260 §8.4 (2), §9.1: a packet that contains an ABORT at any place is never answered.
#[test]
fn abort_out_of_the_blue_is_discarded() {
    let mut s = Script::server();
    for t_bit in [false, true] {
        s.peer_writes_under(STRAY_TAG, |p| p.abort(t_bit, |_| ()));
        s.peer_writes_under(STRAY_TAG, |p| {
            p.heartbeat(b"");
            p.abort(t_bit, |_| ())
        });
    }
    s.expect_silence();
}

/// RFC 9260 §8.4 (4): a COOKIE ECHO out of the blue is processed, and discarded if its cookie is invalid.
#[test]
fn cookie_echo_out_of_the_blue_is_discarded_if_the_cookie_is_not_ours() {
    expect_no_answer([CookieEcho(b"not a cookie of this endpoint, but long enough for one")]);
    expect_no_answer([CookieEcho(b"")]);
}

/// RFC 9260 §8.4 (5): SHUTDOWN ACK gets SHUTDOWN COMPLETE under its own tag, with the T bit.
#[test]
fn shutdown_ack_out_of_the_blue_is_completed() {
    let mut s = Script::server();
    s.peer_sends_under(STRAY_TAG, [ShutdownAck]);
    expect_packet!(s, tag STRAY_TAG, [ShutdownComplete { t_bit: true }]);
}

/// RFC 9260 §8.4 (6), (7): chunks that may be left over from an ended association are discarded.
#[test]
fn leftovers_out_of_the_blue_are_discarded() {
    for t_bit in [false, true] {
        expect_no_answer([ShutdownComplete { t_bit }]);
    }
    expect_no_answer([CookieAck]);
    let mut s = Script::server();
    s.peer_writes_under(STRAY_TAG, |p| {
        p.error(|causes| {
            causes.push(&stale_cookie());
        })
    });
    s.expect_silence();
}

/// RFC 9260 §8.4 (8): everything else gets an ABORT under its own tag, with the T bit.
#[test]
fn any_other_packet_out_of_the_blue_is_aborted() {
    let mut s = Script::server();
    let shutdown = Shutdown { cumulative_tsn_ack: 0 };
    for chunk in [Data(data(0, b"stray")), Heartbeat(b""), HeartbeatAck(b""), shutdown] {
        s.peer_sends_under(STRAY_TAG, [chunk]);
        expect_packet!(s, tag STRAY_TAG, [Abort { t_bit: true, .. }]);
    }
    s.peer_writes_under(STRAY_TAG, |p| p.sack(0, 0, [], []));
    expect_packet!(s, tag STRAY_TAG, [Abort { t_bit: true, .. }]);
    s.peer_writes_under(STRAY_TAG, |p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, tag STRAY_TAG, [Abort { t_bit: true, .. }]);
    s.peer_writes_under(STRAY_TAG, |p| {
        p.error(|causes| {
            causes.push(&Cause::OutOfResource);
        })
    });
    expect_packet!(s, tag STRAY_TAG, [Abort { t_bit: true, .. }]);
    s.peer_writes_under(STRAY_TAG, |p| p.plain(0xC9, 0, b"unknown"));
    expect_packet!(s, tag STRAY_TAG, [Abort { t_bit: true, .. }]);
    assert_eq!(s.endpoint.endpoint_statistics().out_of_the_blue, 8);
}

/// RFC 9260 §8.5.1 A: with tag 0, only INIT is processed.
#[test]
fn tag_zero_is_for_init_alone() {
    let mut s = Script::server();
    s.peer_sends_under(0, [Data(data(0, b"stray"))]);
    s.peer_sends_under(0, [ShutdownAck]);
    s.peer_sends_under(0, [CookieEcho(b"cookie")]);
    s.expect_silence();
}

/// RFC 9260 §6.8, §3.1: a wrong checksum or port is not answered.
#[test]
fn damaged_and_misdirected_packets_are_discarded() {
    let mut s = Script::server();
    let good = s.peer_packet(STRAY_TAG, |p| p.chunk(&ShutdownAck));
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        s.deliver(&damaged);
    }
    s.expect_silence();
    let mut misdirected = good.clone();
    misdirected[3] ^= 1;
    wire::write_checksum(&mut misdirected);
    s.deliver(&misdirected);
    s.deliver(&good[..12]);
    s.deliver(&[]);
    s.expect_silence();
    assert_eq!(s.endpoint.endpoint_statistics().misdirected, 1);
}

/// RFC 9260 §8.5: packets of a peer with a wrong tag are discarded.
#[test]
fn packet_under_a_wrong_tag_is_discarded() {
    let mut s = Script::established_server();
    for wrong in [s.peer.endpoint_tag ^ 1, s.peer.tag] {
        s.peer_sends_under(wrong, [Data(data(0, b"forged"))]);
        s.peer_sends_under(wrong, [Heartbeat(b"forged")]);
        s.peer_sends_under(wrong, [Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
        s.peer_sends_under(wrong, [ShutdownAck]);
    }
    s.expect_silence();
    assert_eq!(s.events(), []);
}

/// RFC 9260 §5, §8.4: a packet with the right tag from an unknown address is out of the blue.
#[test]
fn packet_from_an_unknown_address_with_the_right_tag_is_out_of_the_blue() {
    let mut s = Script::established_server();
    let tag = s.peer.endpoint_tag;
    s.peer.route.remote = address(66, 9899);
    s.peer_sends([Data(data(0, b"stranger"))]);
    expect_packet!(s, tag tag, [Abort { t_bit: true, .. }]);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §8.5.1 B: ABORT under our tag without the T bit, or under the peer's tag with it.
#[test]
fn abort_is_accepted_with_our_tag_or_the_reflected_tag_of_the_peer() {
    for (is_ours, t_bit, is_taken) in
        [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
    {
        let mut s = Script::established_server();
        let tag = if is_ours { s.peer.endpoint_tag } else { s.peer.tag };
        s.peer_writes_under(tag ^ 1, |p| p.abort(t_bit, |_| ()));
        assert_eq!(s.events(), []);
        s.peer_writes_under(tag, |p| p.abort(t_bit, |_| ()));
        s.expect_silence();
        if is_taken {
            expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { .. }));
        }
        assert_eq!(s.events(), [], "our tag: {is_ours}, T bit: {t_bit}");
    }
}

/// RFC 9260 §8.5.1 C: the same for SHUTDOWN COMPLETE.
#[test]
fn shutdown_complete_is_accepted_with_our_tag_or_the_reflected_tag_of_the_peer() {
    for (is_ours, t_bit, is_taken) in
        [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
    {
        let mut s = shutdown_ack_sent();
        let tag = if is_ours { s.peer.endpoint_tag } else { s.peer.tag };
        s.peer_sends_under(tag ^ 1, [ShutdownComplete { t_bit }]);
        assert_eq!(s.events(), []);
        s.peer_sends_under(tag, [ShutdownComplete { t_bit }]);
        if is_taken {
            expect_event!(s, Event::Closed(CloseReason::Shutdown));
        }
        assert_eq!(s.events(), [], "our tag: {is_ours}, T bit: {t_bit}");
    }
}

/// RFC 9260 §8.5.1 B, C: with a reflected tag, only ABORT and SHUTDOWN COMPLETE are processed.
#[test]
fn reflected_tag_is_accepted_with_no_other_chunk() {
    let mut s = Script::established_server();
    s.peer_sends_under(PEER_TAG, [ShutdownComplete { t_bit: true }, Heartbeat(b"forged")]);
    s.peer_sends_under(
        PEER_TAG,
        [Heartbeat(b"forged"), Abort { t_bit: true, causes: wire::Causes::default() }],
    );
    s.expect_silence();
    assert_eq!(s.events(), []);
}

/// RFC 9260 §8.5.1 C: SHUTDOWN COMPLETE counts in SHUTDOWN-ACK-SENT alone.
#[test]
fn unexpected_shutdown_complete_is_ignored() {
    let mut s = Script::established_server();
    s.peer_sends([ShutdownComplete { t_bit: false }]);
    s.peer_sends_under(PEER_TAG, [ShutdownComplete { t_bit: true }]);
    assert_eq!(s.events(), []);
    s.shutdown();
    expect_packet!(s, [Shutdown { .. }]);
    s.peer_sends([ShutdownComplete { t_bit: false }]);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §8.5.1 E, §9.2: in COOKIE-WAIT and COOKIE-ECHOED, SHUTDOWN ACK is out of the blue: it is answered under its
/// tag, and T1 keeps running.
#[test]
fn shutdown_ack_during_the_setup_is_out_of_the_blue() {
    let mut s = Script::client();
    s.take_init();
    s.peer_sends_under(STRAY_TAG, [ShutdownAck]);
    expect_packet!(s, tag STRAY_TAG, [ShutdownComplete { t_bit: true }]);
    s.at(1_000).take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([ShutdownAck]);
    expect_packet!(s, tag s.peer.endpoint_tag, [ShutdownComplete { t_bit: true }]);
    s.at(3_000);
    expect_packet!(s, [CookieEcho(_)]);
}

/// Over UDP nobody else answers at another SCTP port; over IP another program may.
#[test]
fn an_init_to_another_port_is_refused_over_udp_and_ignored_over_ip() {
    let answered = |udp_port: u16| {
        let end = |seed, accept| {
            let config = EndpointConfig::default().accept(accept);
            Endpoint::new(config, &Seed::from_u64(seed)).unwrap()
        };
        let (mut client, mut server, now) = (end(1, false), end(2, true), Instant::ZERO);
        let at = |host| SocketAddr::new([192, 0, 2, host].into(), udp_port);
        let route = Route { local: at(1), remote: at(2) };
        client.connect(now, route, 5001).unwrap();
        let mut packet = Vec::new();
        client.poll_transmit(now, &mut packet).expect("INIT");
        server.handle_input(now, route.reversed(), &packet);
        let answer = server.poll_transmit(now, &mut packet);
        if answer.is_some() {
            client.handle_input(now, route, &packet);
        }
        (answer.is_some(), client.poll_event().map(|(_, event)| event))
    };
    let cause = CloseReason::AbortedByPeer { cause: 0, reason: Bytes::new() };
    assert_eq!(answered(9899), (true, Some(Event::Closed(cause))));
    assert_eq!(answered(0), (false, None));
}
