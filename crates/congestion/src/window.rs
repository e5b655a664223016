//! The part of a congestion window that all algorithms have: its size, its inputs, and whether it was full.

use std::time::Duration;

use rexmit_core::Instant;

/// The inputs that an ACK gives to the window of a path.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When the ACK arrived.
    pub now: Instant,
    /// Bytes newly acknowledged that were sent on the path.
    pub bytes: u64,
    /// Bytes that the cumulative point passed, including those that were acknowledged above it before.
    pub cumulative_bytes: u64,
    /// Bytes in flight on the path before the acknowledgement.
    pub flight_before: u64,
    /// Bytes in flight on the path after the ACK.
    pub flight_after: u64,
    /// Whether the sender was in fast recovery before the ACK.
    pub in_fast_recovery: bool,
    /// SRTT of the path, if it was measured.
    pub srtt: Option<Duration>,
    /// The round trip of the newest packet that the ACK covers, if that was sent once.
    pub rtt: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) now: Instant,
    pub(crate) rto: Duration,
    /// Bytes in flight before the packet.
    pub(crate) flight: u64,
}

/// Outstanding data when the retransmission timer expires.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut {
    /// Bytes sent and not cumulatively acknowledged (`FlightSize`, RFC 5681 §2).
    pub flight_size: u64,
    /// Whether the timer had expired over the same unit before (RFC 5681 §3.1).
    pub is_repeated: bool,
}

/// The state of every algorithm. Sizes are bytes of units with their headers and padding.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    /// PMDCS or SMSS: the largest unit that fits a packet of this path.
    pub(crate) packet: u64,
    pub(crate) initial: u64,
    /// The path's share of the association's rate, if the windows of its paths are coupled.
    pub(crate) share: Option<RateShare>,
    pub(crate) last_sent: Option<Instant>,
}

pub(crate) trait Algorithm {
    fn on_send(&mut self, window: &mut Window, sending: Sending);
    fn on_acked(&mut self, window: &mut Window, acked: &Acked);
    fn on_loss(&mut self, window: &mut Window, flight_size: u64);
    /// Called when a router has marked a packet. The caller keeps the window from growing.
    fn on_marked(&mut self, window: &mut Window, flight_size: u64) {
        self.on_loss(window, flight_size);
    }
    /// Called when a packet was declared lost; a recovery may have several.
    fn on_packet_lost(&mut self) {}
    fn on_timeout(&mut self, window: &mut Window, timed_out: TimedOut);
}

impl Window {
    pub(crate) const fn has_room_for_packet(&self, flight: u64) -> bool {
        flight + self.packet <= self.cwnd
    }

    /// Growth by `bytes`, reduced if the window is coupled to others.
    pub(crate) fn coupled(&self, bytes: u64) -> u64 {
        self.share.map_or(bytes, |share| share.increase(bytes))
    }

    /// Sets TCP's restart window after an RTO without sending (RFC 5681 §4.1). Returns whether that made the
    /// window smaller.
    pub(crate) fn restart_if_idle(&mut self, sending: Sending) -> bool {
        let Some(last) = self.last_sent else { return false };
        let is_idle = sending.flight == 0 && sending.now - last > sending.rto;
        if !is_idle || self.cwnd <= self.initial {
            return false;
        }
        self.cwnd = self.initial;
        true
    }

    /// Slow start: at most a packet per acknowledgement (RFC 5681 §3.1 equation 2).
    pub(crate) fn slow_start(&mut self, cumulative_bytes: u64) {
        self.cwnd += cumulative_bytes.min(self.packet);
    }
}

/// The share î of a path in the rate of its association: above 0, at most 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RateShare(pub(crate) f64);

impl RateShare {
    /// The growth of a coupled window that would grow by `bytes` on its own: ⌈î · bytes⌉.
    pub(crate) fn increase(self, bytes: u64) -> u64 {
        (self.0 * bytes as f64).ceil() as u64
    }

    /// The window after a loss: max(c − ⌈d̂ · c⌉, ⌈î · 4 · MTU⌉, MTU). The second term is the path's share of
    /// the least window of RFC 9260 §7.2.3; with it, a path that is alone behaves as in RFC 9260.
    pub(crate) fn after_loss(self, cwnd: u64, packet: u64) -> u64 {
        // 1 / î is 1 at least, so that this is the larger one.
        let decrease = (0.5 / self.0 * cwnd as f64).ceil() as u64;
        cwnd.saturating_sub(decrease).max(self.increase(4 * packet)).max(packet)
    }
}

/// Whether the window was full within the last round trip. A window that is not used up says nothing about
/// the path, and does not grow (RFC 9438 §5.8).
///
/// An ACK that finds the window full begins a round that lasts until as many bytes are acknowledged as are in
/// flight: several ACKs at once, before the sender can refill the window, belong to one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    round_left: u64,
}

impl Usage {
    /// Called when `bytes` of the `flight` bytes in flight are acknowledged. Returns whether the window
    /// limited the sender.
    pub(crate) const fn on_acked(&mut self, bytes: u64, flight: u64, is_full: bool) -> bool {
        if is_full {
            self.round_left = flight;
        }
        let is_limited = self.round_left > 0;
        self.round_left = self.round_left.saturating_sub(bytes);
        is_limited
    }
}
