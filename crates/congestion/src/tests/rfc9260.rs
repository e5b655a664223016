use std::time::Duration;

use rexmit_core::Instant;

use super::RFC_9260;
use crate::*;

const PMDCS: u32 = 1000;
const TIMED_OUT: TimedOut = TimedOut { flight_size: 0, is_repeated: false };

fn partial_bytes_acked(window: &CongestionWindow) -> u64 {
    let Control::Rfc9260(control) = &window.control else { unreachable!("it is the default") };
    control.partial_bytes_acked
}

fn window() -> CongestionWindow {
    CongestionWindow::new(RFC_9260, PMDCS)
}

fn acked(window: &CongestionWindow, bytes: u64) -> Acked {
    Acked {
        now: Instant::ZERO,
        bytes,
        cumulative_bytes: bytes,
        flight_before: window.cwnd(),
        flight_after: 1,
        in_fast_recovery: false,
        srtt: None,
        rtt: None,
    }
}

#[test]
fn initial_window_follows_the_formula() {
    let cwnd = |pmdcs| CongestionWindow::new(RFC_9260, pmdcs).cwnd();
    assert_eq!(cwnd(1000), 4000);
    assert_eq!(cwnd(1452), 4404);
    assert_eq!(cwnd(9000), 18000);
}

#[test]
fn slow_start_grows_by_acknowledged_data_but_at_most_a_packet() {
    let mut w = window();
    w.on_acked(acked(&w, 400));
    assert_eq!(w.cwnd(), 4400);
    w.on_acked(acked(&w, 5000));
    assert_eq!(w.cwnd(), 5400);
}

#[test]
fn an_unused_window_and_fast_recovery_do_not_grow() {
    let mut w = window();
    w.on_acked(Acked { flight_before: 3999, ..acked(&w, 1000) });
    w.on_acked(Acked { in_fast_recovery: true, ..acked(&w, 1000) });
    assert_eq!(w.cwnd(), 4000);
}

#[test]
fn congestion_avoidance_adds_one_packet_per_window_acknowledged() {
    let mut w = window();
    w.window.cwnd = 20_000;
    w.on_fast_retransmit(0);
    assert_eq!((w.cwnd(), w.ssthresh()), (10_000, 10_000));
    w.window.cwnd = 10_001; // above the threshold
    for _ in 0..10 {
        w.on_acked(acked(&w, 1000));
    }
    assert_eq!(w.cwnd(), 10_001);
    w.on_acked(acked(&w, 1000));
    assert_eq!(w.cwnd(), 11_001);
}

/// Resource pooling v2: ⌈î · MTU⌉ for each window acknowledged.
#[test]
fn congestion_avoidance_of_a_coupled_window_adds_its_part_of_a_packet() {
    let mut w = window();
    w.window.ssthresh = 3000;
    w.set_share(Some(3.0 / 8.0));
    for _ in 0..3 {
        w.on_acked(acked(&w, 1000));
    }
    assert_eq!(w.cwnd(), 4000);
    w.on_acked(acked(&w, 1000));
    assert_eq!(w.cwnd(), 4375);
}

#[test]
fn partial_bytes_are_capped_while_the_window_is_not_used_and_dropped_when_all_is_acked() {
    let mut w = window();
    w.window.ssthresh = 3000;
    w.on_acked(Acked { flight_before: 10, ..acked(&w, 9000) });
    assert_eq!((partial_bytes_acked(&w), w.cwnd()), (4000, 4000));
    w.on_acked(Acked { flight_after: 0, flight_before: 10, ..acked(&w, 1) });
    assert_eq!(partial_bytes_acked(&w), 0);
}

#[test]
fn timeout_leaves_one_packet_and_threshold_has_a_floor() {
    let mut w = window();
    w.on_timeout(TIMED_OUT);
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 4000));
}

#[test]
fn window_that_holds_something_in_flight_does_not_decay() {
    let rto = Duration::from_secs(1);
    let mut w = window();
    w.window.cwnd = 32_000;
    w.on_send(Instant::from_millis(0), rto, 0);
    w.on_send(Instant::from_millis(60_000), rto, 1000);
    assert_eq!(w.cwnd(), 32_000);
}

#[test]
fn idle_window_halves_once_per_rto_down_to_four_packets_and_never_rises() {
    let rto = Duration::from_secs(1);
    let mut w = window();
    w.window.cwnd = 32_000;
    w.on_send(Instant::from_millis(0), rto, 0);
    w.on_send(Instant::from_millis(999), rto, 0);
    assert_eq!(w.cwnd(), 32_000);
    w.on_send(Instant::from_millis(2999), rto, 0);
    assert_eq!((w.cwnd(), w.ssthresh()), (8000, 32_000));
    w.on_send(Instant::from_millis(60_000), rto, 0);
    assert_eq!(w.cwnd(), 4000);
    w.on_timeout(TIMED_OUT);
    w.on_send(Instant::from_millis(600_000), rto, 0);
    assert_eq!(w.cwnd(), 1000);
}
