//! The window of SCTP (RFC 9260 §7.2), perhaps coupled to those of other paths.

use crate::window::{Acked, Algorithm, Sending, TimedOut, Window};

/// The window of SCTP (RFC 9260 §7.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Rfc9260 {
    pub(super) partial_bytes_acked: u64,
}

impl Algorithm for Rfc9260 {
    /// The window of an idle path decays once per RTO without sending (RFC 9260 §7.2.1). With data in flight
    /// the path is not idle: a decay would leave more in flight than the window.
    fn on_send(&mut self, window: &mut Window, sending: Sending) {
        let Sending { now, rto, flight } = sending;
        let floor = floor(window);
        if let Some(last) = window.last_sent
            && flight == 0
            && window.cwnd > floor
            && now - last >= rto
        {
            window.ssthresh = window.cwnd;
            let periods = (now - last).as_nanos() / rto.as_nanos().max(1);
            let halvings = u32::try_from(periods).unwrap_or(u32::MAX).min(63);
            window.cwnd = (window.cwnd >> halvings).max(floor);
        }
    }

    /// RFC 9260 §7.2.1, §7.2.2.
    fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        let fully_used = acked.flight_before >= window.cwnd;
        if window.cwnd <= window.ssthresh {
            if fully_used && !acked.in_fast_recovery {
                window.cwnd += window.coupled(acked.bytes.min(window.packet));
            }
        } else {
            self.partial_bytes_acked += acked.bytes;
            if self.partial_bytes_acked >= window.cwnd {
                if fully_used {
                    self.partial_bytes_acked -= window.cwnd;
                    if !acked.in_fast_recovery {
                        window.cwnd += window.coupled(window.packet);
                    }
                } else {
                    self.partial_bytes_acked = window.cwnd;
                }
            }
        }
        if acked.flight_after == 0 {
            self.partial_bytes_acked = 0;
        }
    }

    /// RFC 9260 §7.2.3.
    fn on_loss(&mut self, window: &mut Window, _flight_size: u64) {
        window.ssthresh = after_loss(window);
        window.cwnd = window.ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// RFC 9260 §7.2.3.
    fn on_timeout(&mut self, window: &mut Window, _timed_out: TimedOut) {
        window.ssthresh = after_loss(window);
        window.cwnd = window.packet;
        self.partial_bytes_acked = 0;
    }
}

/// The window after a loss: RFC 9260 §7.2.3, or that of a coupled path.
fn after_loss(window: &Window) -> u64 {
    match window.share {
        None => (window.cwnd / 2).max(floor(window)),
        Some(share) => share.after_loss(window.cwnd, window.packet),
    }
}

const fn floor(window: &Window) -> u64 {
    4 * window.packet
}
