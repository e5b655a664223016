//! INIT, INIT ACK, COOKIE ECHO and COOKIE ACK for an existing association: collision, restart, repetition (RFC 9260
//! §5.2, all rows of Table 12).

mod kit;

use kit::*;
use rexmit_sctp::wire::Init;
use rexmit_sctp::{Event, FailReason};

/// The tag of the restarted peer.
const NEW_TAG: u32 = 0x1234_5678;

/// The peer has crashed and sends INIT again; returns the cookie of the new association.
#[track_caller]
fn peer_begins_again(s: &mut Script) -> Vec<u8> {
    s.peer.tag = NEW_TAG;
    s.peer_begins()
}

/// The association `s` is alive and knows its peer under `s.peer.tag`.
#[track_caller]
fn expect_alive(s: &mut Script) {
    s.peer_sends([Heartbeat(b"alive?")]);
    expect_packet!(s, [HeartbeatAck(b"alive?")]);
}

/// RFC 9260 §5.2.4 (A), §5.2.4.1: X X M M. The association begins again with new tags; the restart and the
/// unacknowledged messages are reported to the application.
#[test]
fn restart_of_the_peer_begins_the_association_again() {
    let mut s = Script::established_server();
    let outstanding = s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    let cookie = peer_begins_again(&mut s);
    assert_eq!(s.events(), [], "INIT alone changes nothing");
    s.peer_sends([CookieEcho(&cookie), Data(data(0, b"anew"))]);
    expect_packet!(s, [CookieAck, Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    expect_event!(s, Event::MessageFailed { id, reason: FailReason::AssociationEnded, .. }
        if id == outstanding);
    expect_event!(s, Event::PeerRestarted);
    expect_event!(s, Event::Connected { .. });
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive().unwrap(), "anew");
    s.send(b"anew");
    expect_packet!(s, [Data(d)] if (d.tsn, d.ssn) == (tsn(0), 0));
    assert_eq!(s.endpoint.association_count(), 1);
}

/// RFC 9260 §5.2.4 (A): window and timeout are those of a new association, and T3-rtx is stopped.
#[test]
fn restart_resets_congestion_control_and_timers() {
    let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
    let initial = s.statistics().paths[0].clone();
    s.send(b"lost");
    expect_packet!(s, [Data(_)]);
    s.at(1_000);
    expect_packet!(s, [Data(_)]);
    assert_ne!(
        (s.statistics().paths[0].cwnd, s.statistics().paths[0].rto),
        (initial.cwnd, initial.rto)
    );
    let cookie = peer_begins_again(&mut s);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    let path = s.statistics().paths[0].clone();
    assert_eq!((path.cwnd, path.ssthresh, path.rto), (initial.cwnd, initial.ssthresh, initial.rto));
    s.expect_silence_until(100_000);
}

/// RFC 9260 §5.2.4 (A), §5.3.1: the previous tags are invalid.
#[test]
fn restart_invalidates_the_old_tags() {
    let mut s = Script::established_server();
    let old = s.peer.endpoint_tag;
    let cookie = peer_begins_again(&mut s);
    assert_ne!(s.peer.endpoint_tag, old);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.peer_sends_under(old, [Heartbeat(b"old")]);
    s.expect_silence();
    expect_alive(&mut s);
}

/// RFC 9260 §5.2.4 (A): data received before the restart is delivered before later data.
#[test]
fn messages_received_before_a_restart_can_be_read_first() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"before"))]);
    expect_packet!(s, [Sack(_)]);
    let cookie = peer_begins_again(&mut s);
    s.peer_sends([CookieEcho(&cookie), Data(data(0, b"after"))]);
    expect_packet!(s, [CookieAck, Sack(_)]);
    assert_eq!((s.receive().unwrap(), s.receive().unwrap()), ("before".into(), "after".into()));
}

