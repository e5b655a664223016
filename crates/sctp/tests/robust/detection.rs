//! Detection by duplicate TSNs, and undo: the rules of RR-SCTP §4.1 and §4.2 on the wire.

use super::*;

/// Chunks 1 to 8 are in flight at 302 ms; 1 is overtaken by three, and was retransmitted.
fn repeated() -> Script {
    let mut s = Script::with_profile("rr");
    s.offer(16);
    assert_eq!(s.take_all(), [1, 2, 3, 4]);
    // Each report of another chunk makes the window a packet larger.
    assert_eq!(s.sacked_at(300, 0, &[(2, 2)]), [5, 6]);
    assert_eq!(s.sacked_at(301, 0, &[(2, 3)]), [7, 8]);
    assert_eq!(s.sacked_at(302, 0, &[(2, 4)]), [1]);
    s
}

#[test]
fn a_duplicate_tsn_detects_a_spurious_fast_retransmit_and_the_window_is_restored() {
    let mut s = repeated();
    let before = s.ssthresh();
    s.at(303).peer_sacks(4, &[], &[]);
    s.take_all();
    s.at(402).peer_sacks(4, &[], &[1]);
    s.take_all();
    let events = s.spurious_events();
    assert_eq!((events.fast_retransmits, events.by_duplicates, events.undone), (1, 1, 1));
    assert_eq!((before, s.ssthresh()), (4 * PMDCS, 4404 + 3 * PMDCS));
}

#[test]
fn a_necessary_retransmission_is_not_reported_as_duplicate_and_nothing_is_undone() {
    let mut s = repeated();
    s.at(402).peer_sacks(4, &[], &[]);
    s.take_all();
    assert_eq!((s.spurious_events(), s.ssthresh()), (SpuriousEvents::default(), 4 * PMDCS));
}

/// The SACK with the duplicate report was lost: the episode stays undecided, and does not affect later ones.
#[test]
fn a_lost_report_leaves_the_event_undecided() {
    let mut s = repeated();
    s.sacked_at(303, 4, &[]);
    s.sacked_at(450, 8, &[]);
    assert_eq!(s.spurious_events().total(), 0);
    // The report comes with an old SACK.
    s.at(460).peer_sacks(4, &[], &[1]);
    s.take_all();
    assert_eq!(s.spurious_events().total(), 1);
}

/// RFC 3708 §3 A.4: chunk 2 is reported as a duplicate, but was sent only once.
#[test]
fn a_duplicate_of_a_chunk_sent_once_disables_detection_by_duplicates() {
    let mut s = repeated();
    s.at(310).peer_sacks(4, &[], &[2]);
    s.take_all();
    s.at(402).peer_sacks(4, &[], &[1]);
    s.take_all();
    let events = s.spurious_events();
    assert_eq!((events.total(), events.unexplained_duplicates, events.undone), (0, 1, 0));
}

/// A delay of 1.1 s: the timer expires at 1200 ms, and again at 3200 ms. The second report shows that both timeouts
/// were spurious. RFC 4015 §3.1 step 11: the first new RTT sample sets the RTO.
#[test]
fn a_sudden_delay_is_detected_and_the_window_and_the_timer_recover() {
    let mut s = Script::with_profile("rr");
    s.offer(4);
    assert_eq!(s.take_all(), [1, 2, 3, 4]);
    s.at(1_200);
    assert_eq!(s.take_all(), [1]);
    s.at(3_200);
    assert_eq!(s.take_all(), [1]);
    s.at(3_300).peer_sacks(4, &[], &[]);
    s.at(3_310).peer_sacks(4, &[], &[1]);
    assert_eq!((s.spurious_events().total(), s.cwnd()), (0, PMDCS + PMDCS));
    s.at(3_320).peer_sacks(4, &[], &[1]);
    let events = s.spurious_events();
    assert_eq!((events.timeouts, events.undone, s.ssthresh()), (1, 1, 4404));
    s.offer(1);
    assert_eq!(s.take_all(), [5]);
    s.at(4_420).peer_sacks(5, &[], &[]);
    // SRTT 1100 ms, RTTVAR 550 ms.
    assert_eq!(s.statistics().paths[0].rto.as_millis(), 3_300);
}

/// Redundant copies of a stream may be the reason for its duplicate reports.
#[test]
fn duplicate_reports_of_redundant_copies_prove_nothing() {
    let mut s = Script::with_profile("rr");
    let thin = rexmit_sctp::recovery::ThinConfig::OFF
        .bundling(Some(rexmit_sctp::recovery::BundlingConfig::ONE));
    let (now, id) = (rexmit_core::Instant::from_millis(200), s.id());
    s.endpoint.set_thin(now, id, thin).expect("it is valid");
    s.send(b"one");
    assert_eq!(s.take_all(), [1]);
    s.send(b"two");
    assert_eq!(s.take_all(), [1, 2]);
    s.at(300).peer_sacks(2, &[], &[1]);
    let events = s.spurious_events();
    assert_eq!((events.total(), events.unexplained_duplicates), (0, 0));
}
