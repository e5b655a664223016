//! Timestamps (RFC 7323 §3–§5).

use super::script::*;
use super::*;
use crate::event::CloseReason;

fn stamped() -> Script {
    let config = ConnectionConfig { timestamps: true, ..plain() };
    Script::established_with(config, "S 0:0(0) <mss 1000,sackOK,ts 1:0>")
}

#[test]
fn an_old_timestamp_is_acknowledged_and_its_data_dropped() {
    let mut s = stamped();
    s.peer("P. 1:101(100) ack 1 <ts 1000:0>");
    s.at(10).peer("P. 101:201(100) ack 1 <ts 999:0>").expect(". 1:1(0) ack 101 <ts 10:1000>");
    assert_eq!(s.end.connection.traffic.dropped.old_timestamps, 1);
    assert_eq!(s.read(1000), 100);
    s.peer("P. 101:201(100) ack 1 <ts 1000:0>");
    assert_eq!(s.read(1000), 100);
    s.at(50).expect(". 1:1(0) ack 201 <ts 50:1000>");
}

#[test]
fn without_timestamps_a_segment_is_dropped_silently_but_not_a_rst() {
    let mut s = stamped();
    s.peer("P. 1:101(100) ack 1").expect_silence();
    assert_eq!(s.end.connection.traffic.dropped.missing_timestamps, 1);
    assert_eq!(s.read(1000), 0);
    s.peer("R 1:1(0)").expect_event(&Event::Closed(CloseReason::Reset));
}

#[test]
fn a_rst_is_exempt_from_paws() {
    let mut s = stamped();
    s.peer("P. 1:101(100) ack 1 <ts 1000:0>");
    s.end.events.clear();
    s.peer("R 101:101(0) <ts 5:0>").expect_event(&Event::Closed(CloseReason::Reset));
}

#[test]
fn the_earliest_of_several_segments_is_echoed_and_none_beyond_a_gap() {
    let mut s = stamped();
    // Two segments covered by one ACK (RFC 7323 §4.3 A).
    s.peer("P. 1:101(100) ack 1 <ts 100:0>").peer("P. 101:201(100) ack 1 <ts 105:0>");
    s.expect(". 1:1(0) ack 201 <ts 0:100>");
    // A segment beyond a gap: the ACK still echoes the timestamp of the last segment in order (B).
    s.peer("P. 301:401(100) ack 1 <ts 110:0>").expect(". 1:1(0) ack 201 <sack 301:401> <ts 0:100>");
    // The segment that closes the gap (C).
    s.peer("P. 201:301(100) ack 1 <ts 120:0>").expect(". 1:1(0) ack 401 <ts 0:120>");
}

#[test]
fn retransmitted_data_is_measured_by_its_echo() {
    let mut s = stamped();
    s.send(988).expect("P. 1:989(988) ack 1 <ts 0:1>");
    s.at(1000).expect("P. 1:989(988) ack 1 <ts 1000:1>");
    s.at(1030).peer(". 1:1(0) ack 989 <ts 2:1000>");
    // The RTT sample of the handshake was 0 ms, so that SRTT becomes an eighth of 30 ms.
    let srtt = s.end.connection.statistics().srtt.unwrap();
    assert_eq!(srtt, Duration::from_micros(3750));
}
