//! A listener under load: the backlog, SYN cookies (RFC 4987 §3.6), and the limits of both.

mod kit;

use std::net::SocketAddr;

use kit::*;

/// A listener without a backlog, which answers every SYN with a cookie.
fn cookie_server() -> Script {
    Script::with(|config, _| config.syn_backlog = 0)
}

/// The peer sends a SYN with `options`; returns the cookie in the SYN-ACK.
#[track_caller]
fn take_cookie(s: &mut Script, options: Options) -> Sent {
    s.peer.options = options;
    s.arrives(syn());
    let sent = s.next_packet();
    assert_eq!(sent.header.flags, Flags::SYN.and(Flags::ACK));
    assert_eq!(sent.header.acknowledgment, PEER_ISS.wrapping_add(1));
    s.peer.endpoint_iss = sent.header.sequence;
    s.peer.timestamps = sent.header.options.timestamps.map(|stamps| Timestamps {
        value: options.timestamps.map_or(0, |own| own.value),
        echo_reply: stamps.value,
    });
    sent
}

fn stamped(value: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo_reply: 0 })
}

fn flood(s: &mut Script, count: u32) -> Vec<Sent> {
    (0..count)
        .filter_map(|n| {
            let from = SocketAddr::from(([10, (n >> 16) as u8, (n >> 8) as u8, n as u8], 1024));
            s.arrives_from(from, syn());
            s.poll_packet()
        })
        .collect()
}

#[test]
fn a_handshake_that_never_ends_leaves_no_state() {
    let mut s = Script::server();
    s.arrives(syn());
    s.expect(syn_ack());
    assert_eq!(s.endpoint.connection_count(), 1);
    s.lose_until(300_000);
    assert_eq!((s.endpoint.connection_count(), s.next_timeout_ms()), (0, None));
    assert_eq!(s.events(), vec![]);
}

/// RFC 9293 §3.10.7.4, RST in SYN-RECEIVED: back to LISTEN, and the application is not informed.
#[test]
fn a_handshake_that_is_reset_frees_its_place() {
    let mut s = Script::with(|config, _| config.syn_backlog = 1);
    for _ in 0..3 {
        s.arrives(syn());
        s.expect(syn_ack());
        s.arrives(rst(1));
        s.expect_silence();
        assert_eq!(s.endpoint.connection_count(), 0);
    }
    assert_eq!((s.counted().cookies.sent, s.events()), (0, vec![]));
}

#[test]
fn a_flood_uses_no_more_memory_than_the_backlog_and_blocks_no_client() {
    let mut s = Script::with(|config, _| config.syn_backlog = 16);
    let answers = flood(&mut s, 10_000);
    assert_eq!(answers.len(), 10_000);
    assert_eq!(s.endpoint.connection_count(), 16);
    assert_eq!(s.counted().cookies.sent, 10_000 - 16);
    take_cookie(&mut s, Options { mss: Some(1460), ..Options::default() });
    s.arrives(ack(1, 1));
    expect_event!(s, Event::Connected { incoming: true, .. });
    assert_eq!((s.endpoint.connection_count(), s.counted().cookies.accepted), (17, 1));
    // The handshakes of the flood time out; the genuine connection stays.
    s.lose_until(300_000);
    assert_eq!((s.endpoint.connection_count(), s.state()), (1, Some(State::Established)));
    // And the backlog has room again.
    let answers = flood(&mut s, 16);
    assert_eq!((answers.len(), s.counted().cookies.sent), (16, 10_000 - 16 + 1));
}

/// A connection created from a cookie has the options that the SYNs negotiated.
#[test]
fn a_cookie_keeps_the_options_of_its_syn_ack() {
    for case in 0..16 {
        let options = Options {
            mss: (case & 1 != 0).then_some(1000),
            window_scale: (case & 2 != 0).then_some(3),
            sack_permitted: case & 4 != 0,
            timestamps: if case & 8 != 0 { stamped(777) } else { None },
            ..Options::default()
        };
        let mut s = cookie_server();
        s.at(5);
        let agreed = take_cookie(&mut s, options).header.options;
        let is_stamped = options.timestamps.is_some();
        assert_eq!(agreed.mss, Some(1460));
        assert_eq!(agreed.window_scale.is_some(), is_stamped && case & 2 != 0, "{case}");
        assert_eq!(agreed.sack_permitted, is_stamped && case & 4 != 0, "{case}");
        assert_eq!(agreed.timestamps.map(|stamps| stamps.echo_reply), is_stamped.then_some(777));
        assert_eq!(s.endpoint.connection_count(), 0);
        s.at(300).arrives(ack(1, 1).window(1000));
        expect_event!(s, Event::Connected { incoming: true, .. });
        let scale = if agreed.window_scale.is_some() { 3 } else { 0 };
        assert_eq!(s.statistics().send_window, 1000 << scale, "{case}");
        // A gap is reported only to a peer that has sent SACK-permitted.
        s.arrives(data(11, 1, b"later"));
        let sent = s.expect(ack(1, 1));
        assert_eq!(!sent.header.options.sack.is_empty(), agreed.sack_permitted, "{case}");
        assert_eq!(sent.header.options.timestamps.is_some(), is_stamped);
        // Data goes out in segments that the peer's MSS, rounded down to 536, allows.
        s.send(&[7; 2000]);
        let sent = s.next_packet();
        assert!(sent.bytes.len() - 20 <= 536, "{case}: {}", sent.bytes.len());
        s.lose_until(s.now_ms());
    }
}

