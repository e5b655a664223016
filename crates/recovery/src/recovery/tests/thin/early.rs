//! Early Fast Retransmit of FreeBSD (Petlund 2009 §2). SRTT is 100 ms and RTTVAR 50 ms.

use rexmit_core::trace::SendCause;

use super::*;
use crate::{LossDetection, Reordering, UnitState};

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
    assert_eq!(s.expire_early(), 450);
    assert_eq!(s.state(2), Some(UnitState::Lost(SendCause::Early)));
    assert_eq!(s.resend(), [2]);
    assert_eq!((s.cwnd(), s.ssthresh()), (3000, 2999), "a packet less, and no slow start");
    assert_eq!(s.expire_early(), 470);
    assert_eq!(s.resend(), [3]);
    assert_eq!(s.rto_ms(), 1000, "no backoff");
    let statistics = s.recovery.statistics();
    assert_eq!((statistics.retransmitted.early, statistics.timeouts), (2, 0));
    // 4 is acknowledged in time; the early retransmissions wait for T3-rtx, which it restarted at 450 ms.
    s.at(480).ack(1, &[(4, 4)]);
    assert_eq!(s.t3(), Some(1450));
}

#[test]
fn an_acknowledged_packet_is_not_waited_for() {
    let mut s = Sender::measured(efr);
    s.at(200).push(&[SMALL]);
    s.at(240).push(&[SMALL]);
    s.at(300).ack(2, &[]);
    assert_eq!(s.rto_ms(), 1000);
    // SRTT + 2 RTTVAR is 175 ms, below the least wait.
    assert_eq!(s.expire_early(), 240 + 250);
}

#[test]
fn a_window_that_is_used_up_or_a_path_without_measurement_has_no_early_timer() {
    let mut s = Sender::measured(efr);
    s.at(200);
    (0..4).for_each(|_| s.push(&[FULL]));
    assert_eq!(s.t3(), Some(1200));
    let mut s = Sender::with(efr);
    s.push(&[SMALL]);
    assert_eq!(s.t3(), Some(1000));
    let mut s = Sender::measured(|_| ());
    s.at(200).push(&[SMALL]);
    assert_eq!(s.t3(), Some(1200), "it is off");
}
