//! Transmissions after the first that are remembered, and what duplicate reports and ambiguous
//! acknowledgements show by them.

use std::time::Duration;

use super::*;

const EPISODE: fn(u32) -> Option<EpisodeId> = |number| Some(EpisodeId { path: 0, number });

fn with_units(count: usize) -> Outstanding<u64> {
    let mut o = on_paths(2);
    o.send_over(0, count);
    o
}

impl Outstanding<u64> {
    fn repeat(&mut self, unit: u64, packet: u64, cause: SendCause, episode: Option<EpisodeId>) {
        let forgotten = self.remember_repeat(AT(1), unit, PacketNumber(packet), cause, episode);
        assert_eq!(forgotten, None, "nothing is forgotten");
    }

    fn report(&mut self, unit: u64) -> Option<(u64, SendCause)> {
        self.on_duplicate_report(unit).map(|told| (told.packet.0, told.cause))
    }

    fn round_trip(&mut self, unit: u64) -> Option<(u8, Duration)> {
        self.repeats_mut(unit)?.take_rtt_sample(false)
    }
}

fn standing_copies(o: &Outstanding<u64>, unit: u64) -> (u8, Option<Instant>) {
    o.unit(unit).and_then(Unit::repeats).map_or((0, None), Repeats::standing_copies)
}

#[test]
fn each_report_explains_the_oldest_transmission_once() {
    let mut o = with_units(2);
    o.repeat(FIRST, 1, SendCause::FastRetransmit, EPISODE(1));
    o.repeat(FIRST, 9, SendCause::Timeout, EPISODE(2));
    o.repeat(FIRST + 1, 2, SendCause::Timeout, EPISODE(2));
    assert_eq!(o.report(FIRST), Some((1, SendCause::FastRetransmit)));
    assert_eq!(o.report(FIRST), Some((9, SendCause::Timeout)));
    assert_eq!(o.report(FIRST), None);
    o.check_invariants();
}

#[test]
fn copies_sent_on_purpose_explain_as_many_reports() {
    let mut o = with_units(1);
    o.repeat(FIRST, 1, SendCause::Timeout, EPISODE(1));
    o.remember_bundled_copy(AT(1), FIRST, PacketNumber(2));
    o.repeat(FIRST, 3, SendCause::Bundled, None);
    let causes = [(); 4].map(|()| o.report(FIRST).map(|(_, cause)| cause));
    let want = [SendCause::Redundant, SendCause::Bundled, SendCause::Timeout].map(Some);
    assert_eq!(causes, [want[0], want[1], want[2], None]);
}

#[test]
fn a_new_episode_takes_what_is_passed_from_older_ones_of_its_path() {
    let mut o = with_units(4);
    let of_other = Some(EpisodeId { path: 1, number: 9 });
    for (n, episode) in [(0, EPISODE(1)), (1, of_other), (2, EPISODE(2)), (3, EPISODE(2))] {
        o.repeat(FIRST + n, n, SendCause::Timeout, episode);
    }
    o.deliver_through(FIRST + 2);
    o.history().forget_episodes(0);
    let episodes = [0, 1, 2, 3].map(|n| o.on_duplicate_report(FIRST + n).expect("known").episode);
    assert_eq!(episodes, [None, of_other, None, EPISODE(2)], "all still count as spurious");
    o.check_invariants();
}

/// The bound holds for delivered and undelivered units.
#[test]
fn memory_is_bounded_and_what_is_dropped_is_known_to_be() {
    for is_delivered in [false, true] {
        let mut o = on_paths(1);
        let last = FIRST + 3 * LOG_CAPACITY as u64 - 1;
        let mut forgotten = Vec::new();
        for unit in FIRST..=last {
            o.send(AT(0), alone(0), new_unit(100, 0), unit);
            let number = u32::try_from(unit).expect("few");
            let (packet, cause) = (PacketNumber(unit), SendCause::Timeout);
            forgotten.extend(o.remember_repeat(AT(1), unit, packet, cause, EPISODE(number)));
            if is_delivered {
                o.acknowledge(unit);
                o.deliver_first();
            }
        }
        o.check_invariants();
        assert_eq!(o.history.remembered, LOG_CAPACITY);
        let oldest = last - LOG_CAPACITY as u64;
        assert_eq!(forgotten.len() as u64, oldest + 1 - FIRST);
        assert!(forgotten.iter().map(|it| u64::from(it.number)).eq(FIRST..=oldest), "in order");
        assert!(!o.history().remembers(oldest) && o.history().remembers(oldest + 1));
        assert!(o.on_duplicate_report(oldest).is_none());
        assert!(o.on_duplicate_report(last).is_some());
    }
}

