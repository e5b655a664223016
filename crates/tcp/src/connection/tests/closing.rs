//! Closing (RFC 9293 §3.6, §3.10.4).

use super::script::*;
use super::*;
use crate::error::ReceiveError;
use crate::event::CloseReason;

const FINISHED: Event = Event::Closed(CloseReason::Finished);

fn receive(s: &mut Script) -> Result<usize, ReceiveError> {
    s.end.call(Instant::ZERO, |c, cx| c.receive(cx, &mut [0; 10]))
}

#[test]
fn we_finish_first_and_continue_receiving() {
    let mut s = Script::established();
    s.send(100).finish().expect("FP. 1:101(100) ack 1");
    assert_eq!(s.state(), State::FinWait1);
    s.at(50).peer(". 1:1(0) ack 102");
    assert_eq!(s.state(), State::FinWait2);
    s.peer("P. 1:501(500) ack 102").at(90).expect(". 102:102(0) ack 501");
    assert_eq!(s.read(1000), 500);
    s.end.events.clear();
    s.at(200).peer("F. 501:501(0) ack 102").expect(". 102:102(0) ack 502");
    s.expect_event(&Event::Readable).expect_event(&FINISHED);
    assert_eq!(s.state(), State::TimeWait);
    assert!(s.end.connection.time_wait().is_none(), "the end is not read");
    assert_eq!(receive(&mut s), Ok(0));
    let seed = s.end.connection.time_wait().expect("nothing is left to do");
    assert_eq!(seed.until, Instant::from_millis(60_200));
    s.at(60_200);
    assert!(s.end.connection.is_over());
}

#[test]
fn the_peer_finishes_first_and_we_continue_sending() {
    let mut s = Script::established();
    s.peer("FP. 1:101(100) ack 1").expect(". 1:1(0) ack 102");
    assert_eq!(s.state(), State::CloseWait);
    s.expect_event(&Event::Readable);
    assert_eq!(s.read(1000), 100);
    assert_eq!((receive(&mut s), receive(&mut s)), (Ok(0), Ok(0)));
    s.send(100).expect("P. 1:101(100) ack 102");
    s.at(50).peer(". 102:102(0) ack 101").finish().expect("F. 101:101(0) ack 102");
    assert_eq!(s.state(), State::LastAck);
    s.at(1050).expect("F. 101:101(0) ack 102");
    s.at(1100).peer(". 102:102(0) ack 102").expect_event(&FINISHED);
    assert!(s.end.connection.is_over());
}

