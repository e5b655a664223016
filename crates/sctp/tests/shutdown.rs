//! Graceful shutdown in every order of events (RFC 9260 §9.2).

mod kit;

use std::time::Duration;

use kit::*;
use rexmit_sctp::{CloseReason, Event, OutboundMessage, SendError};

/// The Cumulative TSN Ack before any data, of either side.
const NOTHING: u32 = tsn(0).wrapping_sub(1);

/// The times at which T2-shutdown expires, with an RTO of 1 s that doubles up to 60 s.
const T2_EXPIRIES_MS: [u64; 11] =
    [1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000, 243_000, 303_000, 363_000];

/// The peer's SHUTDOWN.
const fn shutdown<'c>(cumulative_tsn_ack: u32) -> Chunk<'c> {
    Shutdown { cumulative_tsn_ack }
}

/// An established association after `shutdown` with nothing outstanding.
fn shutdown_sent() -> Script {
    let mut s = Script::established_server();
    s.shutdown();
    expect_packet!(s, [Shutdown { cumulative_tsn_ack: NOTHING }]);
    s
}

/// An established association whose peer has shut down, with nothing outstanding.
fn shutdown_ack_sent() -> Script {
    let mut s = Script::established_server();
    s.peer_sends([shutdown(NOTHING)]);
    expect_packet!(s, [ShutdownAck]);
    expect_event!(s, Event::PeerShutdown);
    s
}

fn expect_no_more_messages(s: &mut Script) {
    assert_eq!(s.try_send(OutboundMessage::new(0, "late")), Err(SendError::Closing));
}

/// RFC 9260 §9.2: with nothing outstanding SHUTDOWN is sent at once, SHUTDOWN ACK is answered by SHUTDOWN COMPLETE, and
/// no state remains.
#[test]
fn idle_association_is_shut_down_at_once() {
    let mut s = shutdown_sent();
    expect_no_more_messages(&mut s);
    s.peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    s.expect_silence_until(1_000_000);
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §9.2, SHUTDOWN-PENDING: outstanding data is retransmitted if necessary, and queued data is sent; no new
/// data is accepted. The last DATA chunk requests a SACK (I bit, §6.1).
#[test]
fn shutdown_waits_for_outstanding_data() {
    let mut s = Script::established_server();
    s.send(b"outstanding");
    expect_packet!(s, [Data(d)] if d.tsn == tsn(0));
    s.send(b"queued");
    s.shutdown();
    expect_no_more_messages(&mut s);
    expect_packet!(s, [Data(d)] if d.tsn == tsn(1) && d.flags.immediate);
    s.at(1_000);
    expect_packet!(s, [Data(first), Data(second)] if (first.tsn, second.tsn) == (tsn(0), tsn(1)));
    s.at(1_100).peer_acknowledges(tsn(0));
    s.expect_silence();
    s.at(1_200).peer_acknowledges(tsn(1));
    expect_packet!(s, [Shutdown { cumulative_tsn_ack: NOTHING }]);
}

/// RFC 9260 §9.2: SHUTDOWN acknowledges all received data; no SACK follows it.
#[test]
fn shutdown_replaces_a_delayed_sack() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    s.peer_sends([Data(data(1, b"second"))]);
    s.at(100).shutdown();
    expect_packet!(s, [Shutdown { cumulative_tsn_ack }] if cumulative_tsn_ack == tsn(1));
    s.expect_silence_until(1_099);
    s.at(1_100);
    expect_packet!(s, [Shutdown { .. }]);
}

