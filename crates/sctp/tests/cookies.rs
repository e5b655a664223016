//! State cookies: authenticity, lifetime, and no state for them (RFC 9260 §5.1.3, §5.1.5, §5.2.6).

mod kit;

use kit::*;
use rexmit_core::Machine;
use rexmit_sctp::{CloseReason, Event};
use std::time::Duration;

/// Asserts that the cookie had no effect and no event followed.
#[track_caller]
fn expect_refused(s: &mut Script) {
    s.expect_silence();
    assert_eq!(s.endpoint.association_count(), 0);
    assert_eq!(s.endpoint.endpoint_statistics().cookies_refused, 1);
}

/// The INIT of the script's peer with a Cookie Preservative.
fn peer_begins_with_preservative(s: &mut Script, ms: u32) -> Vec<u8> {
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&Param::CookiePreservative(ms));
        })
    });
    s.take_init_ack()
}

/// RFC 9260 §5.1.5 (2): an altered cookie is silently discarded, with the chunks bundled with it.
#[test]
fn altered_cookie_is_discarded() {
    let mut s = Script::server();
    let mut cookie = s.peer_begins();
    cookie[20] ^= 1;
    s.peer_sends([CookieEcho(&cookie), Data(data(0, b"early"))]);
    expect_refused(&mut s);
}

/// RFC 9260 §5.1.5 (3): the packet's verification tag must equal the one in the cookie.
#[test]
fn cookie_under_another_tag_is_discarded() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.peer_sends_under(s.peer.endpoint_tag ^ 1, [CookieEcho(&cookie)]);
    expect_refused(&mut s);
}

/// RFC 9260 §5.1.5 (3): the packet's ports must equal those in the cookie.
#[test]
fn cookie_from_another_port_is_discarded() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.peer.port += 1;
    s.peer_sends([CookieEcho(&cookie)]);
    expect_refused(&mut s);
}

/// RFC 9260 §5.1.2 C: only the addresses of the INIT can be used.
#[test]
fn cookie_from_a_stranger_is_discarded() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.peer.route.remote = address(3, 9899);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_refused(&mut s);
}

/// RFC 9260 §5.1.2 C, §5.4 (2): a cookie may come from another address of the INIT; answers go to the confirmed
/// address, to which INIT ACK was sent.
#[test]
fn cookie_from_another_address_of_the_peer_is_accepted() {
    let mut s = Script::server();
    let other = address(3, 9899);
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&other.ip().into());
        })
    });
    let cookie = s.take_init_ack();
    let first = std::mem::replace(&mut s.peer.route.remote, other);
    s.peer_sends([CookieEcho(&cookie)]);
    let sent = s.next_packet();
    assert_eq!((sent.chunks(), sent.route.remote), (vec![CookieAck], first));
    expect_event!(s, Event::Connected { peer, .. } if peer == first);
    assert_eq!(s.take_probe().0, other);
}

/// RFC 9260 §5.1.5 (4): good for its lifetime (Valid.Cookie.Life, 60 s), to the millisecond.
#[test]
fn cookie_is_valid_for_sixty_seconds() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.at(60_000).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
}

/// RFC 9260 §5.1.5 (4), §4 (1), §3.3.10.3: after its lifetime a cookie is refused by an ERROR with the Measure of
/// Staleness, under the peer's tag. The chunks bundled with it are discarded.
#[test]
fn stale_cookie_is_reported() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.at(60_003).peer_sends([CookieEcho(&cookie), Data(data(0, b"early"))]);
    expect_packet!(s, [Error { causes }] if {
        causes.flatten().eq([Cause::StaleCookie { measure_of_staleness_us: 3_000 }])
    });
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §3.3.2.1.3: a longer lifetime is granted if the peer requests it, up to 10 s more.
#[test]
fn cookie_lifetime_is_extended_on_request() {
    for (wish_ms, granted_ms) in [(5_000, 5_000), (1_000_000, 10_000)] {
        let mut s = Script::server();
        let cookie = peer_begins_with_preservative(&mut s, wish_ms);
        s.at(60_001 + granted_ms).peer_sends([CookieEcho(&cookie)]);
        expect_packet!(s, [Error { .. }]);
        let mut s = Script::server();
        let cookie = peer_begins_with_preservative(&mut s, wish_ms);
        s.at(60_000 + granted_ms).peer_sends([CookieEcho(&cookie)]);
        expect_packet!(s, [CookieAck]);
    }
}

