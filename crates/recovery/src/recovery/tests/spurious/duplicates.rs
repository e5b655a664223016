//! Detection by duplicate reports, rule by rule (RR-SCTP §4.1, RFC 3708 §3).

use super::{BASE, FULL, Sender};
use crate::spurious::DISTRUST_UNITS;
use crate::{RecoveryConfig, TimeoutKind};

/// Units 2 to 11 are in flight; 2 is overtaken by three, declared lost and retransmitted.
fn one_repeated() -> Sender {
    let mut s = Sender::detecting();
    s.push_full(10);
    s.overtake(2, 5);
    assert_eq!(s.resend(), [2]);
    s
}

#[test]
fn an_episode_is_spurious_when_its_copy_is_reported() {
    let mut s = one_repeated();
    s.at(110).ack(11, &[]);
    assert_eq!(s.events().total(), 0);
    s.report(2);
    let events = s.events();
    assert_eq!((events.fast_retransmits, events.timeouts, events.by_duplicates), (1, 0, 1));
}

#[test]
fn nothing_is_looked_for_without_the_switch() {
    let mut s = Sender::wide(RecoveryConfig::rfc9260());
    s.push_full(10);
    s.overtake(2, 5);
    s.resend();
    s.ack(11, &[]);
    s.report(2);
    assert_eq!((s.events().total(), s.recovery.statistics().spurious.total()), (0, 1));
}

/// All fast retransmits until fast recovery ends are one event, and every copy has to be reported.
#[test]
fn every_copy_that_left_in_the_episode_has_to_be_reported() {
    let mut s = one_repeated();
    for end in [8, 9, 10] {
        s.ack(1, &[(3, 5), (7, end)]);
    }
    assert_eq!(s.resend(), [6]);
    assert_eq!(s.recovery.statistics().fast_recoveries, 1);
    s.ack(11, &[]);
    s.report(2);
    assert_eq!(s.events().total(), 0, "6 is not reported");
    s.report(6);
    assert_eq!(s.events().fast_retransmits, 1);
}

/// Unit 2 was lost: its copy fills the gap, and nothing is reported.
#[test]
fn a_loss_is_never_spurious() {
    let mut s = one_repeated();
    for end in [8, 9, 10] {
        s.ack(1, &[(3, 5), (7, end)]);
    }
    s.resend();
    s.ack(11, &[]);
    s.report(6);
    s.push_full(3);
    s.ack(14, &[]);
    assert_eq!(s.events().total(), 0);
}

/// Unit 2 was retransmitted in both episodes: the first report is for the older transmission.
#[test]
fn a_copy_of_an_older_event_is_cleared_first() {
    let mut s = one_repeated();
    s.expire();
    assert_eq!(s.resend(), [2]);
    s.ack(11, &[]);
    s.report(2);
    assert_eq!(s.events().total(), 0);
    s.report(2);
    assert_eq!((s.events().timeouts, s.events().fast_retransmits), (1, 0), "the latest alone");
}

/// The report of unit 2 is lost; the next episode is decided independently, whatever comes late.
#[test]
fn a_lost_or_late_report_of_an_older_event_says_nothing_of_the_next() {
    for is_late in [false, true] {
        let mut s = one_repeated();
        s.ack(11, &[]);
        s.push_full(10);
        s.overtake(12, 15);
        assert_eq!(s.resend(), [12]);
        s.ack(21, &[]);
        if is_late {
            s.report(2);
            assert_eq!(s.events().total(), 0);
        }
        s.report(12);
        assert_eq!(s.events().total(), 1);
        // Half of 20 packets, and one more: not what was before the older event.
        assert_eq!(s.ssthresh(), 11_000);
    }
}

/// Units that wait to be retransmitted have not been acknowledged.
#[test]
fn an_episode_is_open_while_something_waits_to_be_retransmitted() {
    let mut s = Sender::detecting();
    s.push_full(10);
    s.expire();
    assert_eq!(s.resend(), [2]);
    assert!(s.resend().is_empty(), "one packet after a timeout");
    s.report(2);
    assert_eq!(s.events().total(), 0);
    s.ack(11, &[]);
    assert_eq!(s.events().timeouts, 1, "the originals of the others have arrived");
}

/// Two SACKs at once: the second acknowledges the units that the first declared lost.
#[test]
fn an_episode_in_which_nothing_was_retransmitted_was_spurious() {
    let mut s = Sender::detecting();
    s.push_full(10);
    s.overtake(2, 5);
    assert!(s.has_lost());
    s.ack(5, &[]);
    assert_eq!(s.events().fast_retransmits, 1);
    assert!(!s.is_in_fast_recovery(), "there is nothing to recover from");
}

