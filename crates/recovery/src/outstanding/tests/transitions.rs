//! The changes and the result of each transition.

use super::*;

#[test]
fn a_unit_that_is_sent_is_in_flight_on_its_path() {
    let mut o = on_paths(2);
    assert_eq!(o.send(AT(5), alone(1), new_unit(100, 0), 7), (FIRST, true));
    assert_eq!(o.send(AT(5), bundled(1), new_unit(60, 0), 8), (FIRST + 1, false));
    assert_eq!(o.send(AT(6), alone(0), new_unit(40, 0), 9), (FIRST + 2, true));
    assert_eq!(
        [0, 1].map(|path| o.flight(path)),
        [Flight { packets: 1, bytes: 40 }, Flight { packets: 1, bytes: 160 },]
    );
    assert_eq!((o.bytes(), o.user_bytes_in_flight()), (200, 200 - 3 * 16));
    assert_eq!([0, 1].map(|path| o.on(path).earliest), [FIRST + 2, FIRST]);
    assert_eq!([0, 1].map(|path| o.on(path).outstanding), [1, 2]);
    let unit = o.unit(FIRST + 1).expect("it was sent");
    assert_eq!((unit.payload, unit.bytes, unit.path, unit.transmissions()), (8, 60, 1, 1));
    assert_eq!((unit.state(), unit.last().packet), (UnitState::InFlight, PacketNumber(0)));
    assert_eq!(o.packets().sent_at(PacketNumber(1)), Some(AT(6)));
    assert_eq!(o.in_flight_in(PacketNumber(0))[..], [FIRST, FIRST + 1]);
    o.check_invariants();
}

#[test]
fn a_skipped_number_is_abandoned_and_costs_nothing() {
    let mut o = on_paths(1);
    o.send_over(0, 1);
    assert_eq!(o.skip(0), FIRST + 1);
    assert_eq!((o.state(FIRST + 1), o.next_unit()), (UnitState::Abandoned, FIRST + 2));
    assert_eq!((o.bytes(), o.flight(0).packets, o.on(0).outstanding), (100, 1, 1));
    o.check_invariants();
}

#[test]
fn an_acknowledgement_says_what_it_ends() {
    let mut o = on_paths(1);
    o.send(AT(5), alone(0), new_unit(100, 0), 0);
    o.send(AT(5), bundled(0), new_unit(100, 0), 0);
    let acked = o.acknowledge(FIRST).expect("it is outstanding");
    assert_eq!((acked.packet, acked.was_earliest, acked.was_in_flight), (None, true, true));
    assert_eq!((acked.sent_at, acked.is_first_transmission), (Some(AT(5)), true));
    assert_eq!(o.flight(0), Flight { packets: 1, bytes: 100 });
    let acked = o.acknowledge(FIRST + 1).expect("it is outstanding");
    assert_eq!((acked.packet, acked.was_earliest), (Some(PacketNumber(0)), false));
    assert_eq!((o.flight(0), o.on(0).outstanding), (Flight::default(), 0));
    assert!(o.acknowledge(FIRST).is_none(), "it is acknowledged");
    assert_eq!(o.bytes(), 200, "until the cumulative point passes them");
    o.deliver_through(FIRST + 1);
    assert_eq!((o.bytes(), o.is_empty(), o.cumulative()), (0, true, FIRST + 1));
}

#[test]
fn a_loss_takes_a_unit_out_of_the_flight_and_has_it_wait() {
    let mut o = on_paths(2);
    o.send_over(1, 2);
    let lost = o.lose(FIRST, SendCause::Timeout).expect("it is in flight");
    assert_eq!((lost.path, lost.sent_over, lost.packet), (1, 1, Some(PacketNumber(0))));
    assert!(lost.is_first_transmission && !lost.is_copied);
    assert_eq!(o.state(FIRST), UnitState::Lost(SendCause::Timeout));
    assert_eq!(o.fate(0), Some(Fate::Lost(SendCause::Timeout)));
    assert_eq!((o.flight(1).bytes, o.user_bytes_in_flight()), (100, 84));
    assert_eq!((o.user_bytes_to_arrive(), o.on(1).user_bytes), (168, 168));
    assert_eq!(
        (o.on(0).has_lost(), o.on(1).has_lost(), o.on(1).is_awaiting()),
        (false, true, true)
    );
    assert_eq!((o.on(1).first_lost(), o.lost_anywhere(FIRST + 1)), (Some(FIRST), None));
    assert_eq!((o.on(1).outstanding, o.on(1).earliest), (2, FIRST), "it is outstanding");
    o.check_invariants();
}

