//! Opening (RFC 9293 §3.5, §3.10.7.3; RFC 6298 §5.7).

use super::script::*;
use super::*;
use crate::event::CloseReason;

fn connected(incoming: bool) -> Event {
    let id = identity(1, 2);
    Event::Connected { incoming, local: id.local, remote: id.remote }
}

#[test]
fn a_syn_is_repeated_with_back_off_until_its_limit() {
    let mut s = Script::client(ConnectionConfig { max_syn_retransmits: 3, ..plain() });
    s.expect("S 0:0(0)");
    s.at(1000).expect("S 0:0(0)");
    s.at(3000).expect("S 0:0(0)");
    s.at(7000).expect("S 0:0(0)");
    s.at(14_999);
    assert!(s.end.events.is_empty());
    s.at(15_000).expect_event(&Event::Closed(CloseReason::ConnectTimedOut));
    assert!(s.end.connection.is_over());
}

#[test]
fn a_syn_ack_is_repeated_by_the_timer_and_for_a_repeated_syn_and_dies_silently() {
    let mut s = Script::server(ConnectionConfig { max_syn_retransmits: 2, ..plain() }, SYN);
    s.expect("S. 0:0(0) ack 1");
    s.at(500).peer(SYN).expect("S. 0:0(0) ack 1");
    s.at(1000).expect("S. 0:0(0) ack 1");
    s.at(3000).expect("S. 0:0(0) ack 1");
    assert!(s.end.connection.is_half_open());
    s.at(7000);
    assert!(s.end.connection.is_over());
    assert!(s.end.events.is_empty());
}

#[test]
fn a_retransmitted_syn_ack_gives_no_sample_without_timestamps() {
    let srtt = |config: ConnectionConfig, syn: &str, ack: &str| {
        let mut s = Script::server(config, syn);
        s.drain();
        s.at(500).peer(syn).drain();
        s.at(600).peer(ack);
        s.end.connection.statistics().srtt
    };
    assert_eq!(srtt(plain(), SYN, ". 1:1(0) ack 1"), None);
    let stamped = ConnectionConfig { timestamps: true, ..plain() };
    let by_echo = srtt(stamped, "S 0:0(0) <mss 1000,ts 1:0>", ". 1:1(0) ack 1 <ts 2:500>");
    assert_eq!(by_echo, Some(Duration::from_millis(100)));
}

#[test]
fn after_a_lost_syn_the_timeout_is_three_seconds_and_the_window_one_segment() {
    let mut s = Script::client(plain());
    s.send(5000);
    s.expect("S 0:0(0)");
    s.at(1000).expect("S 0:0(0)");
    s.at(1100).peer("S. 0:0(0) ack 1 <mss 1000,sackOK>");
    s.expect_event(&connected(false));
    s.expect(". 1:1001(1000) ack 1");
    s.at(4100).expect(". 1:1001(1000) ack 1");
}

#[test]
fn data_accepted_before_it_is_connected_follows_the_handshake_and_so_does_the_fin() {
    let mut s = Script::client(plain());
    s.send(300).finish();
    s.expect("S 0:0(0)");
    s.at(50).peer("S. 0:0(0) ack 1 <mss 1000>").expect("FP. 1:301(300) ack 1");
    assert_eq!(s.state(), State::FinWait1);
}

#[test]
fn data_and_fin_on_a_syn_wait_until_the_connection_is_established() {
    let mut s = Script::server(plain(), "SF 0:100(100) <mss 1000>");
    s.expect("S. 0:0(0) ack 101");
    assert_eq!(s.read(1000), 0);
    assert!(s.end.events.is_empty());
    s.peer(". 102:102(0) ack 1");
    s.expect_event(&connected(true)).expect_event(&Event::Readable);
    assert_eq!(s.read(1000), 100);
    assert_eq!(s.state(), State::CloseWait);
    s.expect(". 1:1(0) ack 102");
}

