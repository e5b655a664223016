//! The window of TCP (RFC 5681).

use crate::window::{Acked, Algorithm, Sending, TimedOut, Usage, Window};

/// The window of TCP: slow start and congestion avoidance (RFC 5681 §3.1), by bytes acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct NewReno {
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    bytes_acked: u64,
    usage: Usage,
}

impl Algorithm for NewReno {
    fn on_send(&mut self, window: &mut Window, sending: Sending) {
        if window.restart_if_idle(sending) {
            self.bytes_acked = 0;
        }
    }

    fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        let is_full = !window.has_room_for_packet(acked.flight_before);
        let is_limited = self.usage.on_acked(acked.bytes, acked.flight_before, is_full);
        if !is_limited || acked.in_fast_recovery {
            return;
        }
        if window.cwnd < window.ssthresh {
            window.slow_start(acked.cumulative_bytes);
            return;
        }
        self.bytes_acked += acked.cumulative_bytes;
        if self.bytes_acked >= window.cwnd {
            self.bytes_acked -= window.cwnd;
            window.cwnd += window.packet;
        }
    }

    fn on_loss(&mut self, window: &mut Window, flight_size: u64) {
        window.ssthresh = half(window, flight_size);
        window.cwnd = window.ssthresh;
        self.bytes_acked = 0;
    }

    fn on_timeout(&mut self, window: &mut Window, timed_out: TimedOut) {
        if !timed_out.is_repeated {
            window.ssthresh = half(window, timed_out.flight_size);
        }
        window.cwnd = window.packet;
        self.bytes_acked = 0;
    }
}

/// RFC 5681 §3.1 equation 4.
fn half(window: &Window, flight_size: u64) -> u64 {
    (flight_size / 2).max(2 * window.packet)
}
