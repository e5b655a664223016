//! F-RTO (RFC 5682 §3.1) and RACK's reordering window (RFC 8985 §6), on the wire.

use super::*;

/// Four packets are sent at 200 ms and delayed; the timer expires at 1200 ms. Returns the chunks that are sent after
/// the first retransmission, with or without new data.
#[test]
fn after_a_spurious_timeout_f_rto_sends_new_chunks_and_no_retransmissions() {
    let mut s = Script::with_profile("f-rto");
    s.offer(8);
    assert_eq!(s.take_all(), [1, 2, 3, 4]);
    s.at(1_200);
    assert_eq!(s.take_all(), [1]);
    s.at(1_250).peer_sacks(1, &[], &[]);
    assert_eq!(s.take_all(), [5, 6], "two packets of new data");
    s.at(1_260).peer_sacks(2, &[], &[]);
    let events = s.spurious_events();
    assert_eq!((events.timeouts, events.by_f_rto, events.undone), (1, 1, 1));
    assert_eq!(s.take_all(), [], "3 to 6 are in flight: the former window");
    assert_eq!(s.sacked_at(1_400, 6, &[]), [7, 8]);
    assert_eq!(s.statistics().recovery.retransmitted.total(), 1);
}

#[test]
fn without_new_chunks_f_rto_is_the_usual_recovery() {
    let mut s = Script::with_profile("f-rto");
    s.offer(4);
    assert_eq!(s.take_all(), [1, 2, 3, 4]);
    s.at(1_200);
    assert_eq!(s.take_all(), [1]);
    s.at(1_250).peer_sacks(1, &[], &[]);
    assert_eq!(s.take_all(), [2, 3]);
    s.at(1_350).peer_sacks(4, &[], &[]);
    assert_eq!(s.spurious_events().total(), 0);
}

#[test]
fn f_rto_repeats_the_rest_when_only_new_chunks_are_acknowledged() {
    let mut s = Script::with_profile("f-rto");
    s.offer(8);
    s.take_all();
    s.at(1_200);
    assert_eq!(s.take_all(), [1]);
    s.at(1_300).peer_sacks(1, &[], &[]);
    assert_eq!(s.take_all(), [5, 6]);
    assert_eq!(s.sacked_at(1_400, 1, &[(4, 4)])[0], 2);
    assert_eq!(s.spurious_events().total(), 0);
}

/// With an SRTT and a minimum round trip of 100 ms, chunk 1 is declared lost 125 ms after it was sent.
#[test]
fn rack_waits_for_a_quarter_of_a_round_trip() {
    let mut s = Script::with_profile("rack");
    s.offer(2);
    assert_eq!(s.take_all(), [1, 2]);
    s.at(300).peer_sacks(0, &[(2, 2)], &[]);
    s.expect_silence_until(324);
    s.at(325);
    assert_eq!(s.take_all(), [1]);
    s.at(425).peer_sacks(2, &[], &[]);
}

#[test]
fn rack_retransmits_nothing_that_arrives_within_its_window() {
    let mut s = Script::with_profile("rack");
    s.offer(2);
    assert_eq!(s.take_all(), [1, 2]);
    s.at(300).peer_sacks(0, &[(2, 2)], &[]);
    s.at(324).peer_sacks(2, &[], &[]);
    s.expect_silence_until(5_000);
}
