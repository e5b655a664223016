//! The congestion window of one path (RFC 9260 §7.2).

use std::time::Duration;

use rexmit_core::Instant;

use crate::RecoveryConfig;

/// What an acknowledgement says to the window of a path.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Bytes newly acknowledged that were sent on the path.
    pub bytes: u64,
    /// Bytes in flight on the path before the acknowledgement.
    pub flight_before: u64,
    /// Bytes in flight on the path after it.
    pub flight_after: u64,
    /// Whether the sender was in fast recovery before it.
    pub in_fast_recovery: bool,
}

/// cwnd, ssthresh and `partial_bytes_acked`, in bytes of units with their headers and padding.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    cwnd: u64,
    ssthresh: u64,
    partial_bytes_acked: u64,
    /// PMDCS: the largest DATA chunk that fits a packet of this path.
    pmdcs: u32,
    last_sent: Option<Instant>,
}

impl CongestionWindow {
    /// The window before the first packet (RFC 9260 §7.2.1).
    #[must_use]
    pub fn new(config: &RecoveryConfig, pmdcs: u32) -> Self {
        let cwnd = (4 * pmdcs).min((2 * pmdcs).max(config.initial_window_bytes));
        Self {
            cwnd: u64::from(cwnd),
            ssthresh: u64::from(u32::MAX),
            partial_bytes_acked: 0,
            pmdcs,
            last_sent: None,
        }
    }

    /// cwnd, in bytes.
    #[must_use]
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// ssthresh, in bytes.
    #[must_use]
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Whether a packet may leave with `flight` bytes in flight. The last one may exceed the
    /// window by less than a packet (RFC 9260 §6.1 B).
    #[must_use]
    pub const fn has_room(&self, flight: u64) -> bool {
        flight < self.cwnd
    }

    /// A packet leaves, with `flight` bytes in flight before it: an idle window decays first, once
    /// per RTO without sending. With something in flight it is in use, and a decay would leave more
    /// in flight than it holds.
    pub fn on_send(&mut self, now: Instant, rto: Duration, flight: u64) {
        let floor = self.floor();
        if let Some(last) = self.last_sent
            && flight == 0
            && self.cwnd > floor
            && now - last >= rto
        {
            self.ssthresh = self.cwnd;
            let periods = (now - last).as_nanos() / rto.as_nanos().max(1);
            let halvings = u32::try_from(periods).unwrap_or(u32::MAX).min(63);
            self.cwnd = (self.cwnd >> halvings).max(floor);
        }
        self.last_sent = Some(now);
    }

    /// Something sent on this path was acknowledged (RFC 9260 §7.2.1, §7.2.2).
    pub fn on_acked(&mut self, acked: Acked) {
        let fully_used = acked.flight_before >= self.cwnd;
        if self.cwnd <= self.ssthresh {
            if fully_used && !acked.in_fast_recovery {
                self.cwnd += acked.bytes.min(u64::from(self.pmdcs));
            }
        } else {
            self.partial_bytes_acked += acked.bytes;
            if self.partial_bytes_acked >= self.cwnd {
                if fully_used {
                    self.partial_bytes_acked -= self.cwnd;
                    if !acked.in_fast_recovery {
                        self.cwnd += u64::from(self.pmdcs);
                    }
                } else {
                    self.partial_bytes_acked = self.cwnd;
                }
            }
        }
        if acked.flight_after == 0 {
            self.partial_bytes_acked = 0;
        }
    }

    /// A loss was told by missing reports (RFC 9260 §7.2.3).
    pub fn on_fast_retransmit(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(self.floor());
        self.cwnd = self.ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// The retransmission timer expired (RFC 9260 §7.2.3).
    pub fn on_timeout(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(self.floor());
        self.cwnd = u64::from(self.pmdcs);
        self.partial_bytes_acked = 0;
    }

    const fn floor(&self) -> u64 {
        4 * self.pmdcs as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PMDCS: u32 = 1000;

    fn window() -> CongestionWindow {
        CongestionWindow::new(&RecoveryConfig::default(), PMDCS)
    }

    fn acked(window: &CongestionWindow, bytes: u64) -> Acked {
        Acked { bytes, flight_before: window.cwnd(), flight_after: 1, in_fast_recovery: false }
    }

    #[test]
    fn initial_window_follows_the_formula() {
        let cwnd = |pmdcs| CongestionWindow::new(&RecoveryConfig::default(), pmdcs).cwnd();
        assert_eq!(cwnd(1000), 4000);
        assert_eq!(cwnd(1452), 4404);
        assert_eq!(cwnd(9000), 18000);
    }

    #[test]
    fn slow_start_grows_by_what_was_acknowledged_but_at_most_a_packet() {
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
        w.cwnd = 20_000;
        w.on_fast_retransmit();
        assert_eq!((w.cwnd(), w.ssthresh()), (10_000, 10_000));
        w.cwnd = 10_001; // above the threshold
        for _ in 0..10 {
            w.on_acked(acked(&w, 1000));
        }
        assert_eq!(w.cwnd(), 10_001);
        w.on_acked(acked(&w, 1000));
        assert_eq!(w.cwnd(), 11_001);
    }

    #[test]
    fn partial_bytes_are_capped_while_the_window_is_not_used_and_dropped_when_all_is_acked() {
        let mut w = window();
        w.ssthresh = 3000;
        w.on_acked(Acked { flight_before: 10, ..acked(&w, 9000) });
        assert_eq!((w.partial_bytes_acked, w.cwnd()), (4000, 4000));
        w.on_acked(Acked { flight_after: 0, flight_before: 10, ..acked(&w, 1) });
        assert_eq!(w.partial_bytes_acked, 0);
    }

    #[test]
    fn timeout_leaves_one_packet_and_threshold_has_a_floor() {
        let mut w = window();
        w.on_timeout();
        assert_eq!((w.cwnd(), w.ssthresh()), (1000, 4000));
    }

    #[test]
    fn window_that_holds_something_in_flight_does_not_decay() {
        let rto = Duration::from_secs(1);
        let mut w = window();
        w.cwnd = 32_000;
        w.on_send(Instant::from_millis(0), rto, 0);
        w.on_send(Instant::from_millis(60_000), rto, 1000);
        assert_eq!(w.cwnd(), 32_000);
    }

    #[test]
    fn idle_window_halves_once_per_rto_down_to_four_packets_and_never_rises() {
        let rto = Duration::from_secs(1);
        let mut w = window();
        w.cwnd = 32_000;
        w.on_send(Instant::from_millis(0), rto, 0);
        w.on_send(Instant::from_millis(999), rto, 0);
        assert_eq!(w.cwnd(), 32_000);
        w.on_send(Instant::from_millis(2999), rto, 0);
        assert_eq!((w.cwnd(), w.ssthresh()), (8000, 32_000));
        w.on_send(Instant::from_millis(60_000), rto, 0);
        assert_eq!(w.cwnd(), 4000);
        w.on_timeout();
        w.on_send(Instant::from_millis(600_000), rto, 0);
        assert_eq!(w.cwnd(), 1000);
    }
}
