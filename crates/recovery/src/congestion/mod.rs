//! The congestion window of one path: the part that all algorithms share. The algorithm in use is known only
//! here.

#[cfg(test)]
mod tests;

use crate::{CongestionControl, RecoveryConfig};
use copa::Copa;
use cubic::Cubic;
use pacer::Pacer;
use rexmit_core::Instant;
use std::time::Duration;

mod copa;
mod cubic;
mod pacer;
mod recent;

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
    pub(crate) fn new(config: &RecoveryConfig, packet: u32) -> Self {
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
                CongestionControl::Cubic | CongestionControl::PacedCubic => {
                    Control::Cubic(Box::default())
                }
                CongestionControl::Copa => Control::Copa(Box::default()),
            },
            pacer: match config.congestion {
                CongestionControl::PacedCubic => Some(Box::new(Pacer::new(CUBIC_GAIN))),
                CongestionControl::Copa => Some(Box::new(Pacer::new(COPA_GAIN))),
                _ => None,
            },
        }
    }

    /// Changes the packet size: packets hold units of up to `packet` bytes from now on. A window that was
    /// never reduced is raised to the initial window of that size; otherwise the window stays as it is.
    pub(crate) fn resize(&mut self, config: &RecoveryConfig, packet: u32) {
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
    pub(crate) const fn has_room(&self, flight: u64) -> bool {
        match self.control {
            Control::Rfc9260(_) => flight < self.window.cwnd,
            Control::NewReno(_) | Control::Cubic(_) | Control::Copa(_) => {
                flight == 0 || self.window.has_room_for_packet(flight)
            }
        }
    }

    /// Called before a packet is sent, with `flight` bytes in flight: the window of an idle path decays
    /// first.
    pub(crate) fn on_send(&mut self, now: Instant, rto: Duration, flight: u64) {
        let (window, algorithm) = self.parts();
        algorithm.on_send(window, Sending { now, rto, flight });
        window.last_sent = Some(now);
    }

    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u32) {
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, bytes, self.window.cwnd, self.window.packet);
        }
    }

    /// Lets packets be sent that have waited for the pacer long enough at `now`.
    #[inline]
    pub(crate) fn release(&mut self, now: Instant) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release(now);
        }
    }

    /// Whether packets have to wait for the pacer. One that may overdraw its credit has to wait one packet
    /// later.
    #[inline]
    pub(crate) fn is_paced(&self, may_overdraw: bool) -> bool {
        let beyond = if may_overdraw { self.window.packet } else { 0 };
        self.pacer.as_ref().is_some_and(|pacer| pacer.is_held(beyond))
    }

    /// When packets that wait for the pacer may be sent; `None` if none wait.
    #[inline]
    pub(crate) fn paced_until(&self) -> Option<Instant> {
        self.pacer.as_ref()?.held_until()
    }

    pub(crate) fn on_acked(&mut self, acked: Acked) {
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

    pub(crate) fn on_packet_lost(&mut self) {
        self.parts().1.on_packet_lost();
    }

    /// Called when a loss was detected by acknowledgements, with `flight_size` bytes outstanding: sent and
    /// not cumulatively acknowledged, without those of limited transmit (RFC 5681 §3.2).
    pub(crate) fn on_fast_retransmit(&mut self, flight_size: u64) {
        let (window, algorithm) = self.parts();
        algorithm.on_loss(window, flight_size);
    }

    pub(crate) fn on_timeout(&mut self, timed_out: TimedOut) {
        let (window, algorithm) = self.parts();
        algorithm.on_timeout(window, timed_out);
    }

    /// Reduces the window by a packet, without slow start (Early Fast Retransmit, Petlund 2009 §2).
    pub(crate) fn on_early_retransmit(&mut self) {
        let window = &mut self.window;
        window.cwnd = window.cwnd.saturating_sub(window.packet).max(window.packet);
        window.ssthresh = window.ssthresh.min(window.cwnd - 1);
    }

    /// Called when a recovery without SACK ends with `flight` bytes in flight: lowers the window so that no
    /// burst follows (RFC 6582 §3.2 step 3, full acknowledgement, option 1).
    pub(crate) fn on_recovery_left(&mut self, flight: u64) {
        let window = &mut self.window;
        window.cwnd = window.ssthresh.min(flight.max(window.packet) + window.packet);
    }

    /// Undoes the reductions since `before`, which were spurious: slow start leads back to the window of
    /// then, starting at `least` bytes if that is more than the present window (RR-SCTP §4.2, RFC 4015 §3.1
    /// step 9).
    pub(crate) fn undo(&mut self, before: &Self, least: u64) {
        self.window.cwnd = self.window.cwnd.max(least);
        self.window.ssthresh = before.window.cwnd;
        if let (Control::Cubic(now), Control::Cubic(before)) = (&mut self.control, &before.control)
        {
            now.on_undone(before);
        }
    }

    /// Sets the path's share of the association's rate, if its window is coupled to the others.
    pub(crate) const fn set_share(&mut self, share: Option<RateShare>) {
        self.window.share = share;
    }

    pub(crate) const fn initial(&self) -> u64 {
        self.window.initial
    }

    /// Called when a packet of the handshake was lost: the initial window is one packet (RFC 5681 §3.1).
    pub(crate) fn on_setup_lost(&mut self) {
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

/// The inputs that an ACK gives to the window of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// Bytes newly acknowledged that were sent on the path.
    pub(crate) bytes: u64,
    /// Bytes that the cumulative point passed, including those that were acknowledged above it before.
    pub(crate) cumulative_bytes: u64,
    /// Bytes in flight on the path before the acknowledgement.
    pub(crate) flight_before: u64,
    /// Bytes in flight on the path after it.
    pub(crate) flight_after: u64,
    /// Whether the sender was in fast recovery before it.
    pub(crate) in_fast_recovery: bool,
    /// SRTT of the path, if it was measured.
    pub(crate) srtt: Option<Duration>,
    /// The round trip of the newest packet that the ACK covers, if that was sent once.
    pub(crate) rtt: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    now: Instant,
    rto: Duration,
    /// Bytes in flight before the packet.
    flight: u64,
}

/// Outstanding data when the retransmission timer expires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedOut {
    /// Bytes sent and not cumulatively acknowledged (`FlightSize`, RFC 5681 §2).
    pub(crate) flight_size: u64,
    /// Whether the timer had expired over the same unit before (RFC 5681 §3.1).
    pub(crate) is_repeated: bool,
}

