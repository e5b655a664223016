//! When and what is acknowledged (RFC 9293 §3.8.6.3, RFC 5681 §4.2, RFC 2018, RFC 2883).

use super::script::*;
use super::*;

#[test]
fn one_segment_is_acknowledged_when_the_delay_is_over_and_every_second_at_once() {
    let mut s = Script::established();
    s.at(5).peer(". 1:1001(1000) ack 1").at(45).expect(". 1:1(0) ack 1001");
    s.peer(". 1001:2001(1000) ack 1").expect_silence();
    s.at(60).peer(". 2001:3001(1000) ack 1").expect(". 1:1(0) ack 3001");
    s.at(2000);
}

#[test]
fn without_a_delay_every_segment_is_acknowledged_at_once() {
    let config = ConnectionConfig { ack_delay: Duration::ZERO, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.peer(". 1:11(10) ack 1").expect(". 1:1(0) ack 11");
}

#[test]
fn an_acknowledgement_is_bundled_with_data() {
    let mut s = Script::established();
    s.peer("P. 1:101(100) ack 1").send(10).expect("P. 1:11(10) ack 101");
    s.at(500).peer(". 101:101(0) ack 11");
}

#[test]
fn data_beyond_a_gap_is_reported_at_once_and_so_is_the_end_of_the_gap() {
    let mut s = Script::established();
    s.peer(". 1001:2001(1000) ack 1").expect(". 1:1(0) ack 1 <sack 1001:2001>");
    s.peer(". 3001:4001(1000) ack 1").expect(". 1:1(0) ack 1 <sack 3001:4001 1001:2001>");
    s.peer(". 2001:2501(500) ack 1").expect(". 1:1(0) ack 1 <sack 1001:2501 3001:4001>");
    s.peer(". 1:1001(1000) ack 1").expect(". 1:1(0) ack 2501 <sack 3001:4001>");
    s.peer(". 2501:3001(500) ack 1").expect(". 1:1(0) ack 4001");
}

#[test]
fn with_timestamps_there_are_three_blocks() {
    let config = ConnectionConfig { timestamps: true, ..plain() };
    let mut s = Script::established_with(config, "S 0:0(0) <mss 1000,sackOK,ts 1:0>");
    for from in [1001, 3001, 5001, 7001] {
        s.peer(&format!(". {from}:{}(1000) ack 1 <ts 1:0>", from + 1000));
        if from < 7001 {
            s.drain();
        }
    }
    s.expect(". 1:1(0) ack 1 <sack 7001:8001 5001:6001 3001:4001> <ts 0:1>");
}

#[test]
fn nothing_is_reported_to_a_peer_without_sack_permitted() {
    let mut s = Script::established_with(plain(), "S 0:0(0) <mss 1000>");
    s.peer(". 1001:2001(1000) ack 1").expect(". 1:1(0) ack 1");
    s.peer(". 1001:2001(1000) ack 1").expect(". 1:1(0) ack 1");
}

/// RFC 5681 §4.2: the peer counts duplicate ACKs, also if a driver passes several segments at once.
#[test]
fn a_peer_without_sack_gets_an_ack_for_every_segment_beyond_a_gap() {
    let mut s = Script::established_with(plain(), "S 0:0(0) <mss 1000>");
    s.peer(". 1001:2001(1000) ack 1")
        .peer(". 2001:3001(1000) ack 1")
        .peer(". 3001:4001(1000) ack 1");
    s.expect(". 1:1(0) ack 1").expect(". 1:1(0) ack 1").expect(". 1:1(0) ack 1").expect_silence();
    // No duplicate ACKs for segments whose gap has closed meanwhile: the peer would count them for the next gap.
    s.peer(". 4001:5001(1000) ack 1").peer(". 5001:6001(1000) ack 1").peer(". 1:1001(1000) ack 1");
    s.expect(". 1:1(0) ack 6001").expect_silence();
    s.peer(". 7001:8001(1000) ack 1")
        .peer(". 9001:9501(500) ack 1")
        .peer(". 6001:7001(1000) ack 1");
    s.peer(". 9501:9801(300) ack 1");
    s.expect(". 1:1(0) ack 8001").expect(". 1:1(0) ack 8001").expect_silence();
}

/// RFC 2883 §4.1.1 to §4.2.3 in the order of their examples, with other numbers.
#[test]
fn duplicates_are_reported_first_and_once() {
    let mut s = Script::established();
    s.peer(". 1:1001(1000) ack 1").peer(". 1001:2001(1000) ack 1").expect(". 1:1(0) ack 2001");
    s.peer(". 1001:2001(1000) ack 1").expect(". 1:1(0) ack 2001 <sack 1001:2001>");
    s.peer(". 3001:4001(1000) ack 1").expect(". 1:1(0) ack 2001 <sack 3001:4001>");
    // Below what is acknowledged, with a gap open.
    s.peer(". 1:1001(1000) ack 1").expect(". 1:1(0) ack 2001 <sack 1:1001 3001:4001>");
    // Beyond the gap: the run around it follows.
    s.peer(". 4001:5001(1000) ack 1").expect(". 1:1(0) ack 2001 <sack 3001:5001>");
    s.peer(". 4001:5001(1000) ack 1").expect(". 1:1(0) ack 2001 <sack 4001:5001 3001:5001>");
    // In part.
    s.peer(". 2001:3501(1500) ack 1").expect(". 1:1(0) ack 5001 <sack 3001:3501>");
}

#[test]
fn data_received_before_in_part_is_acknowledged_at_once() {
    let mut s = Script::established();
    s.peer(". 1:1001(1000) ack 1").at(40).expect(". 1:1(0) ack 1001");
    s.peer(". 501:1501(1000) ack 1").expect(". 1:1(0) ack 1501 <sack 501:1001>");
}

#[test]
fn a_full_segment_that_leaves_no_room_for_blocks_is_followed_by_an_acknowledgement() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.at(1000).peer(". 1001:2001(1000) ack 1").expect("P. 1:1001(1000) ack 1");
    s.expect(". 1001:1001(0) ack 1 <sack 1001:2001>");
    s.at(1050).peer(". 1:1(0) ack 1001").drain();
}

#[test]
fn new_data_leave_room_for_blocks() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.peer(". 1001:2001(1000) ack 1").expect(". 1001:1001(0) ack 1 <sack 1001:2001>");
    s.peer(". 1001:1001(0) ack 1001").send(1000);
    s.expect(". 1001:1989(988) ack 1 <sack 1001:2001>").expect_silence();
    s.peer(". 1001:1001(0) ack 1989").expect("P. 1989:2001(12) ack 1 <sack 1001:2001>");
    s.peer(". 1001:1001(0) ack 2001");
}
