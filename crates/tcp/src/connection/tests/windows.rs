//! Windows of both sides (RFC 9293 §3.8.6).

use super::script::*;
use super::*;
use crate::event::CloseReason;

/// 1000 bytes were accepted by the peer, whose window is now closed; 500 more wait.
fn closed() -> Script {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.peer(". 1:1(0) ack 1001 win 0").send(500).expect_silence();
    s
}

#[test]
fn a_closed_window_is_probed_by_one_byte_with_backoff_and_without_limit() {
    let config = ConnectionConfig { max_retransmits: 2, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.peer(". 1:1(0) ack 1001 win 0").send(500).expect_silence();
    let mut at = 1000;
    for wait in [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000] {
        s.at(at).expect(". 1001:1002(1) ack 1");
        s.peer(". 1:1(0) ack 1001 win 0");
        at += wait;
    }
    s.at(at).expect(". 1001:1002(1) ack 1");
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.end.connection.statistics().recovery.packets_lost, 0);
    assert_eq!(s.end.connection.traffic.zero_windows.probes_sent, 9);
}

#[test]
fn an_unconfirmed_closed_window_ends_the_connection() {
    let config = ConnectionConfig { max_retransmits: 2, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.peer(". 1:1(0) ack 1001 win 0").send(500);
    for at in [1000, 2000, 4000] {
        s.at(at).expect(". 1001:1002(1) ack 1");
    }
    s.at(8000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn a_window_that_opens_before_a_probe_lets_everything_go() {
    let mut s = closed();
    s.at(300).peer(". 1:1(0) ack 1001").expect("P. 1001:1501(500) ack 1");
    s.at(350).peer(". 1:1(0) ack 1501");
}

#[test]
fn a_refused_probe_is_retransmitted_as_soon_as_the_window_is_open() {
    let mut s = closed();
    s.at(1000).expect(". 1001:1002(1) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1001 win 0").expect_silence();
    s.at(1200).peer(". 1:1(0) ack 1001 win 5000").expect("P. 1001:1501(500) ack 1");
    s.at(1300).peer(". 1:1(0) ack 1501");
}

#[test]
fn a_window_that_opens_too_little_allows_only_the_refused_probe() {
    let mut s = closed();
    s.at(1000).expect(". 1001:1002(1) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1001 win 0").expect_silence();
    s.at(1200).peer(". 1:1(0) ack 1001 win 300").expect(". 1001:1002(1) ack 1");
    s.at(1250).peer(". 1:1(0) ack 1002 win 5000").expect("P. 1002:1501(499) ack 1");
    s.at(1300).peer(". 1:1(0) ack 1501");
}

/// The same as `closed`, with a round trip of 300 ms: SRTT + 4 · RTTVAR is 300 + 4 · 112.5 ms, and
/// the RTO its minimum, 1 s. The probe was sent at 1600 ms.
fn probed_over_300_ms() -> Script {
    let mut s = Script::server(plain(), SYN);
    s.expect("S. 0:0(0) ack 1");
    s.at(300).peer(". 1:1(0) ack 1").send(1000).expect("P. 1:1001(1000) ack 1");
    s.at(600).peer(". 1:1(0) ack 1001 win 0").send(500);
    s.at(1600).expect(". 1001:1002(1) ack 1");
    s
}

#[test]
fn a_window_that_opens_within_a_round_trip_does_not_answer_the_probe() {
    let mut s = probed_over_300_ms();
    s.at(1700).peer(". 1:1(0) ack 1001 win 5000").expect_silence();
    s.at(1900).peer(". 1:1(0) ack 1002 win 5000").expect("P. 1002:1501(499) ack 1");
    s.at(2200).peer(". 1:1(0) ack 1501");
}

#[test]
fn a_window_that_opens_after_a_refusal_does() {
    let mut s = probed_over_300_ms();
    s.at(1650).peer(". 1:1(0) ack 1001 win 0").expect_silence();
    s.at(1700).peer(". 1:1(0) ack 1001 win 5000").expect("P. 1001:1501(500) ack 1");
    s.at(2000).peer(". 1:1(0) ack 1501");
}

#[test]
fn an_accepted_probe_is_not_retransmitted() {
    let mut s = closed();
    s.at(1000).expect(". 1001:1002(1) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1002 win 0").expect_silence();
    s.at(1100).peer(". 1:1(0) ack 1002").expect("P. 1002:1501(499) ack 1");
    s.at(1150).peer(". 1:1(0) ack 1501");
}

/// The timer of probes has backed off to 16 s, which must not delay the retransmission of data lost afterwards.
#[test]
fn the_timeout_of_probes_is_not_that_of_data() {
    let mut s = closed();
    for at in [1000, 2000, 4000, 8000] {
        s.at(at).expect(". 1001:1002(1) ack 1");
        s.at(at + 50).peer(". 1:1(0) ack 1001 win 0").expect_silence();
    }
    // Data sent when the window is open is lost.
    s.at(8100).peer(". 1:1(0) ack 1001 win 5000").expect("P. 1001:1501(500) ack 1");
    s.at(9100).expect("P. 1001:1501(500) ack 1");
    s.at(9150).peer(". 1:1(0) ack 1501");
    // The same with a probe that is accepted, and whose ACK is no RTT sample (Karn).
    let mut s = closed();
    for at in [1000, 2000, 4000, 8000] {
        s.at(at).expect(". 1001:1002(1) ack 1");
        if at < 8000 {
            s.at(at + 50).peer(". 1:1(0) ack 1001 win 0").expect_silence();
        }
    }
    s.at(8050).peer(". 1:1(0) ack 1002").expect("P. 1002:1501(499) ack 1");
    s.at(9050).expect("P. 1002:1501(499) ack 1");
    s.at(9100).peer(". 1:1(0) ack 1501");
}

#[test]
fn a_fin_alone_probes_a_closed_window() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.peer(". 1:1(0) ack 1001 win 0").finish().expect_silence();
    s.at(1000).expect("F. 1001:1001(0) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1002 win 0");
    assert_eq!(s.state(), State::FinWait2);
}

#[test]
fn a_window_that_shrinks_stops_new_data_and_sent_data_is_retransmitted() {
    let mut s = Script::established();
    s.send(5000);
    for n in 0..5 {
        let push = if n == 4 { "P" } else { "" };
        s.expect(&format!("{push}. {}:{}(1000) ack 1", 1 + n * 1000, 1001 + n * 1000));
    }
    s.at(50).peer(". 1:1(0) ack 1001 win 1000").send(3000).expect_silence();
    s.at(100).peer(". 1:1(0) ack 2001 win 1000").expect_silence();
    s.at(1100).expect(". 2001:3001(1000) ack 1");
    s.at(1150).peer(". 1:1(0) ack 5001 win 8000");
    assert_eq!(s.end.connection.statistics().recovery.packets_lost, 3);
    s.drain();
}

#[test]
fn a_small_part_of_a_window_is_not_used_until_the_override() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    // 300 bytes of a window that was 60000.
    s.peer(". 1:1(0) ack 1001 win 300").send(500).expect_silence();
    s.at(500).expect(". 1001:1301(300) ack 1");
    s.at(550).peer(". 1:1(0) ack 1301").expect("P. 1301:1501(200) ack 1");
    s.at(600).peer(". 1:1(0) ack 1501");
}

#[test]
fn an_old_segment_does_not_update_the_window() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.at(10).peer("P. 1001:1101(100) ack 1001 win 2000");
    // The ACK was sent before the window update, and is acceptable otherwise.
    s.peer(". 1:1(0) ack 1001 win 0");
    assert_eq!(s.end.connection.statistics().send_window, 2000);
    s.drain();
}

