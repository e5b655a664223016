//! M1 to M4 of Petlund 2009, each alone, on the wire.

use rexmit_sctp::recovery::{LossDetection, Reordering};

use super::*;

/// The time of the retransmission of chunk 1, which was sent at 200 ms with nothing after it.
fn tail_loss(thin: ThinConfig) -> u64 {
    let mut s = Script::thin(thin);
    s.at(200).send_alone(1);
    let sent = s.wait_for_packet();
    assert_eq!(sent.chunks().len(), 1);
    sent.at_ms()
}

#[test]
fn m1_repeats_the_last_chunk_after_srtt_and_its_variation() {
    assert_eq!(tail_loss(ThinConfig::OFF), 1_200);
    assert_eq!(tail_loss(m1()), 450);
    assert_eq!(tail_loss(ThinConfig::M1_TO_M4.rto_min(None)), 1_200);
}

/// Chunk 1 is sent at 200 ms and acknowledged at 300 ms; chunk 2 is sent at 250 ms.
#[test]
fn m2_counts_the_age_of_the_chunk_that_is_left() {
    for (restart_by_age, at) in [(false, 1_300), (true, 1_250)] {
        let mut s = Script::thin(ThinConfig::OFF.restart_by_age(restart_by_age));
        s.at(200).send_alone(1);
        s.at(250).send_alone(2);
        s.at(300).peer_acknowledges(tsn(1));
        s.expect_silence_until(at - 1);
        s.at(at);
        assert_eq!(s.take_data(), [2]);
    }
}

/// With an RTO of 1 s, retransmissions follow after 1, 2, … 7 s, and then at intervals that double up to 60 s. The six
/// timeouts that did not double are no errors, so that a thin stream survives an outage as long as any other; ten that
/// did double end the association.
#[test]
fn m3_retransmits_at_equal_intervals_up_to_its_limit_and_counts_errors_as_without() {
    let mut s = Script::established_client_with(|_, association| {
        association.recovery.thin = ThinConfig::OFF.linear_timeouts(std::num::NonZeroU8::new(6));
        association.failure.heartbeat_interval = None;
    });
    s.send_alone(1);
    for second in [1, 2, 3, 4, 5, 6, 7, 9, 13, 21, 37, 69, 129, 189, 249, 309] {
        s.expect_silence_until(second * 1_000 - 1);
        s.at(second * 1_000);
        assert_eq!(s.take_data(), [1]);
    }
    s.at(369_000);
    assert!(s.events().iter().any(|event| matches!(event, rexmit_sctp::Event::Closed(_))));
}

/// Chunk 1 is missing, chunks 2 to 4 are reported one by one.
#[test]
fn m4_retransmits_at_the_first_report_and_only_while_thin() {
    for (first_indication, packets, at) in [(true, 4, 310), (false, 4, 330), (true, 6, 320)] {
        let mut s = Script::thin(ThinConfig::OFF.first_indication(first_indication));
        s.at(200);
        // All at one time, each in a packet of its own; at most four packets at a time.
        (1..=packets).for_each(|n| s.send_alone(n));
        for (ms, end) in [(310, 2), (320, 3), (330, 4)] {
            s.expect_silence_until(ms);
            s.peer_sacks(tsn(0), &[(2, end)], &[]);
            if ms == at {
                assert_eq!(s.take_data(), [1], "{packets} packets");
                break;
            }
        }
    }
}

/// One association is thin, then not thin, and thin again.
#[test]
fn the_mechanisms_follow_a_stream_that_is_thin_then_not_and_thin_again() {
    let mut s = Script::thin(m1().first_indication(true));
    s.at(200).send_alone(1);
    s.at(210).send_alone(2);
    s.at(310).peer_sacks(tsn(0), &[(2, 2)], &[]);
    assert_eq!(s.take_data(), [1], "thin: at the first report");
    s.at(410).peer_acknowledges(tsn(2));
    (3..=9).for_each(|n| s.send_alone(n));
    assert!(!s.statistics().thin.is_thin);
    s.at(510).peer_sacks(tsn(2), &[(2, 2)], &[]);
    s.expect_silence_until(600);
    assert_eq!(s.statistics().recovery.retransmitted.total(), 1, "thick: one report is not enough");
    s.peer_acknowledges(tsn(9));
    s.send_alone(10);
    s.send_alone(11);
    let reported = s.statistics().thin;
    assert!(reported.is_thin && reported.in_flight == 2, "{reported:?}");
    s.at(700).peer_sacks(tsn(9), &[(2, 2)], &[]);
    assert_eq!(s.take_data(), [10], "thin again");
}

/// Mechanisms are changed while the association is established.
#[test]
fn mechanisms_are_enabled_and_disabled_at_run_time() {
    let mut s = Script::thin(ThinConfig::OFF);
    let id = s.id();
    s.at(200).send_alone(1);
    let now = rexmit_core::Instant::from_millis(200);
    s.endpoint.set_thin(now, id, m1()).expect("they make sense");
    s.at(450);
    assert_eq!(s.take_data(), [1], "the timer that ran already");
    s.endpoint.set_thin(rexmit_core::Instant::from_millis(450), id, ThinConfig::OFF).unwrap();
    // From RTO.Min, doubled.
    s.expect_silence_until(2_449);
    s.at(2_450);
    assert_eq!(s.take_data(), [1]);
    let refused = ThinConfig::OFF.rto_min(Some(Duration::ZERO));
    let now = rexmit_core::Instant::from_millis(2_450);
    assert_eq!(s.endpoint.set_thin(now, id, refused), Err(rexmit_sctp::ThinError::Invalid));
}

/// FreeBSD's: SRTT + 2 RTTVAR is 175 ms, and the lower bound 250 ms.
#[test]
fn early_fast_retransmit_repeats_after_the_round_trip_and_its_variation() {
    let mut s = Script::measured(|association| {
        association.recovery.loss_detection =
            LossDetection::MissingReports { reordering: Reordering::Fixed, early_retransmit: true };
    });
    s.send_alone(1);
    for early in 1..=3 {
        assert_eq!(s.wait_for_packet().at.as_nanos(), 200_000_000 + early * 250_000_000);
        let counted = s.statistics().recovery;
        assert_eq!((counted.retransmitted.early, counted.timeouts), (early, 0));
    }
    // T3-rtx, which no early retransmission restarts.
    assert_eq!(s.wait_for_packet().at.as_nanos(), 1_200_000_000);
    assert_eq!(s.statistics().recovery.timeouts, 1);
}