/// The state of every algorithm. Sizes are bytes of units with their headers and padding.
#[derive(Clone, Debug)]
struct Window {
    cwnd: u64,
    ssthresh: u64,
    /// PMDCS or SMSS: the largest unit that fits a packet of this path.
    packet: u64,
    initial: u64,
    /// The path's share of the association's rate, if the windows of its paths are coupled.
    share: Option<RateShare>,
    last_sent: Option<Instant>,
}

trait Algorithm {
    fn on_send(&mut self, window: &mut Window, sending: Sending);
    fn on_acked(&mut self, window: &mut Window, acked: &Acked);
    fn on_loss(&mut self, window: &mut Window, flight_size: u64);
    /// Called when a packet was declared lost; a recovery may have several.
    fn on_packet_lost(&mut self) {}
    fn on_timeout(&mut self, window: &mut Window, timed_out: TimedOut);
}

impl Window {
    const fn has_room_for_packet(&self, flight: u64) -> bool {
        flight + self.packet <= self.cwnd
    }

    /// Growth by `bytes`, reduced if the window is coupled to others.
    fn coupled(&self, bytes: u64) -> u64 {
        self.share.map_or(bytes, |share| share.increase(bytes))
    }

    /// Sets TCP's restart window after an RTO without sending (RFC 5681 §4.1). Returns whether that made the
    /// window smaller.
    fn restart_if_idle(&mut self, sending: Sending) -> bool {
        let Some(last) = self.last_sent else { return false };
        let is_idle = sending.flight == 0 && sending.now - last > sending.rto;
        if !is_idle || self.cwnd <= self.initial {
            return false;
        }
        self.cwnd = self.initial;
        true
    }

    /// Slow start: at most a packet per acknowledgement (RFC 5681 §3.1 equation 2).
    fn slow_start(&mut self, cumulative_bytes: u64) {
        self.cwnd += cumulative_bytes.min(self.packet);
    }
}

/// The rate of a path with this window, in bytes per second.
pub(crate) fn rate(cwnd: u64, srtt: Duration) -> f64 {
    cwnd as f64 / srtt.max(Duration::from_nanos(1)).as_secs_f64()
}

/// The share î of a path in the rate of its association: above 0, at most 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RateShare(f64);

impl RateShare {
    /// The share of `rate` in `total`, which includes it.
    pub(crate) fn of(rate: f64, total: f64) -> Self {
        Self(rate / total)
    }

    /// The growth of a coupled window that would grow by `bytes` on its own: ⌈î · bytes⌉.
    fn increase(self, bytes: u64) -> u64 {
        (self.0 * bytes as f64).ceil() as u64
    }

    /// The window after a loss: max(c − ⌈d̂ · c⌉, ⌈î · 4 · MTU⌉, MTU). The second term is the path's share of
    /// the least window of RFC 9260 §7.2.3; with it, a path that is alone behaves as in RFC 9260.
    fn after_loss(self, cwnd: u64, packet: u64) -> u64 {
        // 1 / î is 1 at least, so that this is the larger one.
        let decrease = (0.5 / self.0 * cwnd as f64).ceil() as u64;
        cwnd.saturating_sub(decrease).max(self.increase(4 * packet)).max(packet)
    }
}

/// The window of SCTP (RFC 9260 §7.2).
#[derive(Clone, Debug, Default)]
struct Rfc9260 {
    partial_bytes_acked: u64,
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

/// The window of TCP: slow start and congestion avoidance (RFC 5681 §3.1), by bytes acknowledged.
#[derive(Clone, Debug, Default)]
struct NewReno {
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

/// Whether the window was full within the last round trip. A window that is not used up says nothing about
/// the path, and does not grow (RFC 9438 §5.8).
///
/// An ACK that finds the window full begins a round that lasts until as many bytes are acknowledged as are in
/// flight: several ACKs at once, before the sender can refill the window, belong to one round.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    round_left: u64,
}

impl Usage {
    /// Called when `bytes` of the `flight` bytes in flight are acknowledged. Returns whether the window
    /// limited the sender.
    const fn on_acked(&mut self, bytes: u64, flight: u64, is_full: bool) -> bool {
        if is_full {
            self.round_left = flight;
        }
        let is_limited = self.round_left > 0;
        self.round_left = self.round_left.saturating_sub(bytes);
        is_limited
    }
}
