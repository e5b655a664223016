//! The last resorts of a recovery by scoreboard (RFC 6675 §4, `NextSeg` rules 3 and 4).

use super::super::{Permission, Sender};

/// Ten units of which 1 is lost and 2, 3, 5 are SACKed: 4 is a hole that is not judged.
fn with_an_uncertain_hole() -> Sender {
    let mut s = Sender::sack();
    s.fill();
    s.ack(0, &[(2, 3), (5, 5)]);
    assert_eq!(Permission::of(&s.recovery).rescue_unit(0), None, "1 comes first");
    assert_eq!(s.resend(), [1]);
    s
}

/// Rule 3: holes below the highest SACKed unit, each once, while the window has room.
#[test]
fn a_hole_that_is_not_declared_lost_may_leave_when_nothing_else_can() {
    let mut s = with_an_uncertain_hole();
    // pipe: 4, 6 to 10 and 1; cwnd is 5.
    assert_eq!((s.flight().1, s.rescue()), (7000, None));
    s.ack(0, &[(2, 3), (5, 5), (9, 9)]);
    assert_eq!(s.rescue(), None);
    s.ack(0, &[(2, 3), (5, 5), (9, 10)]);
    assert_eq!((s.flight().1, s.rescue()), (4000, None), "4 is declared lost by now");
    assert_eq!(s.resend(), [4]);
    s.ack(1, &[(3, 3), (5, 5), (9, 10)]);
}

/// Rule 3, then rule 4 once the cumulative point has moved, and each once.
#[test]
fn holes_come_first_then_the_highest_unit_once() {
    let mut s = Sender::sack();
    s.push_full(8);
    // 1 and 5 are missing, 8 was lost at the tail; 6 and 7 do not make 5 lost.
    s.ack(0, &[(2, 4), (6, 7)]);
    assert_eq!(s.rescue(), None, "1 comes first");
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.flight().1, 3000, "5, 8 and 1; cwnd is 4");
    assert_eq!(s.rescue(), Some(5));
    assert_eq!(s.rescue(), None, "nothing but 1 and 5 was retransmitted, and nothing came back");
    s.ack(4, &[(6, 7)]);
    assert_eq!(s.rescue(), Some(8));
    assert_eq!(s.rescue(), None, "once per recovery");
    let retransmitted = s.recovery.statistics().retransmitted;
    assert_eq!((retransmitted.fast_retransmit, retransmitted.total()), (3, 3));
    assert_eq!(s.flight().1, 2000, "one copy each of 5 and 8");
    s.ack(8, &[]);
    assert!(s.recovery.outstanding().is_empty());
}

/// RFC 6675 §5 (4.3): `RescueRxt` is the first retransmission, so a rescue waits for its answer.
#[test]
fn no_rescue_before_the_first_retransmission_is_acked() {
    let mut s = Sender::sack();
    s.push_full(6);
    s.ack(0, &[(2, 4)]);
    assert_eq!(s.resend(), [1]);
    s.ack(0, &[(2, 5)]);
    assert_eq!(s.rescue(), None);
    s.ack(5, &[]);
    assert_eq!(s.rescue(), Some(6));
}

#[test]
fn there_is_no_rescue_out_of_recovery_or_without_a_scoreboard() {
    let mut s = Sender::sack();
    s.push_full(3);
    s.ack(0, &[(2, 2)]);
    assert_eq!(s.rescue(), None);
    // A peer without SACK, whatever the profile would do with it.
    for mut s in [Sender::newreno(), Sender::sack()] {
        s.push_full(8);
        s.duplicates(3);
        s.resend();
        s.ack(5, &[]);
        s.resend();
        assert!(s.is_in_fast_recovery() && Permission::of(&s.recovery).may_pass_window(0));
        assert_eq!(s.rescue(), None);
    }
}
