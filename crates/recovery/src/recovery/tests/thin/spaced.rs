//! Delayed copies: when they are sent, and when they are not.

use super::*;
use crate::{CopyBudget, DelayedCopyConfig, ProbeConfig};

const DOUBLED: ThinConfig = ThinConfig {
    probe_timer: Some(ProbeConfig::DEFAULT),
    delayed_copies: DelayedCopyConfig {
        of_retransmissions: Some(crate::RetransmissionCopies::ONE),
        ..DelayedCopyConfig::OFF
    },
    ..ThinConfig::OFF
};

impl Sender {
    /// Sends the copies that are ready for the first path in one packet, and returns them.
    pub(super) fn copy_ready(&mut self) -> Vec<u64> {
        self.copies_ready(usize::MAX).into_iter().map(|unit| unit - 40).collect()
    }
}

/// A unit that was retransmitted 101.5 ms after it was sent.
fn repeated(thin: ThinConfig) -> Sender {
    let mut s = Sender::warm(|config| config.thin = thin);
    s.push(&[SMALL]);
    assert_eq!(s.repeat_next(), (101_500, vec![1]));
    s
}

#[test]
fn a_retransmission_has_a_copy_a_millisecond_later() {
    let mut s = repeated(DOUBLED);
    assert_eq!(s.next_us(), Some(102_500));
    assert_eq!(s.after_us(102_500).timers().copy_ready(), [1]);
    let counted = *s.recovery.statistics();
    assert_eq!((counted.retransmitted.probe, counted.retransmitted.redundant), (1, 1));
    assert_eq!((counted.delayed_copies, counted.retransmitted.total()), (1, 1));
    assert_eq!(s.flight(), (1, 100), "one of them is in flight for the books");
    // The timer expires over the pair when it does over the second, and both are retransmitted.
    assert_eq!(s.repeat_next(), (204_000, vec![1]));
    assert_eq!(s.after_us(205_000).timers().copy_ready(), [1]);
    assert_eq!(s.recovery.statistics().fast_recoveries, 1);
}

#[test]
fn copies_follow_each_other() {
    let delayed_copies = DelayedCopyConfig {
        of_retransmissions: crate::state::tests::copies(2),
        ..DOUBLED.delayed_copies
    };
    let mut s = repeated(ThinConfig { delayed_copies, ..DOUBLED });
    for us in [102_500, 103_500] {
        assert_eq!(s.next_us(), Some(us));
        assert_eq!(s.after_us(us).timers().copy_ready(), [1]);
    }
    assert_eq!(s.next_us(), Some(205_000));
}

#[test]
fn data_acknowledged_before_its_copy_is_due_is_not_copied() {
    let mut s = repeated(DOUBLED);
    s.after_us(102_000).ack_after_warm(1, &[]);
    assert_eq!(s.after_us(102_500).timers().copy_ready(), []);
}

#[test]
fn without_the_switch_there_is_none() {
    let mut s = repeated(ThinConfig { delayed_copies: DelayedCopyConfig::OFF, ..DOUBLED });
    assert_eq!(s.after_us(110_000).timers().copy_ready(), []);
}

/// The duplicate is attributed to our copy: it is neither a spurious retransmission nor a duplicate by the network.
#[test]
fn the_reports_of_both_are_explained() {
    let mut s = repeated(DOUBLED);
    assert_eq!(s.after_us(102_500).timers().copy_ready(), [1]);
    s.after_us(201_500).ack_after_warm(1, &[]);
    s.after_us(202_500).report(41);
    let counted = *s.recovery.statistics();
    assert_eq!((counted.spurious.total(), counted.spurious_events.unexplained_duplicates), (0, 0));
    assert_eq!(counted.acks_missed, 0);
    // A second one: the first sending had arrived, and its acknowledgement was lost.
    s.report(41);
    let counted = *s.recovery.statistics();
    assert_eq!((counted.spurious.probe, counted.acks_missed), (1, 1));
    s.report(41);
    assert_eq!(s.recovery.statistics().spurious_events.unexplained_duplicates, 1);
}

/// The 40 units before allow for (40 + 1 + 16) · 2 % of packets.
#[test]
fn a_budget_that_is_spent_denies_copies() {
    let copy_budget = crate::state::tests::budget(2, 0);
    let mut s = repeated(ThinConfig { copy_budget, ..DOUBLED });
    assert_eq!(s.after_us(102_500).timers().copy_ready(), [1]);
    assert_eq!(s.repeat_next(), (204_000, vec![1]));
    assert_eq!(s.after_us(205_000).timers().copy_ready(), []);
    assert_eq!(s.recovery.statistics().copies_denied, 1);
}

/// Three copies are due at once, each in a packet of its own. The first uses up the budget.
#[test]
fn a_budget_bounds_copies_that_are_due_at_once() {
    let left = |copy_budget, per_packet| {
        let mut s = Sender::warm(|config| config.thin = ThinConfig { copy_budget, ..DOUBLED });
        (0..3).for_each(|_| s.push(&[SMALL]));
        assert_eq!(s.repeat_next(), (101_500, vec![1, 2, 3]));
        s.after_us(102_500).timers();
        let mut packets = Vec::new();
        loop {
            match s.copies_ready(per_packet).len() {
                0 => break,
                copied => packets.push(copied),
            }
        }
        // The next look at what is due counts what was not.
        let after = s.next_us().expect("the timer is for the copies");
        s.after_us(after).timers();
        (packets, s.recovery.statistics().copies_denied)
    };
    assert_eq!(left(CopyBudget::UNLIMITED, 1), (vec![1, 1, 1], 0));
    // (40 + 3 + 16) · 2 % of packets.
    let packets = crate::state::tests::budget(2, 0);
    assert_eq!(left(packets, 1), (vec![1], 2));
    assert_eq!(left(packets, 3), (vec![3], 0), "in one packet");
    // (43 · 100 + 4096) · 3 % of bytes.
    let bytes = crate::state::tests::budget(0, 3);
    assert_eq!(left(bytes, 1), (vec![1, 1], 1));
    assert_eq!(left(bytes, 3), (vec![2], 1));
}

