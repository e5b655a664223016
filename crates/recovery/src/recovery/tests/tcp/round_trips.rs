//! Samples of the round-trip time, and what an acknowledgement says of them (RFC 6298 §3,
//! RFC 7323 §4); reports of duplicates (RFC 2883).

use std::time::Duration;

use rexmit_core::trace::Tracer;

use super::super::{FULL, Sender};
use crate::RttSource;

/// Karn: what was sent twice makes no sample, and the protocol may give one of its timestamps.
#[test]
fn an_acknowledgement_shows_whether_it_was_a_sample() {
    let mut s = Sender::sack();
    s.push_full(2);
    let outcome = s.at(100).ack(1, &[]);
    assert!(outcome.has_sampled && !outcome.has_acked_retransmitted);
    s.expire();
    s.resend();
    let outcome = s.at(2000).ack(2, &[]);
    assert!(!outcome.has_sampled && outcome.has_acked_retransmitted);
    assert_eq!(s.timer(0).backoffs(), 1);
    let rtt = Duration::from_millis(100);
    s.recovery.on_rtt_sample(s.now, 0, rtt, RttSource::Timestamp, &mut Tracer::off());
    assert_eq!((s.timer(0).backoffs(), s.rto_ms()), (0, 1000));
}

#[test]
fn an_acknowledgement_within_the_round_trip_of_the_last_sample_is_none() {
    let mut s = Sender::sack();
    s.push_full(2);
    assert!(s.at(100).ack(1, &[]).has_sampled);
    let outcome = s.at(110).ack(2, &[]);
    assert!(!outcome.has_sampled && !outcome.has_acked_retransmitted);
}

/// RFC 6298 §2.3: SRTT + max(G, 4 · RTTVAR); Linux bounds the second part by 200 ms.
#[test]
fn the_variation_has_a_floor() {
    let mut s = Sender::tcp("tcp-cubic");
    let config = s.recovery.state.config.clone();
    for _ in 0..1000 {
        s.recovery.state.paths[0].timer.on_sample(Duration::from_millis(300), &config.rto);
    }
    assert_eq!(s.rto_ms(), 500);
}

/// RFC 2883 §4: a duplicate is reported below the cumulative point, too.
#[test]
fn a_duplicate_below_the_cumulative_point_is_a_spurious_retransmission() {
    let mut s = Sender::sack();
    s.push(&[FULL]);
    s.expire();
    s.resend();
    s.at(1010).ack(1, &[]);
    s.report(1);
    s.report(1);
    assert_eq!(s.recovery.statistics().spurious.timeout, 1);
}