/// RFC 9260 §5.2.4 (A) in SHUTDOWN-PENDING, SHUTDOWN-SENT and SHUTDOWN-RECEIVED.
#[test]
fn restart_ends_a_shutdown_in_progress() {
    let pending = |s: &mut Script| {
        s.send(b"outstanding");
        expect_packet!(s, [Data(_)]);
        s.shutdown();
    };
    let sent = |s: &mut Script| {
        s.shutdown();
        expect_packet!(s, [Shutdown { .. }]);
    };
    let received = |s: &mut Script| {
        s.send(b"outstanding");
        expect_packet!(s, [Data(_)]);
        s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    };
    for begin in [&pending as &dyn Fn(&mut Script), &sent, &received] {
        let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
        begin(&mut s);
        let cookie = peer_begins_again(&mut s);
        s.peer_sends([CookieEcho(&cookie)]);
        expect_packet!(s, [CookieAck]);
        s.events();
        s.send(b"anew");
        expect_packet!(s, [Data(d)] if d.tsn == tsn(0));
        s.peer_acknowledges(tsn(0));
        s.expect_silence_until(400_000);
    }
}

/// RFC 9260 §5.2.4 (A): in SHUTDOWN-ACK-SENT a restart is refused by another SHUTDOWN ACK and an ERROR; the peer's
/// SHUTDOWN COMPLETE reflects the tag it got.
#[test]
fn restart_while_shutdown_ack_is_sent_is_refused() {
    let mut s = Script::established_server();
    let old = s.peer;
    let cookie = peer_begins_again(&mut s);
    let new = std::mem::replace(&mut s.peer, old);
    s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    expect_packet!(s, [ShutdownAck]);
    s.peer_sends_under(new.endpoint_tag, [CookieEcho(&cookie), Data(data(0, b"anew"))]);
    expect_packet!(s, [Error { causes }, ShutdownAck] if {
        causes.flatten().eq([Cause::CookieReceivedWhileShuttingDown])
    });
    s.peer_sends_under(old.tag, [ShutdownComplete { t_bit: true }]);
    s.events();
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §8.4 (5), §8.5.1 E: the same, seen from the peer: a restarting client processes the SHUTDOWN ACK at any
/// place in the packet, and continues with its INIT.
#[test]
fn shutdown_ack_in_answer_to_a_restart_is_completed() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_writes_under(99, |p| {
        p.error(|causes| {
            causes.push(&Cause::CookieReceivedWhileShuttingDown);
        });
        p.shutdown_ack()
    });
    expect_packet!(s, tag 99, [ShutdownComplete { t_bit: true }]);
    s.at(1_000);
    expect_packet!(s, [CookieEcho(_)]);
}

/// RFC 9260 §5.2.4: the cookie of a restart is valid once; then its Tie-Tags are outdated.
#[test]
fn cookie_of_a_restart_cannot_be_used_again() {
    let mut s = Script::established_server();
    let first = peer_begins_again(&mut s);
    let of_first = s.peer;
    s.peer.tag = NEW_TAG + 1;
    let second = s.peer_begins();
    let of_second = std::mem::replace(&mut s.peer, of_first);
    s.peer_sends([CookieEcho(&first)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    s.peer_sends_under(of_second.endpoint_tag, [CookieEcho(&second)]);
    s.expect_silence();
    assert_eq!(s.events(), []);
    expect_alive(&mut s);
}

/// RFC 9260 §5.2.1: INIT in COOKIE-WAIT is answered with the parameters of our own INIT; T1-init keeps running.
#[test]
fn init_in_cookie_wait_is_answered_with_our_own_tag() {
    let mut s = Script::client();
    s.take_init();
    let tag = s.peer.endpoint_tag;
    s.at(500).peer_begins();
    assert_eq!(s.peer.endpoint_tag, tag);
    s.at(1_000).take_init();
}

/// RFC 9260 §5.2.1: the same in COOKIE-ECHOED; T1-cookie runs on.
#[test]
fn init_in_cookie_echoed_is_answered_with_our_own_tag() {
    let mut s = Script::client();
    s.take_init();
    let tag = s.peer.endpoint_tag;
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.at(500).peer_begins();
    assert_eq!(s.peer.endpoint_tag, tag);
    s.at(1_000);
    expect_packet!(s, [CookieEcho(_)]);
}

/// RFC 9260 §5.2.1: an INIT in COOKIE-ECHOED that adds addresses is discarded, and the ABORT lists them.
#[test]
fn init_in_cookie_echoed_with_new_addresses_is_refused() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(NEW_TAG), |params| {
            params.push(&address(9, 0).ip().into());
        })
    });
    expect_packet!(s, tag NEW_TAG, [Abort { t_bit: false, causes }] if {
        let mut named = wire::Params::new(match causes.flatten().next() {
            Some(Cause::RestartWithNewAddresses(addresses)) => addresses,
            other => panic!("{other:?}"),
        });
        named.next().unwrap().unwrap().decode() == Ok(address(9, 0).ip().into())
    });
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
}

