//! Packet scripts of explicit congestion notification (RFC 3168, RFC 4960 appendix A), in exact virtual time.

mod kit;

use kit::*;
use rexmit_core::{Ecn, Machine as _, Seed};
use rexmit_sctp::{AssociationConfig, Endpoint, EndpointConfig};

/// Established from the peer's side; both sides use ECN.
fn script(change: impl FnOnce(&mut AssociationConfig)) -> Script {
    let mut s = Script::with(|_, association| {
        association.extensions.ecn = true;
        change(association);
    });
    let init = peer_init(s.peer.tag);
    s.peer_writes_under(0, |p| p.init(&init, |params| _ = params.push(&Param::EcnCapable)));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    let sent = s.next_packet();
    match sent.chunks()[..] {
        [CookieAck] => {}
        // With a probe timer the first round trip is measured.
        [CookieAck, Heartbeat(info)] => s.peer_sends([HeartbeatAck(info)]),
        _ => panic!("{sent:?}"),
    }
    s.events();
    s
}

fn both() -> Script {
    script(|_| {})
}

impl Script {
    /// A packet of the peer arrives that a router has marked.
    fn marked<'c>(&mut self, chunks: impl IntoIterator<Item = Chunk<'c>>) {
        let bytes = self.peer_packet(self.peer.endpoint_tag, |packet| {
            chunks.into_iter().for_each(|chunk| assert!(packet.chunk(&chunk)));
        });
        let (now, route) = (self.run().now, self.peer.route);
        self.endpoint.handle_input_with_ecn(now, route, Ecn::Ce, &bytes);
    }

    fn cwnd(&self) -> u64 {
        self.statistics().paths[0].cwnd
    }

    fn marks(&self) -> (u64, u64) {
        let marks = self.statistics().marks;
        (marks.marks_received, marks.echoes_received)
    }
}

/// RFC 4960 appendix A: only if both sides offer it, ECNE and CWR are sent and taken.
#[test]
fn both_sides_have_to_offer_it() {
    for (ours, theirs) in [(true, false), (false, true), (false, false)] {
        let mut s = Script::with(|_, association| association.extensions.ecn = ours);
        let init = peer_init(s.peer.tag);
        s.peer_writes_under(0, |p| {
            p.init(&init, |params| {
                if theirs {
                    params.push(&Param::EcnCapable);
                }
            })
        });
        let (tag, cookie) = expect_packet!(s, [InitAck(init_ack)] => {
            let is_it = |param: wire::RawParam<'_>| param.decode() == Ok(Param::EcnCapable);
            assert_eq!(init_ack.params.flatten().any(is_it), ours);
            (init_ack.initiate_tag, cookie_of(&init_ack))
        });
        s.peer.endpoint_tag = tag;
        s.peer_sends([CookieEcho(&cookie)]);
        expect_packet!(s, [CookieAck]);
        s.events();
        s.marked([Data(data(0, b"marked"))]);
        expect_packet!(s, [Sack(_)]);
        s.send(b"hello");
        expect_packet!(s, [Data(_)]);
        assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
        let cwnd = s.cwnd();
        s.peer_sends([Ecne { lowest_tsn: tsn(0) }]);
        assert_eq!((s.cwnd(), s.marks()), (cwnd, (0, 0)));
    }
}

/// RFC 3168 §6.1.5, §6.1.4: packets with data may be marked, others not.
#[test]
fn packets_with_data_may_be_marked() {
    let mut s = both();
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct, "COOKIE ACK");
    s.send(b"hello");
    expect_packet!(s, [Data(_)]);
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::Ect0);
    s.peer_acknowledges(tsn(0));
    s.peer_sends([Heartbeat(b"there?")]);
    expect_packet!(s, [HeartbeatAck(_)]);
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
    s.peer_sends([Data(data(0, b"hello"))]);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
}

/// RFC 4960 appendix A: ECNE goes with every SACK until CWR covers the marked packet.
#[test]
fn a_mark_is_reported_until_cwr() {
    let mut s = both();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    // At once, although a SACK is due for every second packet only.
    s.marked([Data(data(1, b"marked")), Data(data(2, b"with it"))]);
    expect_packet!(s, [Ecne { lowest_tsn }, Sack(_)] if lowest_tsn == tsn(1));
    s.peer_sends([Cwr { lowest_tsn: tsn(0) }, Data(data(3, b"older"))]);
    s.peer_sends([Data(data(4, b"x"))]);
    expect_packet!(s, [Ecne { lowest_tsn }, Sack(_)] if lowest_tsn == tsn(1));
    s.peer_sends([Cwr { lowest_tsn: tsn(3) }, Data(data(5, b"answered"))]);
    s.peer_sends([Data(data(6, b"x"))]);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.marks(), (1, 0));
    // A later mark begins anew, and a mark without data says nothing of our peer's window.
    s.marked([Heartbeat(b"there?")]);
    expect_packet!(s, [HeartbeatAck(_)]);
    s.peer_sends([Data(data(7, b"x")), Data(data(8, b"x"))]);
    s.peer_sends([Data(data(9, b"x"))]);
    expect_packet!(s, [Sack(_)]);
    s.marked([Data(data(10, b"x"))]);
    expect_packet!(s, [Ecne { lowest_tsn }, Sack(_)] if lowest_tsn == tsn(10));
}

