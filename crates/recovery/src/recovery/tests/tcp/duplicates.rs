//! A peer without SACK: fast retransmit and NewReno (RFC 5681 §3.2, RFC 6582), limited transmit
//! (RFC 3042).

use super::super::Sender;

/// A sender without SACK with ten packets outstanding and a window of ten.
fn with_ten() -> Sender {
    let mut s = Sender::tcp("tcp-newreno");
    s.recovery.state.paths[0].window = Sender::sack().recovery.state.paths[0].window.clone();
    assert_eq!(s.fill(), 10);
    s
}

/// RFC 5681 §3.2 steps 2 to 4: the third repeats the first unit; cwnd is ssthresh, and each
/// duplicate, the first three included, makes room for a packet.
#[test]
fn the_third_duplicate_repeats_the_first_unit_and_each_one_makes_room() {
    let mut s = with_ten();
    s.duplicates(2);
    assert!(!s.has_lost() && !s.has_room_for_new(0));
    s.duplicates(1);
    assert_eq!((s.cwnd(), s.ssthresh()), (5000, 5000));
    assert_eq!(s.resend(), [1]);
    // RFC 5681: cwnd 5 + 3 = 8 against ten outstanding; two more make ten, the third one a packet.
    s.duplicates(2);
    assert_eq!(s.fill(), 0);
    s.duplicates(1);
    assert_eq!(s.fill(), 1);
    s.duplicates(3);
    assert_eq!(s.fill(), 3);
}

/// RFC 6582 §3.2 step 3, partial acknowledgement: the next hole leaves at once, and room for one
/// packet is made.
#[test]
fn a_partial_acknowledgement_repeats_the_next_hole_at_once() {
    let mut s = with_ten();
    s.duplicates(8); // 1 and 5 are lost
    assert_eq!((s.resend(), s.fill()), (vec![1], 3));
    s.ack(4, &[]);
    assert!(s.is_in_fast_recovery());
    assert_eq!(s.resend(), [5]);
    assert_eq!(s.fill(), 1, "a packet was added back");
    s.ack(10, &[]);
    assert!(!s.is_in_fast_recovery());
    // min(ssthresh, max(FlightSize, SMSS) + SMSS) with 11 to 14 outstanding.
    assert_eq!(s.cwnd(), 5000);
    assert_eq!(s.recovery.statistics().fast_recoveries, 1);
}

/// RFC 5681 §3.1 equation 4: at a timeout in recovery, data out of the network is not in flight.
#[test]
fn a_timeout_in_recovery_halves_what_is_still_in_the_network() {
    let mut s = with_ten();
    s.duplicates(3);
    assert_eq!(s.resend(), [1]);
    s.duplicates(6);
    // A packet for each duplicate beyond the fifth: 14 are outstanding, nine were sent.
    assert_eq!(s.fill(), 4);
    s.expire();
    assert_eq!((s.cwnd(), s.ssthresh()), (1000, 2500));
}

/// RFC 6582 §3.2 step 3, full acknowledgement, option 1: no burst.
#[test]
fn a_full_acknowledgement_deflates_the_window_to_outstanding_data() {
    let mut s = with_ten();
    s.duplicates(3);
    s.resend();
    s.ack(10, &[]);
    assert_eq!((s.cwnd(), s.ssthresh()), (2000, 5000), "max(0, SMSS) + SMSS");
}

/// RFC 6582 §3.2 step 3: the first partial acknowledgement restarts the timer, the later ones not.
#[test]
fn only_the_first_partial_acknowledgement_restarts_the_timer() {
    let mut s = with_ten();
    let rto = s.rto_ms() as u64;
    s.at(100).duplicates(3);
    s.resend();
    assert_eq!(s.t3(), Some(rto), "a retransmission does not");
    s.at(200).ack(2, &[]);
    let rto_now = s.rto_ms() as u64;
    assert_eq!(s.t3(), Some(200 + rto_now));
    s.resend();
    s.at(300).ack(4, &[]);
    assert_eq!(s.t3(), Some(200 + rto_now));
    s.resend();
    s.at(400).ack(10, &[]);
    assert_eq!(s.t3(), None);
}

/// RFC 6582 §3.2 step 2, §4: duplicates that a timeout's spurious retransmissions bring begin no
/// recovery; nor do those at the very end of the last one.
#[test]
fn duplicates_begin_no_recovery_until_more_than_the_last_is_acknowledged() {
    let mut s = with_ten();
    s.expire();
    s.resend();
    s.ack(4, &[]);
    s.duplicates(3);
    assert!(!s.is_in_fast_recovery());
    s.resend_all();
    s.ack(10, &[]);
    s.push_full(6);
    s.duplicates(3);
    assert!(!s.is_in_fast_recovery(), "10 is covered, but nothing more");
    s.ack(11, &[]);
    s.duplicates(3);
    assert!(s.is_in_fast_recovery());
    assert_eq!(s.resend(), [12]);
}

/// RFC 5681 §3.2 step 2: half of outstanding data.
#[test]
fn an_unused_window_is_halved_by_outstanding_data() {
    let mut s = Sender::newreno();
    s.push_full(6);
    s.recovery.state.paths[0].window = with_ten().recovery.state.paths[0].window.clone();
    s.duplicates(3);
    assert_eq!(s.cwnd(), 3000);
}

/// RFC 3042 §2: a new unit for each of the first two duplicates; they
/// count neither in cwnd nor in its reduction.
#[test]
fn limited_transmit_sends_two_new_units() {
    let mut s = with_ten();
    let mut limited = Sender::tcp("tcp-sack");
    limited.fill();
    for (sender, packets) in [(&mut s, 0), (&mut limited, 1)] {
        sender.duplicates(1);
        assert_eq!(sender.fill(), packets);
        sender.duplicates(1);
        assert_eq!(sender.fill(), packets);
        assert_eq!(sender.fill(), 0);
        assert_eq!(sender.cwnd(), 10_000);
        sender.duplicates(1);
        assert_eq!(sender.cwnd(), 5000, "with {packets} for each");
        assert_eq!(sender.resend(), [1]);
    }
}

/// RFC 3042 §2: new data only; what a timeout declared lost keeps to the window.
#[test]
fn limited_transmit_is_not_for_retransmissions() {
    let mut s = Sender::sack();
    s.fill();
    s.expire();
    assert_eq!(s.resend(), [1]);
    s.duplicates(2);
    assert_eq!(s.resend(), [0; 0]);
    assert!(!s.has_room_for_new(0), "lost data comes first");
}

/// An acknowledgement between duplicates begins the count again (RFC 5681 §3.2).
#[test]
fn an_acknowledgement_between_duplicates_begins_the_count_again() {
    let mut s = with_ten();
    s.duplicates(2);
    s.ack(1, &[]);
    s.duplicates(2);
    assert!(!s.is_in_fast_recovery());
    s.duplicates(1);
    assert_eq!(s.resend(), [2]);
}

#[test]
fn duplicates_with_nothing_outstanding_say_nothing() {
    let mut s = Sender::newreno();
    s.duplicates(10);
    s.push_full(4);
    s.duplicates(2);
    assert!(!s.is_in_fast_recovery());
}
