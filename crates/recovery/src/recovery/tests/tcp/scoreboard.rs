//! Loss recovery by a scoreboard (RFC 6675).

use rexmit_core::trace::SendCause;

use super::super::{FULL, Sender, UnitState};

const LOST: Option<UnitState> = Some(UnitState::Lost(SendCause::FastRetransmit));

/// RFC 6675 §4 `IsLost`, §5 steps 2 and 4: three units above, in as many or in one SACK.
#[test]
fn three_units_above_a_hole_begin_a_recovery() {
    let mut s = Sender::sack();
    assert_eq!(s.fill(), 10);
    s.ack(0, &[(2, 2)]);
    let outcome = s.ack(0, &[(2, 3)]);
    assert_eq!((outcome.newly_lost, s.cwnd()), (0, 10_000));
    let outcome = s.ack(0, &[(2, 4)]);
    assert_eq!((outcome.newly_lost, s.state(1)), (1, LOST));
    assert!(s.is_in_fast_recovery());
    assert_eq!((s.cwnd(), s.ssthresh()), (5000, 5000), "half of the ten outstanding");

    let mut s = Sender::sack();
    s.fill();
    assert_eq!(s.ack(0, &[(2, 4)]).newly_lost, 1);
}

/// Thin streams: three small units above are enough, as three duplicates are (RFC 6675 §5 step 1).
#[test]
fn small_units_count_like_full_ones() {
    let mut s = Sender::sack();
    for _ in 0..4 {
        s.push(&[20]);
    }
    s.ack(0, &[(2, 3)]);
    assert_eq!(s.ack(0, &[(2, 4)]).newly_lost, 1);
}

/// RFC 6675 §4 (4.3): the first leaves at once; §5 C: the others while cwnd − pipe holds a packet.
#[test]
fn retransmissions_leave_as_the_pipe_drains() {
    let mut s = Sender::sack();
    s.fill();
    // 1, 2 and 3 are missing: pipe = 10 − 3 SACKed − 3 lost = 4, cwnd = 5.
    s.ack(0, &[(4, 6)]);
    assert_eq!(s.flight(), (4, 4000));
    assert_eq!(s.resend_all(), [1], "at once, and pipe is 5 with it");
    s.ack(0, &[(4, 7)]);
    assert_eq!(s.resend_all(), [2]);
    s.ack(0, &[(4, 8)]);
    assert_eq!(s.resend_all(), [3]);
    s.ack(0, &[(4, 9)]);
    assert!(!s.has_lost() && s.has_room_for_new(0), "then new data");
}

/// A hole is declared lost only when three units above it are acknowledged, even if an earlier hole is lost
/// already.
#[test]
fn each_hole_needs_its_own_three_units_above() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 3), (5, 5)]);
    assert_eq!([s.state(1), s.state(4)], [LOST, Some(UnitState::InFlight)]);
    s.ack(0, &[(2, 3), (5, 6)]);
    assert_eq!(s.state(4), Some(UnitState::InFlight));
    s.ack(0, &[(2, 3), (5, 7)]);
    assert_eq!(s.state(4), LOST);
    assert_eq!(s.recovery.statistics().fast_recoveries, 1, "one window, one reduction");
    assert_eq!(s.cwnd(), 5000);
}

/// RFC 6675 §4: a unit retransmitted is not judged again; the timer recovers a second loss.
#[test]
fn a_retransmission_is_not_declared_lost_again() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 4)]);
    assert_eq!(s.resend(), [1]);
    for end in 5..=10 {
        assert_eq!(s.ack(0, &[(2, end)]).newly_lost, 0);
    }
    assert_eq!(s.state(1), Some(UnitState::InFlight));
    assert_eq!(s.expire(), 1000);
    assert_eq!(s.resend(), [1]);
}

/// RFC 6675 §5 A: recovery ends with the highest unit sent before it; what was SACKed above stays.
#[test]
fn recovery_ends_at_its_point_and_growth_begins_after_it() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 8)]);
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.fill(), 2, "pipe is 9, 10 and 1 again; cwnd is 5");
    s.ack(8, &[]);
    assert!(s.is_in_fast_recovery());
    assert_eq!(s.cwnd(), 5000);
    s.ack(10, &[]);
    assert!(!s.is_in_fast_recovery());
    assert_eq!(s.cwnd(), 5000, "the acknowledgement that ends it does not grow the window");
}