/// RFC 9260 §5.2.1 (1), (2): INIT ACK goes only to an address that the application named.
#[test]
fn init_in_cookie_wait_from_elsewhere_is_answered_to_where_we_connect() {
    let mut s = Script::client();
    s.take_init();
    let named = std::mem::replace(&mut s.peer.route.remote, address(3, 9899));
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&named.ip().into());
        })
    });
    assert_eq!(s.next_packet().route.remote, named);
}

/// RFC 9260 §5.2.2: an INIT for an established association gets a new tag, and changes no state; one with a new address
/// is refused under its own tag.
#[test]
fn init_in_established_changes_nothing() {
    let mut s = Script::established_server_over_ip();
    let before = s.peer;
    s.peer.tag = NEW_TAG;
    s.peer_begins();
    assert_ne!(s.peer.endpoint_tag, before.endpoint_tag);
    s.peer.route.remote = address(3, 0);
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(NEW_TAG), |params| {
            params.push(&before.route.remote.ip().into());
        })
    });
    expect_packet!(s, [Abort { t_bit: false, causes }] if {
        matches!(causes.flatten().next(), Some(Cause::RestartWithNewAddresses(_)))
    });
    s.peer = before;
    expect_alive(&mut s);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §5.2.4 (B): M 0. Both sides have begun, and the peer returns our cookie while we wait for its INIT ACK.
#[test]
fn collision_in_cookie_wait_establishes() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    let cookie = s.peer_begins();
    s.at(10).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck, Data(d)] if d.tsn == tsn(0));
    expect_event!(s, Event::Connected { .. });
    s.peer_acknowledges(tsn(0));
    s.expect_silence_until(20_000);
}

/// RFC 9260 §5.2.4 (B): M X. The peer has chosen another tag since its INIT ACK: the one in the cookie is used,
/// T1-cookie stops, and the data of our COOKIE ECHO is retransmitted.
#[test]
fn collision_in_cookie_echoed_uses_the_new_tag_of_the_peer() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_), Data(_)]);
    s.peer.tag = NEW_TAG;
    let cookie = s.peer_begins();
    s.at(10).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck, Data(d)] if d.tsn == tsn(0));
    s.peer_acknowledges(tsn(0));
    expect_event!(s, Event::Connected { .. });
    s.expect_silence_until(20_000);
    expect_alive(&mut s);
}

/// RFC 9260 §5.2.4 (B): the collision occurs just when T1-init has expired: the pending INIT is not sent.
#[test]
fn collision_cancels_an_init_that_was_about_to_be_sent() {
    let mut s = Script::client();
    s.take_init();
    let cookie = s.peer_begins();
    s.at(1_000).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.expect_silence();
    assert!(s.endpoint.is_idle());
}

/// RFC 9260 §5.2.4 (B) in ESTABLISHED: the state stays ESTABLISHED, with the peer's new tag.
#[test]
fn late_collision_updates_the_tag_of_the_peer() {
    let mut s = Script::client();
    s.take_init();
    let old = s.peer;
    s.peer.tag = NEW_TAG;
    let cookie = s.peer_begins();
    s.peer = old;
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s.peer.tag = NEW_TAG;
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_alive(&mut s);
    assert_eq!(s.events(), []);
}