/// RFC 3168 §6.1.2: the window is reduced once per window of data, nothing is retransmitted, and CWR goes with the next
/// data.
#[test]
fn a_reported_mark_reduces_the_window_once() {
    let mut s = script(|association| association.recovery.max_burst = None);
    let mut next = 0;
    for _ in 0..10 {
        (0..20).for_each(|_| _ = s.send(&[0; 1000]));
        for _ in 0..20 {
            while let Some(sent) = s.poll_packet() {
                next += sent.chunks().len() as u32;
            }
            s.peer_acknowledges(tsn(next - 1));
        }
    }
    let (cwnd, first) = (s.cwnd(), next);
    (0..3).for_each(|_| _ = s.send(&[0; 1000]));
    (0..3).for_each(|n| expect_packet!(s, [Data(data)] if data.tsn == tsn(first + n)));
    let tsn = |n| kit::tsn(first + n);
    s.peer_sends([Ecne { lowest_tsn: tsn(1) }]);
    assert_eq!(s.cwnd(), cwnd / 2, "RFC 9260 §7.2.3");
    s.expect_silence();
    s.peer_writes(|p| p.sack(tsn(2), PEER_RWND, [], []));
    // Of the same window, and answered again: the first CWR may have been lost.
    s.peer_sends([Ecne { lowest_tsn: tsn(2) }]);
    assert_eq!((s.statistics().recovery.fast_recoveries, s.marks()), (1, (0, 2)));
    s.send(b"next");
    expect_packet!(s, [Cwr { lowest_tsn }, Data(_)] if lowest_tsn == tsn(2));
    s.peer_acknowledges(tsn(3));
    s.send(b"next");
    expect_packet!(s, [Data(_)]);
    s.peer_sends([Ecne { lowest_tsn: tsn(4) }]);
    assert_eq!(s.statistics().recovery.fast_recoveries, 2, "a mark of the next window");
    assert_eq!(s.statistics().recovery.packets_lost, 0);
    s.peer_acknowledges(tsn(4));
}

/// A fast retransmit that was spurious is undone, but not if a router has marked a packet meanwhile.
#[test]
fn a_mark_keeps_a_reduction_from_being_undone() {
    for is_marked in [false, true] {
        let mut s = script(|association| association.recovery = AssociationConfig::rr().recovery);
        (0..8).for_each(|_| _ = s.send(&[0; 1204]));
        while s.poll_packet().is_some() {}
        for end in 2..=4 {
            s.peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), PEER_RWND, [(2, end)], []));
            while s.poll_packet().is_some() {}
        }
        assert_eq!(s.statistics().recovery.fast_recoveries, 1);
        if is_marked {
            s.peer_sends([Ecne { lowest_tsn: tsn(4) }]);
        }
        s.peer_acknowledges(tsn(3));
        while s.poll_packet().is_some() {}
        s.peer_writes(|p| p.sack(tsn(3), PEER_RWND, [], [tsn(0)]));
        while s.poll_packet().is_some() {}
        let undone = s.statistics().recovery.spurious_events.undone;
        assert_eq!(undone, u32::from(!is_marked), "marked: {is_marked}");
        s.lose_until(s.now_ms() + 1);
    }
}

/// The peer repeats its report until CWR arrives, a round trip later.
#[test]
fn cwr_is_repeated_once_per_round_trip() {
    let mut s = both();
    s.field_of_message();
    s.at(100).peer_acknowledges(tsn(0));
    for (n, ms, has_cwr) in [(1, 100, true), (2, 150, false), (3, 200, true)] {
        s.at(ms).peer_sends([Ecne { lowest_tsn: tsn(0) }]);
        s.send(b"hello");
        let sent = s.next_packet();
        assert_eq!(sent.chunks().len() == 2, has_cwr, "at {ms} ms: {sent:?}");
        s.peer_acknowledges(tsn(n));
    }
}

