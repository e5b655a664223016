//! Probing a silent peer (RFC 9293 §3.8.4), and memory released in a silence.

use super::script::*;
use super::*;
use crate::config::KeepAlive;
use crate::event::CloseReason;

fn watched() -> Script {
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(100), interval: Duration::from_secs(10), probes: 3 };
    let config = ConnectionConfig { keep_alive: Some(keep_alive), ..plain() };
    Script::established_with(config, SYN)
}

#[test]
fn silence_is_probed_and_ends_the_connection() {
    let mut s = watched();
    for at in [100_000, 110_000, 120_000] {
        s.at(at).expect(". 0:0(0) ack 1");
    }
    s.at(130_000).expect_event(&Event::Closed(CloseReason::TimedOut));
}

#[test]
fn anything_heard_begins_the_silence_anew() {
    let mut s = watched();
    s.at(60_000).peer(". 1:1(0) ack 1");
    s.at(160_000).expect(". 0:0(0) ack 1");
    s.at(160_050).peer(". 1:1(0) ack 1");
    s.at(260_050).expect(". 0:0(0) ack 1");
    assert_eq!(s.end.connection.traffic.keep_alives_sent, 2);
}

#[test]
fn unacceptable_segments_do_not_count_as_a_sign_of_life() {
    let mut s = watched();
    s.at(60_000).peer(". 9000000:9000000(0) ack 1").expect(". 1:1(0) ack 1");
    s.at(100_000).expect(". 0:0(0) ack 1");
}

#[test]
fn a_probe_of_the_peer_is_answered() {
    let mut s = Script::established();
    s.at(100_000).peer(". 0:0(0) ack 1").expect(". 1:1(0) ack 1");
}

#[test]
fn without_the_option_nothing_is_probed() {
    let mut s = Script::established();
    s.at(100_000_000);
    assert_eq!(s.end.connection.next_timeout(), None);
}
