use std::time::Duration;

use rexmit_core::Instant;

use super::RFC_9260;
use crate::*;

const RTO: Duration = Duration::from_secs(1);

fn window(packets: u64) -> CongestionWindow {
    let config = WindowConfig { control: CongestionControl::NewReno, ..RFC_9260 };
    let mut w = CongestionWindow::new(config, 1000);
    w.window.cwnd = packets * 1000;
    w
}

fn full(w: &CongestionWindow, bytes: u64) -> Acked {
    Acked {
        now: Instant::ZERO,
        bytes,
        cumulative_bytes: bytes,
        flight_before: w.cwnd(),
        flight_after: w.cwnd() - bytes,
        in_fast_recovery: false,
        srtt: None,
        rtt: None,
    }
}

/// RFC 6928 §2 and RFC 3390 §1: min(n · MSS, max(2 · MSS, bytes)).
#[test]
fn initial_windows_follow_their_formulas() {
    let table = [
        (10, 14_600, [(536, 5360), (1460, 14_600), (2000, 14_600), (9000, 18_000)]),
        (4, 4380, [(536, 2144), (1460, 4380), (2000, 4380), (9000, 18_000)]),
    ];
    for (initial_packets, initial_bytes, windows) in table {
        let config = WindowConfig { initial_packets, initial_bytes, ..RFC_9260 };
        for (mss, bytes) in windows {
            assert_eq!(CongestionWindow::new(config, mss).cwnd(), bytes, "{config:?}, {mss}");
        }
    }
}

/// RFC 5681 §3.1: outstanding data stays within cwnd; one packet may always be sent.
#[test]
fn a_whole_packet_must_fit() {
    let w = window(4);
    assert!(w.has_room(3000) && !w.has_room(3001));
    let mut w = window(1);
    w.window.cwnd = 500;
    assert!(w.has_room(0) && !w.has_room(1));
}

/// RFC 5681 §3.1 equation 2.
#[test]
fn slow_start_adds_acknowledged_data_and_a_packet_at_most() {
    let mut w = window(4);
    w.on_acked(full(&w, 400));
    assert_eq!(w.cwnd(), 4400);
    w.on_acked(full(&w, 3000));
    assert_eq!(w.cwnd(), 5400);
}

/// Only data that the cumulative point passes counts, and not in a recovery (RFC 5681 §3.1, §3.2).
#[test]
fn data_acknowledged_above_a_hole_or_in_recovery_does_not_grow_the_window() {
    let mut w = window(4);
    w.on_acked(Acked { cumulative_bytes: 0, ..full(&w, 1000) });
    w.on_acked(Acked { in_fast_recovery: true, ..full(&w, 1000) });
    assert_eq!(w.cwnd(), 4000);
}

/// RFC 5681 §3.1: one packet per window acknowledged, whatever the number of acknowledgements.
#[test]
fn congestion_avoidance_adds_a_packet_per_window() {
    for bytes in [500, 1000, 2000] {
        let mut w = window(20);
        w.on_fast_retransmit(20_000);
        let mut acked = 0;
        for (before, after) in [(10_000, 11_000), (11_000, 12_000)] {
            while w.cwnd() == before {
                w.on_acked(full(&w, bytes));
                acked += bytes;
            }
            assert_eq!(w.cwnd(), after, "{bytes} at a time");
        }
        // One acknowledgement may pass the end of a round; it counts in the next.
        assert_eq!(acked, 21_000 + 21_000 % bytes, "{bytes} at a time");
    }
}

/// RFC 5681 §3.1 equation 4: half of outstanding data, not of cwnd; two packets at least.
#[test]
fn a_loss_halves_outstanding_data() {
    for (flight, left) in [(20_000, 10_000), (9000, 4500), (3000, 2000)] {
        let mut w = window(20);
        w.on_fast_retransmit(flight);
        assert_eq!((w.cwnd(), w.ssthresh()), (left, left));
    }
}

/// RFC 5681 §3.1: the loss window is one packet; a unit that times out again holds ssthresh.
#[test]
fn a_timeout_leaves_one_packet_and_a_repeated_one_holds_the_threshold() {
    let mut w = window(20);
    w.on_timeout(TimedOut { flight_size: 20_000, is_repeated: false });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 10_000));
    w.on_timeout(TimedOut { flight_size: 8000, is_repeated: true });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 10_000));
    w.on_timeout(TimedOut { flight_size: 6000, is_repeated: false });
    assert_eq!((w.cwnd(), w.ssthresh()), (1000, 3000));
}

/// RFC 5681 §4.1: after *more* than an RTO without sending, and never upwards.
#[test]
fn an_idle_window_is_the_initial_one() {
    let after = |packets, ms, flight| {
        let mut w = window(packets);
        w.on_send(Instant::ZERO, RTO, 0);
        w.on_send(Instant::from_millis(ms), RTO, flight);
        w.cwnd()
    };
    assert_eq!(after(20, 1001, 0), 4000);
    assert_eq!(after(20, 1000, 0), 20_000);
    assert_eq!(after(20, 9000, 1000), 20_000, "something is in flight");
    assert_eq!(after(2, 9000, 0), 2000);
}
