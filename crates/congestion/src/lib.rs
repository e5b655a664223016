//! What bytes, round trips and losses show of one path: how much may be in flight on it, when a paced packet may be sent,
//! and when an ACK is overdue.
//!
//! [`CongestionWindow`] is the window, with its pacer; its algorithm ([`CongestionControl`]) is known only here.
//! [`RtoTimer`] has the round trip and the retransmission timeout made from it (Jacobson 1988 has both as one mechanism),
//! [`T3`] the timer that runs for it, and [`QueueSigns`] the signs of a queue of other traffic. None of them knows packets,
//! acknowledgements or other paths.

#[cfg(test)]
mod tests;

use copa::Copa;
use cubic::Cubic;
use newreno::NewReno;
use pacer::Pacer;
pub use queue::{QueueSigns, QueueingDelay, RecentLosses};
use rexmit_core::Instant;
use rfc9260::Rfc9260;
pub use rtt::{
    AckDelay, Echo, RtoConfig, RtoTimer, RttEstimator, RttSample, RunningT3, T3, TimerRestart,
    blend,
};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::time::Duration;
pub use window::{Acked, TimedOut};
use window::{Algorithm, RateShare, Sending, Window};

mod copa;
mod cubic;
mod newreno;
mod pacer;
mod queue;
mod recent;
mod rfc9260;
mod rtt;
mod window;

/// How a window grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CongestionControl {
    /// SCTP: `partial_bytes_acked`, half of cwnd, the last packet may exceed it (RFC 9260 §7.2).
    #[default]
    Rfc9260,
    /// TCP: slow start and congestion avoidance by bytes acknowledged, half of outstanding data
    /// (RFC 5681 §3.1).
    NewReno,
    /// TCP: a cubic function of the time since the last reduction (RFC 9438 §4).
    Cubic,
    /// CUBIC with pacing: the packets of a window are spread over a round trip (RFC 9002 §7.7).
    PacedCubic,
    /// A window that keeps the queue of the path short, by the delay of round trips, and paced (Copa: Arun and
    /// Balakrishnan, NSDI 2018).
    Copa,
}

/// What a window is before the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// How it grows and shrinks.
    pub control: CongestionControl,
    /// The initial window: packets at most.
    pub initial_packets: u32,
    /// The initial window: bytes at most, but two packets fit.
    pub initial_bytes: u32,
}

/// The factor of CUBIC's pacing rate over window per round trip, so that pacing alone does not limit it (RFC
/// 9002 §7.7).
const CUBIC_GAIN: f64 = 1.25;
/// The factor of Copa's pacing rate over window per round trip (NSDI 2018 §2.1).
const COPA_GAIN: f64 = 2.0;

#[derive(Clone, Debug)]
enum Control {
    Rfc9260(Rfc9260),
    NewReno(NewReno),
    Cubic(Box<Cubic>),
    Copa(Box<Copa>),
}

/// The cwnd and ssthresh of one path, the algorithm that changes them, and its pacer.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    window: Window,
    control: Control,
    /// Of the algorithms whose packets are paced.
    pacer: Option<Box<Pacer>>,
}