/// RFC 6675 §5: data sent after the recovery began is another window: its loss is retransmitted within
/// the recovery, and reduces the window when a new recovery begins.
#[test]
fn losses_of_the_next_window_reduce_it_once_more() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 9)]);
    assert_eq!((s.resend(), s.fill()), (vec![1], 3));
    // 11 is lost of 11 to 13; two more leave in the meantime.
    s.ack(0, &[(2, 10), (12, 13)]);
    assert_eq!(s.fill(), 3);
    s.ack(0, &[(2, 10), (12, 14)]);
    assert_eq!(s.state(11), LOST);
    assert_eq!(s.resend(), [11]);
    assert_eq!(s.recovery.statistics().fast_recoveries, 1);
    s.ack(10, &[(12, 15)]);
    assert_eq!(s.recovery.statistics().fast_recoveries, 2);
    // 11 to 16 are outstanding: half of six.
    assert_eq!((s.cwnd(), s.is_in_fast_recovery()), (3000, true));
}

/// RFC 6675 §5 step 3: SACKed data is no longer in the pipe, so a new unit is sent for each; RFC 5681
/// §3.2 step 2: they are not counted when the window is halved.
#[test]
fn new_units_that_leave_for_the_first_sacks_are_left_out_of_the_reduction() {
    let mut s = Sender::sack();
    assert_eq!(s.fill(), 10);
    s.ack(0, &[(2, 2)]);
    assert_eq!(s.fill(), 1);
    s.ack(0, &[(2, 3)]);
    assert_eq!(s.fill(), 1);
    assert_eq!((s.cwnd(), s.recovery.outstanding().bytes()), (10_000, 12_000));
    s.ack(0, &[(2, 4)]);
    assert_eq!(s.cwnd(), 5000);
}

/// RFC 5681 §3.2 step 2: data sent within the window counts, whatever was SACKed.
#[test]
fn new_units_within_the_window_count_in_the_reduction() {
    let mut s = Sender::sack();
    s.push_full(6);
    s.ack(0, &[(2, 3)]);
    s.push_full(2);
    s.ack(0, &[(2, 4)]);
    assert_eq!(s.cwnd(), 4000);
}

/// Reordering that fills the hole before three units are above it costs nothing.
#[test]
fn a_hole_that_fills_in_time_is_no_loss() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 3)]);
    s.ack(4, &[]);
    for end in 5..=10 {
        assert_eq!(s.ack(end, &[]).newly_lost, 0);
    }
    assert_eq!(s.recovery.statistics().packets_lost, 0);
}

/// A receiver that dropped what it had reported: it is judged again by what is above it now.
#[test]
fn reneged_data_is_declared_lost_anew() {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 7)]);
    assert_eq!(s.resend(), [1]);
    s.ack(1, &[(8, 8)]);
    assert_eq!(s.state(2), Some(UnitState::InFlight), "reneged");
    s.ack(1, &[(8, 9)]);
    assert_eq!(s.ack(1, &[(8, 10)]).newly_lost, 6, "2 to 7");
}

/// RFC 6298 §5.3: an acknowledgement that advances restarts the timer, a retransmission does not.
#[test]
fn the_timer_is_restarted_by_what_advances_alone() {
    let mut s = Sender::sack();
    s.fill();
    s.at(300).ack(0, &[(2, 4)]);
    assert_eq!(s.t3(), Some(1000));
    assert_eq!(s.at(310).resend(), [1]);
    assert_eq!(s.t3(), Some(1000), "RFC 6298 §5.1: it runs");
    s.at(600).ack(4, &[]);
    assert_eq!(s.t3(), Some(1600));
}

/// Bytes and holes: a window of small units below a large hole costs new data.
#[test]
fn units_that_share_a_packet_are_declared_lost_one_by_one() {
    let mut s = Sender::sack();
    s.push(&[FULL / 4; 4]);
    s.push_full(3);
    s.ack(1, &[(3, 3), (5, 6)]);
    assert_eq!([s.state(2), s.state(4)], [LOST, Some(UnitState::InFlight)]);
}
