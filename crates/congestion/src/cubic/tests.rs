//! Tables by hand from the formulas of RFC 9438, for packets of 1000 bytes.

use std::time::Duration;

use rexmit_core::Instant;

use super::Stage;
use crate::tests::RFC_9260;
use crate::{Acked, CongestionControl, CongestionWindow, Control, TimedOut, WindowConfig};

const PACKET: u64 = 1000;
const RTO: Duration = Duration::from_secs(1);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// A window of `packets` that is reduced by a loss with all of it outstanding.
fn reduced_from(packets: u64) -> CongestionWindow {
    let mut w = window(packets);
    w.on_fast_retransmit(packets * PACKET);
    w
}

fn window(packets: u64) -> CongestionWindow {
    let config = WindowConfig { control: CongestionControl::Cubic, ..RFC_9260 };
    let mut w = CongestionWindow::new(config, 1000);
    w.window.cwnd = packets * PACKET;
    w
}

/// An acknowledgement of `bytes` that finds the window full.
fn full(w: &CongestionWindow, ms: u64, bytes: u64, rtt_ms: u64) -> Acked {
    Acked {
        now: at(ms),
        bytes,
        cumulative_bytes: bytes,
        flight_before: w.cwnd(),
        flight_after: w.cwnd() - bytes,
        in_fast_recovery: false,
        srtt: Some(Duration::from_millis(rtt_ms)),
        rtt: None,
    }
}

fn stage(w: &CongestionWindow) -> Stage {
    let Control::Cubic(cubic) = &w.control else { unreachable!("it is CUBIC") };
    cubic.stage.expect("congestion avoidance")
}

fn w_max(w: &CongestionWindow) -> Option<f64> {
    let Control::Cubic(cubic) = &w.control else { unreachable!("it is CUBIC") };
    cubic.w_max
}

#[track_caller]
fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
}

/// RFC 9438 §4.6: `flight_size` · 0.7, two packets at least, and never more than of the window: a recovery may have sent many
/// windows beyond what was lost.
#[test]
fn a_loss_leaves_seven_tenths_of_outstanding_data() {
    for (flight, left) in
        [(100_000, 70_000), (80_000, 56_000), (2000, 2000), (0, 2000), (1_000_000, 70_000)]
    {
        let mut w = window(100);
        w.on_fast_retransmit(flight);
        assert_eq!((w.cwnd(), w.ssthresh()), (left, left), "{flight} bytes outstanding");
    }
}

/// RFC 9438 §4.2: K = ∛((W_max − cwnd_epoch) / C) = ∛75, and W_cubic by hand around it.
#[test]
fn the_function_is_flat_at_the_old_window() {
    let mut w = reduced_from(100);
    w.on_acked(full(&w, 0, PACKET, 100));
    let stage = stage(&w);
    assert_near(stage.k, 4.217_163, 1e-6);
    // 100 + 0.4·(t − K)³
    let table = [(0.0, 70.0), (1.0, 86.680_764), (2.0, 95.640_336), (4.0, 99.995_903)];
    for (t, packets) in table.into_iter().chain([(4.217_163_327, 100.0), (8.434_326_653, 130.0)]) {
        assert_near(stage.w_cubic(t), packets, 2e-6);
    }
}

/// RFC 9438 §4.4: each acknowledged packet adds (W_cubic(t + RTT) − cwnd) / cwnd of one.
#[test]
fn growth_leads_to_the_function_one_round_trip_ahead() {
    let mut w = reduced_from(100);
    w.on_acked(full(&w, 0, PACKET, 100));
    // At t = 0 the function is below Reno's estimate, 70 + 0.529412 / 70 packets.
    assert_eq!(w.cwnd(), 70_007);
    // At t = 1 s: (W_cubic(1.1) − 70.007563) / 70.007563 = (87.884575 − 70.007563) / 70.007563.
    w.on_acked(full(&w, 1000, PACKET, 100));
    assert_eq!(w.cwnd(), 70_262);
}

/// RFC 9438 §4.2: the target is 1.5 · cwnd at most, so a packet adds half of one at most.
#[test]
fn growth_is_bounded_by_half_of_the_window_per_round() {
    let mut w = reduced_from(1000);
    w.on_acked(full(&w, 0, PACKET, 100));
    let before = w.cwnd();
    w.on_acked(full(&w, 60_000, PACKET, 100));
    assert_eq!(w.cwnd(), before + 500);
}

/// RFC 9438 §4.2: a window served by one acknowledgement per packet is back at W_max after K.
#[test]
fn a_used_window_is_back_after_k() {
    let mut w = reduced_from(100);
    for ms in (0..=4217).step_by(200) {
        for _ in 0..w.cwnd() / PACKET {
            w.on_acked(full(&w, ms, PACKET, 200));
        }
    }
    assert_near(w.cwnd() as f64 / 1000.0, 100.0, 0.1);
}

