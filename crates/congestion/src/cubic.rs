//! CUBIC (RFC 9438): in congestion avoidance the window is a cubic function of the time since its
//! last reduction, and never below what Reno would have reached.
//!
//! Arithmetic is in packets as `f64`, which gives the same bits on every machine: additions,
//! multiplications and divisions are exact by IEEE 754, and the cube root is that of `libm`.

use rexmit_core::Instant;

use crate::window::{Acked, Algorithm, Sending, TimedOut, Usage, Window};

/// C, in packets per second cubed (RFC 9438 §5).
const C: f64 = 0.4;
/// `beta_cubic` (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// `alpha_cubic`: Reno's growth in packets per round that, with reductions by `BETA`, gives the same average
/// window as standard Reno (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// State kept from one reduction to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// `W_max`, in packets; `None` before the first reduction.
    w_max: Option<f64>,
    /// cwnd before the last reduction, in packets.
    cwnd_prior: f64,
    /// Whether the last reduction was caused by a timeout.
    is_after_timeout: bool,
    /// The current stage of congestion avoidance.
    stage: Option<Stage>,
    /// The part of the growth that is less than a byte, in bytes.
    fraction: f64,
    usage: Usage,
    /// Whether the window limited the sender when the last ACK arrived.
    was_limited: bool,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    began: Instant,
    /// The window at the plateau of the cubic function, in packets.
    w_max: f64,
    /// K: the time at which the function reaches `w_max`, in seconds.
    k: f64,
    /// `W_est`: the window that Reno would have, in packets.
    w_est: f64,
    /// The time since which the sender has not used its window; it does not count for growth (RFC 9438 §5.8).
    unused_since: Option<Instant>,
}

impl Stage {
    /// `W_cubic(t)`, in packets (RFC 9438 §4.2 equation 1).
    fn w_cubic(&self, t: f64) -> f64 {
        let from_k = t - self.k;
        C * from_k * from_k * from_k + self.w_max
    }

    /// Excludes the time in which the window was not used.
    fn resume(&mut self, now: Instant) {
        if let Some(since) = self.unused_since.take() {
            self.began += now - since;
        }
    }
}

impl Cubic {
    /// Begins congestion avoidance with a window of `cwnd` packets (RFC 9438 §4.2, §4.8, §4.10).
    fn begin_stage(&mut self, now: Instant, cwnd: f64) -> Stage {
        if std::mem::take(&mut self.is_after_timeout) {
            self.w_max = Some(cwnd);
        }
        let w_max = self.w_max.filter(|&w_max| w_max > cwnd);
        let k = w_max.map_or(0.0, |w_max| libm::cbrt((w_max - cwnd) / C));
        Stage { began: now, w_max: w_max.unwrap_or(cwnd), k, w_est: cwnd, unused_since: None }
    }

    /// The growth, in bytes, that an acknowledgement of `cumulative_bytes` brings
    /// (RFC 9438 §4.3, §4.4, §4.5).
    fn growth(&mut self, window: &Window, acked: &Acked) -> f64 {
        let packet = window.packet as f64;
        let cwnd = (window.cwnd as f64 + self.fraction) / packet;
        let mut stage = match self.stage {
            Some(stage) => stage,
            None => self.begin_stage(acked.now, cwnd),
        };
        stage.resume(acked.now);
        let segments_acked = acked.cumulative_bytes as f64 / packet;
        let alpha = if stage.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        stage.w_est += alpha * segments_acked / cwnd;
        let t = (acked.now - stage.began).as_secs_f64();
        let next = if stage.w_cubic(t) < stage.w_est {
            stage.w_est.max(cwnd)
        } else {
            let rtt = acked.srtt.unwrap_or_default().as_secs_f64();
            let target = stage.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
            // Acknowledgements of several packets count for each of them, but not past the target.
            cwnd + (target - cwnd) * (segments_acked / cwnd).min(1.0)
        };
        self.stage = Some(stage);
        (next - cwnd) * packet
    }

    /// The reduction for a loss or a timeout (RFC 9438 §4.6, §4.7), of `flight_size` bytes. Returns ssthresh.
    fn reduce(&mut self, window: &Window, flight_size: u64) -> u64 {
        let cwnd = window.cwnd as f64 / window.packet as f64;
        self.cwnd_prior = cwnd;
        // Fast convergence: a window that fell short of the last one leaves room to others.
        let fell_short = self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max = Some(if fell_short { cwnd * (1.0 + BETA) / 2.0 } else { cwnd });
        self.stage = None;
        self.fraction = 0.0;
        ((flight_size as f64 * BETA) as u64).max(2 * window.packet)
    }
}

impl Cubic {
    /// Restores the state `before` a spurious reduction (RFC 9438 §4.9). The stage begins anew after slow
    /// start, because time has passed meanwhile.
    pub(super) fn on_undone(&mut self, before: &Self) {
        self.w_max = before.w_max;
        self.cwnd_prior = before.cwnd_prior;
        self.is_after_timeout = before.is_after_timeout;
    }
}

impl Algorithm for Cubic {
    fn on_send(&mut self, window: &mut Window, sending: Sending) {
        if window.restart_if_idle(sending) {
            self.stage = None;
            self.fraction = 0.0;
        } else if sending.flight == 0
            && self.was_limited
            && let Some(stage) = &mut self.stage
        {
            stage.resume(sending.now);
        }
    }

    fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        let is_full = !window.has_room_for_packet(acked.flight_before);
        let is_limited = self.usage.on_acked(acked.bytes, acked.flight_before, is_full);
        if is_limited && !acked.in_fast_recovery && acked.cumulative_bytes > 0 {
            if window.cwnd < window.ssthresh {
                window.slow_start(acked.cumulative_bytes);
            } else {
                self.fraction += self.growth(window, acked);
                let whole = self.fraction as u64;
                window.cwnd += whole;
                self.fraction -= whole as f64;
            }
        }
        self.was_limited = is_limited;
        let is_idle = acked.flight_after == 0;
        if let Some(stage) = self.stage.as_mut().filter(|_| is_idle || !is_limited) {
            stage.unused_since.get_or_insert(acked.now);
        }
    }

    fn on_loss(&mut self, window: &mut Window, flight_size: u64) {
        // While a recovery sends new data for what is SACKed or lost, more is outstanding than the window allows in flight.
        // A part of that could be more than the window: each loss would raise it.
        window.ssthresh = self.reduce(window, flight_size.min(window.cwnd));
        window.cwnd = window.ssthresh;
        self.is_after_timeout = false;
    }

    fn on_timeout(&mut self, window: &mut Window, timed_out: TimedOut) {
        if !timed_out.is_repeated {
            let most = window.cwnd.max(window.ssthresh);
            window.ssthresh = self.reduce(window, timed_out.flight_size.min(most));
        }
        self.stage = None;
        self.fraction = 0.0;
        window.cwnd = window.packet;
        self.is_after_timeout = true;
    }
}

#[cfg(test)]
mod tests;