/// A client whose peer begins at the same time, crashes, and begins again before its first cookie has come back. The
/// association is established with the peer before the crash, which has sent one message. Returns the cookies from
/// before and after the crash; `s.peer` is the peer after it, with another initial TSN.
fn established_with_the_first_of_two_lives() -> (Script, [Vec<u8>; 2]) {
    let mut s = Script::client_with(|_, a| a.failure.heartbeat_interval = None);
    s.take_init();
    let first_cookie = s.peer_begins();
    let first = s.peer;
    s.at(10).peer.tag = NEW_TAG;
    let init = Init { initial_tsn: SECOND_LIFE_TSN, ..peer_init(NEW_TAG) };
    s.peer_writes_under(0, |p| p.init(&init, extensions));
    let second_cookie = s.take_init_ack();
    let second = std::mem::replace(&mut s.peer, first);
    s.peer_sends([CookieEcho(&first_cookie), Data(data(0, b"first life"))]);
    expect_packet!(s, [CookieAck, Sack(_)]);
    expect_event!(s, Event::Connected { .. });
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive().unwrap(), "first life");
    s.peer = second;
    (s, [first_cookie, second_cookie])
}

/// The initial TSN of the peer after its second restart.
const SECOND_LIFE_TSN: u32 = 0x7000_0000;

/// RFC 9260 §5.2.4 (B) in ESTABLISHED, from a peer that restarted twice within one handshake: a new tag *and* a new
/// initial TSN show a restart, so that the association begins again. Otherwise it would acknowledge TSNs that the
/// restarted peer never sent.
#[test]
fn late_collision_with_new_tsns_is_a_restart() {
    let (mut s, [_, cookie]) = established_with_the_first_of_two_lives();
    let second = s.peer;
    s.peer.tag = PEER_TAG;
    let outstanding = s.send(b"to the first life");
    expect_packet!(s, [Data(d)] if d.tsn == tsn(0));
    s.peer = second;
    let anew = rexmit_sctp::wire::Data { tsn: SECOND_LIFE_TSN, ..data(0, b"second life") };
    s.peer_sends([CookieEcho(&cookie), Data(anew)]);
    expect_packet!(s, [CookieAck, Sack(sack)] if sack.cumulative_tsn_ack == SECOND_LIFE_TSN);
    expect_event!(s, Event::MessageFailed { id, reason: FailReason::AssociationEnded, .. }
        if id == outstanding);
    expect_event!(s, Event::PeerRestarted);
    expect_event!(s, Event::Connected { .. });
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive().unwrap(), "second life");
    s.send(b"anew");
    expect_packet!(s, [Data(d)] if (d.tsn, d.ssn) == (tsn(0), 0));
    expect_alive(&mut s);
    assert_eq!(s.endpoint.association_count(), 1);
}

