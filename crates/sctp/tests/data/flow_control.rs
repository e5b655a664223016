//! The peer's window, and the probes while it is closed (RFC 9260 §6.1 A).

use rexmit_sctp::{CloseReason, Event, PathState, Reliability};
use std::time::Duration;

use crate::kit::*;
use crate::{FULL, NONE, PMDCS};

/// The peer has acknowledged one chunk, and closes its window at 0 ms; another message is queued.
fn closed() -> Script {
    let mut s = Script::established_client_with(|_, association| {
        association.failure.heartbeat_interval = None;
    });
    s.send(b"taken");
    assert_eq!(s.take_data(), [0]);
    s.peer_sacks(tsn(0), 0, &[]);
    s.send(b"probe");
    s
}

/// RFC 9260 §6.1 A, §6.2.1 A: INIT ACK's window counts from the start.
#[test]
fn no_more_is_sent_than_the_peer_offered() {
    let mut s = Script::client();
    s.take_init();
    let init_ack = wire::Init { a_rwnd: 1_500, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init_ack, answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    for _ in 0..3 {
        s.send_len(700);
    }
    assert_eq!(s.take_data(), [0]);
    assert_eq!(s.take_data(), [1]);
    s.expect_silence(); // 100 bytes are left.
    s.at(50).peer_sacks(tsn(0), 1_399, &[]);
    s.expect_silence(); // 1399 less 700 in flight.
    s.at(60).peer_sacks(tsn(0), 1_400, &[]);
    assert_eq!(s.take_data(), [2]);
}

/// RFC 9260 §6.1 A: the first probe after one RTO, then at intervals that double; while probes are
/// acknowledged, no error is counted.
#[test]
fn a_closed_window_is_probed_with_backoff_and_without_limit() {
    let mut s = closed();
    let mut seconds = Vec::new();
    for _ in 0..20 {
        let probe = s.wait_for_packet();
        if let [Data(data)] = probe.chunks()[..] {
            assert_eq!((data.tsn, data.payload), (tsn(1), &b"probe"[..]));
            seconds.push(probe.at_ms() / 1_000);
            s.peer_sacks(tsn(0), 0, &[]);
        }
    }
    assert_eq!(seconds[..9], [1, 2, 4, 8, 16, 32, 64, 124, 184]);
    assert!(seconds.len() > 12, "more than Association.Max.Retrans");
    let path = &s.statistics().paths[0];
    assert_eq!((path.cwnd, path.state), (4_404, PathState::Active));
}

/// RFC 9260 §6.1 A, §8.1: a peer that does not answer window probes is unreachable.
#[test]
fn unanswered_probes_count_as_errors() {
    let mut s = closed();
    // The first, and Association.Max.Retrans more.
    for second in [1, 2, 4, 8, 16, 32, 64, 124, 184, 244, 304] {
        s.at(1_000 * second);
        assert_eq!(s.take_data(), [1]);
    }
    s.expect_silence_until(364_000);
    let events = s.events();
    assert!(matches!(events.last(), Some(Event::Closed(CloseReason::Unreachable))), "{events:?}");
}

/// RFC 9260 §6.1 A: a refused probe is retransmitted as soon as the window opens, with the data after it.
#[test]
fn a_refused_probe_is_retransmitted_when_the_window_opens() {
    let mut s = closed();
    s.send_len(FULL);
    s.at(1_000);
    assert_eq!(s.take_data(), [1]);
    s.at(1_050).peer_sacks(tsn(0), 0, &[]);
    s.at(1_500).peer_sacks(tsn(0), PEER_RWND, &[]);
    assert_eq!(s.take_data(), [1]);
    assert_eq!(s.take_data(), [2]);
    s.at(1_550).peer_acknowledges(tsn(2));
    s.expect_silence_until(5_000);
    assert_eq!(s.statistics().recovery.packets_lost, 0, "the network lost nothing");
}

/// A window update that was sent before the probe arrived does not answer the probe.
#[test]
fn a_window_update_that_crosses_the_probe_does_not_retransmit_it() {
    let mut s = Script::with_round_trip(100);
    s.send(b"taken");
    assert_eq!(s.take_data(), [0]);
    s.at(300).peer_sacks(tsn(0), 0, &[]);
    s.send(b"probe");
    s.at(1_300);
    assert_eq!(s.take_data(), [1]);
    s.at(1_340).peer_sacks(tsn(0), PEER_RWND, &[]);
    s.expect_silence();
    s.at(1_400).peer_acknowledges(tsn(1));
    s.expect_silence_until(5_000);
    assert_eq!(s.statistics().recovery.retransmitted.total(), 0);
}

/// When the window opens, the probe is retransmitted once, not with every SACK.
#[test]
fn further_sacks_do_not_retransmit_the_probe_again() {
    let mut s = closed();
    for _ in 0..6 {
        s.send_len(FULL);
    }
    s.at(1_000);
    assert_eq!(s.take_data(), [1]);
    s.at(1_050).peer_sacks(tsn(0), PEER_RWND, &[]);
    assert_eq!(s.take_data(), [1]);
    for n in 2..5 {
        assert_eq!(s.take_data(), [n]);
    }
    s.at(1_100).peer_sacks(tsn(0), PEER_RWND, &[(2, 2)]);
    assert_eq!((s.take_data(), s.take_data()), (vec![5], vec![6]), "new data, and no probe");
    s.expect_silence();
}

/// Once the window is open, the loss of the retransmitted probe is an ordinary loss.
#[test]
fn a_loss_after_the_window_opened_is_congestion() {
    let mut s = closed();
    s.at(1_000);
    assert_eq!(s.take_data(), [1]);
    s.at(1_050).peer_sacks(tsn(0), PEER_RWND, &[]);
    assert_eq!(s.take_data(), [1]);
    s.at(2_050);
    assert_eq!(s.take_data(), [1]);
    assert_eq!(s.statistics().paths[0].cwnd, PMDCS);
}

/// RFC 9260 §6.1 A: "when all outstanding DATA chunks have been cumulatively acknowledged".
#[test]
fn nothing_is_probed_while_something_is_outstanding() {
    let mut s = Script::established_client();
    s.send(b"one");
    s.send(b"two");
    assert_eq!(s.take_data(), [0, 1]);
    s.send(b"three");
    assert_eq!(s.take_data(), [2]);
    s.at(50).peer_sacks(tsn(1), 0, &[]);
    s.send(b"four");
    s.at(1_050); // T3-rtx of the third chunk; no probe besides.
    assert_eq!(s.take_data(), [2]);
    s.at(1_100).peer_sacks(tsn(2), 0, &[]);
    s.expect_silence_until(3_099);
    s.at(3_100); // One RTO, which T3-rtx has doubled.
    assert_eq!(s.take_data(), [3]);
}

/// A window that closes a second time is probed after an RTO, not at once.
#[test]
fn an_unnecessary_probe_does_not_make_the_next_one_early() {
    let mut s = closed();
    s.at(500).peer_sacks(tsn(0), PEER_RWND, &[]);
    assert_eq!(s.take_data(), [1]);
    s.at(600).peer_sacks(tsn(1), 0, &[]);
    s.send(b"again");
    s.expect_silence_until(1_599);
    s.at(1_600);
    assert_eq!(s.take_data(), [2]);
}

/// The message that served as window probe has expired; the next message restarts the timer.
#[test]
fn an_expired_probe_stops_its_timer() {
    let mut s = Script::established_client();
    s.send(b"taken");
    assert_eq!(s.take_data(), [0]);
    s.peer_sacks(tsn(0), 0, &[]);
    let reliability = Reliability::Timed(Duration::from_millis(400));
    s.try_send(crate::message(10).reliability(reliability)).expect("room");
    s.expect_silence_until(900);
    expect_event!(s, Event::MessageFailed { .. });
    s.send(b"later");
    s.expect_silence_until(1_899);
    s.at(1_900);
    assert_eq!(s.take_data(), [1]);
}

/// RFC 9260 §6.1, RFC 1122 §4.2.3.4: no chunk is cut small to fit a small window.
#[test]
fn a_message_waits_for_a_window_that_it_fits() {
    let mut s = Script::established_client();
    s.send(b"taken");
    assert_eq!(s.take_data(), [0]);
    s.send_len(1_000);
    assert_eq!(s.take_data(), [1]);
    s.send_len(1_000);
    assert_eq!(s.take_data(), [2]);
    s.at(10).peer_sacks(tsn(1), 1_999, &[]);
    s.send_len(1_000);
    s.expect_silence();
    s.at(20).peer_sacks(tsn(1), 2_000, &[]);
    expect_packet!(s, [Data(data)] if data.payload.len() == 1_000);
}

/// A peer with a small buffer gets chunks that fit its window, not probes of a window that will never be large enough.
#[test]
fn chunks_are_no_larger_than_the_peers_whole_window() {
    let mut s = Script::client_with(|_, association| association.max_packet_bytes = 9_000);
    s.take_init();
    let init_ack = wire::Init { a_rwnd: 1_500, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init_ack, answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    s.send_len(4_000);
    expect_packet!(s, [Data(data)] if data.payload.len() == 1_500);
    s.at(10).peer_sacks(tsn(0), 1_500, &[]);
    expect_packet!(s, [Data(data)] if data.payload.len() == 1_500);
    s.at(20).peer_sacks(tsn(1), 1_500, &[]);
    expect_packet!(s, [Data(data)] if data.payload.len() == 1_000 && data.flags.ending);
}

/// RFC 9260 §6.2.1 D i: the window of a stale SACK does not count.
#[test]
fn a_stale_sack_does_not_change_the_window() {
    let mut s = Script::established_client();
    for _ in 0..2 {
        s.send_len(FULL);
    }
    assert_eq!((s.take_data(), s.take_data()), (vec![0], vec![1]));
    s.peer_sacks(tsn(1), PEER_RWND, &[]);
    s.peer_sacks(tsn(0), 0, &[]);
    s.peer_sacks(NONE, 0, &[]);
    s.send(b"more");
    assert_eq!(s.take_data(), [2]);
}
