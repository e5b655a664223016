//! Early Fast Retransmit of FreeBSD (Petlund 2009 §2). SRTT is 100 ms and RTTVAR 50 ms.

use std::time::Duration;

use rexmit_core::trace::SendCause;

use super::*;
use crate::{LossDetection, Reordering, RtoConfig, UnitState};

fn efr(config: &mut RecoveryConfig) {
    let reordering = Reordering::Fixed;
    config.loss_detection = LossDetection::MissingReports { reordering, early_retransmit: true };
}

impl Sender {
    /// Moves to where the next timer expires, which must be an early one.
    fn expire_early(&mut self) -> u64 {
        let ms = self.t3().expect("a timer runs");
        self.at(ms);
        assert_eq!(self.due_path(), None, "it is no timeout");
        self.timers();
        ms
    }
}

#[test]
fn data_that_could_have_been_acknowledged_is_retransmitted_without_slow_start() {
    let mut s = Sender::measured(efr);
    s.at(200).push(&[SMALL]);
    s.at(220).push(&[SMALL]);
    s.at(260).push(&[SMALL]);
    // New data starts the timer anew.
    assert_eq!(s.expire_early(), 510);
    assert_eq!(s.state(2), Some(UnitState::Lost(SendCause::Early)));
    assert_eq!(s.resend(), [2, 3, 4]);
    assert_eq!((s.cwnd(), s.ssthresh()), (3000, 2999), "a packet less, and no slow start");
    assert_eq!(s.rto_ms(), 1000, "no backoff");
    let statistics = s.recovery.statistics();
    assert_eq!((statistics.retransmitted.early, statistics.timeouts), (3, 0));
}

/// A lost retransmission is retransmitted again until T3-rtx expires, which early retransmissions do not restart.
#[test]
fn a_retransmission_is_repeated_as_its_original_was() {
    let mut s = Sender::measured(efr);
    s.at(200).push(&[SMALL]);
    s.at(220).push(&[SMALL]);
    assert_eq!(s.expire_early(), 470);
    assert_eq!(s.resend(), [2, 3]);
    // A SACK starts the timer anew.
    s.at(600).ack(1, &[(3, 3)]);
    assert_eq!(s.expire_early(), 850);
    assert_eq!(s.resend(), [2]);
    assert_eq!(s.expire_early(), 1100);
    assert_eq!(s.resend(), [2]);
    assert_eq!(s.cwnd(), 1000);
    assert_eq!(s.recovery.statistics().retransmitted.early, 4);
    assert_eq!(s.t3(), Some(1200), "a second after the first transmission");
    s.at(1200);
    assert_eq!(s.due_path(), Some(0));
}

#[test]
fn what_was_sent_less_than_the_wait_ago_is_not_retransmitted() {
    let mut s = Sender::measured(efr);
    s.at(200).push(&[SMALL]);
    assert_eq!(s.expire_early(), 450);
    assert_eq!(s.resend(), [2]);
    s.at(500).push(&[SMALL]);
    // SRTT grows by the next sample: the wait is longer than the timer that runs.
    s.heartbeat(0, Duration::from_millis(500));
    assert_eq!(s.expire_early(), 750);
    assert_eq!(s.resend(), []);
    s.at(800).ack(3, &[]);
    assert_eq!(s.t3(), None);
}

/// Newest first, until data in flight and what is retransmitted exceed cwnd of 4000.
#[test]
fn the_window_bounds_what_is_retransmitted_at_once() {
    let mut s = Sender::measured(efr);
    s.at(200);
    (0..3).for_each(|_| s.push(&[FULL]));
    assert_eq!(s.expire_early(), 450);
    assert_eq!(s.state(2), Some(UnitState::InFlight));
    assert_eq!(s.resend_all(), [3, 4]);
    assert_eq!(s.cwnd(), 3000);
    assert_eq!(s.t3(), Some(1200), "the window is used up");
}

#[test]
fn a_window_that_is_used_up_has_no_early_timer() {
    let mut s = Sender::measured(efr);
    s.at(200);
    (0..4).for_each(|_| s.push(&[FULL]));
    assert_eq!(s.t3(), Some(1200));
    let mut s = Sender::measured(|_| ());
    s.at(200).push(&[SMALL]);
    assert_eq!(s.t3(), Some(1200), "it is off");
}

#[test]
fn a_path_without_measurement_waits_for_a_quarter_of_the_initial_timeout() {
    let mut s = Sender::with(|config| {
        efr(config);
        config.rto = RtoConfig::OF_2006;
    });
    s.push(&[SMALL]);
    assert_eq!(s.expire_early(), 750);
    assert_eq!(s.resend(), [1]);
}