/// RFC 9265: redundancy must not hide congestion. Copies pause while routers mark.
#[test]
fn copies_pause_after_a_mark() {
    let mut s = script(|association| {
        association.recovery = AssociationConfig::interactive_redundant().recovery;
    });
    let mut sent = 0;
    let mut copies_in = |s: &mut Script, packets: u32| {
        let mut copied = 0;
        for _ in 0..packets {
            s.at(s.now_ms() + 10);
            s.send(b"hello");
            let sent_now = s.next_packet();
            let data = sent_now.chunks().iter().filter(|chunk| matches!(chunk, Data(_))).count();
            copied += u32::from(data > 1);
            sent += 1;
            if sent >= 3 {
                s.peer_acknowledges(tsn(sent - 3));
            }
        }
        (copied, tsn(sent - 1))
    };
    let (before, newest) = copies_in(&mut s, 40);
    assert!(before > 30, "{before}");
    s.peer_sends([Ecne { lowest_tsn: newest }]);
    assert_eq!(copies_in(&mut s, 31).0, 0);
    let (after, _) = copies_in(&mut s, 20);
    assert!(after > 10, "{after}");
    s.lose_until(s.now_ms() + 1);
}

/// A router cannot have marked a packet that was never sent.
#[test]
fn an_echo_of_a_tsn_that_was_never_sent_is_ignored() {
    let mut s = both();
    s.send(b"hello");
    expect_packet!(s, [Data(_)]);
    s.peer_sends([Ecne { lowest_tsn: tsn(1) }]);
    assert_eq!((s.statistics().recovery.fast_recoveries, s.marks()), (0, (0, 0)));
    s.peer_sends([Ecne { lowest_tsn: tsn(0).wrapping_sub(1) }]);
    assert_eq!((s.statistics().recovery.fast_recoveries, s.marks()), (0, (0, 0)));
    s.peer_acknowledges(tsn(0));
    s.send(b"hello");
    expect_packet!(s, [Data(_)]);
    s.peer_acknowledges(tsn(1));
}

impl Script {
    /// Sends a message. Returns the field of its packet.
    fn field_of_message(&mut self) -> Ecn {
        self.send(b"hello");
        expect_packet!(self, [Data(_)]);
        self.endpoint.transmit_ecn()
    }
}

/// RFC 9000 §13.4.2: on a path that drops packets that may be marked, retransmissions arrive, and after ten packets the
/// association sends others.
#[test]
fn packets_that_may_be_marked_are_given_up_when_none_arrives() {
    let mut s = both();
    for n in 0..10 {
        assert_eq!(s.field_of_message(), Ecn::Ect0, "{n}");
        s.wait_for_packet();
        assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct, "its retransmission");
        s.peer_acknowledges(tsn(n));
    }
    for n in 10..20 {
        assert_eq!(s.field_of_message(), Ecn::NotEct, "{n}");
        s.peer_acknowledges(tsn(n));
    }
}

#[test]
fn packets_that_may_be_marked_are_kept_when_one_arrives() {
    let mut s = both();
    for n in 0..20 {
        assert_eq!(s.field_of_message(), Ecn::Ect0);
        s.peer_acknowledges(tsn(n));
    }
}

/// With more than ten packets per round trip, the first ACK comes after the trial.
#[test]
fn a_late_ack_confirms_them_too() {
    let mut s = both();
    let fields: Vec<_> = (0..12).map(|_| s.field_of_message()).collect();
    assert_eq!((&fields[..10], &fields[10..]), (&[Ecn::Ect0; 10][..], &[Ecn::NotEct; 2][..]));
    // Those after the trial prove nothing.
    s.peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), PEER_RWND, [(11, 12)], []));
    assert_eq!(s.field_of_message(), Ecn::NotEct);
    s.peer_acknowledges(tsn(5));
    assert_eq!(s.field_of_message(), Ecn::Ect0);
    s.peer_acknowledges(tsn(13));
}

/// The cumulative TSN passes the trial by retransmissions, and gap blocks report packets that may not be marked.
#[test]
fn gap_blocks_above_the_trial_do_not_confirm_it() {
    let mut s = both();
    for _ in 0..12 {
        s.send(&[0; 300]);
        expect_packet!(s, [Data(_)]);
    }
    let sent = s.wait_for_packet();
    let retransmitted = sent.chunks().len() as u32;
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
    s.peer_acknowledges(tsn(retransmitted - 1));
    while s.poll_packet().is_some() {}
    let gap = (11 - retransmitted + 1) as u16;
    s.peer_writes(|p| p.sack(tsn(retransmitted - 1), PEER_RWND, [(gap, gap)], []));
    while s.poll_packet().is_some() {}
    s.send(b"hello");
    s.wait_for_packet();
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
    s.lose_until(s.now_ms() + 1);
}