/// The same after an earlier copy: it is unknown which of them was acknowledged.
#[test]
fn an_acknowledgement_of_what_was_sent_before_is_no_proof() {
    let mut s = Sender::detecting();
    s.push_full(3);
    s.expire();
    assert_eq!(s.resend(), [2]);
    s.expire();
    s.ack(4, &[]);
    assert_eq!(s.events().total(), 0);
}

#[test]
fn data_abandoned_before_it_was_retransmitted_leaves_the_episode_open() {
    let mut s = Sender::detecting();
    s.push_full(10);
    for end in 4..=6 {
        s.ack(1, &[(4, end)]);
    }
    s.abandon(3);
    assert_eq!(s.resend(), [2]);
    s.ack(11, &[]);
    s.report(2);
    assert_eq!(s.events().total(), 0);
}

/// T3-rtx also runs for a FORWARD-TSN, whose expiry begins no episode.
#[test]
fn a_timeout_over_nothing_is_no_event() {
    let mut s = Sender::detecting();
    s.recovery.on_t3_event(s.now, 0, crate::T3Event::Needed);
    s.expire();
    s.push_full(1);
    s.ack(2, &[]);
    assert_eq!(s.events().total(), 0);
}

/// RFC 3708 §3 A.4: unit 3 was sent once, and is reported as a duplicate.
#[test]
fn a_network_that_duplicates_is_not_believed_for_a_while() {
    let mut s = one_repeated();
    s.report(3);
    s.ack(11, &[]);
    s.report(2);
    assert_eq!((s.events().total(), s.events().unexplained_duplicates), (0, 1));
    let spurious_event = |s: &mut Sender| {
        let first = s.recovery.outstanding().next_unit() - BASE;
        s.push_full(4);
        s.overtake(first, first + 3);
        s.resend();
        s.ack(first + 3, &[]);
        s.report(first);
        s.events().total()
    };
    assert_eq!(spurious_event(&mut s), 0, "it begins too early");
    for _ in 0..DISTRUST_UNITS {
        s.push_full(1);
        let last = s.recovery.outstanding().next_unit() - BASE - 1;
        s.ack(last, &[]);
    }
    assert_eq!(spurious_event(&mut s), 1);
    assert_eq!(s.events().unexplained_duplicates, 1);
}

/// One more report than copies: the network duplicated the copy, or the SACK that reported it.
#[test]
fn a_report_too_many_is_a_duplicate_by_the_network() {
    let mut s = one_repeated();
    s.ack(11, &[]);
    s.report(2);
    s.report(2);
    assert_eq!((s.events().total(), s.events().unexplained_duplicates), (1, 1));
}

#[test]
fn reports_of_what_was_never_sent_or_is_forgotten_mean_nothing() {
    let mut s = one_repeated();
    s.ack(11, &[]);
    s.report(12);
    s.report(1 << 40);
    s.recovery.release_memory();
    s.report(2);
    s.report(9);
    assert_eq!(s.events(), crate::SpuriousEvents::default());
}

/// An episode belongs to the path whose window it reduced, whichever path retransmits.
#[test]
fn each_path_has_its_own_events() {
    let mut s = Sender::detecting();
    s.recovery.open_path(None, FULL);
    s.recovery.state.paths[1].window = super::wide(20);
    s.push_over(1, &[FULL]); // 2
    s.push_full(6); // 3 to 8
    s.overtake(2, 5);
    assert_eq!(s.resend_over(0), [2]);
    s.at(200);
    let (cwnd, other) = (s.window(1).cwnd(), s.window(0).cwnd());
    // A timeout on the other path is an event of that.
    s.expire_path(0, TimeoutKind::Loss);
    s.ack(8, &[]);
    s.report(2);
    assert_eq!((s.events().fast_retransmits, s.events().undone), (1, 1));
    assert_eq!((s.window(1).cwnd(), s.window(1).ssthresh()), (cwnd, 20_000));
    assert!(s.window(0).ssthresh() < other);
}

/// With more transmissions than the log holds, some reports cannot be attributed, so the episode is not
/// proven.
#[test]
fn an_episode_larger_than_the_log_is_not_proven() {
    for (units, is_proven) in [(crate::LOG_CAPACITY, true), (crate::LOG_CAPACITY + 1, false)] {
        let mut s = Sender::detecting();
        s.push_full(units);
        s.expire();
        let last = units as u64 + 1;
        s.recovery.state.paths[0].gate.is_single_packet = false;
        s.recovery.state.paths[0].window = super::wide(units as u64 + 1);
        (0..units).for_each(|_| assert_eq!(s.resend().len(), 1));
        s.ack(last, &[]);
        (2..=last).rev().for_each(|unit| s.report(unit));
        assert_eq!(s.events().timeouts, u32::from(is_proven), "{units} units");
    }
}
