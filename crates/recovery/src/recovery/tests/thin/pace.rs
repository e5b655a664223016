//! The number of further copies when the probe timer of a unit expires that also has bundled copies.

use super::recovery_timer::WARM;
use super::*;
use crate::recovery::tests::BASE;
use crate::{DelayedCopyConfig, ProbeConfig};

const BUNDLED: ThinConfig = ThinConfig {
    probe_timer: Some(ProbeConfig::DEFAULT),
    bundling: Some(crate::BundlingConfig::ALL),
    delayed_copies: DelayedCopyConfig {
        of_retransmissions: Some(crate::RetransmissionCopies::ONE),
        ..DelayedCopyConfig::OFF
    },
    ..ThinConfig::OFF
};

/// Sends the first unit at once, and each of the others after this many microseconds more.
fn bundled(thin: ThinConfig, others: &[u64]) -> Sender {
    let mut s = Sender::warm(|config| {
        config.thin = thin;
        config.initial_window_packets = 20;
        config.initial_window_bytes = 20_000;
    });
    s.push(&[SMALL]);
    for &us in others {
        assert_eq!(s.after_us(us).push_with_copies(false)[0] - 40, 1);
    }
    s
}

/// With one message per round trip, each is also bundled with the next one, just before its probe timer expires.
#[test]
fn a_copy_that_left_just_now_is_one_of_the_two_of_a_retransmission() {
    let mut s = bundled(BUNDLED, &[100_000]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]));
    assert_eq!(s.cwnd(), 10_000, "a loss as any other");
    assert_eq!(s.after_us(102_500).timers().copy_ready(), []);
    assert_eq!(s.repeat_next(), (201_500, vec![2]));
    assert_eq!(s.after_us(202_500).timers().copy_ready(), [2]);
    // Nothing new left since, so that both copies of a repetition are missing.
    assert_eq!(s.repeat_next(), (203_000, vec![1]));
    assert_eq!(s.after_us(204_000).timers().copy_ready(), [1]);
    let counted = s.recovery.statistics();
    assert_eq!((s.cwnd(), counted.fast_recoveries), (10_000, 1), "of one window");
}

/// A retransmission that new data followed lacks the same number of copies as an original.
#[test]
fn copies_of_what_was_retransmitted_count_as_well() {
    let mut s = bundled(BUNDLED, &[100_000]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]));
    assert_eq!(s.after_us(200_000).push_with_copies(false), [41, 42]);
    assert_eq!(s.repeat_next(), (201_500, vec![2]));
    assert_eq!(s.repeat_next(), (203_000, vec![1]));
    assert_eq!(s.after_us(204_000).timers().copy_ready(), []);
}

#[test]
fn with_as_many_copies_as_a_retransmission_nothing_more_is_sent() {
    let mut s = bundled(BUNDLED, &[50_000, 100_000]);
    assert_eq!(s.repeat_next(), (101_500, vec![]));
    let counted = *s.recovery.statistics();
    assert_eq!((counted.fast_recoveries, counted.packets_lost), (0, 0), "the copies will tell");
    // The second left with one more; the latest of the first is the last of its round, and two leave.
    assert_eq!(s.repeat_next(), (151_500, vec![2]));
    assert_eq!(s.repeat_next(), (201_500, vec![1, 3]));
    assert_eq!(s.after_us(202_500).timers().copy_ready(), [1, 3]);
}

#[test]
fn of_three_copies_the_missing_ones_are_sent() {
    let delayed_copies = DelayedCopyConfig {
        of_retransmissions: crate::state::tests::copies(2),
        ..BUNDLED.delayed_copies
    };
    let mut s = bundled(ThinConfig { delayed_copies, ..BUNDLED }, &[100_000]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]));
    assert_eq!(s.after_us(102_500).timers().copy_ready(), [1]);
    assert_eq!(s.after_us(103_500).timers().copy_ready(), []);
}

/// One copy was sent, which is enough if the budget allows no other.
#[test]
fn missing_copies_are_sent_within_the_budget() {
    let copy_budget = crate::state::tests::budget(1, 0);
    let mut s = bundled(ThinConfig { copy_budget, ..BUNDLED }, &[100_000]);
    assert_eq!(s.repeat_next(), (101_500, vec![]));
    assert_eq!(s.recovery.statistics().copies_denied, 1);
    assert_eq!(s.repeat_next(), (201_500, vec![1, 2]));
}

/// A packet that lacks a copy draws on the budget as any packet of copies: (16 + 40 + 2) · 2 % is one.
#[test]
fn missing_copies_count_against_the_budget() {
    let copy_budget = crate::state::tests::budget(2, 0);
    let mut s = bundled(ThinConfig { copy_budget, ..BUNDLED }, &[100_000]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]));
    assert_eq!(s.repeat_next(), (201_500, vec![2]));
    assert_eq!(s.after_us(202_500).timers().copy_ready(), []);
}

/// When little of the budget is left, data sent more than a round trip ago is copied first.
#[test]
fn data_older_than_a_round_trip_is_copied_before_newer_data() {
    let copy_budget = crate::state::tests::budget(0, 20);
    let test = crate::ThinTest::Packets(16);
    let mut s = Sender::warm(|config| config.thin = ThinConfig { copy_budget, test, ..BUNDLED });
    // (4096 + 40 · 100) · 20 % allow for 16 copies; the last is kept.
    s.push(&[SMALL]);
    for us in 1..=12 {
        s.after_us(us).push_with_copies(false);
    }
    assert!(!s.after_us(99_000).push_with_copies(false).contains(&(WARM + 1)));
    let copied = s.after_us(100_000).push_with_copies(false);
    assert_eq!((copied[0], copied.len() < 3), (WARM + 1, true), "{copied:?}");
    assert!(s.recovery.outstanding().unit(BASE + WARM + 1).is_some() && s.is_thin());
}