/// RFC 9260 §9.2: SHUTDOWN is retransmitted each time T2-shutdown expires; after Association.Max.Retrans the peer is
/// unreachable.
#[test]
fn shutdown_is_repeated_ten_times() {
    let mut s = Script::established_server_with(|_, a| {
        a.shutdown_guard = Some(Duration::from_secs(1_000));
    });
    s.shutdown();
    expect_packet!(s, [Shutdown { .. }]);
    let (last, others) = T2_EXPIRIES_MS.split_last().unwrap();
    for &ms in others {
        s.at(ms);
        expect_packet!(s, [Shutdown { cumulative_tsn_ack: NOTHING }]);
    }
    s.expect_silence_until(last - 1);
    assert!(!s.events().iter().any(|event| matches!(event, Event::Closed(_))));
    s.expect_silence_until(*last);
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
}

/// RFC 9260 §9.2: SHUTDOWN ACK is retransmitted each time T2-shutdown expires; after Association.Max.Retrans the peer
/// is unreachable.
#[test]
fn shutdown_ack_is_repeated_ten_times() {
    let mut s = shutdown_ack_sent();
    let (last, others) = T2_EXPIRIES_MS.split_last().unwrap();
    for &ms in others {
        s.at(ms);
        expect_packet!(s, [ShutdownAck]);
    }
    s.expect_silence_until(last - 1);
    assert!(!s.events().iter().any(|event| matches!(event, Event::Closed(_))));
    s.expect_silence_until(*last);
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
}

/// RFC 9260 §9.2: when T5-shutdown-guard expires, five times RTO.Max after the first SHUTDOWN, ABORT is sent.
#[test]
fn guard_ends_a_shutdown_after_five_minutes() {
    let mut s = shutdown_sent();
    for ms in &T2_EXPIRIES_MS[..9] {
        s.at(*ms);
        expect_packet!(s, [Shutdown { .. }]);
    }
    s.expect_silence_until(299_999);
    s.at(300_000);
    expect_packet!(s, [Abort { t_bit: false, .. }]);
    s.events();
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §9.2, §4 (4): in SHUTDOWN-SENT, DATA is answered at once with SHUTDOWN, and T2 restarts; when it expires,
/// the newest cumulative TSN is sent again.
#[test]
fn data_while_shutdown_is_sent_are_acknowledged_by_shutdown() {
    let mut s = shutdown_sent();
    s.at(900).peer_sends([Data(data(0, b"late"))]);
    expect_packet!(s, [Sack(_), Shutdown { cumulative_tsn_ack }] if cumulative_tsn_ack == tsn(0));
    assert_eq!(s.receive().unwrap(), "late");
    s.at(1_900);
    expect_packet!(s, [Shutdown { cumulative_tsn_ack }] if cumulative_tsn_ack == tsn(0));
}

/// RFC 9260 §9.2: gaps and duplicates are reported by a SACK in addition to SHUTDOWN.
#[test]
fn gaps_while_shutdown_is_sent_are_reported_in_a_sack() {
    let mut s = shutdown_sent();
    s.peer_sends([Data(data(1, b"second"))]);
    expect_packet!(s, [Sack(sack), Shutdown { cumulative_tsn_ack: NOTHING }]
        if sack.gap_ack_blocks().eq([(2, 2)]));
    s.peer_sends([Data(data(1, b"second"))]);
    expect_packet!(s, [Sack(sack), Shutdown { .. }] if sack.duplicate_tsns().eq([tsn(1)]));
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(sack), Shutdown { cumulative_tsn_ack }]
        if (sack.gap_ack_block_count(), cumulative_tsn_ack) == (0, tsn(1)));
}

/// RFC 9260 §9.2: a packet of the peer restarts T2-shutdown and clears its count.
#[test]
fn packet_while_shutdown_is_sent_restarts_t2() {
    let mut s = Script::established_server_with(|_, a| a.failure.association_max_retrans = 1);
    s.shutdown();
    expect_packet!(s, [Shutdown { .. }]);
    s.at(1_000);
    expect_packet!(s, [Shutdown { .. }]);
    s.at(2_500).peer_acknowledges(NOTHING);
    s.expect_silence_until(4_499);
    s.at(4_500);
    expect_packet!(s, [Shutdown { .. }]);
    s.expect_silence_until(8_500);
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
}

