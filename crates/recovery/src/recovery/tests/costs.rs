//! The cost of an ACK, in units visited: it depends on the content of the ACK, not on the window (the mistake
//! of webrtc-rs/rtc#242).

use super::{FULL, Sender};

const WINDOW: u64 = 10_000;
/// Units looked at for each unit sent, acknowledged or declared lost: a constant.
const PER_UNIT: u64 = 20;

fn with_window() -> Sender {
    let mut s = Sender::bursting();
    s.push_full(WINDOW as usize);
    s.recovery.outstanding().visits().set(0);
    s
}

#[track_caller]
fn assert_cheap(s: &Sender, steps: u64) {
    let visits = s.recovery.outstanding().visits().get();
    assert!(visits <= PER_UNIT * steps, "{visits} units were looked at in {steps} steps");
}

#[test]
fn a_cumulative_acknowledgement_costs_what_it_acknowledges() {
    let mut s = with_window();
    for unit in 1..=WINDOW {
        s.ack(unit, &[]);
    }
    assert_cheap(&s, WINDOW);
}

/// The first unit is missing, and every SACK shows one more of the others.
#[test]
fn a_growing_block_behind_a_gap_costs_what_is_new() {
    let mut s = with_window();
    for end in 2..=WINDOW {
        s.ack(0, &[(2, end)]);
    }
    assert_cheap(&s, WINDOW);
}

/// Every SACK repeats the same blocks, and reports nothing new.
#[test]
fn repeated_blocks_cost_nothing() {
    let mut s = with_window();
    s.ack(0, &[(2, WINDOW / 2), (WINDOW / 2 + 2, WINDOW)]);
    s.recovery.outstanding().visits().set(0);
    for _ in 0..1000 {
        s.ack(0, &[(2, WINDOW / 2), (WINDOW / 2 + 2, WINDOW)]);
    }
    assert_cheap(&s, 1000);
}

/// After a timeout each ACK allows one packet, and the whole window is visited once in total.
#[test]
fn recovery_from_a_timeout_costs_the_window_once() {
    let mut s = with_window();
    s.expire();
    for unit in 1..=WINDOW {
        while !s.resend().is_empty() {}
        s.ack(unit, &[]);
    }
    assert_cheap(&s, 2 * WINDOW);
}

/// Acknowledgements from the back: the earliest outstanding unit stays where it is.
#[test]
fn acknowledgements_from_the_back_do_not_search_the_front() {
    let mut s = with_window();
    for start in (2..=WINDOW).rev() {
        s.ack(0, &[(start, WINDOW)]);
        while !s.resend().is_empty() {}
    }
    assert_cheap(&s, 2 * WINDOW);
}

/// Units are abandoned one by one, the oldest first.
#[test]
fn abandoning_costs_as_much_as_is_abandoned() {
    let mut s = with_window();
    for unit in 1..=WINDOW {
        s.abandon(unit);
    }
    assert_cheap(&s, WINDOW);
    assert_eq!(s.flight(), (0, 0));
    s.push(&[FULL]);
    assert!(s.t3().is_some());
}
