//! Copies of data in flight, bundled with new data.

use super::*;
use crate::BundleRoom;
use crate::recovery::tests::{BASE, LossRecovery, Next};

const COPIES: ThinConfig =
    ThinConfig { bundling: Some(crate::BundlingConfig::ONE), ..ThinConfig::OFF };

/// Units 1 and 2 in two packets: the second carries a copy of the first, which was lost or not.
fn two_packets(thin: ThinConfig) -> Sender {
    let mut s = Sender::thin(thin);
    assert_eq!(s.push_with_copies(false), []);
    assert_eq!(s.at(50).push_with_copies(false), [1]);
    s
}

#[test]
fn as_many_packets_and_bytes_before_are_copied_as_the_limits_say() {
    let table = [
        (0, 0, vec![]),
        (1, 0, vec![3]),
        (2, 0, vec![2, 3]),
        (9, 0, vec![1, 2, 3]),
        (9, 3 * SMALL, vec![2, 3]),
        (9, 3 * SMALL - 1, vec![3]),
        (9, SMALL, vec![]),
    ];
    for (packets, bytes, want) in table {
        let bytes = std::num::NonZeroU32::new(bytes);
        let bundling = crate::state::tests::bundling(packets).map(|it| it.bytes(bytes));
        let limits = ThinConfig { bundling, ..ThinConfig::OFF };
        let mut s = Sender::thin(limits);
        (0..3).for_each(|_| s.push(&[SMALL]));
        assert_eq!(s.push_with_copies(false), want, "{limits:?}");
        assert_eq!(s.flight(), (4, 4 * u64::from(SMALL)), "a copy is not in flight");
        let counted = s.recovery.statistics();
        assert_eq!(counted.retransmitted.redundant, want.len() as u64);
        assert_eq!(counted.redundant_bytes, 100 * want.len() as u64);
        assert_eq!(counted.retransmitted.total(), 0);
    }
}

/// A copy takes room in the window as new data does.
#[test]
fn copies_stop_when_the_window_has_no_room_for_them() {
    let limit = Some(Duration::from_millis(25));
    let table = [(15, limit, 9), (33, limit, 6), (38, limit, 1), (39, limit, 0), (39, None, 9)];
    for (units, queue_delay_limit, want) in table {
        let test = crate::ThinTest::Packets(100);
        let thin = ThinConfig {
            test,
            bundling: crate::state::tests::bundling(99),
            queue_delay_limit,
            ..ThinConfig::OFF
        };
        let mut s = Sender::thin(thin);
        assert_eq!(s.cwnd(), 4000);
        (0..units).for_each(|_| s.push(&[SMALL]));
        assert_eq!(s.push_with_copies(false).len(), want, "{units} in flight");
    }
}

#[test]
fn a_packet_without_room_or_a_thick_stream_copies_nothing() {
    let mut s = Sender::thin(COPIES);
    s.push(&[FULL]);
    assert_eq!(s.push_with_copies(false), []);
    let mut s = Sender::thin(COPIES);
    (0..5).for_each(|_| s.push(&[SMALL]));
    assert_eq!(s.push_with_copies(false), [], "five in flight");
    s.at(100).ack(3, &[]);
    assert_eq!(s.push_with_copies(false), [6], "three");
}

/// SCTP skips acknowledged units; a TCP segment is one contiguous run.
#[test]
fn acknowledged_data_is_not_copied() {
    for (is_contiguous, want) in [(false, vec![1, 2]), (true, vec![])] {
        let mut s =
            Sender::thin(ThinConfig { bundling: crate::state::tests::bundling(9), ..COPIES });
        (0..3).for_each(|_| s.push(&[SMALL]));
        s.at(100).ack(0, &[(3, 3)]);
        assert_eq!(s.push_with_copies(is_contiguous), want);
    }
}