/// A HEARTBEAT clears the error count, but does not announce data. Found by a soak test: SHUTDOWN was lost while the
/// RTO was longer than the peer's heartbeat interval, and was not retransmitted until T5-shutdown-guard.
#[test]
fn heartbeats_while_shutdown_is_sent_do_not_delay_its_retransmission() {
    let mut s = Script::established_server_with(|_, a| a.failure.association_max_retrans = 1);
    s.shutdown();
    expect_packet!(s, [Shutdown { .. }]);
    for ms in [400, 800] {
        s.at(ms).peer_sends([Heartbeat(b"alive")]);
        expect_packet!(s, [HeartbeatAck(_)]);
    }
    s.at(1_000);
    expect_packet!(s, [Shutdown { .. }]);
    s.at(2_500).peer_sends([Heartbeat(b"alive")]);
    expect_packet!(s, [HeartbeatAck(_)]);
    s.at(3_000);
    expect_packet!(s, [Shutdown { .. }]);
    s.expect_silence_until(7_000);
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
}

/// RFC 9260 §9.2: with nothing outstanding SHUTDOWN is answered with SHUTDOWN ACK, and SHUTDOWN
/// COMPLETE ends it.
#[test]
fn shutdown_of_the_peer_is_acknowledged_at_once() {
    let mut s = shutdown_ack_sent();
    expect_no_more_messages(&mut s);
    s.peer_sends([ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    s.expect_silence_until(1_000_000);
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §9.2, §4 (5), (6), SHUTDOWN-RECEIVED: everything accepted is sent, retransmitted and
/// acknowledged first, by SACK or by SHUTDOWN; nothing new is accepted.
#[test]
fn shutdown_of_the_peer_waits_for_our_data() {
    let mut s = Script::established_server();
    s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.peer_sends([shutdown(NOTHING)]);
    expect_event!(s, Event::PeerShutdown);
    expect_no_more_messages(&mut s);
    s.shutdown();
    s.at(500).peer_sends([shutdown(NOTHING)]);
    s.at(1_000);
    expect_packet!(s, [Data(d)] if d.tsn == tsn(0));
    s.at(1_100).peer_sends([shutdown(tsn(0))]);
    expect_packet!(s, [ShutdownAck]);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §9.2: the same, with more queued data than the window allows at once.
#[test]
fn queued_data_is_sent_after_the_shutdown_of_the_peer() {
    let mut s = Script::established_server();
    let full = vec![0; 1200];
    for _ in 0..8 {
        s.try_send(OutboundMessage::new(0, full.clone())).unwrap();
    }
    let mut left = 0;
    for _ in 0..4 {
        expect_packet!(s, [Data(d)] if d.tsn == tsn(left));
        left += 1;
    }
    s.peer_sends([shutdown(tsn(1))]);
    while left < 8 {
        expect_packet!(s, [Data(d)] if d.tsn == tsn(left));
        left += 1;
        s.peer_sends([shutdown(tsn(left - 1))]);
    }
    expect_packet!(s, [ShutdownAck]);
}

/// RFC 9260 §8.4 (8), §9.2: the peer ended, SHUTDOWN COMPLETE was lost, and a late packet of ours made the peer reply
/// with ABORT and the T bit: everything was delivered. An ABORT without the T bit, which the peer itself has caused, is
/// reported as an abort.
#[test]
fn shutdown_is_complete_when_the_peer_has_no_association_any_more() {
    let abort = |t_bit| Abort { t_bit, causes: wire::Causes::default() };
    let mut s = shutdown_ack_sent();
    s.peer_sends_under(s.peer.tag, [abort(true)]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    let mut s = shutdown_ack_sent();
    s.peer_sends([abort(false)]);
    expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { .. }));
    let mut s = Script::established_server();
    s.peer_sends_under(s.peer.tag, [abort(true)]);
    expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { .. }));
}

/// RFC 9260 §6, §9.2: DATA received after the peer's SHUTDOWN is discarded.
#[test]
fn data_after_the_shutdown_of_the_peer_are_discarded() {
    let mut received = Script::established_server();
    received.send(b"outstanding");
    expect_packet!(received, [Data(_)]);
    received.peer_sends([shutdown(NOTHING)]);
    for mut s in [received, shutdown_ack_sent()] {
        s.at(100).peer_sends([Data(data(0, b"late"))]);
        s.expect_silence_until(900);
        assert_eq!(s.receive(), None);
    }
}

/// RFC 9260 §9.2: a SHUTDOWN that acknowledges TSNs that were never sent is ignored.
#[test]
fn impossible_acknowledgement_in_shutdown_is_ignored() {
    let mut s = Script::established_server();
    s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.peer_sends([shutdown(tsn(5))]);
    s.expect_silence();
    s.peer_sends([shutdown(tsn(0))]);
    expect_packet!(s, [ShutdownAck]);
}

/// RFC 9260 §9.2: both sides shut down at once: SHUTDOWN in SHUTDOWN-SENT is answered by SHUTDOWN ACK, T2 restarts, and
/// the peer's SHUTDOWN ACK is answered by SHUTDOWN COMPLETE.
#[test]
fn both_sides_shut_down_at_once() {
    let mut s = shutdown_sent();
    s.at(500).peer_sends([shutdown(NOTHING)]);
    expect_packet!(s, [ShutdownAck]);
    s.at(1_500);
    expect_packet!(s, [ShutdownAck]);
    s.at(1_600).peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    s.expect_silence_until(1_000_000);
}

/// RFC 9260 §9.2: the same, but the peer's SHUTDOWN COMPLETE arrives first.
#[test]
fn both_sides_shut_down_and_the_peer_completes() {
    let mut s = shutdown_sent();
    s.peer_sends([shutdown(NOTHING)]);
    expect_packet!(s, [ShutdownAck]);
    s.peer_sends([ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    s.expect_silence_until(1_000_000);
}

/// RFC 9260 §9.2: SHUTDOWN arrives in SHUTDOWN-PENDING: our data is sent first, then SHUTDOWN ACK instead of SHUTDOWN.
#[test]
fn shutdown_of_the_peer_overtakes_ours() {
    let mut s = Script::established_server();
    s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.shutdown();
    s.peer_sends([shutdown(NOTHING)]);
    s.expect_silence();
    s.peer_acknowledges(tsn(0));
    expect_packet!(s, [ShutdownAck]);
}

/// RFC 9260 §9.2: our SHUTDOWN ACK was lost: the peer's SHUTDOWN is answered again.
#[test]
fn repeated_shutdown_is_acknowledged_again() {
    let mut s = shutdown_ack_sent();
    s.at(700).peer_sends([shutdown(NOTHING)]);
    expect_packet!(s, [ShutdownAck]);
    s.expect_silence_until(1_699);
    s.at(1_700);
    expect_packet!(s, [ShutdownAck]);
}

/// RFC 9260 §8.4 (5), §9.2: our SHUTDOWN COMPLETE was lost, and we have forgotten the peer.
#[test]
fn lost_shutdown_complete_is_sent_again_out_of_the_blue() {
    let mut s = shutdown_sent();
    s.peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { t_bit: false }]);
    s.events();
    s.at(1_000).peer_sends([ShutdownAck]);
    expect_packet!(s, tag s.peer.endpoint_tag, [ShutdownComplete { t_bit: true }]);
}

/// RFC 9260 §8.4 (8): packets that the peer's SHUTDOWN ACK has overtaken get no ABORT, which could overtake our SHUTDOWN
/// COMPLETE. A peer that never got it is still answered, and so are packets of other associations.
#[test]
fn packets_overtaken_by_shutdown_ack_are_not_aborted() {
    let mut s = shutdown_sent();
    s.peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { t_bit: false }]);
    s.events();
    s.at(40).peer_sends([Data(data(0, b"late"))]);
    s.peer_writes(|p| p.sack(0, 0, [], []));
    s.peer_sends([Heartbeat(b"late")]);
    s.expect_silence();
    s.at(1_000).peer_sends([ShutdownAck]);
    expect_packet!(s, tag s.peer.endpoint_tag, [ShutdownComplete { t_bit: true }]);
    let other = s.peer.endpoint_tag ^ 1;
    s.peer_sends_under(other, [Heartbeat(b"late")]);
    expect_packet!(s, tag other, [Abort { t_bit: true, .. }]);
    // A cookie is valid for 60 s, and for up to 10 s more.
    s.at(80_000).peer_sends([Heartbeat(b"much later")]);
    expect_packet!(s, tag s.peer.endpoint_tag, [Abort { t_bit: true, .. }]);
}

