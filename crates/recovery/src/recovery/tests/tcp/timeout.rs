//! The retransmission timer of TCP (RFC 6298 §5, RFC 5681 §3.1, RFC 6675 §5.1), and the setup.

use rexmit_core::trace::{SendCause, Tracer};

use super::super::{FULL, Sender, TimeoutKind, UnitState};
use crate::SetupEvent;

/// RFC 5681 §3.1: one packet, half of what was outstanding, and slow start from there.
#[test]
fn expiry_leaves_one_packet_and_slow_start_fills_the_holes() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(4, 4), (8, 8)]);
    assert_eq!(s.expire(), 1000);
    assert_eq!((s.cwnd(), s.ssthresh(), s.rto_ms()), (1000, 5000, 2000));
    assert_eq!(s.state(4), Some(UnitState::Acknowledged), "RFC 6675 §5.1: kept");
    assert_eq!(s.resend_all(), [1]);
    s.at(1100).ack(1, &[(4, 4), (8, 8)]);
    assert_eq!((s.cwnd(), s.resend_all()), (2000, vec![2, 3]));
    s.at(1200).ack(4, &[(8, 8)]);
    assert_eq!((s.cwnd(), s.resend_all()), (3000, vec![5, 6, 7]));
}

/// RFC 5681 §3.1: a unit that times out again holds ssthresh; another one does not.
#[test]
fn a_unit_that_times_out_again_does_not_lower_the_threshold() {
    let mut s = Sender::sack();
    s.fill();
    s.expire();
    s.resend();
    s.push_full(4); // More is outstanding by the time it expires again.
    s.expire();
    assert_eq!((s.ssthresh(), s.rto_ms()), (5000, 4000));
    s.resend();
    s.at(4000).ack(6, &[]);
    s.resend();
    s.expire();
    assert_eq!(s.ssthresh(), 4000, "half of 7 to 14");
}

/// RFC 6675 §5.1: no recovery before what was sent before the timeout is acknowledged; what was
/// reported meanwhile counts then.
#[test]
fn no_recovery_begins_until_the_timeout_is_repaired() {
    let mut s = Sender::sack();
    s.fill();
    s.expire();
    s.resend();
    s.at(1100).ack(1, &[]);
    s.resend_all();
    assert_eq!(s.ack(1, &[(3, 6)]).newly_lost, 0);
    assert!(!s.is_in_fast_recovery());
    s.push_full(5); // 11 to 15
    assert_eq!(s.at(1200).ack(9, &[(12, 14)]).newly_lost, 0);
    s.resend_all();
    let outcome = s.at(1300).ack(10, &[(12, 15)]);
    assert_eq!(outcome.newly_lost, 1);
    assert_eq!(s.state(11), Some(UnitState::Lost(SendCause::FastRetransmit)));
    assert!(s.is_in_fast_recovery());
}

/// RFC 6298 §5.4, §5.6: the retransmission starts the timer, with the timeout doubled.
#[test]
fn the_retransmission_starts_the_timer_with_the_doubled_timeout() {
    let mut s = Sender::sack();
    s.push_full(1);
    s.expire();
    s.at(1300).resend();
    assert_eq!(s.t3(), Some(3300));
}

/// RFC 9293 §3.8.6.1: a probe of a closed window backs off by itself, and is no sign of congestion.
#[test]
fn a_window_probe_touches_neither_window_nor_recovery() {
    let mut s = Sender::sack();
    s.push(&[17]);
    s.expire_as(TimeoutKind::WindowProbe);
    assert_eq!((s.cwnd(), s.rto_ms()), (10_000, 2000));
    s.resend();
    s.at(1100).ack(1, &[]);
    s.fill();
    s.ack(1, &[(3, 5)]);
    assert!(s.is_in_fast_recovery(), "it is no timeout to be repaired");
}

/// RFC 5681 §4.1: after more than an RTO without sending.
#[test]
fn a_connection_that_rested_begins_with_the_restart_window() {
    for (idle_ms, cwnd) in [(1000, 14_000), (1001, 10_000)] {
        let mut s = Sender::sack();
        s.fill();
        for unit in 1..=4 {
            s.ack(unit, &[]);
        }
        s.ack(10, &[]);
        assert_eq!(s.cwnd(), 15_000);
        s.recovery.state.paths[0].window.on_fast_retransmit(28_000);
        s.at(idle_ms).push(&[FULL]);
        assert_eq!(s.cwnd(), cwnd, "after {idle_ms} ms");
    }
}

/// RFC 5681 §3.1, RFC 6298 §5.7: what a lost SYN does to the first window and timeout.
#[test]
fn a_repeated_setup_leaves_one_packet_and_three_seconds() {
    let mut s = Sender::sack();
    s.recovery.on_t3_event(s.now, 0, crate::T3Event::Unanswered);
    assert_eq!(s.rto_ms(), 2000);
    let done = |s: &mut Sender, packet, was_repeated| {
        let event = SetupEvent::Done { packet, was_repeated, answered_after: None };
        s.recovery.on_setup(s.now, 0, event, &mut Tracer::off());
    };
    done(&mut s, 500, true);
    assert_eq!((s.cwnd(), s.rto_ms()), (500, 3000));
    done(&mut s, 1460, false);
    assert_eq!(s.cwnd(), 14_600);
}
