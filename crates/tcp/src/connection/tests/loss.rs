//! Loss of data (RFC 5681, 6298, 6582, 6675, 3042, 2883), in exact virtual time. The recovery crate declares
//! data lost; these tests check what is on the wire.

use super::script::*;
use super::*;
use crate::event::CloseReason;

/// Ten full segments are sent at 0 ms (the initial window); the peer has no SACK.
fn without_sack() -> Script {
    let mut s = Script::established_with(plain(), "S 0:0(0) <mss 1000>");
    burst(&mut s);
    s
}

fn with_sack() -> Script {
    let mut s = Script::established();
    burst(&mut s);
    s
}

fn burst(s: &mut Script) {
    s.send(20_000);
    for n in 0..10 {
        s.expect(&format!(". {}:{}(1000) ack 1", 1 + n * 1000, 1001 + n * 1000));
    }
    s.expect_silence();
}

#[test]
fn three_duplicates_cause_a_fast_retransmit_and_the_first_two_allow_new_data() {
    let mut s = without_sack();
    s.at(50).peer(". 1:1(0) ack 1").expect(". 10001:11001(1000) ack 1");
    s.peer(". 1:1(0) ack 1").expect(". 11001:12001(1000) ack 1");
    s.peer(". 1:1(0) ack 1").expect(". 1:1001(1000) ack 1").expect_silence();
    assert_eq!(s.end.connection.statistics().recovery.fast_recoveries, 1);
}

#[test]
fn a_segment_with_data_or_another_window_is_no_duplicate_ack() {
    let mut s = without_sack();
    for n in 0..5 {
        let window = 50_000 + n;
        s.peer(&format!(". 1:1(0) ack 1 win {window}"));
    }
    s.expect_silence();
    for n in 0..5 {
        let from = 1 + n * 10;
        s.peer(&format!("P. {from}:{}(10) ack 1 win 50004", from + 10));
    }
    assert_eq!(s.end.connection.statistics().recovery.fast_recoveries, 0);
    s.drain();
}

#[test]
fn a_partial_acknowledgement_sends_the_next_hole_again() {
    let mut s = without_sack();
    s.at(50);
    for _ in 0..3 {
        s.peer(". 1:1(0) ack 1");
    }
    s.drain();
    // 1 and 4001 were lost.
    s.at(100).peer(". 1:1(0) ack 4001").expect(". 4001:5001(1000) ack 1");
    s.drain();
    s.at(150).peer(". 1:1(0) ack 12001");
    assert_eq!(s.end.connection.statistics().recovery.retransmitted.fast_retransmit, 2);
    assert_eq!(s.end.connection.statistics().recovery.fast_recoveries, 1);
    s.drain();
}

#[test]
fn with_sack_every_hole_below_three_segments_is_retransmitted() {
    let mut s = with_sack();
    s.at(50).peer(". 1:1(0) ack 1 <sack 1001:2001>").expect(". 10001:11001(1000) ack 1");
    s.peer(". 1:1(0) ack 1 <sack 1001:3001>").expect(". 11001:12001(1000) ack 1");
    s.peer(". 1:1(0) ack 1 <sack 1001:4001>").expect(". 1:1001(1000) ack 1");
    // 4001 is missing, too, but half of the ten that were outstanding are still in flight.
    s.peer(". 1:1(0) ack 1 <sack 5001:8001 1001:4001>").expect_silence();
    s.peer(". 1:1(0) ack 1 <sack 5001:9001 1001:4001>").expect(". 4001:5001(1000) ack 1");
    s.expect_silence();
}

#[test]
fn impossible_blocks_are_ignored() {
    let mut s = with_sack();
    s.at(50);
    for sack in
        ["4001:4001", "5001:4001", "9001:30001", "90000001:90001001", "1002:2001", "1001:2000"]
    {
        for _ in 0..4 {
            s.peer(&format!(". 1:1(0) ack 1 <sack {sack}>"));
        }
    }
    s.expect_silence();
}

/// Each renege requires a pass over all outstanding data: a peer that reports and reneges segment by segment would cost
/// the square of the window. A peer cannot drop more than was sent; in the second round it has, so its reports are
/// ignored from then on.
#[test]
fn reports_of_a_peer_that_reneges_repeatedly_are_ignored() {
    let mut s = Script::established();
    s.send(100_000).drain();
    let mut ack = 1;
    for round in 0..5 {
        let iss = u64::from(s.end.connection.identity().iss);
        let end = s.end.connection.out.snd_nxt - (1 << 32) - iss;
        s.peer(&format!(". 1:1(0) ack {ack} <sack {}:{end}>", ack + 1000)).drain();
        ack += 1000;
        s.peer(&format!(". 1:1(0) ack {ack}")).drain();
        assert_eq!(s.end.connection.out.has_reports, round < 1, "{round}");
    }
    // As from a peer without SACK.
    s.peer(&format!(". 1:1(0) ack {ack} <sack {}:{}>", ack + 1000, ack + 5000)).drain();
    let flight = s.end.connection.out.flight().bytes;
    assert_eq!(flight, s.end.connection.out.recovery.outstanding().bytes());
}