/// RFC 9260 §5.1.3, §5.1.5 (1): the secret changes; the previous one still verifies, and a
/// cookie of an older one is discarded silently.
#[test]
fn secrets_change_and_old_ones_are_forgotten() {
    let with_short_secrets = || {
        Script::with(|config, _| {
            config.cookie_lifetime = Duration::from_secs(60);
            config.cookie_secret_lifetime = Duration::from_secs(100);
        })
    };
    let mut s = with_short_secrets();
    let cookie = s.at(99_000).peer_begins();
    s.at(101_000).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    let mut s = with_short_secrets();
    let cookie = s.at(99_000).peer_begins();
    s.at(199_999).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [Error { .. }]);
    s.at(200_000).peer_sends([CookieEcho(&cookie)]);
    s.expect_silence();
}

/// RFC 9260 §5.2.4 (3), case E: the cookie with which the association was created never expires, because COOKIE ACK may
/// have been lost.
#[test]
fn old_cookie_of_the_association_itself_is_acknowledged() {
    let mut s = Script::with(|_, association| association.failure.heartbeat_interval = None);
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.at(500_000).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, Event::Connected { .. });
    assert_eq!(s.events(), []);
}

/// RFC 9260 §5.1, §12.2.4.2: a cookie that the network delivers twice does not begin an
/// association a second time after it has ended.
#[test]
fn cookie_of_an_association_that_has_ended_is_refused() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie), Data(data(0, b"once"))]);
    expect_packet!(s, [CookieAck, Sack(_)]);
    expect_event!(s, Event::Connected { .. });
    assert_eq!(s.receive().unwrap(), "once");
    s.at(100).peer_writes(|p| p.abort(false, |_| ()));
    s.events();
    s.at(60_000).peer_sends([CookieEcho(&cookie), Data(data(0, b"once"))]);
    expect_packet!(s, [Abort { t_bit: false, .. }]);
    assert_eq!((s.events(), s.endpoint.association_count()), (vec![], 0));
    s.peer_begins();
}

/// When INITs cross, one of the two cookies stays unused. It may arrive after the association of the other cookie has
/// ended, together with DATA. Our tag in it never belonged to an association, but the peer's tag did.
#[test]
fn cookie_left_over_from_a_collision_is_refused_after_the_end() {
    let mut s = Script::server();
    let unused = s.peer_begins();
    let tag_of_unused = s.peer.endpoint_tag;
    s.connect();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck, Data(data(0, b"once"))]);
    expect_event!(s, Event::Connected { .. });
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.receive().unwrap(), "once");
    s.at(100).abort(b"");
    expect_packet!(s, [Abort { .. }]);
    s.events();
    s.at(50_000).peer_sends_under(tag_of_unused, [CookieEcho(&unused), Data(data(0, b"once"))]);
    expect_packet!(s, [Abort { t_bit: false, .. }]);
    assert_eq!((s.events(), s.endpoint.association_count()), (vec![], 0));
    // A cookie made after the end is valid, whatever tag the peer has drawn.
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
}

/// The same for a peer that restarted in between, with a new tag.
#[test]
fn cookie_left_over_from_before_a_restart_is_refused_after_the_end() {
    let mut s = Script::server();
    let unused = s.peer_begins();
    let tag_of_unused = s.peer.endpoint_tag;
    s.connect();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck, Data(data(0, b"once"))]);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.receive().unwrap(), "once");
    let (first, peer) = (PEER_TAG, 0x1234_5678);
    s.at(50).peer.tag = peer;
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.at(100).abort(b"");
    expect_packet!(s, [Abort { .. }]);
    s.events();
    s.peer.tag = first;
    s.at(50_000).peer_sends_under(tag_of_unused, [CookieEcho(&unused), Data(data(0, b"once"))]);
    expect_packet!(s, [Abort { t_bit: false, .. }]);
    assert_eq!((s.events(), s.endpoint.association_count()), (vec![], 0));
}

/// RFC 9260 §5.2.4 (3): a stale cookie with other tags is reported, and the association continues.
#[test]
fn stale_cookie_of_a_restart_is_reported() {
    let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
    let tag = s.peer.endpoint_tag;
    s.peer.tag ^= 1;
    let cookie = s.peer_begins();
    s.at(60_001).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [Error { .. }]);
    s.peer.tag ^= 1;
    s.peer_sends_under(tag, [Heartbeat(b"?")]);
    expect_packet!(s, [HeartbeatAck(b"?")]);
}

