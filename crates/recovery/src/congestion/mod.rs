//! The congestion window of one path: what every algorithm shares, and the one place that knows
//! which of them is at work.

mod config;
mod coupling;
mod cubic;
mod newreno;
mod rfc9260;
mod usage;
mod window;

use std::time::Duration;

use rexmit_core::Instant;

use crate::RecoveryConfig;
pub use config::CongestionControl;
pub use coupling::Coupling;
pub(crate) use coupling::{RateShare, rate};
use cubic::Cubic;
use newreno::NewReno;
use rfc9260::Rfc9260;
pub use window::{Acked, TimedOut};
use window::{Algorithm, Sending, Window};

#[derive(Clone, Debug)]
enum Control {
    Rfc9260(Rfc9260),
    NewReno(NewReno),
    Cubic(Cubic),
}

/// cwnd and ssthresh of one path, with the algorithm that moves them.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    window: Window,
    control: Control,
}

impl CongestionWindow {
    /// The window before the first packet, which holds units of up to `packet` bytes
    /// (RFC 9260 §7.2.1, RFC 6928 §2).
    #[must_use]
    pub fn new(config: &RecoveryConfig, packet: u32) -> Self {
        let packets = u64::from(config.initial_window_packets);
        let (packet, bytes) = (u64::from(packet), u64::from(config.initial_window_bytes));
        let cwnd = (packets * packet).min((2 * packet).max(bytes));
        Self {
            window: Window {
                cwnd,
                ssthresh: u64::from(u32::MAX),
                packet,
                initial: cwnd,
                share: None,
                last_sent: None,
            },
            control: match config.congestion {
                CongestionControl::Rfc9260 => Control::Rfc9260(Rfc9260::default()),
                CongestionControl::NewReno => Control::NewReno(NewReno::default()),
                CongestionControl::Cubic => Control::Cubic(Cubic::default()),
            },
        }
    }

    /// cwnd, in bytes.
    #[must_use]
    pub const fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    /// ssthresh, in bytes.
    #[must_use]
    pub const fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// PMDCS or SMSS, in bytes.
    #[must_use]
    pub const fn packet(&self) -> u64 {
        self.window.packet
    }

    /// Whether a packet may leave with `flight` bytes in flight. In SCTP the last one may exceed
    /// the window by less than a packet (RFC 9260 §6.1 B); in TCP outstanding data stays within
    /// it (RFC 5681 §3.1, RFC 6675 §5 C), but one packet may always be in flight.
    #[must_use]
    pub const fn has_room(&self, flight: u64) -> bool {
        match self.control {
            Control::Rfc9260(_) => flight < self.window.cwnd,
            Control::NewReno(_) | Control::Cubic(_) => {
                flight == 0 || self.window.has_room_for_packet(flight)
            }
        }
    }

    /// A packet leaves, with `flight` bytes in flight before it: an idle window decays first.
    pub fn on_send(&mut self, now: Instant, rto: Duration, flight: u64) {
        let (window, algorithm) = self.parts();
        algorithm.on_send(window, Sending { now, rto, flight });
        window.last_sent = Some(now);
    }

    /// Something sent on this path was acknowledged.
    pub fn on_acked(&mut self, acked: Acked) {
        let (window, algorithm) = self.parts();
        algorithm.on_acked(window, &acked);
    }

    /// A loss was detected by acknowledgements, with `flight_size` bytes outstanding: sent and not
    /// cumulatively acknowledged, without those of limited transmit (RFC 5681 §3.2).
    pub fn on_fast_retransmit(&mut self, flight_size: u64) {
        let (window, algorithm) = self.parts();
        algorithm.on_loss(window, flight_size);
    }

    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, timed_out: TimedOut) {
        let (window, algorithm) = self.parts();
        algorithm.on_timeout(window, timed_out);
    }

    /// Early Fast Retransmit: a packet less, and no slow start
    /// (Petlund 2009 §2, Early Fast Retransmit).
    pub fn on_early_retransmit(&mut self) {
        let window = &mut self.window;
        window.cwnd = window.cwnd.saturating_sub(window.packet).max(window.packet);
        window.ssthresh = window.ssthresh.min(window.cwnd - 1);
    }

    /// A recovery without SACK ends with `flight` bytes in flight: no burst of what the window
    /// would hold (RFC 6582 §3.2 step 3, full acknowledgement, option 1).
    pub fn on_recovery_left(&mut self, flight: u64) {
        let window = &mut self.window;
        window.cwnd = window.ssthresh.min(flight.max(window.packet) + window.packet);
    }

    /// The reductions since `before` were answers to no loss: slow start goes back to that window,
    /// from `least` if that is more than there is now (RR-SCTP §4.2, RFC 4015 §3.1 step 9).
    pub(crate) fn undo(&mut self, before: &Self, least: u64) {
        self.window.cwnd = self.window.cwnd.max(least);
        self.window.ssthresh = before.window.cwnd;
        if let (Control::Cubic(now), Control::Cubic(before)) = (&mut self.control, &before.control)
        {
            now.on_undone(before);
        }
    }

    /// What part of the association's rate the path has from now on, if its window is coupled to the
    /// others.
    pub(crate) const fn set_share(&mut self, share: Option<RateShare>) {
        self.window.share = share;
    }

    /// IW, in bytes.
    pub(crate) const fn initial(&self) -> u64 {
        self.window.initial
    }

    /// Packets of this path hold units of up to `packet` bytes from now on; a smaller size makes
    /// the window smaller in the same proportion (RFC 5681 §3.1).
    pub fn on_packet_size(&mut self, packet: u32) {
        let window = &mut self.window;
        let packet = u64::from(packet.max(1));
        if packet < window.packet {
            window.cwnd = (window.cwnd * packet / window.packet).max(packet);
            window.initial = (window.initial * packet / window.packet).max(packet);
        }
        window.packet = packet;
    }

    /// The setup was lost once: the first window is one packet (RFC 5681 §3.1).
    pub(crate) fn on_setup_lost(&mut self) {
        self.window.cwnd = self.window.packet;
    }

    fn parts(&mut self) -> (&mut Window, &mut dyn Algorithm) {
        let algorithm: &mut dyn Algorithm = match &mut self.control {
            Control::Rfc9260(algorithm) => algorithm,
            Control::NewReno(algorithm) => algorithm,
            Control::Cubic(algorithm) => algorithm,
        };
        (&mut self.window, algorithm)
    }
}