#[test]
fn a_unit_that_waits_moves_and_is_sent_where_it_waits() {
    let mut o = on_paths(2);
    o.send_over(0, 2);
    o.lose(FIRST, SendCause::Timeout);
    let moved = o.move_to(FIRST, 1).expect("it waited for the first");
    assert_eq!((moved.from, moved.to, moved.was_idle), (0, 1, true));
    assert!(o.move_to(FIRST, 1).is_none(), "it is there");
    assert_eq!([0, 1].map(|path| o.on(path).first_lost()), [None, Some(FIRST)]);
    assert_eq!(
        [0, 1].map(|path| o.on(path).is_awaiting()),
        [true, false],
        "it was sent over the first"
    );
    assert_eq!([0, 1].map(|path| o.on(path).earliest), [FIRST + 1, FIRST]);
    o.check_invariants();
    let sent =
        o.retransmit(AT(9), alone(1), FIRST, SendCause::Timeout, false).expect("it is outstanding");
    assert_eq!((sent.before.path, sent.before.packet), (0, PacketNumber(0)));
    assert!(!sent.was_in_flight && !sent.is_earliest && sent.moved.is_none());
    assert_eq!([0, 1].map(|path| o.on(path).user_bytes), [84, 84]);
    assert_eq!([0, 1].map(|path| o.flight(path).packets), [1, 1]);
    let unit = o.unit(FIRST).expect("it is outstanding");
    assert!(!unit.is_first_transmission() && unit.is_on_several_paths);
    assert!(!unit.is_fast_retransmitted, "the timer may repeat it each time");
    o.check_invariants();
}

#[test]
fn data_that_is_sent_over_another_path_than_it_waits_for_moves() {
    let mut o = on_paths(2);
    o.send_over(0, 1);
    o.lose(FIRST, SendCause::FastRetransmit);
    let sent = o
        .retransmit(AT(9), alone(1), FIRST, SendCause::FastRetransmit, false)
        .expect("it is outstanding");
    let moved = sent.moved.expect("it waited for the first");
    assert_eq!((moved.from, moved.to, moved.was_idle), (0, 1, true));
    assert_eq!([0, 1].map(|path| o.on(path).outstanding), [0, 1]);
    assert!(o.unit(FIRST).expect("outstanding").is_fast_retransmitted);
    o.check_invariants();
}

#[test]
fn a_copy_in_a_packet_of_its_own_supersedes_the_packet_before() {
    let mut o = on_paths(1);
    o.send_over(0, 1);
    let sent = o
        .retransmit(AT(9), alone(0), FIRST, SendCause::Redundant, true)
        .expect("it is outstanding");
    assert!(sent.was_in_flight && sent.is_earliest);
    assert_eq!((o.fate(0), o.fate(1)), (Some(Fate::Superseded), Some(Fate::InFlight)));
    assert_eq!(o.flight(0), Flight { packets: 1, bytes: 100 });
    let unit = o.unit(FIRST).expect("outstanding");
    assert_eq!((unit.transmissions(), unit.transmissions), (1, 2), "a copy does not count");
    o.acknowledge(FIRST);
    assert!(
        o.retransmit(AT(9), alone(0), FIRST, SendCause::Redundant, true).is_none(),
        "it has arrived"
    );
    o.check_invariants();
}

#[test]
fn a_loss_taken_back_is_in_flight_where_it_was_sent() {
    let mut o = on_paths(2);
    o.send_over(0, 2);
    o.lose(FIRST, SendCause::Timeout);
    o.move_to(FIRST, 1);
    let moved = o.return_lost(FIRST).expect("it waited for the second");
    assert_eq!((moved.from, moved.to, moved.was_idle), (1, 0, false));
    assert_eq!(
        (o.state(FIRST), o.has_lost(), o.on(0).is_awaiting()),
        (UnitState::InFlight, false, false)
    );
    assert_eq!((o.flight(0).bytes, o.user_bytes_in_flight()), (200, 168));
    assert_eq!((o.on(0).earliest, o.on(1).outstanding), (FIRST, 0));
    o.check_invariants();
}

#[test]
fn data_that_the_receiver_drops_is_in_flight_again_and_abandoned_data_is_not() {
    let mut o = on_paths(1);
    o.send_over(0, 4);
    let mut new = Runs::new();
    o.add_acknowledged(FIRST + 1, FIRST + 3, &mut new);
    assert_eq!(new[..], [(FIRST + 1, FIRST + 3)]);
    (FIRST + 1..=FIRST + 3).for_each(|unit| _ = o.acknowledge(unit));
    assert_eq!(o.acknowledged_above(FIRST + 1), 2);
    assert_eq!(o.check_reneging([].into_iter()), [], "the first has not arrived: nothing shows it");
    assert!(o.abandon(FIRST + 2).is_none(), "it was not outstanding");
    o.deliver_through(FIRST);
    let dropped = o.check_reneging([(FIRST + 3, FIRST + 3)].into_iter());
    assert_eq!(dropped, [FIRST + 1, FIRST + 2]);
    let states = [1, 2, 3].map(|n| o.state(FIRST + n));
    assert_eq!(states, [UnitState::InFlight, UnitState::Abandoned, UnitState::Acknowledged]);
    assert_eq!((o.flight(0).bytes, o.on(0).outstanding, o.on(0).earliest), (100, 1, FIRST + 1));
    o.check_invariants();
}