/// The same while the application has not read the last event or message yet.
#[test]
fn lost_shutdown_complete_is_sent_again_though_messages_are_unread() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"unread"))]);
    expect_packet!(s, [Sack(_)]);
    s.shutdown();
    expect_packet!(s, [Shutdown { .. }]);
    s.peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { t_bit: false }]);
    s.at(1_000).peer_sends([ShutdownAck]);
    expect_packet!(s, tag s.peer.endpoint_tag, [ShutdownComplete { t_bit: true }]);
    assert_eq!(s.receive().unwrap(), "unread");
    s.events();
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §9.2: INIT in SHUTDOWN-ACK-SENT, from any address of the association, is discarded and
/// SHUTDOWN ACK repeated.
#[test]
fn init_while_shutdown_ack_is_sent_repeats_it() {
    let mut s = Script::established_server_over_ip();
    s.peer_sends([shutdown(NOTHING)]);
    expect_packet!(s, [ShutdownAck]);
    let init = peer_init(0x1111);
    s.at(300).peer_writes_under(0, |p| p.init(&init, extensions));
    expect_packet!(s, [ShutdownAck]);
    let known = std::mem::replace(&mut s.peer.route.remote, address(3, 0));
    s.peer_writes_under(0, |p| {
        p.init(&init, |params| {
            params.push(&known.ip().into());
        })
    });
    let sent = s.next_packet();
    assert_eq!((sent.chunks(), sent.route.remote), (vec![ShutdownAck], known));
}

