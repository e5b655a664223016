//! Missing reports by HTNA (RFC 9260 §7.2.4).

use rexmit_core::trace::SendCause;

use super::{FULL, Sender, UnitState};

impl Sender {
    /// The number of units that each of these ACKs declares lost.
    fn losses(&mut self, acks: &[(u64, &[(u64, u64)])]) -> Vec<u64> {
        acks.iter().map(|&(cumulative, blocks)| self.ack(cumulative, blocks).newly_lost).collect()
    }
}

/// RFC 9260 §7.2.4: three reports, in three SACKs.
#[test]
fn the_third_report_makes_a_loss() {
    let mut s = Sender::new();
    s.push_full(5);
    assert_eq!(s.losses(&[(1, &[(3, 3)]), (1, &[(3, 4)]), (1, &[(3, 5)])]), [0, 0, 1]);
    assert_eq!(s.state(2), Some(UnitState::Lost(SendCause::FastRetransmit)));
    assert_eq!(s.resend(), [2]);
}

/// RFC 9260 §7.2.4, HTNA: a SACK that acknowledges nothing new reports nothing.
#[test]
fn a_sack_that_repeats_what_is_known_reports_nothing() {
    let mut s = Sender::new();
    s.push_full(3);
    let again: [(u64, &[(u64, u64)]); 6] = [(0, &[(2, 2)]); 6];
    assert_eq!(s.losses(&again), [0; 6]);
}

/// RFC 9260 §7.2.4, HTNA: only units below the highest TSN *newly* acknowledged are reported.
#[test]
fn units_above_the_highest_newly_acknowledged_one_are_not_reported() {
    let mut s = Sender::new();
    s.push_full(9);
    // 1 and 6 are missing. The first SACK reports both, the others fill from below and report 1.
    let losses = s.losses(&[
        (0, &[(7, 7)]),
        (0, &[(2, 2), (7, 7)]),
        (0, &[(2, 3), (7, 7)]),
        (0, &[(2, 4), (7, 7)]),
    ]);
    assert_eq!(losses, [0, 0, 3 - 2, 0], "1 after three; 3, 4, 5 and 6 have fewer");
    assert_eq!(s.state(1), Some(UnitState::Lost(SendCause::FastRetransmit)));
    assert_eq!(s.state(6), Some(UnitState::InFlight));
}

/// RFC 9260 §7.2.4: in fast recovery, a SACK that moves the cumulative point reports everything
/// that it shows missing, also above the highest newly acknowledged unit.
#[test]
fn in_fast_recovery_an_advancing_sack_reports_every_unit_it_shows_missing() {
    let mut s = Sender::bursting();
    s.push_full(10);
    // 1 and 8 are missing; the third report of 1 begins fast recovery; 8 has one report.
    assert_eq!(s.losses(&[(0, &[(2, 2)]), (0, &[(2, 3)]), (0, &[(2, 7), (9, 9)])]), [0, 0, 1]);
    assert!(s.is_in_fast_recovery());
    s.resend();
    // The retransmission arrives: highest newly acknowledged is 1, and still 8 is reported.
    assert_eq!(s.ack(7, &[(9, 9)]).newly_lost, 0);
    assert_eq!(s.ack(7, &[(9, 10)]).newly_lost, 1, "the third report of 8");
}

/// The same SACKs without the advance: the rule of HTNA alone.
#[test]
fn in_fast_recovery_a_sack_that_does_not_advance_reports_by_htna() {
    let mut s = Sender::bursting();
    s.push_full(12);
    assert_eq!(s.losses(&[(0, &[(2, 2)]), (0, &[(2, 3)]), (0, &[(2, 4), (9, 9)])]), [0, 0, 1]);
    s.resend();
    assert_eq!(s.ack(0, &[(2, 5), (9, 9)]).newly_lost, 0, "6, 7, 8 are above 5");
    assert_eq!(s.losses(&[(0, &[(2, 5), (9, 10)]), (0, &[(2, 5), (9, 11)])]), [0, 3]);
}

/// RFC 9260 §7.2.4 rule 5: once per chunk; the timer has to find a second loss.
#[test]
fn a_unit_is_fast_retransmitted_once() {
    let mut s = Sender::bursting();
    s.push_full(10);
    assert_eq!(s.losses(&[(0, &[(2, 2)]), (0, &[(2, 3)]), (0, &[(2, 4)])]), [0, 0, 1]);
    assert_eq!(s.resend(), [1]);
    let more = [(0, &[(2u64, 5u64)][..]), (0, &[(2, 6)]), (0, &[(2, 7)]), (0, &[(2, 8)])];
    assert_eq!(s.losses(&more), [0; 4]);
    assert_eq!(s.state(1), Some(UnitState::InFlight));
    s.expire();
    assert_eq!(s.resend(), [1]);
}

/// RFC 9260 §7.2.4 rule 5: also those that did not fit into the packet.
#[test]
fn units_that_did_not_fit_the_fast_retransmit_are_not_fast_retransmitted_again_either() {
    let mut s = Sender::bursting();
    s.push_full(9);
    assert_eq!(s.losses(&[(0, &[(3, 3)]), (0, &[(3, 4)]), (0, &[(3, 5)])]), [0, 0, 2]);
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.losses(&[(0, &[(3, 6)]), (0, &[(3, 7)])]), [0, 0]);
    assert_eq!(s.resend(), [2], "when the window allows");
    assert_eq!(s.losses(&[(0, &[(3, 8)]), (0, &[(3, 9)])]), [0, 0]);
}

/// A unit that timed out is watched again when it is repeated.
#[test]
fn a_unit_repeated_by_the_timer_may_be_fast_retransmitted() {
    let mut s = Sender::bursting();
    s.push_full(6);
    s.ack(0, &[(2, 2)]);
    s.expire();
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.losses(&[(0, &[(2, 3)]), (0, &[(2, 4)]), (0, &[(2, 5)])]), [0, 0, 1]);
}

/// Thin streams retransmit at the first report (Petlund 2009 §5.1); the threshold is configurable.
#[test]
fn the_threshold_is_configured() {
    let mut s = Sender::with(|config| config.missing_reports = 1);
    s.push_full(2);
    assert_eq!(s.ack(0, &[(2, 2)]).newly_lost, 1);
}

/// Blocks that no receiver can mean change nothing: RFC 9260 §3.3.4.
#[test]
fn forged_blocks_say_nothing() {
    let mut s = Sender::new();
    s.push_full(4);
    for blocks in [[(0, 0)], [(3, 2)], [(4, 5)], [(5, 65_535)], [(60_000, 65_535)]] {
        let outcome = s.ack(0, &blocks);
        assert_eq!((outcome.newly_acked, outcome.newly_lost), (0, 0), "{blocks:?}");
    }
    assert_eq!(s.flight(), (4, u64::from(4 * FULL)));
    let overlapping = s.ack(1, &[(3, 4), (3, 3), (4, 4), (1, 3), (2, 2)]);
    assert_eq!(overlapping.newly_acked, 4);
    assert_eq!(s.flight(), (0, 0));
}

/// RFC 9260 §6.2.1 D i.
#[test]
fn an_acknowledgement_below_the_cumulative_point_is_stale() {
    let mut s = Sender::new();
    s.push_full(4);
    s.ack(2, &[]);
    let outcome = s.ack(1, &[(4, 4)]);
    assert!(outcome.is_stale);
    assert_eq!((outcome.newly_acked, s.state(4)), (0, Some(UnitState::InFlight)));
}
