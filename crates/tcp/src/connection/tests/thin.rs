//! The mechanisms for thin streams (Petlund 2008; M1 and M2 of Petlund 2009): each acts exactly at its time, and not at
//! all if it is disabled or the stream is not thin.

use rexmit_recovery::{ThinConfig, ThinTcpConfig};

use super::script::*;
use super::*;

const NO_SACK: &str = "S 0:0(0) <mss 1000>";

const LINEAR: ThinConfig = ThinConfig::OFF.linear_timeouts(std::num::NonZeroU8::new(6));
const FIRST: ThinConfig = ThinConfig::OFF.first_indication(true);
const RTO_MIN: ThinConfig = ThinConfig::OFF.rto_min(Some(Duration::from_millis(200)));
const BY_AGE: ThinConfig = ThinConfig::OFF.restart_by_age(true);

/// A connection without Nagle's algorithm.
pub(super) fn with(thin: ThinConfig, syn: &str) -> Script {
    let mut config = ConnectionConfig { nagle: false, ..plain() };
    config.recovery.thin = thin;
    Script::established_with(config, syn)
}

/// Sends `count` small segments now.
fn send_small(s: &mut Script, from: u64, count: u64) {
    for n in 0..count {
        let start = from + n * 100;
        s.send(100).expect(&format!("P. {start}:{}(100) ack 1", start + 100));
    }
}

/// Sends ten full segments at 0 ms.
fn send_much(s: &mut Script) {
    s.send(20_000);
    for n in 0..10 {
        s.expect(&format!(". {}:{}(1000) ack 1", 1 + n * 1000, 1001 + n * 1000));
    }
}

/// Measures a round trip of 50 ms, before 100 ms.
fn measure(s: &mut Script) {
    s.send(100).expect("P. 1:101(100) ack 1");
    s.at(50).peer(". 1:1(0) ack 101").at(100);
}