#[test]
fn both_finish_at_the_same_time() {
    let mut s = Script::established();
    s.finish().expect("F. 1:1(0) ack 1");
    s.at(10).peer("F. 1:1(0) ack 1").expect(". 2:2(0) ack 2");
    assert_eq!(s.state(), State::Closing);
    s.at(20).peer(". 2:2(0) ack 2");
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn fin_and_the_acknowledgement_of_ours_in_one_segment() {
    let mut s = Script::established();
    s.finish().expect("F. 1:1(0) ack 1");
    s.at(10).peer("F. 1:1(0) ack 2").expect(". 2:2(0) ack 2");
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn a_repeated_fin_in_time_wait_is_acknowledged_and_restarts_it() {
    let mut s = Script::established();
    s.finish().expect("F. 1:1(0) ack 1");
    s.peer("F. 1:1(0) ack 2").expect(". 2:2(0) ack 2");
    s.at(50_000).peer("F. 1:1(0) ack 2").expect(". 2:2(0) ack 2");
    s.at(109_999);
    assert_eq!(s.state(), State::TimeWait);
    s.at(110_000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn a_fin_beyond_a_gap_waits_for_the_gap_to_close() {
    let mut s = Script::established();
    s.peer("FP. 101:201(100) ack 1").expect(". 1:1(0) ack 1 <sack 101:201>");
    assert_eq!(s.state(), State::Established);
    s.peer("P. 1:101(100) ack 1").expect(". 1:1(0) ack 202");
    assert_eq!(s.state(), State::CloseWait);
}

#[test]
fn a_fin_beyond_the_window_is_cut_off_with_the_data_before_it() {
    let config = ConnectionConfig { receive_buffer_bytes: 1500, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.peer("F. 1:1601(1600) ack 1").expect(". 1:1(0) ack 1501");
    assert_eq!(s.read(2000), 1500);
    s.expect(". 1:1(0) ack 1501");
    s.peer(". 1501:2501(1000) ack 1").drain();
    assert_eq!((s.read(2000), s.state()), (1000, State::Established));
    s.drain();
}

#[test]
fn nothing_beyond_a_fin_is_accepted() {
    let mut s = Script::established();
    s.peer("F. 101:101(0) ack 1").expect(". 1:1(0) ack 1");
    s.peer("P. 51:151(100) ack 1").drain();
    s.peer("P. 1:51(50) ack 1").expect(". 1:1(0) ack 102");
    assert_eq!(s.read(1000), 100);
    s.peer("P. 102:202(100) ack 1").drain();
    assert_eq!(s.read(1000), 0);
}

#[test]
fn the_end_of_a_connection_without_a_reader_leaves_no_state() {
    let mut s = Script::established();
    s.peer("F. 1:1(0) ack 1").expect(". 1:1(0) ack 2");
    s.close().expect("F. 1:1(0) ack 2");
    s.peer(". 2:2(0) ack 2");
    assert!(s.end.connection.is_over());
}

#[test]
fn closing_with_unread_data_resets() {
    let mut s = Script::established();
    s.peer("P. 1:101(100) ack 1").close().expect("R. 1:1(0) ack 101");
    s.end.events.remove(0);
    s.expect_event(&Event::Closed(CloseReason::Aborted));
    assert!(s.end.connection.is_over());
}

#[test]
fn data_after_the_application_is_gone_resets() {
    let mut s = Script::established();
    s.send(100).close().expect("FP. 1:101(100) ack 1");
    s.at(50).peer(". 1:1(0) ack 102");
    assert_eq!(s.state(), State::FinWait2);
    s.at(60).peer("P. 1:101(100) ack 102").expect("R. 102:102(0) ack 1");
    s.expect_event(&Event::Closed(CloseReason::Aborted));
    assert!(s.end.connection.is_over());
}

#[test]
fn fin_wait_2_is_limited_once_the_application_has_closed_the_connection() {
    let mut s = Script::established();
    s.close().expect("F. 1:1(0) ack 1");
    s.at(50).peer(". 1:1(0) ack 2");
    s.at(60_050).expect_event(&Event::Closed(CloseReason::TimedOut));
    let mut s = Script::established();
    s.finish().expect("F. 1:1(0) ack 1");
    s.at(50).peer(". 1:1(0) ack 2");
    s.at(1_000_000);
    assert_eq!(s.state(), State::FinWait2, "a half-closed connection lasts");
}

#[test]
fn abort_sends_a_reset_where_there_is_a_peer() {
    let mut s = Script::established();
    s.end.call(Instant::ZERO, Connection::abort);
    s.expect("R. 1:1(0) ack 1").expect_event(&Event::Closed(CloseReason::Aborted));
    let mut s = Script::client(plain());
    s.expect("S 0:0(0)");
    s.end.call(Instant::ZERO, Connection::abort);
    s.expect_silence();
    assert!(s.end.connection.is_over());
}

#[test]
fn after_a_reset_with_data_beyond_a_gap_the_data_in_order_can_be_read() {
    let mut s = Script::established();
    s.peer("P. 1:101(100) ack 1").peer("P. 201:301(100) ack 1").drain();
    s.peer("R 101:101(0)");
    assert_eq!(s.read(1000), 100);
    assert_eq!(receive(&mut s), Err(ReceiveError::Ended));
    assert_eq!(s.end.connection.inbound.buffer.len(), 0);
}

#[test]
fn nothing_is_accepted_after_finishing() {
    let mut s = Script::established();
    s.finish().expect("F. 1:1(0) ack 1");
    let refused = s.end.call(Instant::ZERO, |c, cx| c.send(cx, b"x"));
    assert_eq!(refused, Err(crate::SendError::Closing));
    s.finish().expect_silence();
}

/// RFC 1337 §3 (F1), here while received data is still unread.
#[test]
fn a_reset_does_not_end_time_wait() {
    let mut s = Script::established();
    s.finish().expect("F. 1:1(0) ack 1");
    s.peer("FP. 1:101(100) ack 2").expect(". 2:2(0) ack 102");
    s.peer("R 102:102(0)").expect_silence();
    assert_eq!((s.state(), s.read(1000)), (State::TimeWait, 100));
}
