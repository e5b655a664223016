//! Transmission of DATA (RFC 9260 §6.1, §6.10).

use rexmit_sctp::{Event, OutboundMessage};

use crate::kit::*;
use crate::{FULL, NONE};

/// RFC 9260 §3.3.1, §6.1.
#[test]
fn a_chunk_carries_the_parameters_of_its_message() {
    let mut s = Script::established_client();
    let message = OutboundMessage::new(7, "hello").ppid(51);
    s.try_send(message).expect("it is accepted");
    let flags = DataFlags { beginning: true, ending: true, ..DataFlags::default() };
    let want = wire::Data { flags, tsn: tsn(0), stream: 7, ssn: 0, ppid: 51, payload: b"hello" };
    expect_packet!(s, [Data(data)] if data == want);
}

/// RFC 9260 §6.1, §1.6: TSNs and acknowledgements continue after the wrap.
#[test]
fn tsns_wrap() {
    let mut s = Script::established_client();
    for n in 0..5 {
        s.send(b"m");
        expect_packet!(s, [Data(data)] if data.tsn == FIRST_TSN.wrapping_add(n));
        s.peer_acknowledges(tsn(n));
        assert_eq!(s.statistics().send_buffered_bytes, 0);
    }
    s.expect_silence_until(5_000);
}

/// RFC 9260 §6.1 B: nothing new is sent with cwnd bytes in flight; the last packet may exceed the window.
#[test]
fn the_window_is_filled_and_exceeded_by_one_packet() {
    let mut s = Script::established_client();
    for _ in 0..10 {
        s.send_len(FULL);
    }
    // 4404 bytes of window take 3 packets of 1220 and one that exceeds it.
    for n in 0..4 {
        assert_eq!(s.take_data(), [n]);
    }
    s.expect_silence();
    s.at(50).peer_acknowledges(tsn(0));
    for n in 4..6 {
        assert_eq!(s.take_data(), [n], "one for the acknowledged, one for the window's growth");
    }
    s.expect_silence();
}

/// RFC 9260 §6.1 C: chunks marked for retransmission are sent before new ones.
#[test]
fn timed_out_data_is_sent_before_new_data() {
    let mut s = Script::established_client();
    s.send_len(FULL);
    assert_eq!(s.take_data(), [0]);
    s.at(999).send_len(FULL);
    assert_eq!(s.take_data(), [1]);
    s.at(1_000).send(b"new");
    assert_eq!(s.take_data(), [0]);
    s.at(1_100).peer_acknowledges(tsn(0));
    assert_eq!(s.take_data(), [1], "new data does not fit with it");
    assert_eq!(s.take_data(), [2]);
}

/// RFC 9260 §6.1 C: also if the room after a retransmission suffices for a new chunk only.
#[test]
fn new_data_does_not_overtake_pending_retransmissions() {
    let mut s = Script::established_client();
    for n in 0..3 {
        s.send_len(1_000);
        assert_eq!(s.take_data(), [n]);
    }
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.send(b"new");
    s.at(1_100).peer_acknowledges(tsn(0));
    assert_eq!((s.take_data(), s.take_data()), (vec![1], vec![2]));
    s.at(1_200).peer_acknowledges(tsn(2));
    assert_eq!(s.take_data(), [3]);
}

/// RFC 9260 §6.1 D: four packets at a time, whatever the window.
#[test]
fn a_burst_is_four_packets() {
    let mut s = Script::established_client();
    for _ in 0..12 {
        s.send_len(700); // The window takes seven packets of one such message.
    }
    for n in 0..4 {
        assert_eq!(s.take_data(), [n]);
    }
    s.expect_silence();
    s.at(50).peer_acknowledges(tsn(0));
    for n in 4..8 {
        assert_eq!(s.take_data(), [n]);
    }
    s.expect_silence();
}

/// RFC 9260 §6.1 E, §6.10: chunks share a packet while they fit.
#[test]
fn small_messages_share_a_packet_up_to_its_size() {
    let mut s = Script::established_client();
    for _ in 0..5 {
        s.send_len(284); // 300 bytes with the header: four fit into 1220.
    }
    assert_eq!(s.take_data(), [0, 1, 2, 3]);
    assert_eq!(s.take_data(), [4]);
}

