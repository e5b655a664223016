//! Fast retransmit and fast recovery (RFC 9260 §7.2.3, §7.2.4).

use super::{FULL, Sender};

impl Sender {
    /// Three SACKs that show `missing` lost and acknowledge up to `last`.
    fn lose(&mut self, missing: u64, last: u64) {
        for end in [last - 2, last - 1, last] {
            self.ack(missing - 1, &[(missing + 1, end)]);
        }
    }
}

/// RFC 9260 §7.2.4 rules 2 and 6, §7.2.3.
#[test]
fn entry_halves_the_window_once() {
    let mut s = Sender::bursting();
    s.push_full(20);
    s.recovery.state.paths[0].window = wide(20);
    s.ack(0, &[(2, 4)]);
    s.ack(0, &[(2, 5)]);
    let before = s.cwnd();
    s.ack(0, &[(2, 6)]);
    assert_eq!((s.cwnd(), s.ssthresh()), (before / 2, before / 2));
    assert!(s.is_in_fast_recovery());
}

/// A window of `packets`, grown by slow start.
pub(super) fn wide(packets: u64) -> crate::CongestionWindow {
    let mut window = crate::CongestionWindow::new(crate::RecoveryConfig::rfc9260().window(), FULL);
    while window.cwnd() < packets * u64::from(FULL) {
        window.on_acked(rexmit_congestion::Acked {
            now: rexmit_core::Instant::ZERO,
            bytes: FULL.into(),
            cumulative_bytes: FULL.into(),
            srtt: None,
            rtt: None,
            flight_before: u64::MAX,
            flight_after: 1,
            in_fast_recovery: false,
        });
    }
    window
}

/// RFC 9260 §7.2.4 rule 6: further losses in the same recovery cost nothing more.
#[test]
fn a_second_loss_in_recovery_does_not_reduce_again() {
    let mut s = Sender::bursting();
    s.push_full(20);
    s.recovery.state.paths[0].window = wide(20);
    s.lose(1, 6);
    let reduced = s.cwnd();
    assert_eq!(s.resend(), [1]);
    for end in [9, 10, 11] {
        s.ack(0, &[(2, 7), (9, end)]);
    }
    assert!(s.has_lost(), "8 is lost, too");
    assert_eq!((s.cwnd(), s.recovery.statistics().fast_recoveries), (reduced, 1));
}

/// Two units lost with the same report are one event.
#[test]
fn units_lost_together_reduce_once() {
    let mut s = Sender::bursting();
    s.push_full(15); // The window is not used, and does not grow.
    s.recovery.state.paths[0].window = wide(20);
    for end in [4, 5, 6] {
        s.ack(0, &[(3, end)]);
    }
    assert_eq!((s.cwnd(), s.recovery.statistics().fast_recoveries), (10_000, 1));
}

/// RFC 9260 §7.2.4 rule 2: every path over which something was lost is reduced, in one event.
#[test]
fn each_path_that_lost_something_is_reduced_in_one_event() {
    let mut s = Sender::bursting();
    s.add_confirmed_path();
    for path in [0, 1] {
        s.recovery.state.paths[path].window = wide(20);
    }
    s.push_over(0, &[FULL]);
    s.push_over(1, &[FULL]);
    s.push_full(3);
    for end in [3, 4, 5] {
        s.ack(0, &[(3, end)]);
    }
    assert_eq!([0, 1].map(|path| s.window(path).cwnd()), [10_000, 10_000]);
    assert_eq!(s.recovery.statistics().fast_recoveries, 1);
}

/// RFC 9260 §7.2.4 rule 6, §6.2.1 D iv: the exit point is the highest unit outstanding at entry.
#[test]
fn recovery_ends_when_the_cumulative_point_reaches_the_exit_and_a_new_loss_reduces_again() {
    let mut s = Sender::bursting();
    s.push_full(8);
    s.recovery.state.paths[0].window = wide(40);
    s.lose(1, 6);
    assert_eq!(s.cwnd(), 20_000);
    assert_eq!(s.resend(), [1]);
    s.push_full(4); // 9 to 12 left after the entry
    s.ack(7, &[]);
    assert!(s.is_in_fast_recovery(), "8 was outstanding at the entry");
    s.ack(8, &[]);
    assert!(!s.is_in_fast_recovery());
    s.push_full(1);
    for end in [11, 12, 13] {
        s.ack(9, &[(11, end)]);
    }
    assert!(s.is_in_fast_recovery());
    assert_eq!((s.cwnd(), s.recovery.statistics().fast_recoveries), (10_000, 2));
}

/// RFC 9260 §7.2.4 rule 3: one packet at once, whatever the window; the rest as it allows.
#[test]
fn the_first_packet_ignores_the_window_and_the_second_does_not() {
    let mut s = Sender::bursting();
    s.push_full(12);
    for end in [4, 5, 6] {
        s.ack(0, &[(3, end)]);
    }
    // cwnd is 4000 and six packets are still in flight.
    assert_eq!((s.cwnd(), s.flight().1), (4000, 6000));
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.resend(), [0; 0]);
    assert!(!s.has_room_for_new(0));
    s.ack(0, &[(3, 10)]);
    assert_eq!(s.flight().1, 3000);
    assert_eq!(s.resend(), [2]);
}

/// RFC 9260 §7.2.4, Note: growth comes before the reduction.
#[test]
fn a_sack_that_advances_grows_the_window_before_it_is_reduced() {
    let mut s = Sender::bursting();
    s.push_full(20);
    s.recovery.state.paths[0].window = wide(16);
    s.ack(0, &[(3, 3)]);
    s.ack(0, &[(3, 4)]);
    let before = s.cwnd();
    let outcome = s.ack(1, &[(3, 5)]);
    assert_eq!(outcome.newly_lost, 1);
    assert_eq!(s.cwnd(), (before + 1000) / 2);
}

/// RFC 9260 §7.2.1: no growth during fast recovery.
#[test]
fn the_window_does_not_grow_in_recovery() {
    let mut s = Sender::bursting();
    s.push_full(20);
    s.lose(1, 4);
    s.resend();
    let reduced = s.cwnd();
    for end in 5..=20 {
        s.ack(0, &[(2, end)]);
    }
    assert_eq!(s.cwnd(), reduced);
}

/// Two SACKs at once: the second acknowledges the units that the first declared lost. Nothing is to be
/// retransmitted, and new units must not wait for it.
#[test]
fn a_loss_taken_back_before_it_was_retransmitted_blocks_nothing() {
    let mut s = Sender::bursting();
    s.push_full(5);
    s.lose(1, 4);
    assert!(s.next_lost(0).is_some());
    s.ack(4, &[]);
    assert_eq!(s.next_lost(0), None);
    assert!(s.has_room_for_new(0), "one packet is in flight, and the window holds four");
}