#[test]
fn the_first_copy_counts() {
    let mut o = with_units(1);
    for packet in [2, 3] {
        o.remember_bundled_copy(AT(packet), FIRST, PacketNumber(packet));
    }
    assert_eq!(standing_copies(&o, FIRST), (2, Some(AT(3))));
    assert!(o.acknowledge(FIRST).expect("outstanding").is_copied);
    let (copy, is_reported) =
        o.repeats_mut(FIRST).and_then(Repeats::take_first_copy).expect("it was copied");
    assert_eq!((copy.bundled, copy.alone_at, is_reported), (Some(PacketNumber(2)), None, false));
    assert!(
        o.repeats_mut(FIRST).and_then(Repeats::take_first_copy).is_none(),
        "it is not known any more"
    );
}

#[test]
fn a_report_before_the_acknowledgement_is_known_with_the_first_copy() {
    let mut o = with_units(1);
    o.remember_bundled_copy(AT(2), FIRST, PacketNumber(2));
    assert_eq!(o.report(FIRST), Some((2, SendCause::Redundant)));
    assert!(o.repeats_mut(FIRST).and_then(Repeats::take_first_copy).expect("it was copied").1);
}

/// Bundled copies count as retransmissions of a unit until it is retransmitted in a packet of its own, or
/// they have expired.
#[test]
fn copies_stand_for_a_unit_until_it_is_retransmitted() {
    let mut o = with_units(1);
    o.remember_bundled_copy(AT(2), FIRST, PacketNumber(2));
    o.repeat(FIRST, 0, SendCause::Probe, None);
    assert_eq!(standing_copies(&o, FIRST), (0, None));
    o.remember_bundled_copy(AT(4), FIRST, PacketNumber(4));
    assert_eq!(standing_copies(&o, FIRST), (1, Some(AT(4))));
    o.repeats_mut(FIRST).unwrap().expire_copies();
    assert_eq!(standing_copies(&o, FIRST), (0, None));
}

#[test]
fn the_first_acknowledgement_is_that_of_the_first_copy() {
    let mut o = with_units(2);
    o.measure_first_transmission(FIRST, 1, AT(100));
    o.repeats_mut(FIRST).expect("watched").on_acked(AT(424));
    assert_eq!(o.round_trip(FIRST + 1), None);
    assert_eq!(o.round_trip(FIRST), Some((1, Duration::from_millis(324))));
    assert_eq!(o.round_trip(FIRST), None, "told once");
}

#[test]
fn an_acknowledgement_that_comes_with_the_report_may_be_of_either() {
    let mut o = with_units(1);
    o.measure_first_transmission(FIRST, 1, AT(100));
    assert_eq!(o.round_trip(FIRST), None);
    o.repeats_mut(FIRST).expect("watched").on_acked(AT(430));
    assert_eq!(o.round_trip(FIRST), None);
}

/// The first transmission arrived, its ACK was lost; the ACK of the probe reports a duplicate, which a copy
/// explains, and a later one the copy. Without the first report the ACK was late.
#[test]
fn an_acknowledgement_after_a_report_is_of_a_retransmission() {
    for (is_reported_first, want) in [(true, None), (false, Some((1, Duration::from_millis(302))))]
    {
        let mut o = with_units(1);
        o.lose(FIRST, SendCause::Probe);
        o.measure_first_transmission(FIRST, 1, AT(100));
        o.repeat(FIRST, 1, SendCause::Probe, None);
        o.repeat(FIRST, 2, SendCause::Redundant, None);
        if is_reported_first {
            assert_eq!(o.report(FIRST), Some((2, SendCause::Redundant)));
        }
        o.repeats_mut(FIRST).expect("watched").on_acked(AT(402));
        if !is_reported_first {
            assert_eq!(o.report(FIRST), Some((2, SendCause::Redundant)));
        }
        assert_eq!(o.report(FIRST), Some((1, SendCause::Probe)));
        assert_eq!(o.repeats_mut(FIRST).expect("watched").take_rtt_sample(true), want);
    }
}