/// RFC 9260 §6.1: a delayed SACK is bundled with the next DATA.
#[test]
fn a_delayed_sack_is_bundled_with_data() {
    let mut s = Script::established_client();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    s.at(100).peer_sends([Data(data(1, b"second"))]);
    s.at(150).send(b"answer");
    expect_packet!(s, [Sack(sack), Data(_)] if sack.cumulative_tsn_ack == tsn(1));
    s.peer_acknowledges(tsn(0));
    s.expect_silence_until(1_000);
}

/// RFC 9260 §6.1: "as long as the size of the final SCTP packet does not exceed the current PMTU";
/// it is not sent early on its own either (§6.2: "MUST NOT be more aggressive").
#[test]
fn a_delayed_sack_that_does_not_fit_beside_data_stays_delayed() {
    let mut s = Script::established_client();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    s.at(100).peer_sends([Data(data(1, b"second"))]);
    s.at(150).send_len(FULL);
    assert_eq!(s.take_data(), [0]);
    s.at(300);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
}

/// The same for retransmitted DATA.
#[test]
fn a_delayed_sack_that_does_not_fit_beside_a_retransmission_stays_delayed() {
    let mut s = Script::established_client();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    s.send_len(FULL);
    assert_eq!(s.take_data(), [0]);
    s.at(950).peer_sends([Data(data(1, b"second"))]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.at(1_150);
    expect_packet!(s, [Sack(_)]);
}

/// RFC 9260 §6.1, I bit: set on the last chunk of a message if the application requests it.
#[test]
fn the_application_may_request_an_immediate_sack() {
    let mut s = Script::established_client();
    let message = crate::message(FULL + 1).immediate(true);
    s.try_send(message).expect("it is accepted");
    expect_packet!(s, [Data(d)] if !d.flags.immediate && !d.flags.ending);
    expect_packet!(s, [Data(d)] if d.flags.immediate && d.flags.ending);
}

/// RFC 9260 §6.1, I bit: set on the last chunk in SHUTDOWN-PENDING.
#[test]
fn the_last_chunk_before_a_shutdown_requests_an_immediate_sack() {
    let mut s = Script::established_client();
    s.send(b"one");
    s.send(b"two");
    s.shutdown();
    expect_packet!(s, [Data(one), Data(two)] if !one.flags.immediate && two.flags.immediate);
    s.peer_acknowledges(tsn(1));
    expect_packet!(s, [Shutdown { .. }]);
}

/// RFC 9260 §6: during the handshake DATA is sent only with COOKIE ECHO.
#[test]
fn data_is_sent_with_the_cookie_echo_and_not_before() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    s.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_), Data(data)] if data.tsn == tsn(0));
    s.send(b"later");
    s.expect_silence();
    s.at(200).peer_writes(|p| {
        p.cookie_ack();
        p.sack(tsn(0), PEER_RWND, [], [])
    });
    expect_packet!(s, [Data(data)] if data.tsn == tsn(1) && data.payload == b"later");
}

/// RFC 9260 §5.1, §6.3.3: T1-cookie retransmits both; T3-rtx takes over when the association is established.
#[test]
fn data_sent_with_a_cookie_echo_are_repeated_with_it_and_then_on_their_own() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_), Data(_)]);
    s.at(1_000);
    expect_packet!(s, [CookieEcho(_), Data(data)] if data.tsn == tsn(0));
    s.at(1_100).peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
    // The DATA were lost; the RTO was doubled when they were sent with the second COOKIE ECHO.
    s.at(3_000);
    assert_eq!(s.take_data(), [0]);
    s.at(3_100).peer_acknowledges(tsn(0));
    s.expect_silence_until(10_000);
}

/// RFC 9260 §6: a SACK may acknowledge only TSNs that were sent.
#[test]
fn a_sack_for_a_tsn_never_sent_ends_the_association() {
    let mut s = Script::established_client();
    s.send(b"one");
    assert_eq!(s.take_data(), [0]);
    s.peer_acknowledges(tsn(1));
    let code = expect_packet!(s, [Abort { t_bit: false, causes }] =>
        causes.flatten().next().map(|cause| cause.code()));
    assert_eq!(code, Some(13), "Protocol Violation");
    assert!(matches!(s.events()[..], [Event::MessageFailed { .. }, Event::Closed(_)]));
}

/// Gap blocks for TSNs never sent do not abort the association: they are ignored.
#[test]
fn gap_blocks_for_tsns_never_sent_are_ignored() {
    let mut s = Script::established_client();
    s.send(b"one");
    assert_eq!(s.take_data(), [0]);
    s.peer_sacks(NONE, PEER_RWND, &[(2, 65_535), (0, 0), (9, 3)]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
}