/// The cookie from before the crash arrives a second time, after the newer one, and is discarded (RFC 9260 §5.2.4 C).
#[test]
fn late_cookie_from_before_a_restart_is_discarded() {
    let (mut s, [first, second]) = established_with_the_first_of_two_lives();
    s.peer_sends([CookieEcho(&second)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    s.peer_sends([CookieEcho(&first)]);
    s.expect_silence();
    assert_eq!(s.events(), []);
    expect_alive(&mut s);
}

/// The same while we wait for SHUTDOWN COMPLETE: as with any restart, SHUTDOWN ACK is sent again.
#[test]
fn late_collision_with_new_tsns_while_shutdown_ack_is_sent_is_refused() {
    let (mut s, [_, cookie]) = established_with_the_first_of_two_lives();
    let second = s.peer;
    s.peer.tag = PEER_TAG;
    s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    expect_packet!(s, [ShutdownAck]);
    s.peer_sends_under(second.endpoint_tag, [CookieEcho(&cookie)]);
    expect_packet!(s, [Error { causes }, ShutdownAck] if {
        causes.flatten().eq([Cause::CookieReceivedWhileShuttingDown])
    });
}

/// RFC 9260 §5.2.4 (C): X M 0 0. A late cookie of ours with an old tag has no effect.
#[test]
fn late_cookie_with_an_old_tag_of_ours_is_discarded() {
    let mut s = Script::server();
    let late = s.peer_begins();
    let tag_of_late = s.peer.endpoint_tag;
    s.connect();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.at(400).peer_sends_under(tag_of_late, [CookieEcho(&late), Data(data(0, b"late"))]);
    s.expect_silence();
    s.at(1_000);
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.peer_sends([CookieAck]);
    s.peer_sends_under(tag_of_late, [CookieEcho(&late)]);
    s.expect_silence();
}

/// RFC 9260 §5.2.4: X X 0 0 is not in the table: a cookie made before the association.
#[test]
fn cookie_without_tie_tags_does_not_restart() {
    let mut s = Script::server();
    let first = s.peer_begins();
    let of_first = s.peer;
    s.peer.tag = NEW_TAG;
    let second = s.peer_begins();
    let of_second = std::mem::replace(&mut s.peer, of_first);
    s.peer_sends([CookieEcho(&first)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    s.peer_sends_under(of_second.endpoint_tag, [CookieEcho(&second)]);
    s.expect_silence();
    assert_eq!(s.events(), []);
}

/// RFC 9260 §5.2.4 (D): M M in COOKIE-ECHOED establishes and stops T1-cookie.
#[test]
fn own_cookie_in_cookie_echoed_establishes() {
    let mut s = Script::client();
    s.take_init();
    let cookie = s.peer_begins();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.at(10).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s.peer_sends([CookieAck]);
    s.expect_silence_until(20_000);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §5.2.4 (D): M M in ESTABLISHED: COOKIE ACK was lost. Chunks bundled with the cookie are processed.
#[test]
fn repeated_cookie_is_acknowledged_again() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    let echo: &[Chunk<'_>] = &[CookieEcho(&cookie), Data(data(0, b"early"))];
    s.peer_sends(echo.iter().copied());
    expect_packet!(s, [CookieAck, Sack(_)]);
    s.peer_sends(echo.iter().copied());
    expect_packet!(s, [CookieAck, Sack(sack)] if sack.duplicate_tsns().eq([tsn(0)]));
    expect_event!(s, Event::Connected { .. });
    expect_event!(s, Event::Readable);
    assert_eq!((s.receive().unwrap(), s.receive()), ("early".into(), None));
    assert_eq!(s.events(), []);
}

/// RFC 9260 §5.2.3: INIT ACK outside COOKIE-WAIT is discarded.
#[test]
fn unexpected_init_ack_is_discarded() {
    let mut s = Script::client();
    s.take_init();
    for tag in [PEER_TAG, NEW_TAG, 0] {
        s.peer_writes(|p| p.init_ack(&peer_init(tag), answer_params));
        if tag == PEER_TAG {
            expect_packet!(s, [CookieEcho(COOKIE)]);
        }
        s.expect_silence();
    }
    s.peer_sends([CookieAck]);
    s.peer_writes(|p| p.init_ack(&peer_init(NEW_TAG), answer_params));
    expect_alive(&mut s);
}

/// RFC 9260 §5.2.5: COOKIE ACK outside COOKIE-ECHOED is discarded.
#[test]
fn unexpected_cookie_ack_is_discarded() {
    let mut waiting = Script::client();
    waiting.take_init();
    waiting.peer_sends([CookieAck]);
    assert_eq!(waiting.events(), []);
    waiting.at(1_000).take_init();
    let mut established = Script::established_client();
    established.peer_sends([CookieAck]);
    established.expect_silence();
    assert_eq!(established.events(), []);
}

/// RFC 9260 §5.2.4 (A): an address that the restarted peer no longer lists is released: an INIT from there begins
/// another association.
#[test]
fn restart_with_fewer_addresses_releases_the_others() {
    let mut s = Script::server();
    let other = address(3, 9899);
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&other.ip().into());
        })
    });
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    let cookie = peer_begins_again(&mut s);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.peer.route.remote = other;
    s.peer.tag = 3;
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    assert_eq!(s.endpoint.association_count(), 2);
}
