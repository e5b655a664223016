//! Copa (Arun and Balakrishnan, NSDI 2018): a window that keeps the queue of the bottleneck short.
//!
//! The queueing delay d is the least round trip of the last half round trip, less the least of the last ten
//! seconds. The target rate is 1/(δ·d) packets per second: below it the window grows, above it it shrinks, by
//! v/(δ·cwnd) packets per packet acknowledged. Senders alone at a bottleneck keep about 1/δ packets each in its
//! queue, share it equally, and empty it once in five round trips (§2.1, §3). The velocity v doubles
//! with each round trip in the same direction (§2.1).
//!
//! Where the queue is not nearly empty once in five round trips, others fill it. Then δ does what loss-based windows
//! do: 1/δ grows by one per round trip and halves with a loss (§2.2, competitive mode).
//!
//! # Where this differs from the paper
//! - Competitive mode also takes a loss within the last twenty seconds while the queue was long. Several senders that
//!   all use Copa do not always empty the queue within five round trips, nor does one whose path became slower; 1/δ,
//!   which grows until a loss, would then fill a queue that nobody else fills. One that others fill overflows.
//! - Slow start ends with half of the window: the queue that ends it was made a round trip before by as much.
//! - A queue shorter than 1/δ packets shows no delay, only losses: a round trip that loses more than
//!   [`MOST_LOST_PERCENT`] of its packets reduces the window.
//! - A retransmission timeout begins slow start anew.

use std::time::Duration;

use rexmit_core::Instant;

use super::recent::Recent;
use super::{Acked, Algorithm, Sending, TimedOut, Usage, Window};

/// 1/δ in the default mode: packets that a sender keeps in the queue (§2: δ = 0.5).
const DEFAULT_INVERSE_DELTA: f64 = 2.0;
/// The least round trip is that of the last so long.
const LEAST_WINDOW: Duration = Duration::from_secs(10);
/// A queue is nearly empty if it delays by less than this part of the recent round trips' range (§2.2).
const NEARLY_EMPTY: f64 = 0.1;
/// Over so many round trips that range is taken.
const RANGE_ROUNDS: u32 = 4;
/// After so many round trips without a nearly empty queue others fill it.
const COMPETITIVE_ROUNDS: u32 = 5;
/// And only if it overflowed within this time.
const OVERFLOW_MEMORY: Duration = Duration::from_secs(20);
/// v doubles only after so many round trips in the same direction.
const STEADY_ROUNDS: u32 = 3;
/// Packets of a window at least.
const LEAST_PACKETS: f64 = 2.0;
/// Of a round trip with more losses than this the queue is too short to show a delay.
const MOST_LOST_PERCENT: u64 = 10;
/// The window after such a round trip: RFC 9438 §4.6.
const AFTER_OVERLOAD: f64 = 0.7;

/// State of the algorithm.
#[derive(Clone, Debug)]
pub(super) struct Copa {
    /// The least of the last half round trip, of ten seconds, and the largest of four round trips.
    standing: Recent,
    least: Recent,
    largest: Recent,
    /// The least round trip of the last half one.
    rtt_standing: Option<Duration>,
    /// The window doubles every round trip, until the rate is the target.
    is_slow_start: bool,
    velocity: f64,
    /// The window is growing.
    is_up: bool,
    /// Round trips in that direction.
    steady_rounds: u32,
    round: Round,
    inverse_delta: f64,
    /// When the queue was nearly empty last.
    nearly_empty_at: Instant,
    /// The queue has not been nearly empty for [`COMPETITIVE_ROUNDS`].
    is_standing: bool,
    /// And is in the upper half of its range.
    is_at_peak: bool,
    /// When a packet was lost at such a time.
    overflowed_at: Option<Instant>,
    /// When something was acknowledged last.
    now: Instant,
    /// Growth below a byte, in bytes.
    fraction: f64,
    usage: Usage,
}

/// The present round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Instant,
    cwnd: u64,
    packets_sent: u64,
    packets_lost: u64,
    has_loss: bool,
}

impl Round {
    const fn new(began: Instant, cwnd: u64) -> Self {
        Self { began, cwnd, packets_sent: 0, packets_lost: 0, has_loss: false }
    }

    const fn is_overloaded(&self) -> bool {
        self.packets_sent >= 10 && self.packets_lost * 100 > self.packets_sent * MOST_LOST_PERCENT
    }
}

impl Default for Copa {
    fn default() -> Self {
        Self {
            standing: Recent::least(),
            least: Recent::least(),
            largest: Recent::largest(),
            rtt_standing: None,
            is_slow_start: true,
            velocity: 1.0,
            is_up: true,
            steady_rounds: 0,
            round: Round::new(Instant::ZERO, 0),
            inverse_delta: DEFAULT_INVERSE_DELTA,
            nearly_empty_at: Instant::ZERO,
            is_standing: false,
            is_at_peak: false,
            overflowed_at: None,
            now: Instant::ZERO,
            fraction: 0.0,
            usage: Usage::default(),
        }
    }
}

impl Copa {
    /// The round trip in which a window is sent, for the pacing rate.
    pub(super) const fn rtt_standing(&self) -> Option<Duration> {
        self.rtt_standing
    }