/// The time of the first retransmission in a row of small segments without acknowledgements.
fn timeouts(thin: ThinConfig, times: &[u64]) {
    let mut s = with(thin, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    for &at in times {
        s.at(at).expect("P. 1:101(100) ack 1");
    }
}

#[test]
fn six_timeouts_in_a_row_do_not_double_and_those_beyond_do() {
    timeouts(LINEAR, &[1000, 2000, 3000, 4000, 5000, 6000, 7000, 9000, 13_000]);
    timeouts(ThinConfig::OFF, &[1000, 3000, 7000, 15_000]);
}

#[test]
fn a_timeout_doubles_while_the_stream_is_not_thin_and_not_once_it_is() {
    let mut s = with(LINEAR, SYN);
    send_much(&mut s);
    for at in [1000, 3000, 5000, 7000] {
        s.at(at).expect(". 1:1001(1000) ack 1");
    }
}

#[test]
fn an_answer_begins_a_new_count_of_linear_timeouts() {
    let mut s = with(LINEAR, SYN);
    send_small(&mut s, 1, 1);
    for at in [1000, 2000, 3000, 4000, 5000, 6000] {
        s.at(at).expect("P. 1:101(100) ack 1");
    }
    s.at(6050).peer(". 1:1(0) ack 101");
    send_small(&mut s, 101, 1);
    for at in [7050, 8050, 9050, 10_050, 11_050, 12_050, 13_050, 15_050] {
        s.at(at).expect("P. 101:201(100) ack 1");
    }
}

#[test]
fn linear_timeouts_do_not_count_towards_the_end() {
    let mut config = ConnectionConfig { max_retransmits: 2, ..plain() };
    config.recovery.thin = LINEAR;
    let mut s = Script::established_with(config, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    for at in [1000, 2000, 3000, 4000, 5000, 6000, 7000, 9000] {
        s.at(at).expect("P. 1:101(100) ack 1");
    }
    s.at(13_000).expect_event(&Event::Closed(crate::event::CloseReason::TimedOut));
}

#[test]
fn the_first_report_makes_a_fast_retransmit() {
    let mut s = with(FIRST, SYN);
    send_small(&mut s, 1, 3);
    s.at(50).peer(". 1:1(0) ack 1 <sack 101:201>").expect(". 1:101(100) ack 1");
    s.peer(". 1:1(0) ack 1 <sack 101:301>").expect_silence();
    s.at(100).peer(". 1:1(0) ack 301");
    let recovery = s.end.connection.statistics().recovery;
    assert_eq!((recovery.retransmitted.fast_retransmit, recovery.timeouts), (1, 0));
    assert_eq!(recovery.fast_recoveries, 1);
}

#[test]
fn the_first_report_of_a_thick_stream_or_without_the_switch_makes_none() {
    let mut s = with(FIRST, SYN);
    send_much(&mut s);
    s.at(50).peer(". 1:1(0) ack 1 <sack 1001:2001>").expect(". 10001:11001(1000) ack 1");
    let mut s = with(ThinConfig::OFF, SYN);
    send_small(&mut s, 1, 3);
    s.at(50).peer(". 1:1(0) ack 1 <sack 101:301>");
    s.at(1000).expect(". 1:101(100) ack 1");
}

#[test]
fn the_first_duplicate_of_a_peer_without_sack_makes_a_fast_retransmit() {
    let mut s = with(FIRST, NO_SACK);
    send_small(&mut s, 1, 3);
    s.at(50).peer(". 1:1(0) ack 1").expect(". 1:101(100) ack 1");
    s.peer(". 1:1(0) ack 1").expect_silence();
    s.at(100).peer(". 1:1(0) ack 301");
    assert_eq!(s.end.connection.statistics().recovery.fast_recoveries, 1);
}

#[test]
fn the_first_duplicate_of_a_thick_stream_or_without_the_switch_makes_none() {
    let mut s = with(FIRST, NO_SACK);
    send_much(&mut s);
    s.at(50).peer(". 1:1(0) ack 1").expect(". 10001:11001(1000) ack 1");
    let mut s = with(ThinConfig::OFF, NO_SACK);
    send_small(&mut s, 1, 3);
    s.at(50).peer(". 1:1(0) ack 1").peer(". 1:1(0) ack 1");
    s.at(1000).expect("P. 1:301(300) ack 1");
}

#[test]
fn the_timeout_falls_to_200_ms_while_thin() {
    for (thin, count, at) in [(RTO_MIN, 4, 300), (RTO_MIN, 5, 1100), (ThinConfig::OFF, 4, 1100)] {
        let mut s = with(thin, SYN);
        measure(&mut s);
        send_small(&mut s, 101, count);
        s.at(at).expect(&format!("P. 101:{0}({1}) ack 1", 101 + count * 100, count * 100));
    }
}

/// Petlund 2008 §3.1: for timeouts the packets in flight count, whatever their size.
#[test]
fn small_segments_alone_do_not_lower_the_timeout() {
    let small = RTO_MIN.with_tcp(ThinTcpConfig::PETLUND_2008);
    for (count, at) in [(4, 300), (5, 1100)] {
        let mut s = with(small, SYN);
        measure(&mut s);
        send_small(&mut s, 101, count);
        s.at(at).expect(&format!("P. 101:{0}({1}) ack 1", 101 + count * 100, count * 100));
    }
    let mut s = with(small, SYN);
    measure(&mut s);
    s.send(1000).expect("P. 101:1101(1000) ack 1");
    s.at(300).expect("P. 101:1101(1000) ack 1");
}

/// Petlund 2008 §2, §3.2: packets far smaller than the MSS make a stream thin, however many are in flight.
#[test]
fn the_first_report_of_many_small_segments_makes_a_fast_retransmit() {
    for (thin, length, is_thin) in [
        (FIRST.with_tcp(ThinTcpConfig::PETLUND_2008), 500, true),
        (FIRST.with_tcp(ThinTcpConfig::PETLUND_2008), 501, false),
        (FIRST, 500, false),
    ] {
        let mut s = with(thin, SYN);
        for n in 0..8 {
            s.send(length).expect(&format!(
                "P. {}:{}({length}) ack 1",
                1 + n * length,
                1 + (n + 1) * length
            ));
        }
        s.at(50).peer(&format!(". 1:1(0) ack 1 <sack {}:{}>", 1 + length, 1 + 2 * length));
        if is_thin {
            s.expect(&format!(". 1:{}({length}) ack 1", 1 + length));
        }
        s.expect_silence();
    }
}

#[test]
fn no_packet_waits_longer_than_a_timeout_since_it_was_sent() {
    for (thin, count, at) in [(BY_AGE, 1, 1110), (BY_AGE, 5, 1160), (ThinConfig::OFF, 1, 1160)] {
        let mut s = with(thin, SYN);
        measure(&mut s);
        send_small(&mut s, 101, 1);
        s.at(110);
        send_small(&mut s, 201, count);
        s.at(160).peer(". 1:1(0) ack 201");
        s.at(at).expect(&format!("P. 201:{0}({1}) ack 1", 201 + count * 100, count * 100));
    }
}

#[test]
fn small_segments_do_not_wait_while_thin_with_no_delay() {
    // Small segments alone do not count: Nagle's algorithm is what makes larger ones of them.
    for tcp in [ThinTcpConfig::OFF.no_delay(true), ThinTcpConfig::PETLUND_2008] {
        let mut config = plain();
        assert!(config.nagle);
        config.recovery.thin = ThinConfig::OFF.with_tcp(tcp);
        let mut s = Script::established_with(config, SYN);
        send_small(&mut s, 1, 5);
        // Five are in flight: too many.
        s.send(100).expect_silence();
        s.at(50).peer(". 1:1(0) ack 101").expect("P. 501:601(100) ack 1");
        s.at(60).peer(". 1:1(0) ack 601");
    }
}

#[test]
fn the_mechanisms_are_switched_while_the_connection_is_up() {
    let mut s = with(ThinConfig::OFF, SYN);
    measure(&mut s);
    send_small(&mut s, 101, 1);
    s.end.connection.set_thin(RTO_MIN).unwrap();
    s.at(300).expect("P. 101:201(100) ack 1");
    s.end.connection.set_thin(ThinConfig::OFF).unwrap();
    s.at(2300).expect("P. 101:201(100) ack 1");
    let invalid = ThinConfig::OFF.rto_min(Some(Duration::ZERO));
    assert_eq!(s.end.connection.set_thin(invalid), Err(crate::ThinError::Invalid));
}

#[test]
fn statistics_show_whether_the_connection_is_thin_and_which_timeout_applies() {
    let mut s = with(RTO_MIN, SYN);
    measure(&mut s);
    send_small(&mut s, 101, 4);
    let reported = |s: &Script| {
        let statistics = s.end.connection.statistics();
        (statistics.thin.is_thin, statistics.thin.in_flight, statistics.rto.as_millis())
    };
    assert_eq!(reported(&s), (true, 4, 200));
    send_small(&mut s, 501, 1);
    assert_eq!(reported(&s), (false, 5, 1000));
    assert_eq!(s.end.connection.statistics().recovery.thin_changes, 1);
    s.at(150).peer(". 1:1(0) ack 601");
}