/// RFC 9438 §4.3: 3·0.3/1.7 packets per round until the window that was reduced is reached again,
/// one packet per round from then on. A round trip of 1 ms is the region of Reno.
#[test]
fn short_round_trips_grow_like_reno() {
    let mut w = reduced_from(10);
    let mut rounds = Vec::new();
    for ms in 0..10 {
        let bytes = w.cwnd();
        w.on_acked(full(&w, ms, bytes, 1));
        rounds.push(w.cwnd());
    }
    // 7 + n · 0.529412: the sixth passes 10; seven more rounds would not have done by 0.5.
    let slow = [7529, 8058, 8588, 9117, 9647, 10_176];
    let fast = [11_176, 12_176, 13_176, 14_176];
    for (round, expected) in rounds.into_iter().zip(slow.into_iter().chain(fast)) {
        assert_near(round as f64, f64::from(expected), 2.0);
    }
}

/// RFC 9438 §4.7: a window that fell short of W_max lowers it to (1 + 0.7)/2 of itself.
#[test]
fn fast_convergence_lowers_the_plateau() {
    let mut w = reduced_from(100);
    assert_eq!(w_max(&w), Some(100.0));
    w.on_fast_retransmit(70_000);
    assert_near(w_max(&w).expect("reduced"), 59.5, 1e-9);
    w.window.cwnd = 60_000;
    w.on_fast_retransmit(60_000);
    assert_eq!(w_max(&w), Some(60.0));
}

/// RFC 9438 §4.8: one packet, 0.7 of what was outstanding; from there K is 0 and W_max the window
/// at the start of congestion avoidance: W(t) = 70 + 0.4·t³.
#[test]
fn after_a_timeout_the_function_begins_at_its_plateau() {
    let mut w = window(100);
    w.on_timeout(TimedOut { flight_size: 100_000, is_repeated: false });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 70_000));
    w.on_timeout(TimedOut { flight_size: 10_000, is_repeated: true });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 70_000), "the same unit again");
    while w.cwnd() < w.ssthresh() {
        w.on_acked(full(&w, 0, PACKET, 100));
    }
    w.on_acked(full(&w, 1000, PACKET, 100));
    let stage = stage(&w);
    assert_eq!((stage.k, stage.w_max, w_max(&w)), (0.0, 70.0, Some(70.0)));
    assert_near(stage.w_cubic(5.0), 120.0, 1e-9);
}

/// RFC 9438 §5.8: a window that is not used does not grow, and the time does not count.
/// The window is a packet then, and says nothing of what was outstanding; the threshold does.
#[test]
fn a_timeout_does_not_raise_the_threshold() {
    let mut w = window(100);
    w.on_fast_retransmit(100_000);
    w.on_timeout(TimedOut { flight_size: 1_000_000, is_repeated: false });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 49_000));
    w.on_timeout(TimedOut { flight_size: 1_000_000, is_repeated: false });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 34_300));
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count() {
    let mut w = reduced_from(100);
    w.on_acked(full(&w, 0, PACKET, 100));
    let window_of_bytes = w.cwnd();
    w.on_acked(Acked { flight_after: 1, ..full(&w, 1000, window_of_bytes, 100) });
    let before = w.cwnd();
    for ms in (2000..=60_000).step_by(1000) {
        let half = Acked { flight_before: before / 2, ..full(&w, ms, PACKET, 100) };
        w.on_acked(half);
    }
    assert_eq!(w.cwnd(), before);
    w.on_acked(full(&w, 62_000, PACKET, 100));
    // The window was used until 2 s, when it was found not to be.
    assert_eq!(stage(&w).began, at(60_000));
}

/// RFC 9438 §5.8: nor does the time in which nothing is sent.
#[test]
fn time_in_which_nothing_is_in_flight_does_not_count() {
    let mut w = reduced_from(100);
    w.window.initial = u64::MAX; // The restart window (RFC 5681 §4.1) changes nothing.
    w.on_send(at(0), RTO, 0);
    w.on_acked(full(&w, 0, PACKET, 100));
    let all = w.cwnd();
    w.on_acked(full(&w, 100, all, 100));
    w.on_send(at(30_100), RTO, 0);
    w.on_acked(full(&w, 30_200, PACKET, 100));
    assert_eq!(stage(&w).began, at(30_000));
}

/// RFC 5681 §4.1: after an RTO without sending the window is the initial one, and congestion
/// avoidance begins again when slow start is over.
#[test]
fn an_idle_window_starts_again() {
    let mut w = reduced_from(100);
    w.on_send(at(0), RTO, 0);
    w.on_acked(full(&w, 0, PACKET, 100));
    w.on_send(at(1001), RTO, 0);
    assert_eq!((w.cwnd(), w.ssthresh()), (4000, 70_000));
    w.window.cwnd = 70_000;
    w.on_acked(full(&w, 5000, PACKET, 100));
    assert_eq!(stage(&w).began, at(5000));
}