impl CongestionWindow {
    /// The window before the first packet, which holds units of up to `packet` bytes
    /// (RFC 9260 §7.2.1, RFC 6928 §2).
    #[must_use]
    pub fn new(config: WindowConfig, packet: u32) -> Self {
        let packets = u64::from(config.initial_packets);
        let (packet, bytes) = (u64::from(packet), u64::from(config.initial_bytes));
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
            control: match config.control {
                CongestionControl::Rfc9260 => Control::Rfc9260(Rfc9260::default()),
                CongestionControl::NewReno => Control::NewReno(NewReno::default()),
                CongestionControl::Cubic | CongestionControl::PacedCubic => {
                    Control::Cubic(Box::default())
                }
                CongestionControl::Copa => Control::Copa(Box::default()),
            },
            pacer: match config.control {
                CongestionControl::PacedCubic => Some(Box::new(Pacer::new(CUBIC_GAIN))),
                CongestionControl::Copa => Some(Box::new(Pacer::new(COPA_GAIN))),
                _ => None,
            },
        }
    }

    /// Changes the packet size: packets hold units of up to `packet` bytes from now on. A window that was
    /// never reduced is raised to the initial window of that size; otherwise the window stays as it is.
    pub fn resize(&mut self, config: WindowConfig, packet: u32) {
        let Window { cwnd, initial, .. } = Self::new(config, packet).window;
        let window = &mut self.window;
        if window.cwnd >= window.initial {
            window.cwnd = window.cwnd.max(cwnd);
        }
        (window.packet, window.initial) = (packet.into(), initial);
    }

    /// cwnd, in bytes.
    pub const fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    /// ssthresh, in bytes.
    pub const fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// The largest unit that fits a packet of this path, in bytes (RFC 9260: PMDCS; RFC 5681: SMSS).
    pub const fn packet(&self) -> u64 {
        self.window.packet
    }

    /// Whether a packet may be sent with `flight` bytes in flight. In SCTP the last one may exceed the window
    /// by less than a packet (RFC 9260 §6.1 B); in TCP outstanding data stays within it (RFC 5681 §3.1, RFC
    /// 6675 §5 C), but one packet may always be in flight.
    pub const fn has_room(&self, flight: u64) -> bool {
        match self.control {
            Control::Rfc9260(_) => flight < self.window.cwnd,
            Control::NewReno(_) | Control::Cubic(_) | Control::Copa(_) => {
                flight == 0 || self.window.has_room_for_packet(flight)
            }
        }
    }

    /// Called before a packet is sent, with `flight` bytes in flight: the window of an idle path decays
    /// first.
    pub fn on_send(&mut self, now: Instant, rto: Duration, flight: u64) {
        let (window, algorithm) = self.parts();
        algorithm.on_send(window, Sending { now, rto, flight });
        window.last_sent = Some(now);
    }

    /// Called when a packet of `bytes` is sent.
    pub fn on_sent(&mut self, now: Instant, bytes: u32) {
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, bytes, self.window.cwnd, self.window.packet);
        }
    }

    /// Lets packets be sent that have waited for the pacer long enough at `now`.
    #[inline]
    pub fn release(&mut self, now: Instant) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release(now);
        }
    }

    /// Whether the pacer holds packets back now. With `may_overdraw`, a packet may exceed the credit by one packet.
    #[inline]
    pub fn is_paced(&self, may_overdraw: bool) -> bool {
        let beyond = if may_overdraw { self.window.packet } else { 0 };
        self.pacer.as_ref().is_some_and(|pacer| pacer.is_held(beyond))
    }

    /// When packets that wait for the pacer may be sent; `None` if none wait.
    #[inline]
    pub fn paced_until(&self) -> Option<Instant> {
        self.pacer.as_ref()?.held_until()
    }

    /// Called when data was acknowledged.
    pub fn on_acked(&mut self, acked: Acked) {
        let (window, algorithm) = self.parts();
        algorithm.on_acked(window, &acked);
        let rtt = match &self.control {
            Control::Copa(copa) => copa.rtt_standing(),
            _ => acked.srtt,
        };
        if let Some(pacer) = &mut self.pacer {
            pacer.set_rtt(rtt);
            pacer.release(acked.now);
        }
    }

    /// Called when a packet was declared lost; a recovery may have several.
    pub fn on_packet_lost(&mut self) {
        self.parts().1.on_packet_lost();
    }

    /// Called when a loss was detected by acknowledgements, with `flight_size` bytes outstanding: sent and
    /// not cumulatively acknowledged, without those of limited transmit (RFC 5681 §3.2).
    pub fn on_fast_retransmit(&mut self, flight_size: u64) {
        let (window, algorithm) = self.parts();
        algorithm.on_loss(window, flight_size);
    }

    /// Called when the peer reports that a router has marked a packet, with `flight_size` bytes outstanding. The window is
    /// reduced as for a loss, and never becomes larger.
    pub fn on_marked(&mut self, flight_size: u64) {
        let before = self.window.cwnd;
        let (window, algorithm) = self.parts();
        algorithm.on_marked(window, flight_size);
        window.cwnd = window.cwnd.min(before);
    }

    /// Called when the retransmission timer expired over a loss.
    pub fn on_timeout(&mut self, timed_out: TimedOut) {
        let (window, algorithm) = self.parts();
        algorithm.on_timeout(window, timed_out);
    }

    /// Reduces the window by a packet, without slow start (Early Fast Retransmit, Petlund 2009 §2).
    pub fn on_early_retransmit(&mut self) {
        let window = &mut self.window;
        window.cwnd = window.cwnd.saturating_sub(window.packet).max(window.packet);
        window.ssthresh = window.ssthresh.min(window.cwnd - 1);
    }

    /// Called when a recovery without SACK ends with `flight` bytes in flight: lowers the window so that no
    /// burst follows (RFC 6582 §3.2 step 3, full acknowledgement, option 1).
    pub fn on_recovery_left(&mut self, flight: u64) {
        let window = &mut self.window;
        window.cwnd = window.ssthresh.min(flight.max(window.packet) + window.packet);
    }

    /// Undoes the reductions since `before`, which were spurious: slow start leads back to the window of
    /// then, starting at `least` bytes if that is more than the present window (RR-SCTP §4.2, RFC 4015 §3.1
    /// step 9).
    pub fn undo(&mut self, before: &Self, least: u64) {
        self.window.cwnd = self.window.cwnd.max(least);
        self.window.ssthresh = before.window.cwnd;
        if let (Control::Cubic(now), Control::Cubic(before)) = (&mut self.control, &before.control)
        {
            now.on_undone(before);
        }
    }

    /// The rate of a path with this window and this round trip, in bytes per second.
    #[must_use]
    pub fn rate(&self, srtt: Duration) -> f64 {
        self.window.cwnd as f64 / srtt.max(Duration::from_nanos(1)).as_secs_f64()
    }

    /// Sets the path's share of the association's rate, above 0 and at most 1, if its window is coupled to the others.
    pub fn set_share(&mut self, share: Option<f64>) {
        self.window.share = share.map(RateShare);
    }

    /// The initial window, in bytes.
    pub const fn initial(&self) -> u64 {
        self.window.initial
    }

    /// Called when a packet of the handshake was lost: the initial window is one packet (RFC 5681 §3.1).
    pub fn on_setup_lost(&mut self) {
        self.window.cwnd = self.window.packet;
    }

    fn parts(&mut self) -> (&mut Window, &mut dyn Algorithm) {
        let algorithm: &mut dyn Algorithm = match &mut self.control {
            Control::Rfc9260(algorithm) => algorithm,
            Control::NewReno(algorithm) => algorithm,
            Control::Cubic(algorithm) => &mut **algorithm,
            Control::Copa(algorithm) => &mut **algorithm,
        };
        (&mut self.window, algorithm)
    }
}