/// RFC 9260 §5.2.6 (3): after a stale cookie the setup begins again, with a Cookie Preservative of the round-trip time
/// plus a second. T1 and its count begin again.
#[test]
fn client_requests_a_longer_cookie_lifetime_after_a_stale_cookie() {
    let mut s = Script::client();
    s.take_init();
    s.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    let tag = s.peer.endpoint_tag;
    let stale = Cause::StaleCookie { measure_of_staleness_us: 0 };
    s.at(500).peer_writes(|p| {
        p.error(|causes| {
            causes.push(&stale);
        })
    });
    expect_packet!(s, tag 0, [Init(init)] if init.initiate_tag == tag && {
        // 7/8 of the 100 ms of INIT ACK and 1/8 of the 400 ms of the ERROR (RFC 9260 §6.3.1 C3).
            let wish = Param::CookiePreservative(1_137);
        init.params().flatten().any(|param| param.decode() == Ok(wish))
    });
    s.at(600).peer_writes(|p| {
        p.init_ack(&peer_init(77), |params| {
            params.push(&Param::StateCookie(b"fresh"));
        })
    });
    expect_packet!(s, tag 77, [CookieEcho(b"fresh")]);
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
}

/// RFC 9260 §5.2.6 (2): the setup fails after three new INITs whose cookies the peer reports as stale, too.
#[test]
fn client_gives_up_after_three_more_stale_cookies() {
    let mut s = Script::client();
    s.take_init();
    let stale = Cause::StaleCookie { measure_of_staleness_us: 0 };
    for _ in 0..3 {
        s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(s, [CookieEcho(COOKIE)]);
        s.peer_writes(|p| {
            p.error(|causes| {
                causes.push(&stale);
            })
        });
        s.take_init();
    }
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.peer_writes(|p| {
        p.error(|causes| {
            causes.push(&stale);
        })
    });
    s.expect_silence();
    expect_event!(s, Event::Closed(CloseReason::ConnectTimedOut));
}

/// RFC 9260 §5.2.6: data sent with the stale cookie is retransmitted with the next one.
#[test]
fn data_sent_with_a_stale_cookie_is_retransmitted() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_), Data(_)]);
    let stale = Cause::StaleCookie { measure_of_staleness_us: 0 };
    s.peer_writes(|p| {
        p.error(|causes| {
            causes.push(&stale);
        })
    });
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_), Data(d)] if d.tsn == tsn(0) && d.payload == b"early");
}

/// RFC 9260 §5.2.6: outside COOKIE-ECHOED the report of a stale cookie is discarded.
#[test]
fn report_of_a_stale_cookie_is_otherwise_discarded() {
    let stale = Cause::StaleCookie { measure_of_staleness_us: 0 };
    let mut waiting = Script::client();
    waiting.take_init();
    let mut established = Script::established_client();
    for s in [&mut waiting, &mut established] {
        s.peer_writes(|p| {
            p.error(|causes| {
                causes.push(&stale);
            })
        });
        s.expect_silence();
        assert_eq!(s.events(), []);
    }
    waiting.at(1_000).take_init();
}

/// RFC 9260 §5.1 B, §12.2.4.1: any number of INITs uses neither memory nor timers.
#[test]
fn ten_thousand_inits_leave_no_state() {
    let mut s = Script::server();
    let flood = |s: &mut Script| {
        for n in 1..=10_000 {
            s.peer.route.remote = address((n % 250) as u8, 1_000 + (n / 250) as u16);
            s.peer.tag = n;
            s.peer_begins();
        }
    };
    flood(&mut s);
    let measured = allocation_counter::measure(|| flood(&mut s));
    assert_eq!(measured.bytes_current, 0, "{measured:?}");
    assert_eq!((s.endpoint.association_count(), s.endpoint.poll_timeout()), (0, None));
    assert_eq!(s.endpoint.endpoint_statistics().inits_answered, 20_000);
}

/// The limit of pending responses (64): of a flood between two polls only a part is answered.
#[test]
fn answers_that_wait_are_limited() {
    let mut s = Script::server();
    for _ in 0..100 {
        s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    }
    for _ in 0..64 {
        expect_packet!(s, [InitAck(_)]);
    }
    s.expect_silence();
}

/// `max_associations`, RFC 9260 §5.1, §3.3.10.4: beyond it INIT and COOKIE ECHO get an ABORT.
#[test]
fn associations_beyond_the_limit_are_refused() {
    let mut s = Script::with(|config, _| config.max_associations = 1);
    let ports = [PEER_PORT, PEER_PORT + 1];
    let mut cookies = Vec::new();
    for port in ports {
        s.peer.port = port;
        let cookie = s.peer_begins();
        cookies.push((s.peer, cookie));
    }
    for (n, (peer, cookie)) in cookies.iter().enumerate() {
        s.peer = *peer;
        s.peer_sends([CookieEcho(cookie)]);
        match n {
            0 => expect_packet!(s, [CookieAck]),
            _ => expect_packet!(s, [Abort { t_bit: false, causes }] if {
                causes.flatten().eq([Cause::OutOfResource])
            }),
        }
    }
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    expect_packet!(s, [Abort { t_bit: false, causes }] if causes.flatten().eq([Cause::OutOfResource]));
    assert_eq!(s.endpoint.endpoint_statistics().refused_for_limit, 2);
}