#[test]
fn in_syn_sent_only_a_reset_that_acknowledges_the_syn_refuses() {
    let mut s = Script::client(plain());
    s.expect("S 0:0(0)");
    s.peer(". 0:0(0) ack 500").expect("R 500:500(0)");
    s.peer("S. 0:0(0) ack 0 <mss 1000>").expect("R 0:0(0)");
    s.peer("R. 0:0(0) ack 500").expect_silence();
    s.peer("R 0:0(0)").expect_silence();
    assert_eq!(s.state(), State::SynSent);
    s.peer("R. 0:0(0) ack 1").expect_event(&Event::Closed(CloseReason::Refused));
    assert!(s.end.connection.is_over());
}

#[test]
fn simultaneous_open_by_syn_acks_that_cross() {
    let mut s = Script::client(plain());
    s.expect("S 0:0(0)");
    s.at(20).peer(SYN).expect("S. 0:0(0) ack 1");
    assert_eq!(s.state(), State::SynReceived);
    assert!(!s.end.connection.is_half_open());
    s.at(40).peer("S. 0:0(0) ack 1 <mss 1000,sackOK>").expect(". 1:1(0) ack 1");
    s.expect_event(&connected(false));
    assert_eq!(s.state(), State::Established);
}

#[test]
fn simultaneous_open_by_a_bare_acknowledgement() {
    let mut s = Script::client(plain());
    s.expect("S 0:0(0)");
    s.peer(SYN).expect("S. 0:0(0) ack 1");
    s.peer(". 1:1(0) ack 1");
    assert_eq!(s.state(), State::Established);
}

#[test]
fn in_syn_received_a_wrong_acknowledgement_is_reset_and_changes_nothing() {
    let mut s = Script::server(plain(), SYN);
    s.expect("S. 0:0(0) ack 1");
    s.peer(". 1:1(0) ack 2").expect("R 2:2(0)");
    s.peer(". 1:1(0) ack 0").expect("R 0:0(0)");
    assert_eq!(s.state(), State::SynReceived);
    s.peer(". 1:1(0) ack 1").expect_event(&connected(true));
}

#[test]
fn a_half_open_connection_vanishes_silently_with_a_reset_or_another_syn() {
    for last in ["R 1:1(0)", "S 5:5(0)"] {
        let mut s = Script::server(plain(), SYN);
        s.expect("S. 0:0(0) ack 1");
        s.peer(last);
        assert!(s.end.connection.is_over() && s.end.events.is_empty());
    }
}

#[test]
fn a_simultaneous_open_that_is_reset_was_refused() {
    let mut s = Script::client(plain());
    s.expect("S 0:0(0)");
    s.peer(SYN).expect("S. 0:0(0) ack 1");
    s.peer("R 1:1(0)").expect_event(&Event::Closed(CloseReason::Refused));
}

#[test]
fn the_mss_of_the_peer_less_options_bounds_segments_and_its_absence_means_536() {
    let lens = |syn: &str, config: ConnectionConfig| {
        let mut s = Script::established_with(config, syn);
        s.send(3000);
        let text = s.end_next();
        s.drain();
        text.split(['(', ')']).nth(1).unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(lens("S 0:0(0) <mss 700>", plain()), 700);
    assert_eq!(lens("S 0:0(0) <mss 1400>", plain()), 1000);
    assert_eq!(lens("S 0:0(0)", plain()), 536);
    let stamped = ConnectionConfig { timestamps: true, ..plain() };
    assert_eq!(lens("S 0:0(0) <mss 700,ts 1:0>", stamped), 688);
}

#[test]
fn a_shift_above_14_counts_as_14_and_the_window_of_a_syn_is_not_scaled() {
    let config = ConnectionConfig { window_scaling: true, ..plain() };
    let s = Script::server(config.clone(), "S 0:0(0) win 100 <mss 1000,wscale 15>");
    assert_eq!(s.end.connection.out.shift, 14);
    assert_eq!(s.end.connection.statistics().send_window, 101);
    drop(s.silent());
    let s = Script::established_with(config, "S 0:0(0) win 100 <mss 1000,wscale 3>");
    assert_eq!(s.end.connection.statistics().send_window, 60_000 << 3);
}