#[test]
fn the_timer_doubles_until_an_ack_and_lost_data_is_retransmitted_in_slow_start() {
    let mut s = with_sack();
    s.at(1000).expect(". 1:1001(1000) ack 1");
    s.at(3000).expect(". 1:1001(1000) ack 1");
    s.at(7000).expect(". 1:1001(1000) ack 1");
    s.at(7050).peer(". 1:1(0) ack 1001");
    s.expect(". 1001:2001(1000) ack 1").expect(". 2001:3001(1000) ack 1");
    s.expect_silence();
    // A retransmission makes no sample (Karn): the timeout stays backed off.
    s.at(15_050).expect(". 1001:2001(1000) ack 1");
}

#[test]
fn consecutive_timeouts_end_the_connection() {
    let config = ConnectionConfig { max_retransmits: 2, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.at(1000).expect("P. 1:101(100) ack 1");
    s.at(3000).expect("P. 1:101(100) ack 1");
    s.at(7000).expect_event(&Event::Closed(CloseReason::TimedOut));
    s.expect_silence();
    assert!(s.end.connection.is_over());
}

#[test]
fn waiting_data_is_bundled_with_a_retransmission() {
    let mut s = Script::established();
    s.send(100).expect("P. 1:101(100) ack 1").send(200).expect_silence();
    s.at(1000).expect("P. 1:301(300) ack 1");
    s.at(1010).send(900).finish().expect_silence();
    // No more than the window of one segment after a timeout.
    s.at(3000).expect(". 1:1001(1000) ack 1");
    s.at(3050).peer(". 1:1(0) ack 1001").expect("FP. 1001:1201(200) ack 1");
    s.at(3100).peer(". 1:1(0) ack 1202");
}

#[test]
fn only_consecutive_timeouts_count() {
    let config = ConnectionConfig { max_retransmits: 2, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.at(1000).expect("P. 1:101(100) ack 1");
    s.at(3000).expect("P. 1:101(100) ack 1");
    s.at(3050).peer(". 1:1(0) ack 101").send(100).expect("P. 101:201(100) ack 1");
    s.at(7050).expect("P. 101:201(100) ack 1");
    s.at(15_050).expect("P. 101:201(100) ack 1");
    s.at(15_100).peer(". 1:1(0) ack 201");
    assert_eq!(s.state(), State::Established);
}

#[test]
fn lost_small_segments_are_retransmitted_in_one() {
    let config = ConnectionConfig { nagle: false, ..plain() };
    let mut s = Script::established_with(config, SYN);
    for n in 0..5 {
        s.send(100).expect(&format!("P. {}:{}(100) ack 1", 1 + n * 100, 101 + n * 100));
    }
    s.at(1000).expect("P. 1:501(500) ack 1");
    s.at(1050).peer(". 1:1(0) ack 501");
    assert!(s.end.connection.out.is_empty());
}

#[test]
fn an_acknowledgement_within_a_segment_is_not_retransmitted() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    assert_eq!(s.end.connection.statistics().bytes_in_flight, 1000);
    s.at(50).peer(". 1:1(0) ack 301");
    assert_eq!(s.end.connection.statistics().bytes_in_flight, 700);
    s.at(1000).expect("P. 301:1001(700) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1001");
}

#[test]
fn a_duplicate_report_shows_that_a_timeout_was_spurious() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.at(1000).expect("P. 1:1001(1000) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1001");
    assert_eq!(s.end.connection.statistics().recovery.spurious.total(), 0);
    s.at(1060).peer(". 1:1(0) ack 1001 <sack 1:1001>");
    s.peer(". 1:1(0) ack 1001 <sack 1:1001>");
    assert_eq!(s.end.connection.statistics().recovery.spurious.timeout, 1);
}

#[test]
fn a_duplicate_report_beyond_a_gap_is_recognized_by_the_block_around_it() {
    let mut s = with_sack();
    s.at(1000).expect(". 1:1001(1000) ack 1");
    s.at(1050).peer(". 1:1(0) ack 1001");
    s.expect(". 1001:2001(1000) ack 1").expect(". 2001:3001(1000) ack 1");
    // 2001 has arrived twice, and 1001 never.
    s.at(1100).peer(". 1:1(0) ack 1001 <sack 2001:3001 2001:10001>").drain();
    assert_eq!(s.end.connection.statistics().recovery.spurious.timeout, 1);
}