/// One SACK acknowledges units 1 and 2 without a duplicate report, so the first packet was lost.
#[test]
fn a_loss_that_a_copy_repaired_reduces_the_window_once_per_window() {
    let mut s = two_packets(COPIES);
    assert_eq!(s.at(90).push_with_copies(false), [2]);
    s.at(150).ack(2, &[]);
    let counted = *s.recovery.statistics();
    assert_eq!((counted.packets_repaired, counted.packets_lost), (1, 1));
    assert_eq!((counted.fast_recoveries, counted.retransmitted.total()), (1, 0));
    assert_eq!((s.cwnd(), s.ssthresh()), (4000, 4000), "half, but four packets at least");
    // The third packet was sent before the window was reduced: its loss is of the same window.
    s.push_with_copies(false);
    s.at(260).ack(4, &[]);
    let counted = s.recovery.statistics();
    assert_eq!((counted.packets_repaired, counted.fast_recoveries), (2, 1));
    assert!(!s.is_in_fast_recovery());
}

#[test]
fn rdb_as_it_was_published_hides_the_loss() {
    let mut s = two_packets(ThinConfig { loss_hiding: true, ..COPIES });
    s.at(150).ack(2, &[]);
    let counted = s.recovery.statistics();
    assert_eq!((counted.packets_repaired, counted.packets_lost), (1, 0));
    assert_eq!(counted.fast_recoveries, 0);
}

#[test]
fn a_repaired_loss_reduces_a_window_that_is_larger_than_its_floor() {
    let repaired = |thin| {
        let mut s = Sender::with(|config| {
            config.thin = thin;
            config.initial_window_packets = 20;
            config.initial_window_bytes = 20_000;
        });
        s.push_with_copies(false);
        s.push_with_copies(false);
        s.at(150).ack(2, &[]);
        s.cwnd()
    };
    assert_eq!(repaired(COPIES), 10_000);
    assert_eq!(repaired(ThinConfig { loss_hiding: true, ..COPIES }), 20_000);
}

/// Both packets arrived, which the duplicate report in one delayed ACK for both proves.
#[test]
fn a_reported_duplicate_shows_that_nothing_was_lost() {
    let mut s = two_packets(COPIES);
    s.at(150).report(1);
    s.ack(2, &[]);
    let counted = s.recovery.statistics();
    assert_eq!((counted.packets_repaired, counted.fast_recoveries), (0, 0));
    assert_eq!(counted.spurious.total() + counted.spurious.redundant, 0, "nothing was spurious");
}

/// The usual case: the first is acknowledged alone, the second brings the duplicate.
#[test]
fn reports_of_copies_are_no_spurious_retransmissions() {
    let mut s = two_packets(COPIES);
    s.at(100).ack(1, &[]);
    s.at(150).report(1);
    s.ack(2, &[]);
    let counted = s.recovery.statistics();
    assert_eq!((counted.packets_repaired, counted.spurious.total()), (0, 0));
    // A spurious timeout is counted all the same: 3, its copy, and its retransmission arrive.
    s.at(200).push_with_copies(false);
    assert_eq!(s.at(210).push_with_copies(false), [3]);
    s.expire();
    assert_eq!(s.resend(), [3, 4]);
    s.report(3);
    s.report(3);
    assert_eq!(s.recovery.statistics().spurious.timeout, 1);
}

/// The packet that carries the copy is not acknowledged, so the acknowledgement is for the first
/// transmission.
#[test]
fn a_copied_unit_measures_the_round_trip_if_no_copy_can_have_arrived() {
    let mut s = two_packets(COPIES);
    let outcome = s.at(80).ack(1, &[]);
    assert!(outcome.has_sampled);
    assert_eq!(s.timer(0).rtt().srtt(), Some(Duration::from_millis(80)));
    // Both at once: the second, which no copy was made of, measures it.
    let mut s = two_packets(COPIES);
    s.at(150).ack(2, &[]);
    assert_eq!(s.timer(0).rtt().srtt(), Some(Duration::from_millis(100)));
}