#[test]
fn abandoned_data_is_outstanding_no_more() {
    let mut o = on_paths(1);
    o.send_over(0, 3);
    o.lose(FIRST + 1, SendCause::Timeout);
    let abandoned = o.abandon(FIRST + 1).expect("it was outstanding");
    assert_eq!((abandoned.path, abandoned.sent_over, abandoned.was_lost), (0, 0, true));
    let abandoned = o.abandon(FIRST).expect("it was outstanding");
    assert!(!abandoned.was_lost);
    assert_eq!((o.has_lost(), o.on(0).outstanding, o.on(0).earliest), (false, 1, FIRST + 2));
    assert_eq!((o.on(0).user_bytes, o.user_bytes_to_arrive()), (84, 84));
    assert!(o.abandon(FIRST).is_none() && o.acknowledge(FIRST).is_none());
    o.check_invariants();
    o.deliver_through(FIRST + 2);
    assert!(o.is_empty());
}

/// A regression: a packet ended with its highest unit, and none was left while bytes of a lower unit were in
/// flight.
#[test]
fn a_packet_does_not_end_while_a_lower_unit_of_it_is_in_flight() {
    let mut o = on_paths(1);
    o.send(AT(0), alone(0), new_unit(608, 0), 0);
    o.send(AT(0), bundled(0), new_unit(100, 0), 0);
    assert_eq!(o.acknowledge(FIRST + 1).expect("outstanding").packet, None);
    assert_eq!(o.flight(0), Flight { packets: 1, bytes: 608 });
    assert_eq!((o.on(0).outstanding, o.state(FIRST)), (1, UnitState::InFlight));
    o.forget_ended();
    let lost = o.lose(FIRST, SendCause::Timeout).expect("it can still be lost");
    assert_eq!((lost.packet, lost.sent_at), (Some(PacketNumber(0)), Some(AT(0))));
    assert_eq!(o.flight(0), Flight::default());
    o.check_invariants();
}

#[test]
fn the_earliest_is_found_upwards() {
    let mut o = on_paths(2);
    o.send_over(0, 2);
    o.send_over(1, 1);
    o.send_over(0, 1);
    o.acknowledge(FIRST);
    o.abandon(FIRST + 1);
    o.advance_earliest(0);
    assert_eq!([0, 1].map(|path| o.on(path).earliest), [FIRST + 3, FIRST + 2]);
    o.acknowledge(FIRST + 3);
    o.advance_earliest(0);
    assert_eq!(o.on(0).earliest, o.next_unit(), "none");
}

#[test]
fn a_probe_of_a_window_ends_once() {
    let mut o = on_paths(1);
    o.send(AT(0), alone(0), NewUnit { is_probe: true, ..new_unit(17, 0) }, 0);
    assert!(o.unit(FIRST).expect("outstanding").is_probe);
    assert!(o.end_probe(FIRST));
    assert!(!o.unit(FIRST).expect("outstanding").is_probe);
    o.acknowledge(FIRST);
    assert!(!o.end_probe(FIRST) && !o.end_probe(FIRST + 9));
}

#[test]
fn the_end_gives_back_everything_once() {
    let mut o = on_paths(2);
    o.send_over(0, 3);
    o.send_over(1, 1);
    o.lose(FIRST, SendCause::Timeout);
    let mut given = Vec::new();
    o.drain(|unit| given.push(unit.payload));
    assert_eq!(given, [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]);
    assert_eq!((o.bytes(), o.user_bytes_to_arrive(), o.has_lost()), (0, 0, false));
    assert_eq!((o.next_unit(), o.cumulative()), (FIRST + 4, FIRST + 3));
    assert!([0, 1].iter().all(|&path| o.flight(path) == Flight::default()));
    o.check_invariants();
    o.send_over(1, 1);
    assert_eq!((o.flight(1).packets, o.on(1).earliest), (1, FIRST + 4));
}

/// The check detects a wrong sum.
#[test]
#[should_panic(expected = "bytes in flight")]
fn a_sum_that_is_wrong_is_found() {
    let mut o = on_paths(1);
    o.send_over(0, 1);
    o.units[0].bytes += 1;
    o.check_invariants();
}