#[test]
fn data_may_arrive_with_the_cookie() {
    let mut s = cookie_server();
    take_cookie(&mut s, Options::default());
    s.arrives(data(1, 1, b"hello"));
    expect_event!(s, Event::Connected { incoming: true, .. });
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive(), b"hello");
    s.at(40).expect(ack(1, 6));
}

/// The peer's first segment was lost or overtaken. The next one does not contain its initial sequence number, so the
/// connection is created by the retransmission of the first.
#[test]
fn data_that_overtake_the_cookie_do_not_reset_its_connection() {
    let mut s = cookie_server();
    take_cookie(&mut s, Options::default());
    s.arrives(data(4, 1, b"lo"));
    s.arrives(fin(6, 1));
    s.expect_silence();
    s.arrives(data(1, 1, b"hello"));
    expect_event!(s, Event::Connected { incoming: true, .. });
    expect_event!(s, Event::Readable);
    s.arrives(rst(6));
    expect_event!(s, Event::Closed(CloseReason::Reset));
    assert_eq!(s.receive(), b"hello");
    assert_eq!(s.next_event(), None);
    // Its cookie was used, so the connection has existed and the segment is reset. Later no cookies are in use.
    s.arrives(data(1, 1, b"hello"));
    s.expect(rst(1));
    s.at(128_000).arrives(data(4, 1, b"lo"));
    s.expect(rst(1));
}

#[test]
fn a_forged_an_old_and_a_used_cookie_are_reset() {
    let mut s = cookie_server();
    take_cookie(&mut s, Options::default());
    for (seq, number) in [(1, 2), (2, 1), (1, 0x1000_0001)] {
        s.arrives(ack(seq, number));
        s.expect(rst(number));
    }
    s.arrives_from(address(3, PEER_PORT), ack(1, 1));
    assert_eq!(s.next_packet().header.flags, Flags::RST);
    assert_eq!((s.counted().cookies.refused, s.endpoint.connection_count()), (4, 0));
    // The cookie is valid, but only once.
    s.arrives(ack(1, 1));
    expect_event!(s, Event::Connected { .. });
    s.arrives(rst(1));
    expect_event!(s, Event::Closed(CloseReason::Reset));
    assert_eq!(s.next_event(), None);
    assert_eq!(s.endpoint.connection_count(), 0);
    s.arrives(ack(1, 1));
    s.expect(rst(1));
    assert_eq!((s.counted().cookies.refused, s.counted().cookies.accepted), (5, 1));

    let mut s = cookie_server();
    take_cookie(&mut s, Options::default());
    s.at(128_000);
    // Another SYN shows that cookies are in use.
    s.arrives_from(address(3, 1), syn());
    s.next_packet();
    s.arrives(ack(1, 1));
    s.expect(rst(1));
}

#[test]
fn at_the_limit_of_connections_syns_and_cookies_meet_silence() {
    let mut s = Script::with(|config, _| {
        config.max_connections = 1;
        config.syn_backlog = 0;
    });
    take_cookie(&mut s, Options::default());
    let (cookie, used) = (s.peer.clone(), address(3, 1));
    s.peer.address = used;
    take_cookie(&mut s, Options::default());
    s.arrives(ack(1, 1));
    expect_event!(s, Event::Connected { .. });
    s.peer = cookie;
    s.arrives(ack(1, 1));
    s.arrives_from(address(4, 1), syn());
    s.expect_silence();
    assert_eq!((s.counted().refused_for_limit, s.endpoint.connection_count()), (2, 1));
    // Its cookie is still valid when the backlog has room.
    let first = s.id();
    s.abort();
    s.next_packet();
    expect_event!(s, Event::Closed(CloseReason::Aborted));
    assert_eq!(s.next_event(), None);
    s.arrives(ack(1, 1));
    expect_event!(s, Event::Connected { .. });
    assert_ne!(s.id(), first);
}

#[test]
fn after_the_end_of_listening_only_pending_handshakes_complete() {
    let mut s = Script::server();
    s.arrives(syn());
    s.expect(syn_ack());
    s.endpoint.stop_listening(PORT);
    s.arrives_from(address(3, 1), syn());
    assert_eq!(s.next_packet().header.flags, Flags::RST.and(Flags::ACK));
    s.arrives(ack(1, 1));
    expect_event!(s, Event::Connected { incoming: true, .. });
    s.endpoint.listen(PORT, None).expect("a free port");
    assert!(s.endpoint.listen(PORT, None).is_err());
}
