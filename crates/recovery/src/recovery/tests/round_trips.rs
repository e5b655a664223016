//! Which ACKs give an RTT sample (RFC 9260 §6.3.1 C4, C5).

use std::time::Duration;

use rexmit_core::trace::Tracer;

use super::{FULL, Sender, unbounded};
use crate::{RttEstimator, RttSample, RttSource};

impl Sender {
    /// The newest sample, in milliseconds.
    fn latest(&self) -> Option<u128> {
        match self.timer(0).rtt() {
            RttEstimator::Unmeasured => None,
            RttEstimator::Measured { latest, .. } => Some(latest.as_millis()),
        }
    }
}

/// RFC 9260 §6.3.1 C4: a unit sent before the last sample makes no sample.
#[test]
fn measures_once_per_round_trip() {
    let mut s = Sender::new();
    for ms in [0, 10, 20] {
        s.at(ms).push(&[FULL]);
    }
    s.at(100).ack(1, &[]);
    assert_eq!(s.latest(), Some(100));
    s.at(105).push(&[FULL]);
    s.at(140).ack(2, &[]);
    s.at(160).ack(3, &[]);
    assert_eq!(s.latest(), Some(100), "units 2 and 3 left before the sample");
    s.at(200).ack(4, &[]);
    assert_eq!(s.latest(), Some(95));
}

/// RFC 9260 §6.3.1 C4: of the units that a SACK acknowledges, the newest has waited for the SACK the least.
#[test]
fn measures_by_the_newest_unit_that_is_acknowledged() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    s.at(150).push(&[FULL]);
    s.at(200).ack(2, &[]);
    assert_eq!(s.latest(), Some(50));
}

#[test]
fn measures_by_a_gap_block_too() {
    let mut s = Sender::new();
    s.push_full(2);
    s.at(70).ack(0, &[(2, 2)]);
    assert_eq!(s.latest(), Some(70));
}

/// RFC 9260 §6.3.1 C5 (Karn): a repeated unit is ambiguous; the backoff stays until a new one is
/// answered.
#[test]
fn a_repeated_unit_makes_no_sample_and_the_backoff_stays_until_one() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    s.expire();
    s.resend();
    s.at(1100).ack(1, &[]);
    assert_eq!((s.latest(), s.rto_ms()), (None, 2000));
    s.at(1200).push(&[FULL]);
    assert_eq!(s.t3(), Some(3200), "R1 takes the backed-off RTO");
    s.at(1300).ack(2, &[]);
    assert_eq!((s.latest(), s.rto_ms()), (Some(100), 1000));
}

/// Petlund 2009 §8: without Karn's algorithm, the ACK of the first transmission makes a sample of the second.
#[test]
fn without_karn_a_repeated_unit_makes_a_sample_and_ends_the_backoff() {
    let mut s = Sender::with(|config| config.rto.sample = RttSample::WithoutKarn);
    s.push(&[FULL]);
    s.expire();
    s.resend();
    s.at(1100).ack(1, &[]);
    assert_eq!((s.latest(), s.rto_ms()), (Some(100), 1000));
}

/// RFC 9260 §6.3.1 C5, second part: after a retransmission, units sent before it give no sample.
#[test]
fn a_unit_sent_before_a_retransmission_makes_no_sample_and_one_sent_after_does() {
    let mut s = Sender::new();
    s.push_full(5);
    for (ms, end) in [(100, 2), (110, 3), (120, 4)] {
        s.at(ms).ack(0, &[(2, end)]);
    }
    assert_eq!(s.latest(), Some(100));
    s.at(125).push(&[FULL]); // 6
    assert_eq!(s.at(130).resend(), [1]);
    s.at(140).push(&[FULL]); // 7
    s.at(300).ack(6, &[]);
    assert_eq!(s.latest(), Some(100), "1 is repeated, 6 is older than the retransmission");
    s.at(360).ack(7, &[]);
    assert_eq!(s.latest(), Some(220));
}

/// RFC 9260 §6.3.1 C2, C3: from samples to RTO, in exact numbers.
#[test]
fn the_rto_follows_the_samples() {
    let mut s = Sender::with(unbounded);
    let mut ms = 0;
    for (unit, rtt, rto) in [(1, 80, 240), (2, 160, 290), (3, 90, 240)] {
        s.at(ms).push(&[FULL]);
        ms += rtt;
        s.at(ms).ack(unit, &[]);
        // SRTT, RTTVAR: 80, 40; 90, 50; 90, 37.5.
        assert_eq!(s.rto_ms(), rto, "after {rtt} ms");
    }
}

/// RFC 9260 §6.3.3, §8.3: a HEARTBEAT is answered unambiguously and ends the backoff.
#[test]
fn a_sample_by_other_means_ends_the_backoff() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    s.expire();
    assert_eq!(s.rto_ms(), 2000);
    let rtt = Duration::from_millis(300);
    s.recovery.on_rtt_sample(s.now, 0, rtt, RttSource::Heartbeat, &mut Tracer::off());
    assert_eq!((s.rto_ms(), s.timer(0).backoffs()), (1000, 0));
}
