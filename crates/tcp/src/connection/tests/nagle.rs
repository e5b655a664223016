//! Small segments (RFC 9293 §3.7.4).

use super::script::*;
use super::*;

#[test]
fn a_small_segment_waits_for_outstanding_data() {
    let mut s = Script::established();
    s.send(100).expect("P. 1:101(100) ack 1");
    s.send(100).expect_silence();
    s.send(100).expect_silence();
    s.at(50).peer(". 1:1(0) ack 101").expect("P. 101:301(200) ack 1");
    s.send(900).expect_silence();
    s.send(100).expect(". 301:1301(1000) ack 1".replace(". 301", "P. 301").as_str());
    s.at(60).peer(". 1:1(0) ack 1301");
}

#[test]
fn full_segments_do_not_wait_and_the_rest_does() {
    let mut s = Script::established();
    s.send(2500).expect(". 1:1001(1000) ack 1").expect(". 1001:2001(1000) ack 1");
    s.at(50).peer(". 1:1(0) ack 1001").expect_silence();
    s.peer(". 1:1(0) ack 2001").expect("P. 2001:2501(500) ack 1");
    s.at(60).peer(". 1:1(0) ack 2501");
}

#[test]
fn half_of_a_small_window_waits_as_well() {
    let mut s = Script::established_with(plain(), "S 0:0(0) win 1500 <mss 1000>");
    s.peer(". 1:1(0) ack 1 win 1500");
    s.end.connection.out.window.largest = 1500;
    s.send(600).expect("P. 1:601(600) ack 1");
    s.send(800).expect_silence();
    s.at(50).peer(". 1:1(0) ack 601 win 1500").expect("P. 601:1401(800) ack 1");
    s.at(60).peer(". 1:1(0) ack 1401 win 1500");
}

#[test]
fn switched_off_nothing_waits() {
    let config = ConnectionConfig { nagle: false, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.send(100).expect("P. 101:201(100) ack 1");
    s.at(60).peer(". 1:1(0) ack 201");
}

/// The state of a segment takes more memory than a payload of one byte, and the window does not limit the number of
/// segments.
#[test]
fn switched_off_no_more_small_ones_are_outstanding_than_the_limit() {
    let config = ConnectionConfig { nagle: false, ..plain() };
    let mut s = Script::established_with(config, SYN);
    for n in 1..=2048 {
        s.send(1).expect(&format!("P. {n}:{}(1) ack 1", n + 1));
    }
    (0..50).for_each(|_| s.send(1).expect_silence());
    s.at(60).peer(". 1:1(0) ack 2").expect("P. 2049:2099(50) ack 1");
    s.at(70).peer(". 1:1(0) ack 2099");
}

#[test]
fn finishing_lets_the_rest_go() {
    let mut s = Script::established();
    s.send(1100).expect(". 1:1001(1000) ack 1").expect_silence();
    s.finish().expect("FP. 1001:1101(100) ack 1");
    s.at(60).peer(". 1:1(0) ack 1102");
}