/// RFC 9260 §9.2: an INIT from another port does not concern the shutdown.
#[test]
fn init_from_another_port_while_shutdown_ack_is_sent_is_answered() {
    let mut s = shutdown_ack_sent();
    s.peer.port += 1;
    s.peer_begins();
}

/// RFC 9260 §9.2: SHUTDOWN during the setup is discarded.
#[test]
fn shutdown_during_the_setup_is_discarded() {
    let mut s = Script::client();
    s.take_init();
    s.peer_sends([shutdown(NOTHING)]);
    s.at(1_000).take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([shutdown(NOTHING)]);
    s.at(3_000);
    expect_packet!(s, [CookieEcho(_)]);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §9.2: SHUTDOWN ACK where no SHUTDOWN was sent is ignored.
#[test]
fn unexpected_shutdown_ack_is_ignored() {
    let mut s = Script::established_server();
    s.peer_sends([ShutdownAck]);
    s.expect_silence();
    assert_eq!(s.events(), []);
}

/// RFC 9260 §9.2: a second call of shutdown has no effect.
#[test]
fn second_shutdown_of_the_application_is_ignored() {
    let mut s = shutdown_sent();
    s.shutdown();
    s.expect_silence_until(999);
    s.at(1_000);
    expect_packet!(s, [Shutdown { .. }]);
    s.peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { .. }]);
    s.shutdown();
    s.expect_silence();
}
