//! The cost of an acknowledgement, in units looked at, and of duplicates.

use super::super::{FULL, Sender};

const WINDOW: u64 = 10_000;
const PER_UNIT: u64 = 20;

fn with_window() -> Sender {
    let mut s = Sender::sack();
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
fn a_growing_block_behind_a_gap_costs_what_is_new() {
    let mut s = with_window();
    for end in 2..=WINDOW {
        s.ack(0, &[(2, end)]);
        while !s.resend().is_empty() {}
        s.rescue();
    }
    assert_cheap(&s, WINDOW);
}

/// Half of the units are lost, every second one.
#[test]
fn many_holes_cost_each_once() {
    let mut s = with_window();
    let mut blocks = std::collections::VecDeque::new();
    for unit in (2..=WINDOW).step_by(2) {
        blocks.push_front((unit, unit));
        blocks.truncate(3);
        let mut ascending: Vec<_> = blocks.iter().copied().collect();
        ascending.reverse();
        s.ack(0, &ascending);
    }
    assert_eq!(s.recovery.statistics().packets_lost, WINDOW / 2 - 2);
    assert_cheap(&s, WINDOW);
}

#[test]
fn an_endless_row_of_duplicates_costs_nothing_and_makes_no_more_room_than_was_in_flight() {
    let mut s = Sender::newreno();
    s.push_full(4);
    s.recovery.outstanding().visits().set(0);
    s.duplicates(10_000);
    assert_cheap(&s, 10);
    s.resend();
    let sent = s.fill() as u64;
    assert!(sent * u64::from(FULL) <= s.cwnd() + 4 * u64::from(FULL), "{sent}");
}