#[test]
fn of_three_copies_nobody_knows_which_came_first() {
    let mut o = with_units(1);
    o.lose(FIRST, SendCause::Probe);
    o.measure_first_transmission(FIRST, 1, AT(100));
    o.retransmit(AT(200), alone(0), FIRST, SendCause::Probe, false);
    o.lose(FIRST, SendCause::Probe);
    o.repeats_mut(FIRST).expect("watched").on_acked(AT(424));
    assert_eq!(o.round_trip(FIRST), None);
}

/// The bound is for delivered units; the number of outstanding units is bounded by the window.
#[test]
fn memory_of_first_transmissions_is_bounded() {
    let mut o = on_paths(1);
    let last = FIRST + 3 * LOG_CAPACITY as u64;
    for unit in FIRST..=last {
        o.send(AT(unit), alone(0), new_unit(100, 0), unit);
        o.lose(unit, SendCause::Probe);
        o.measure_first_transmission(unit, 0, AT(unit));
        o.retransmit(AT(unit), alone(0), unit, SendCause::Probe, false);
        let packet = PacketNumber(2 * (unit - FIRST));
        o.remember_repeat(AT(unit), unit, packet, SendCause::Probe, None);
        o.acknowledge(unit);
        o.repeats_mut(unit).expect("watched").on_acked(AT(last + 1));
        o.deliver_first();
    }
    assert_eq!(o.history.remembered_of_delivered(), LOG_CAPACITY);
    assert_eq!(o.round_trip(last), Some((0, Duration::from_millis(1))));
    assert_eq!(o.round_trip(FIRST), None, "forgotten");
}

/// A thin stream for a long time: a retransmission per second, none of which was spurious. Found by a soak, in which
/// each association remembered all of them.
#[test]
fn retransmissions_of_a_minute_ago_are_forgotten() {
    let mut o = on_paths(1);
    let last = FIRST + 500;
    for unit in FIRST..=last {
        let now = AT(1000 * (unit - FIRST));
        o.send(now, alone(0), new_unit(100, 0), unit);
        o.remember_repeat(now, unit, PacketNumber(unit), SendCause::Probe, None);
        o.acknowledge(unit);
        o.deliver_first();
    }
    o.check_invariants();
    assert_eq!(o.history.remembered, 60);
    assert!(o.history().remembers(last - 59) && !o.history().remembers(last - 60));
    assert!(o.on_duplicate_report(last - 59).is_some());
}

/// The ACK arrives sooner than the shortest RTT, so it is for the previous transmission.
#[test]
fn an_ack_sooner_than_a_round_trip_is_for_the_transmission_before() {
    for (answered_at, sent_at) in [(249, Some(AT(100))), (250, None)] {
        let mut o = with_units(1);
        o.measure_first_transmission(FIRST, 1, AT(100));
        o.repeat(FIRST, 0, SendCause::Probe, None); // At 1 ms.
        let shortest = Duration::from_millis(249);
        let now = AT(answered_at);
        assert_eq!(
            o.repeats_mut(FIRST).unwrap().acked_before_retransmission(now, 1, shortest),
            sent_at
        );
        assert_eq!(
            o.repeats_mut(FIRST).unwrap().acked_before_retransmission(now, 0, shortest),
            None,
            "another path"
        );
    }
}

#[test]
fn duplicate_reports_are_not_explained_after_memory_was_released() {
    let mut o = with_units(2);
    o.repeat(FIRST, 0, SendCause::Timeout, EPISODE(1));
    o.deliver_through(FIRST + 1);
    assert!(o.history().remembers(FIRST));
    o.release_memory();
    assert!(!o.history().remembers(FIRST + 1) && o.report(FIRST).is_none());
    o.check_invariants();
}