/// DATA beside COOKIE ECHO cannot be marked, and its ACK proves nothing.
#[test]
fn the_ack_of_data_beside_cookie_echo_does_not_confirm_them() {
    let mut s = Script::client_with(|_, association| association.extensions.ecn = true);
    s.send(b"early");
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            answer_params(params);
            params.push(&Param::EcnCapable);
        })
    });
    expect_packet!(s, [CookieEcho(_), Data(_)]);
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
    s.peer_sends([CookieAck]);
    assert_eq!(s.field_of_message(), Ecn::Ect0);
    s.peer_acknowledges(tsn(0));
    let fields: Vec<_> = (0..10).map(|_| s.field_of_message()).collect();
    assert_eq!((fields[8], fields[9]), (Ecn::Ect0, Ecn::NotEct));
    s.peer_acknowledges(tsn(11));
}

/// A path may begin to drop them.
#[test]
fn after_two_timeouts_packets_may_not_be_marked_until_one_arrives_again() {
    let mut s = both();
    assert_eq!(s.field_of_message(), Ecn::Ect0);
    s.peer_acknowledges(tsn(0));
    assert_eq!(s.field_of_message(), Ecn::Ect0);
    for field in [Ecn::Ect0, Ecn::NotEct] {
        s.wait_for_packet();
        assert_eq!(s.endpoint.transmit_ecn(), field);
    }
    s.peer_acknowledges(tsn(1));
    assert_eq!(s.field_of_message(), Ecn::Ect0, "a trial");
    s.peer_acknowledges(tsn(2));
}

/// RFC 9260 §7.2.3 sets the window to four packets at least, which may be more than it was.
#[test]
fn a_mark_never_raises_the_window() {
    let mut s = both();
    let cwnd = s.cwnd();
    s.field_of_message();
    s.peer_sends([Ecne { lowest_tsn: tsn(0) }]);
    assert_eq!((s.cwnd(), s.marks()), (cwnd, (0, 1)));
    s.peer_acknowledges(tsn(0));
}

/// Full packets leave no room for CWR, which then goes first in a packet of its own.
#[test]
fn cwr_finds_room_before_full_packets() {
    let mut s = both();
    let message: &[u8] = &[0; 1232 - 12 - 16];
    s.send(message);
    expect_packet!(s, [Data(_)]);
    s.peer_sends([Ecne { lowest_tsn: tsn(0) }]);
    s.peer_acknowledges(tsn(0));
    s.send(message);
    expect_packet!(s, [Cwr { .. }]);
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::NotEct);
    expect_packet!(s, [Data(_)]);
    assert_eq!(s.endpoint.transmit_ecn(), Ecn::Ect0);
    s.peer_acknowledges(tsn(1));
}

/// Two endpoints of ours agree by default, and a router's mark travels there and back.
#[test]
fn two_endpoints_agree() {
    let config = || EndpointConfig::from(AssociationConfig::interactive()).accept(true);
    let mut ends = [1, 2].map(|seed| Endpoint::new(config(), &Seed::from_u64(seed)).unwrap());
    let now = rexmit_core::Instant::from_millis(1);
    let route = rexmit_core::Route { local: address(1, 9899), remote: address(2, 9899) };
    let id = ends[0].connect(now, route, 5000).unwrap();
    let exchange = |ends: &mut [Endpoint; 2], mark: bool| {
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        loop {
            let sent = (0..2).find(|&end| ends[end].poll_transmit(now, &mut bytes).is_some());
            let Some(from) = sent else { return fields };
            let field = ends[from].transmit_ecn();
            fields.push(field);
            let received = if mark && field == Ecn::Ect0 { Ecn::Ce } else { field };
            let seen = if from == 0 { route.reversed() } else { route };
            ends[1 - from].handle_input_with_ecn(now, seen, received, &bytes);
        }
    };
    let setup = exchange(&mut ends, false);
    assert!(setup.iter().all(|&field| field == Ecn::NotEct), "{setup:?}");
    ends[0].send(now, id, rexmit_sctp::OutboundMessage::new(0, "marked")).unwrap();
    let fields = exchange(&mut ends, true);
    assert_eq!(fields, [Ecn::Ect0, Ecn::NotEct], "DATA; ECNE and SACK");
    assert_eq!(ends[0].statistics(id).unwrap().marks.echoes_received, 1);
}
