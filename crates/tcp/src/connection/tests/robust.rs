//! Spurious retransmissions detected by DSACK, timestamps and F-RTO, and the threshold that follows
//! reordering (RFC 3708, 3522, 4015, 5682; RR-TCP), in exact virtual time.

use rexmit_recovery::{RecoveryConfig, SpuriousConfig, SpuriousEvents, SpuriousResponse};

use super::script::*;
use super::*;

fn with_recovery(recovery: RecoveryConfig, timestamps: bool) -> Script {
    let config = ConnectionConfig { recovery, timestamps, ..plain() };
    let syn = if timestamps { "S 0:0(0) <mss 1012,sackOK,ts 1:0>" } else { SYN };
    Script::established_with(
        ConnectionConfig { mss: if timestamps { 1012 } else { 1000 }, ..config },
        syn,
    )
}

fn profile(name: &str) -> RecoveryConfig {
    RecoveryConfig::tcp_profile(name).expect("a profile")
}

fn events(s: &Script) -> SpuriousEvents {
    s.end.connection.statistics().recovery.spurious_events
}

/// The segments of 1000 bytes sent now, by number from 0.
fn take(s: &mut Script) -> Vec<u64> {
    let mut segments = Vec::new();
    while let Some(text) = s.poll() {
        let start: u64 =
            text.split([' ', ':']).nth(1).and_then(|n| n.parse().ok()).expect("a number");
        segments.push((start - 1) / 1000);
    }
    segments
}

/// Ten segments are sent at 0 ms; the first is overtaken by `positions` others, each with an ACK, before it arrives.
/// Returns whether it was retransmitted.
fn delay(s: &mut Script, first: u64, positions: u64) -> bool {
    s.send(10_000);
    let mut sent = take(s);
    let left = 1 + first * 1000;
    for position in 1..=positions {
        let (from, to) = (left + 1000, left + 1000 * (position + 1));
        s.peer(&format!(". 1:1(0) ack {left} <sack {from}:{to}>"));
        sent.extend(take(s));
    }
    sent.iter().filter(|&&n| n == first).count() > 1
}

#[test]
fn dsack_detects_a_spurious_fast_retransmit_and_the_threshold_adapts() {
    let mut s = with_recovery(profile("tcp-rr"), false);
    assert!(delay(&mut s, 0, 4));
    let cwnd = s.end.connection.statistics().cwnd;
    s.at(10).peer(". 1:1(0) ack 5001").drain();
    s.at(60).peer(". 1:1(0) ack 10001 <sack 1:1001>");
    let reported = s.end.connection.statistics();
    assert_eq!(
        (events(&s).fast_retransmits, events(&s).by_duplicates, events(&s).undone),
        (1, 1, 1)
    );
    assert!(cwnd < reported.ssthresh, "{cwnd} and {}", reported.ssthresh);
    assert_eq!(reported.reordering.missing_reports, 5);
    assert!(!delay(&mut s, 10, 4));
    s.peer(". 1:1(0) ack 20001");
    assert!(take(&mut s).is_empty());
}

/// RFC 3708 §3 A.4: no part of 2001:3001 was retransmitted.
#[test]
fn a_dsack_of_data_sent_once_shows_a_network_that_duplicates() {
    let mut s = with_recovery(profile("tcp-rr"), false);
    assert!(delay(&mut s, 0, 4));
    s.at(10).peer(". 1:1(0) ack 5001 <sack 2001:3001>").drain();
    s.at(60).peer(". 1:1(0) ack 10001 <sack 1:1001>");
    assert_eq!((events(&s).total(), events(&s).unexplained_duplicates), (0, 1));
}

/// RFC 3522: the echo of 0 ms is older than the retransmission of 1000 ms. RFC 4015 §3.1 step 8: nothing else is
/// retransmitted.
#[test]
fn an_old_echo_detects_a_spurious_timeout_at_once() {
    for (echo, is_told) in [(0, true), (1000, false)] {
        let mut s = with_recovery(profile("tcp-rr"), true);
        s.send(10_000);
        assert_eq!(take(&mut s).len(), 10);
        s.at(1000);
        assert_eq!(take(&mut s), [0]);
        s.at(1050).peer(&format!(". 1:1(0) ack 2001 <ts 2:{echo}>"));
        assert_eq!(events(&s).by_timestamps, u32::from(is_told), "echo of {echo}");
        let again = take(&mut s);
        assert_eq!(again, if is_told { vec![] } else { vec![2, 3] });
        assert_eq!(events(&s).undone, u32::from(is_told));
    }
}

/// RFC 3522 §3.2 step 5: one ACK covers everything, as if all ACKs before it were lost.
#[test]
fn an_old_echo_in_an_ack_of_everything_shows_nothing() {
    let mut s = with_recovery(profile("tcp-rr"), true);
    s.send(3000);
    assert_eq!(take(&mut s).len(), 3);
    s.at(1000);
    assert_eq!(take(&mut s), [0]);
    s.at(1050).peer(". 1:1(0) ack 3001 <ts 2:0>");
    assert_eq!(events(&s).total(), 0);
}

/// RFC 5682 §3.1: two new segments are sent after the first ACK, and then data sent before the timeout is
/// acknowledged.
#[test]
fn f_rto_sends_new_data_and_detects_a_spurious_timeout() {
    let spurious = SpuriousConfig::OFF.f_rto(Some(SpuriousResponse::Undo));
    let recovery = profile("tcp-sack").spurious(spurious);
    let mut s = with_recovery(recovery.clone(), false);
    s.send(20_000);
    assert_eq!(take(&mut s).len(), 10);
    s.at(1000);
    assert_eq!(take(&mut s), [0]);
    s.at(1050).peer(". 1:1(0) ack 1001");
    assert_eq!(take(&mut s), [10, 11]);
    s.at(1060).peer(". 1:1(0) ack 2001");
    assert_eq!((events(&s).by_f_rto, events(&s).undone), (1, 1));
    assert!(take(&mut s).iter().all(|&n| n > 11), "nothing is retransmitted");
    // With nothing new to send it is the usual recovery.
    let mut s = with_recovery(recovery, false);
    s.send(10_000);
    assert_eq!(take(&mut s).len(), 10);
    s.at(1000);
    assert_eq!(take(&mut s), [0]);
    s.at(1050).peer(". 1:1(0) ack 1001");
    assert_eq!(take(&mut s), [1, 2]);
}
