//! M1 and M2: the retransmission timer.

use super::*;

fn m1(config: &mut RecoveryConfig) {
    config.thin.rto_min = Some(Duration::from_millis(200));
}

fn m2(config: &mut RecoveryConfig) {
    config.thin.restart_by_age = true;
}

/// Petlund 2009 §5.2: SRTT + 4 · RTTVAR is 300 ms, RTO.Min 1000 ms.
#[test]
fn m1_lowers_the_timeout_and_only_while_thin() {
    for (change, expiry) in [((|_| ()) as fn(&mut RecoveryConfig), 1200), (m1, 500)] {
        let mut s = Sender::measured(change);
        s.at(200).push(&[SMALL]);
        assert_eq!(s.t3(), Some(expiry));
        assert_eq!(s.expire(), expiry);
        assert_eq!(s.resend(), [2]);
        // Doubled, from the lower bound or the higher.
        assert_eq!(s.t3(), Some(expiry + 2 * (expiry - 200)));
    }
    let mut s = Sender::measured(m1);
    s.at(200);
    (0..5).for_each(|_| s.push(&[SMALL]));
    assert_eq!(s.t3(), Some(1200), "five packets are thick");
}

/// The lower bound is one: 200 ms after many round trips of 20 ms.
#[test]
fn m1_bounds_the_timeout_by_200_ms() {
    let mut s = Sender::with(m1);
    for unit in 1..40 {
        s.at(100 * unit).push(&[SMALL]);
        s.at(100 * unit + 20).ack(unit, &[]);
    }
    s.at(5000).push(&[SMALL]);
    assert_eq!(s.t3(), Some(5200));
}

/// Before the first measurement the timeout is RTO.Initial.
#[test]
fn m1_leaves_rto_initial_alone() {
    let mut s = Sender::with(m1);
    s.push(&[SMALL]);
    assert_eq!(s.expire(), 1000);
}

/// A timer that was started while thick expires by M1 once the stream is thin, and vice versa: the state of
/// the stream when the timer is checked counts.
#[test]
fn m1_follows_the_stream_while_the_timer_runs() {
    let mut s = Sender::measured(m1);
    s.at(200);
    (0..5).for_each(|_| s.push(&[SMALL]));
    s.at(290).ack(1, &[(3, 6)]);
    assert_eq!(s.t3(), Some(500), "one is left");
    for _ in 0..4 {
        s.push(&[SMALL]);
    }
    assert_eq!(s.t3(), Some(1200), "five are in flight");
}

/// Petlund 2009 §5.2, RFC 7765 §4: RTO less the age of the oldest in flight.
#[test]
fn m2_counts_the_age_of_the_oldest_and_only_while_thin() {
    for (change, expiry) in [((|_| ()) as fn(&mut RecoveryConfig), 1300), (m2, 1250)] {
        let mut s = Sender::measured(change);
        s.at(200).push(&[SMALL]);
        s.at(250).push(&[SMALL]);
        s.at(300).ack(2, &[]);
        assert_eq!(s.expire(), expiry);
        assert_eq!(s.resend(), [3]);
    }
    let mut s = Sender::measured(m2);
    s.at(200).push(&[SMALL]);
    s.at(250);
    (0..5).for_each(|_| s.push(&[SMALL]));
    s.at(300).ack(2, &[]);
    assert_eq!(s.t3(), Some(1300), "five packets are thick");
    s.at(310).ack(2, &[(7, 7)]);
    assert_eq!(s.t3(), Some(1250), "four are thin");
}

/// A retransmission is younger than packets sent before it that are in flight.
#[test]
fn m2_counts_from_the_oldest_also_when_the_earliest_unit_is_retransmitted() {
    let restarted = |change: fn(&mut RecoveryConfig)| {
        let mut s = Sender::measured(|config| {
            change(config);
            config.thin.first_indication = true;
        });
        s.at(200).push(&[SMALL]);
        s.at(210).push(&[SMALL]);
        s.at(250).push(&[SMALL]);
        s.at(320).ack(1, &[(3, 3)]);
        assert_eq!(s.resend(), [2]);
        s.t3()
    };
    assert_eq!(restarted(|_| ()), Some(1320));
    assert_eq!(restarted(m2), Some(1250), "4 left at 250 ms");
}