    /// Enters a sample; returns the queueing delay.
    fn measure(&mut self, now: Instant, rtt: Duration, srtt: Duration) -> Duration {
        let standing = self.standing.on_sample(now, srtt / 2, rtt);
        let least = self.least.on_sample(now, LEAST_WINDOW, rtt);
        let largest = self.largest.on_sample(now, RANGE_ROUNDS * srtt, rtt);
        self.rtt_standing = Some(standing);
        let queueing = standing.saturating_sub(least);
        let range = largest.saturating_sub(least);
        if queueing <= range.mul_f64(NEARLY_EMPTY) {
            self.nearly_empty_at = now;
        }
        self.now = now;
        self.is_standing = now - self.nearly_empty_at > COMPETITIVE_ROUNDS * srtt;
        self.is_at_peak = self.is_standing && queueing >= range / 2;
        queueing
    }

    /// Whether others fill the queue.
    fn is_competitive(&self) -> bool {
        let is_recent = |at: Instant| self.now - at <= OVERFLOW_MEMORY;
        self.is_standing && self.overflowed_at.is_some_and(is_recent)
    }

    /// A round trip is over: the velocity, and δ, of the next.
    fn end_round(&mut self, window: &mut Window, now: Instant, srtt: Duration) {
        if now - self.round.began < srtt {
            return;
        }
        let round = std::mem::replace(&mut self.round, Round::new(now, window.cwnd));
        if round.is_overloaded() {
            self.leave_slow_start(window);
            let floor = (LEAST_PACKETS * window.packet as f64) as u64;
            window.cwnd = ((window.cwnd as f64 * AFTER_OVERLOAD) as u64).max(floor);
            self.round.cwnd = window.cwnd;
        }
        let is_up = window.cwnd > round.cwnd;
        if is_up == self.is_up {
            self.steady_rounds += 1;
            if self.steady_rounds >= STEADY_ROUNDS {
                self.velocity *= 2.0;
            }
        } else {
            self.turn(is_up);
        }
        self.inverse_delta = if !self.is_competitive() {
            DEFAULT_INVERSE_DELTA
        } else if round.has_loss {
            self.inverse_delta
        } else {
            self.inverse_delta + 1.0
        };
    }

    const fn turn(&mut self, is_up: bool) {
        self.is_up = is_up;
        self.steady_rounds = 0;
        self.velocity = 1.0;
    }

    fn leave_slow_start(&mut self, window: &mut Window) {
        if std::mem::take(&mut self.is_slow_start) {
            window.cwnd = (window.cwnd / 2).max(window.initial);
            window.ssthresh = window.cwnd;
            self.turn(false);
        }
    }

    fn begin_slow_start(&mut self) {
        self.is_slow_start = true;
        self.fraction = 0.0;
        self.turn(true);
    }

    /// The change of the window, in packets, for `acked` packets with this queueing delay.
    fn step(&mut self, cwnd: f64, acked: f64, queueing: Duration, standing: Duration) -> f64 {
        let rate = cwnd * queueing.as_secs_f64();
        let is_up = rate <= self.inverse_delta * standing.as_secs_f64();
        if is_up != self.is_up && self.velocity > 1.0 {
            self.turn(is_up);
        }
        let step = self.velocity * self.inverse_delta * acked / cwnd;
        // At most doubled in a round trip, or halved.
        if is_up { step.min(acked) } else { -step.min(acked / 2.0) }
    }
}

impl Algorithm for Copa {
    fn on_send(&mut self, window: &mut Window, sending: Sending) {
        if window.restart_if_idle(sending) {
            self.begin_slow_start();
        }
        self.round.packets_sent += 1;
    }

    fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        let is_full = !window.has_room_for_packet(acked.flight_before);
        let is_limited = self.usage.on_acked(acked.bytes, acked.flight_before, is_full);
        let Some(rtt) = acked.rtt else { return };
        let srtt = acked.srtt.unwrap_or(rtt);
        let queueing = self.measure(acked.now, rtt, srtt);
        self.end_round(window, acked.now, srtt);
        if !is_limited {
            return;
        }
        let packet = window.packet as f64;
        let cwnd = window.cwnd as f64 / packet;
        let standing = self.rtt_standing.unwrap_or(rtt);
        let is_below = cwnd * queueing.as_secs_f64() <= self.inverse_delta * standing.as_secs_f64();
        if self.is_slow_start && is_below {
            window.cwnd += acked.bytes;
            return;
        }
        self.leave_slow_start(window);
        let step = self.step(cwnd, acked.bytes as f64 / packet, queueing, standing);
        let next = (window.cwnd as f64 + self.fraction + step * packet).max(LEAST_PACKETS * packet);
        window.cwnd = next as u64;
        self.fraction = next - window.cwnd as f64;
    }

    /// Only δ of the competitive mode follows losses (§2.2).
    fn on_loss(&mut self, _window: &mut Window, _flight_size: u64) {
        self.round.has_loss = true;
        if self.is_at_peak {
            self.overflowed_at = Some(self.now);
        }
        self.inverse_delta = (self.inverse_delta / 2.0).max(DEFAULT_INVERSE_DELTA);
    }

    fn on_packet_lost(&mut self) {
        self.round.packets_lost += 1;
    }

    fn on_timeout(&mut self, window: &mut Window, _timed_out: TimedOut) {
        window.cwnd = window.packet;
        self.begin_slow_start();
    }
}

#[cfg(test)]
mod tests;