/// A packet opened for a copy of unit 1 and new data; no new data comes.
fn copied_into_nothing() -> Sender {
    let mut s = Sender::thin(COPIES);
    s.push(&[SMALL]);
    let mut packet = s.recovery.packet(0, false, 0);
    let room = BundleRoom { new_bytes: SMALL, room: FULL - SMALL, is_contiguous: false };
    assert!(packet.bundle(&mut s.recovery, s.now, 0, room));
    assert_eq!(packet.next(&s.recovery), Some(Next::BundledCopy(BASE + 1)));
    assert!(packet.put(&mut s.recovery, s.now).is_some());
    assert!(!packet.end(&mut s.recovery, s.now, &mut Tracer::off()));
    s
}

#[test]
fn copies_in_a_packet_without_anything_new_were_never_sent() {
    let mut s = copied_into_nothing();
    s.push(&[SMALL]);
    s.at(100).ack(2, &[]);
    let counted = s.recovery.statistics();
    assert_eq!((counted.retransmitted.redundant, counted.packets_repaired), (0, 0));
}

#[test]
fn copies_in_a_packet_that_is_not_sent_were_never_made() {
    let s = copied_into_nothing();
    let unit = s.recovery.outstanding().unit(BASE + 1).expect("it is outstanding");
    assert!(!unit.is_copied && unit.repeats().is_none());
    let repeats = s.recovery.outstanding().unit(BASE + 1).and_then(crate::Unit::repeats);
    assert_eq!(repeats.map_or(0, |repeats| repeats.standing_copies().0), 0);
}

/// `count` copies of the first unit in packets of their own are to be sent from now on, one every 10 ms.
fn plan_copies(s: &mut Sender, unit: u64, count: u8) {
    let LossRecovery { redundancy, state, .. } = &mut s.recovery;
    let spacing = Duration::from_millis(10);
    let copies =
        rexmit_deadline::Copies { count, spacing, early: Duration::ZERO, is_elsewhere: true };
    redundancy.plan(s.now, unit, copies, state);
}

/// Sends a unit and `copies` copies of it, and acknowledges it `ms` after the original. Returns the packets that count
/// as lost, and the recoveries.
fn several_copies(copies: u8, ms: u64) -> (u64, u64) {
    let probe_timer = Some(crate::ProbeConfig::DEFAULT);
    let mut s = Sender::warm(|config| config.thin = ThinConfig { probe_timer, ..ThinConfig::OFF });
    s.push(&[SMALL]);
    let sent_at = s.now;
    plan_copies(&mut s, BASE + 41, copies);
    for _ in 0..copies {
        s.now += Duration::from_millis(10);
        s.recovery.begin_opportunity();
        assert_eq!(s.timers().copy_ready(), [1]);
    }
    s.now = sent_at + Duration::from_millis(ms);
    s.recovery.begin_opportunity();
    s.ack_after_warm(1, &[]);
    let counted = s.recovery.statistics();
    (counted.packets_lost, counted.fast_recoveries)
}

/// RFC 9265 §2: the loss of the original is congestion, whichever of its copies arrived.
#[test]
fn a_loss_that_one_of_several_copies_repaired_is_congestion() {
    for copies in [1, 2, 3] {
        assert_eq!(several_copies(copies, 130), (1, 1), "{copies} copies");
        assert_eq!(several_copies(copies, 100), (0, 0), "{copies} copies, the original arrived");
    }
}

/// The packet with the bundled copy was lost, too; the copy in a packet of its own arrived.
#[test]
fn a_loss_is_congestion_if_the_second_copy_was_sent_otherwise_than_the_first() {
    let mut s = two_packets(COPIES);
    plan_copies(&mut s, BASE + 1, 1);
    assert_eq!(s.at(60).timers().copies_ready(usize::MAX), [1]);
    s.at(180).ack(1, &[]);
    assert_eq!(s.recovery.statistics().packets_repaired, 1);
}
