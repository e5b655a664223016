//! What every algorithm keeps and is told.

use std::time::Duration;

use rexmit_core::Instant;

use super::RateShare;

/// The input of an acknowledgement to the window of a path.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged that were sent on the path.
    pub bytes: u64,
    /// Bytes that the cumulative point passed, also those that were acknowledged above it before.
    pub cumulative_bytes: u64,
    /// Bytes in flight on the path before the acknowledgement.
    pub flight_before: u64,
    /// Bytes in flight on the path after it.
    pub flight_after: u64,
    /// Whether the sender was in fast recovery before it.
    pub in_fast_recovery: bool,
    /// SRTT of the path, if it was measured.
    pub srtt: Option<Duration>,
}

/// A packet that is about to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) now: Instant,
    pub(super) rto: Duration,
    /// Bytes in flight before it.
    pub(super) flight: u64,
}

/// Outstanding data when the retransmission timer expires.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut {
    /// Bytes sent and not cumulatively acknowledged (`FlightSize`, RFC 5681 §2).
    pub flight_size: u64,
    /// The timer had expired over the same unit before (RFC 5681 §3.1).
    pub is_repeated: bool,
}

/// What every algorithm keeps; in bytes of units with their headers and padding.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    /// PMDCS or SMSS: the largest unit that fits a packet of this path.
    pub(super) packet: u64,
    /// IW.
    pub(super) initial: u64,
    /// What part of the association's rate the path has, if the windows of its paths are coupled.
    pub(super) share: Option<RateShare>,
    pub(super) last_sent: Option<Instant>,
}

/// What differs between the algorithms.
pub(super) trait Algorithm {
    /// A packet leaves.
    fn on_send(&mut self, window: &mut Window, sending: Sending);
    /// Something sent on this path was acknowledged.
    fn on_acked(&mut self, window: &mut Window, acked: &Acked);
    /// A loss was detected by acknowledgements, with `flight_size` bytes outstanding.
    fn on_loss(&mut self, window: &mut Window, flight_size: u64);
    /// The retransmission timer expired.
    fn on_timeout(&mut self, window: &mut Window, timed_out: TimedOut);
}

impl Window {
    pub(super) const fn has_room_for_packet(&self, flight: u64) -> bool {
        flight + self.packet <= self.cwnd
    }

    /// Growth by `bytes`, reduced if the window is coupled to others.
    pub(super) fn coupled(&self, bytes: u64) -> u64 {
        self.share.map_or(bytes, |share| share.increase(bytes))
    }

    /// After an RTO without sending a TCP begins again with the restart window
    /// (RFC 5681 §4.1). Returns whether that made the window smaller.
    pub(super) fn restart_if_idle(&mut self, sending: Sending) -> bool {
        let Some(last) = self.last_sent else { return false };
        let is_idle = sending.flight == 0 && sending.now - last > sending.rto;
        if !is_idle || self.cwnd <= self.initial {
            return false;
        }
        self.cwnd = self.initial;
        true
    }

    /// Slow start: at most a packet per acknowledgement (RFC 5681 §3.1 equation 2).
    pub(super) fn slow_start(&mut self, cumulative_bytes: u64) {
        self.cwnd += cumulative_bytes.min(self.packet);
    }
}
