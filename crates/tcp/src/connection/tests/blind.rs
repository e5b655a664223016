//! Segments of a blind attacker (RFC 5961), and segments out of the window.

use super::script::*;
use super::*;
use crate::event::CloseReason;

#[test]
fn only_a_rst_at_the_very_next_number_resets() {
    let mut s = Script::established();
    s.peer("P. 1:101(100) ack 1");
    s.peer("R 102:102(0)").expect(". 1:1(0) ack 101");
    s.peer("R 100:100(0)").expect_silence();
    s.peer("R 2000000:2000000(0)").expect_silence();
    assert_eq!(s.state(), State::Established);
    s.end.events.clear();
    s.peer("R 101:101(0)").expect_event(&Event::Closed(CloseReason::Reset));
    assert_eq!(s.state(), State::Closed);
    // Data received before can still be read; then the connection is removed.
    assert!(!s.end.connection.is_over());
    assert_eq!(s.read(1000), 100);
    assert!(s.end.connection.is_over());
}

#[test]
fn a_syn_in_the_window_is_challenged_and_one_outside_is_acknowledged() {
    let mut s = Script::established();
    s.peer("S 1:1(0)").expect(". 1:1(0) ack 1");
    s.peer("S. 500:500(0) ack 1").expect(". 1:1(0) ack 1");
    assert_eq!(s.end.connection.traffic.challenged, 2);
    s.peer("S 2000000:2000000(0)").expect(". 1:1(0) ack 1");
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.end.connection.traffic.challenged, 2);
    // SYNs outside the window are answered no more often than other segments without data.
    s.peer("S 2000000:2000000(0)").expect_silence();
    s.at(100).peer("S 0:0(0)").expect(". 1:1(0) ack 1");
}

#[test]
fn impossible_acknowledgements_are_challenged_and_their_data_is_not_accepted() {
    let mut s = Script::established();
    s.send(1000).expect("P. 1:1001(1000) ack 1");
    s.peer(". 1:1(0) ack 1001 win 5000");
    // Never sent; and more than the largest window (60000) before SND.UNA.
    s.peer("P. 1:101(100) ack 1002").expect(". 1001:1001(0) ack 1");
    let long_ago = 1001u32.wrapping_sub(60_001);
    s.peer(&format!("P. 1:101(100) ack {long_ago}")).expect(". 1001:1001(0) ack 1");
    assert_eq!(s.read(1000), 0);
    // An old one is tolerated, and its data accepted.
    let old = 1001u32.wrapping_sub(60_000);
    s.peer(&format!("P. 1:101(100) ack {old}"));
    assert_eq!(s.read(1000), 100);
    s.at(40).expect(". 1001:1001(0) ack 101");
}

#[test]
fn an_old_ack_within_the_window_of_the_syn_ack_is_accepted() {
    let mut s = Script::client(plain());
    s.expect("S 0:0(0)");
    s.peer("S. 0:0(0) ack 1 <mss 1000>").expect(". 1:1(0) ack 1");
    let old = 1u32.wrapping_sub(60_000);
    s.peer(&format!("P. 1:101(100) ack {old}"));
    assert_eq!(s.read(1000), 100);
    s.at(40).expect(". 1:1(0) ack 101");
}

#[test]
fn challenges_are_limited_over_all_connections() {
    let mut s = Script::established();
    s.end.around.challenges = ChallengeLimit::new(1);
    let mut answers = 0;
    for _ in 0..100 {
        s.peer("S 1:1(0)");
        answers += usize::from(s.end.connection.owed.ack);
        s.drain();
    }
    assert_eq!(answers, 1);
    assert_eq!(s.end.around.statistics.challenge_acks_suppressed, 99);
}

/// Otherwise an attacker with one connection could silence all others.
#[test]
fn one_connection_uses_no_more_than_its_share_of_the_challenges() {
    let mut s = Script::established();
    s.end.around.challenges = ChallengeLimit::new(1000);
    let mut answers = 0;
    for _ in 0..1000 {
        s.peer("S 1:1(0)");
        answers += usize::from(s.end.connection.owed.ack);
        s.drain();
    }
    assert!((5..=15).contains(&answers), "{answers}");
    let (now, around) = (s.now(), &mut s.end.around);
    assert!((0..400).all(|_| around.challenges.grant(now, &mut around.rng)));
    // In the next second there are others.
    s.at(1000).peer("S 1:1(0)").expect(". 1:1(0) ack 1");
}

#[test]
fn without_ack_nothing_is_accepted() {
    let mut s = Script::established();
    s.peer("P 1:101(100)").expect_silence();
    assert_eq!(s.read(1000), 0);
}

#[test]
fn data_beyond_the_window_are_cut_and_before_it_are_known() {
    let config = ConnectionConfig { receive_buffer_bytes: 1500, ..plain() };
    let mut s = Script::established_with(config, SYN);
    s.shows_window = true;
    s.peer(". 1:1001(1000) ack 1").peer(". 1001:2001(1000) ack 1");
    s.expect(". 1:1(0) ack 1501 win 0");
    // A segment with data received before, and new data for which there is no room.
    s.peer(". 501:1601(1100) ack 1").expect(". 1:1(0) ack 1501 win 0 <sack 501:1501>");
    assert_eq!(s.read(2000), 1500);
    s.expect(". 1:1(0) ack 1501 win 1500");
}

#[test]
fn two_ends_that_disagree_do_not_acknowledge_each_other_endlessly() {
    let mut s = Script::established();
    s.peer(". 0:0(0) ack 1").expect(". 1:1(0) ack 1");
    s.peer(". 0:0(0) ack 1").expect_silence();
    s.at(99).peer(". 0:0(0) ack 1").expect_silence();
    s.at(100).peer(". 0:0(0) ack 1").expect(". 1:1(0) ack 1");
}

#[test]
fn urgent_data_are_ordinary_data() {
    let mut s = Script::established();
    s.peer("PU. 1:101(100) ack 1");
    assert_eq!(s.read(1000), 100);
    s.at(40).expect(". 1:1(0) ack 101");
}