#[test]
fn a_budget_of_bytes_bounds_what_is_copied_beside_new_data() {
    let copies = |bytes_percent| {
        let copy_budget = crate::state::tests::budget(0, bytes_percent);
        let mut s = Sender::thin(ThinConfig {
            bundling: crate::state::tests::bundling(9),
            copy_budget,
            ..ThinConfig::OFF
        });
        s.push(&[SMALL]);
        (1..500).for_each(|n| {
            s.at(10 * n);
            s.push_with_copies(false);
            s.ack(n.saturating_sub(2), &[]);
        });
        let counted = s.recovery.statistics();
        assert_eq!(counted.copies_denied > 100, bytes_percent > 0, "{counted:?}");
        counted.redundant_bytes
    };
    assert!(copies(0) > 140_000, "three of each");
    assert!((20_000..30_000).contains(&copies(50)), "{}", copies(50));
}

#[test]
fn a_thick_stream_and_a_full_window_have_no_copies() {
    let mut s = repeated(DOUBLED);
    (0..4).for_each(|_| s.push(&[SMALL]));
    assert_eq!(s.after_us(102_500).timers().copy_ready(), []);
    let mut s = repeated(DOUBLED);
    (0..3).for_each(|_| s.push(&[2 * FULL]));
    assert!(s.is_thin());
    assert_eq!(s.after_us(102_500).timers().copy_ready(), []);
}

/// RTTs above the minimum indicate a queue, which suppresses copies.
#[test]
fn a_queue_has_no_copies() {
    for (grown, want) in [(100, vec![1]), (130, vec![])] {
        let queue_delay_limit = Some(Duration::from_millis(25));
        let mut s = repeated(ThinConfig { queue_delay_limit, ..DOUBLED });
        let rtt = Duration::from_millis(grown);
        for _ in 0..100 {
            s.heartbeat(0, rtt);
        }
        assert_eq!(s.after_us(102_500).timers().copy_ready(), want, "{grown} ms");
        assert_eq!(s.recovery.statistics().copies_denied, u64::from(grown > 100));
    }
}

/// The last message has a copy 10 ms later; other messages have none.
#[test]
fn data_that_no_new_data_follows_is_copied() {
    let after = Some(Duration::from_millis(10));
    let delayed_copies = DelayedCopyConfig { of_last_after: after, ..DelayedCopyConfig::OFF };
    let mut s = Sender::warm(|config| config.thin = ThinConfig { delayed_copies, ..DOUBLED });
    s.push(&[SMALL]);
    s.after_us(9_000).push(&[SMALL / 2, SMALL / 2]);
    assert_eq!(s.next_us(), Some(19_000));
    assert_eq!(s.after_us(19_000).timers().copy_ready(), [2, 3]);
    assert_eq!(s.recovery.statistics().delayed_copies, 2);
    s.after_us(20_000).push(&[SMALL]);
    s.after_us(29_000).ack_after_warm(4, &[]);
    assert_eq!(s.after_us(30_000).timers().copy_ready(), []);
}

/// A unit that was sent and, because no message followed, copied 10 ms later.
fn last_copied(loss_hiding: bool) -> Sender {
    let after = Some(Duration::from_millis(10));
    let delayed_copies = DelayedCopyConfig { of_last_after: after, ..DelayedCopyConfig::OFF };
    let mut s = Sender::warm(|config| {
        config.thin = ThinConfig { delayed_copies, loss_hiding, ..DOUBLED };
        config.initial_window_packets = 20;
        config.initial_window_bytes = 20_000;
    });
    s.push(&[SMALL]);
    assert_eq!(s.after_us(10_000).timers().copy_ready(), [1]);
    s
}

/// The ACK arrives at the time for the copy, so the original was lost.
#[test]
fn a_loss_that_the_copy_of_the_last_repaired_reduces_the_window() {
    for (loss_hiding, window) in [(false, 10_000), (true, 20_000)] {
        let mut s = last_copied(loss_hiding);
        s.after_us(110_000).ack_after_warm(1, &[]);
        assert_eq!((s.cwnd(), s.recovery.statistics().packets_repaired), (window, 1));
    }
}

#[test]
fn an_ack_before_that_to_the_copy_or_with_a_duplicate_shows_that_nothing_was_lost() {
    let mut s = last_copied(false);
    s.after_us(100_000).ack_after_warm(1, &[]);
    s.after_us(110_000).report(41);
    assert_eq!((s.cwnd(), s.recovery.statistics().packets_repaired), (20_000, 0));
    assert_eq!(s.recovery.statistics().spurious.total(), 0);
    // The answer to the original was lost, and that to the copy reports both.
    let mut s = last_copied(false);
    s.after_us(110_000).report(41);
    s.ack_after_warm(1, &[]);
    assert_eq!((s.cwnd(), s.recovery.statistics().packets_repaired), (20_000, 0));
}

/// The window fell when the loss was found, and a late ACK of the copy does not reduce it again.
#[test]
fn a_loss_reduces_the_window_once_however_it_was_detected() {
    let mut s = last_copied(false);
    assert_eq!(s.repeat_next(), (111_500, vec![1]));
    assert_eq!(s.cwnd(), 10_000);
    s.after_us(115_000).ack_after_warm(1, &[]);
    assert_eq!((s.cwnd(), s.recovery.statistics().packets_repaired), (10_000, 0));
}
