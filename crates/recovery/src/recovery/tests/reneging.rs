//! A receiver that reneges: it drops data that it had acknowledged (RFC 9260 §6.2.1 D iii, §6.3.2 R4).

use super::{Sender, UnitState};

/// Six units, of which the receiver held 2 to 6; then 1 arrives, and it holds only 4.
fn reneged() -> Sender {
    let mut s = Sender::bursting();
    s.push_full(6);
    s.at(100).ack(0, &[(2, 6)]);
    assert_eq!(s.flight(), (1, 1000));
    s.at(200).ack(1, &[(4, 4)]);
    s
}

/// R4: the dropped units are outstanding again, and the timer runs.
#[test]
fn dropped_data_is_outstanding_again() {
    let s = reneged();
    assert_eq!(
        [2, 3, 4, 5, 6].map(|n| s.state(n).expect("it is outstanding")),
        [
            UnitState::InFlight,
            UnitState::InFlight,
            UnitState::Acknowledged,
            UnitState::InFlight,
            UnitState::InFlight,
        ]
    );
    assert_eq!(
        (s.flight().1, s.recovery.outstanding().user_bytes_in_flight()),
        (4000, 4 * (1000 - 16))
    );
    assert_eq!(s.t3(), Some(1200));
}

#[test]
fn the_protocol_learns_of_reneging() {
    let mut s = Sender::bursting();
    s.push_full(6);
    assert!(!s.ack(0, &[(2, 6)]).has_reneged);
    assert!(s.ack(1, &[(4, 4)]).has_reneged);
    assert!(!s.ack(1, &[(4, 5)]).has_reneged);
}

/// D iii: the SACK that shows it counts as one missing report.
#[test]
fn the_sack_that_shows_it_is_the_first_missing_report() {
    let mut s = reneged();
    s.push_full(3); // 7, 8, 9
    assert_eq!(s.ack(1, &[(4, 4), (7, 7)]).newly_lost, 0);
    assert_eq!(s.ack(1, &[(4, 4), (7, 8)]).newly_lost, 4);
    assert_eq!((s.resend(), s.flight().1), (vec![2], 2000));
}

/// D iii: one report, though the same SACK acknowledges something new behind it.
#[test]
fn a_sack_that_shows_it_and_acknowledges_more_is_one_report_too() {
    let mut s = Sender::bursting();
    s.push_full(8);
    s.ack(0, &[(2, 4)]);
    assert_eq!(s.ack(1, &[(6, 6)]).newly_lost, 0);
    assert_eq!(s.ack(1, &[(6, 7)]).newly_lost, 0, "the second report");
    assert_eq!(s.ack(1, &[(6, 8)]).newly_lost, 4, "the third, of 2 to 5");
}

#[test]
fn dropped_data_times_out() {
    let mut s = reneged();
    assert_eq!(s.expire(), 1200);
    assert_eq!((s.resend(), s.flight()), (vec![2], (1, 1000)));
    s.at(1300).ack(6, &[]);
    assert_eq!(
        (s.flight(), s.recovery.outstanding().user_bytes_in_flight(), s.t3()),
        ((0, 0), 0, None)
    );
}

/// A reordered, older SACK has fewer blocks, which is no reneging.
#[test]
fn an_overtaken_sack_is_not_mistaken_for_it() {
    let mut s = Sender::bursting();
    s.push_full(6);
    s.ack(0, &[(2, 6)]);
    s.ack(0, &[(2, 4)]);
    assert_eq!(s.state(6), Some(UnitState::Acknowledged));
    assert_eq!(s.flight(), (1, 1000));
}

/// A unit abandoned after it was acknowledged does not come back.
#[test]
fn abandoned_data_stays_abandoned() {
    let mut s = Sender::bursting();
    s.push_full(4);
    s.ack(0, &[(2, 4)]);
    s.abandon(3);
    s.ack(1, &[]);
    assert_eq!(s.state(3), Some(UnitState::Abandoned));
    assert_eq!(s.flight().1, 2000, "2 and 4");
    s.ack(4, &[]);
    assert_eq!(s.flight(), (0, 0));
    assert_eq!(s.t3(), None);
}