#[test]
fn our_window_closes_is_kept_closed_and_opens_by_a_segment_or_half_the_buffer() {
    let config = ConnectionConfig { receive_buffer_bytes: 3000, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.shows_window = true;
    s.peer(". 1:1001(1000) ack 1").peer(". 1001:2001(1000) ack 1");
    s.expect(". 1:1(0) ack 2001 win 1000");
    s.peer(". 2001:3001(1000) ack 1").at(40).expect(". 1:1(0) ack 3001 win 0");
    s.peer(". 3001:3002(1) ack 1").expect(". 1:1(0) ack 3001 win 0");
    s.read(999);
    s.expect_silence();
    s.peer(". 3001:3002(1) ack 1").expect(". 1:1(0) ack 3001 win 0");
    s.read(1);
    s.expect(". 1:1(0) ack 3001 win 1000");
    assert_eq!(s.end.connection.traffic.zero_windows.sent, 1);
}

#[test]
fn acknowledgements_and_resets_pass_a_closed_window() {
    let config = ConnectionConfig { receive_buffer_bytes: 1024, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.peer(". 1:1025(1024) ack 1").at(40).expect(". 1:1(0) ack 1025");
    s.send(100).expect("P. 1:101(100) ack 1025");
    s.at(50).peer("P. 1025:1035(10) ack 101").expect(". 101:101(0) ack 1025");
    assert!(s.end.connection.out.is_empty());
    s.peer("R 1025:1025(0)");
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn send_accepts_what_fits_and_reports_room_again() {
    let config = ConnectionConfig { send_buffer_bytes: 4000, ..plain() };
    let mut s = Script::established_with(config, SYN);
    assert_eq!(s.end.send(Instant::ZERO, &bytes(1, 5001)), 4000);
    assert_eq!(s.end.send(Instant::ZERO, &[1]), 0);
    s.drain();
    s.peer(". 1:1(0) ack 501");
    assert!(s.end.events.is_empty());
    s.peer(". 1:1(0) ack 1001").expect_event(&Event::Writable);
    s.peer(". 1:1(0) ack 2001");
    assert!(s.end.events.is_empty(), "told once");
}

/// A probe was sent that the peer has not accepted. For the peer, an empty segment after it is outside the
/// window, and its ACK would be lost.
#[test]
fn acknowledgements_and_resets_do_not_pass_the_closed_window_of_the_peer() {
    let mut s = closed();
    s.at(1000).expect(". 1001:1002(1) ack 1");
    s.at(1050).peer(". 1:101(100) ack 1001 win 0");
    s.at(1090).expect(". 1001:1001(0) ack 101");
    s.end.call(s.now(), Connection::abort);
    s.expect("R. 1001:1001(0) ack 101");
}

#[test]
fn acks_after_a_window_that_shrank_are_sent_at_its_edge() {
    let mut s = Script::established();
    s.send(3000).drain();
    s.at(50).peer(". 1:101(100) ack 1 win 2000").at(90).expect(". 2001:2001(0) ack 101");
    s.at(100).peer(". 101:201(100) ack 1001 win 0").at(140).expect(". 1001:1001(0) ack 201");
}

/// RFC 9293 §3.8.6: data beyond a window that shrank may be retransmitted, but one segment is
/// enough to probe it.
#[test]
fn of_data_beyond_a_window_that_shrank_one_segment_at_a_time_is_retransmitted() {
    let mut s = Script::established();
    s.send(5000).drain();
    s.at(50).peer(". 1:1(0) ack 1001 win 0");
    s.at(1050).expect(". 1001:2001(1000) ack 1");
    s.at(1100).peer(". 1:1(0) ack 1001 win 0").expect_silence();
    s.at(3050).expect(". 1001:2001(1000) ack 1");
    s.at(3100).peer(". 1:1(0) ack 2001 win 2000");
    s.expect(". 2001:3001(1000) ack 1").expect(". 3001:4001(1000) ack 1").expect_silence();
    s.at(3150).peer(". 1:1(0) ack 4001 win 2000").expect("P. 4001:5001(1000) ack 1");
    s.at(3200).peer(". 1:1(0) ack 5001");
}

/// RFC 9293 §3.8.6.1: a closed window may last as long as the application keeps the connection open.
#[test]
fn a_confirmed_closed_window_ends_a_connection_that_the_application_has_closed() {
    let config = ConnectionConfig { max_retransmits: 2, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.at(50).peer(". 1:1(0) ack 1001 win 0").send(500).close();
    for at in [1050, 2050, 4050] {
        s.at(at).expect(". 1001:1002(1) ack 1");
        s.peer(". 1:1(0) ack 1001 win 0");
    }
    s.at(8050).expect_event(&Event::Closed(CloseReason::TimedOut));
    // The peer still answers, so it is informed by a RST.
    s.expect("R. 1001:1001(0) ack 1");
    assert!(s.end.connection.is_over());
}
