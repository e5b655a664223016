//! Abandoned units (RFC 3758 §3.5).

use rexmit_core::trace::Tracer;

use super::{BASE, FULL, Sender, UnitState, ack_of};

/// RFC 3758 §3.5 A2: "treat the data chunk as being finally acked and no longer outstanding".
#[test]
fn a_unit_abandoned_is_no_longer_in_flight() {
    let mut s = Sender::new();
    s.push(&[400, 400]);
    s.push(&[400]);
    s.abandon(2);
    assert_eq!(
        (s.flight(), s.recovery.outstanding().user_bytes_in_flight()),
        ((2, 800), 2 * (400 - 16))
    );
    s.abandon(2);
    s.abandon(1);
    s.abandon(3);
    assert_eq!(
        (s.flight(), s.recovery.outstanding().user_bytes_in_flight(), s.t3()),
        ((0, 0), 0, None)
    );
    assert!(s.recovery.outstanding().packets().len() == 0);
}

/// RFC 3758 §3.5 A2: no credit for the window, no sample, no sign of progress.
#[test]
fn the_cumulative_point_passes_it_without_credit() {
    let mut s = Sender::bursting();
    s.fill();
    for unit in 1..=4 {
        s.abandon(unit);
    }
    let outcome = s.at(100).ack(4, &[]);
    assert!(outcome.has_advanced);
    assert_eq!((outcome.newly_acked, outcome.paths, s.cwnd()), (0, 0, 4000));
    assert_eq!(s.timer(0).rtt().srtt(), None);
}

/// RFC 9260 §6.3.2 R3 afterwards: the next one is the earliest.
#[test]
fn the_next_unit_becomes_the_earliest() {
    let mut s = Sender::new();
    s.push_full(3);
    s.abandon(1);
    s.at(300).ack(0, &[(3, 3)]);
    assert_eq!(s.t3(), Some(1000));
    s.at(400).push(&[FULL]);
    s.ack(0, &[(2, 3)]);
    assert_eq!(s.t3(), Some(1400));
}

/// Nothing waits to be retransmitted any more, so new units may be sent.
#[test]
fn abandoning_timed_out_units_allows_new_units() {
    let mut s = Sender::new();
    s.push_full(2);
    s.expire();
    s.abandon(1);
    s.abandon(2);
    assert_eq!((s.has_lost(), s.next_lost(0)), (false, None));
    assert!(s.has_room_for_new(0));
    s.push(&[FULL]);
    assert_eq!(s.t3(), Some(1000 + 2000));
}

/// RFC 3758 §3.5 A3: all of a message, also the fragments that arrived.
#[test]
fn an_acknowledged_fragment_is_abandoned_with_its_message() {
    let mut s = Sender::new();
    s.push_full(3);
    s.ack(0, &[(2, 2)]);
    for unit in 1..=3 {
        s.abandon(unit);
    }
    assert_eq!([1, 2, 3].map(|n| s.state(n)), [Some(UnitState::Abandoned); 3]);
    assert_eq!((s.flight(), s.t3()), ((0, 0), None));
}

/// A TSN assigned to the unsent rest of an abandoned message is never sent, and is skipped like the others.
#[test]
fn a_skipped_number_is_never_sent() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    s.recovery.abandon(crate::Abandoned::Unsent(()));
    assert_eq!(s.recovery.outstanding().next_unit(), BASE + 3);
    s.push(&[FULL]);
    assert_eq!((s.state(2), s.flight()), (Some(UnitState::Abandoned), (2, 2000)));
    s.expire();
    assert_eq!((s.resend(), s.recovery.statistics().new_units), (vec![1], 2));
    let mut passed = Vec::new();
    let (ack, tracer) = (ack_of(3, &[]), &mut Tracer::off());
    let taken = s.recovery.on_ack(s.now, ack, tracer, |unit| passed.push(unit.state()));
    assert_eq!(taken.expect("it was sent").newly_acked, 2);
    assert_eq!(passed[1], UnitState::Abandoned);
}

/// An abandoned unit is not reported missing, and does not count as overtaken.
#[test]
fn it_is_never_declared_lost() {
    let mut s = Sender::new();
    s.push_full(5);
    s.ack(0, &[(2, 2)]);
    s.abandon(1);
    for end in 3..=5 {
        assert_eq!(s.ack(0, &[(2, end)]).newly_lost, 0);
    }
}
