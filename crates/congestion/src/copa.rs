//! Copa (Arun and Balakrishnan, NSDI 2018): a window that keeps the queue of the bottleneck short.
//!
//! The queueing delay d is the least round trip of the last half round trip, less the least of the last ten
//! seconds. The target rate is 1/(δ·d) packets per second: below it the window grows, above it it shrinks, by
//! v/(δ·cwnd) packets per packet acknowledged. Senders alone at a bottleneck keep about 1/δ packets each in its
//! queue, share it equally, and empty it once in five round trips (§2.1, §3). The velocity v doubles
//! with each round trip in the same direction (§2.1).
//!
//! Where the queue is not nearly empty once in five round trips, others may fill it: competitive mode (§2.2).
//!
//! # Where this differs from the paper
//! - Competitive mode is verified before it begins: the window falls to half of what fills the path for as long as the queue
//!   takes to drain, and the queue is still more than a quarter of what it was, and more than a packet or two take
//!   (a sixteenth of the least round trip). What gives reason to verify: five round trips without a nearly empty queue, and
//!   a packet lost while it was long, or 50 ms of delay all the time. The paper's rule
//!   alone takes several senders that use Copa, or one whose path became slower, for others. The mode is verified again after
//!   thirty seconds or sixty round trips, or after five seconds or ten round trips if the drain showed a new least round trip; before, it ends only with five round trips of a nearly empty queue, since others leave it so after
//!   each loss.
//! - In competitive mode the window is that of CUBIC (RFC 9438), as that of the others, and not Copa's with a varying δ: 1/δ that
//!   grows by one per round trip keeps up with Reno, not with CUBIC. It begins with slow start, as a new sender does.
//! - In competitive mode the least round trip is that of five minutes, since others may not let it be seen for longer than ten seconds.
//! - The same drain, if the least round trip was not seen again for five seconds or ten round trips: the window of ten seconds would forget
//!   it, and take the queue that is left for a part of the path.
//! - Slow start ends with half of the window: the queue that ends it was made a round trip before by as much.
//! - A window that grew or shrank by more than v = 1 turns where it was a round trip before: the delay that turns it is
//!   that of this window.
//! - A queue shorter than 1/δ packets shows no delay, only losses: a round trip that loses more than
//!   [`MOST_LOST_PERCENT`] of its packets reduces the window.
//! - A retransmission timeout begins slow start anew, in competitive mode that of CUBIC. Up to half of the window of before, ACKs without
//!   a sample count, too: everything lost is retransmitted first, whose ACKs have none (Karn).

use std::time::Duration;

use rexmit_core::Instant;

use super::cubic::Cubic;
use crate::window::{Acked, Algorithm, Sending, TimedOut, Usage, Window};
use delays::{COMPETITIVE_ROUNDS, Delays};

/// 1/δ: packets that a sender keeps in the queue (§2: δ = 0.5).
const INVERSE_DELTA: f64 = 2.0;
/// The time for which a loss during a long queue is remembered.
const OVERFLOW_MEMORY: Duration = Duration::from_secs(20);
/// The time after which competitive mode is verified.
const COMPETITIVE_TIME: Duration = Duration::from_secs(30);
/// Competitive mode lasts for at least this many round trips before it is verified: behind a queue of 16 BDP a round trip
/// may take two seconds, of which each verification costs several.
const COMPETITIVE_TIME_ROUNDS: u32 = 60;
/// The least round trip is to be seen again within this time.
const LEAST_AGE: Duration = Duration::from_secs(5);
/// The least round trip need not be seen again within fewer round trips than this.
const LEAST_AGE_ROUNDS: u32 = 10;
/// Round trips in the same direction after which the velocity v doubles.
const STEADY_ROUNDS: u32 = 3;
/// A queue that delays by less than this part of the least round trip is no sign of others: loss-based senders leave more.
const SHORT_QUEUE: u32 = 16;
/// Packets of a window at least.
const LEAST_PACKETS: f64 = 2.0;
/// Of a round trip with more losses than this the queue is too short to show a delay.
const MOST_LOST_PERCENT: u64 = 10;
/// The window after such a round trip: RFC 9438 §4.6.
const AFTER_OVERLOAD: f64 = 0.7;

mod delays;

#[derive(Clone, Debug)]
pub(super) struct Copa {
    delays: Delays,
    /// The window doubles every round trip, until the rate is the target.
    is_slow_start: bool,
    velocity: f64,
    /// The window is growing.
    is_up: bool,
    /// Round trips in that direction.
    steady_rounds: u32,
    round: Round,
    mode: Mode,
    drain: Option<Drain>,
    drained_at: Instant,
    /// When a packet was lost while the queue was long.
    overflowed_at: Option<Instant>,
    /// When something was acknowledged last.
    now: Instant,
    /// Growth below a byte, in bytes.
    fraction: f64,
    usage: Usage,
}

#[derive(Clone, Debug)]
enum Mode {
    /// The delay.
    Default,
    /// Losses, as the senders that fill the queue.
    Competitive { cubic: Box<Cubic>, began: Instant, until: Instant },
}

/// The window is small, so that the queue drains.
#[derive(Clone, Copy, Debug)]
struct Drain {
    began: Instant,
    ends: Instant,
    /// The least round trip and the queueing delay before.
    least: Duration,
    queueing: Duration,
    /// The window before, and what would fill the path without a queue.
    cwnd: u64,
    of_path: u64,
    /// Whether this drain shows that others fill the queue.
    verifies: bool,
}

/// The result of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// The queue was of this sender alone.
    Empty,
    /// Other senders fill it.
    Others,
    /// Either: the next drain is compared with a better minimum.
    Unknown,
}

/// The present round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Instant,
    cwnd: u64,
    packets_sent: u64,
    packets_lost: u64,
}

impl Round {
    const fn new(began: Instant, cwnd: u64) -> Self {
        Self { began, cwnd, packets_sent: 0, packets_lost: 0 }
    }

    const fn is_overloaded(&self) -> bool {
        self.packets_sent >= 10 && self.packets_lost * 100 > self.packets_sent * MOST_LOST_PERCENT
    }
}

impl Default for Copa {
    fn default() -> Self {
        Self {
            delays: Delays::default(),
            is_slow_start: true,
            velocity: 1.0,
            is_up: true,
            steady_rounds: 0,
            round: Round::new(Instant::ZERO, 0),
            mode: Mode::Default,
            drain: None,
            drained_at: Instant::ZERO,
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
        self.delays.rtt_standing
    }

    pub(super) const fn is_competitive(&self) -> bool {
        matches!(self.mode, Mode::Competitive { .. })
    }

    /// Begins a drain if one is needed, and ends one that is over. Returns whether the window is to stay small.
    fn drain(
        &mut self,
        window: &mut Window,
        now: Instant,
        srtt: Duration,
        queueing: Duration,
    ) -> bool {
        if let Some(drain) = self.drain {
            if now < drain.ends {
                return true;
            }
            let of_others = (drain.queueing / 4).max(self.delays.rtt_least / SHORT_QUEUE);
            let was_empty = self.delays.nearly_empty_at > drain.began || queueing <= of_others;
            // A round trip shorter than all before: the least of them included the queue of others, which may still be there.
            let is_new_least = self.delays.rtt_least < drain.least - drain.least / 64;
            let found = match was_empty {
                true if self.is_competitive() && is_new_least => Found::Unknown,
                true => Found::Empty,
                false => Found::Others,
            };
            self.end_drain(window, (now, srtt), drain, found);
        }
        let rounds = COMPETITIVE_ROUNDS * srtt;
        let is_recent = |at: Instant| now - at <= OVERFLOW_MEMORY;
        let has_overflowed = self.overflowed_at.is_some_and(is_recent);
        let (is_due, verifies) = match &self.mode {
            Mode::Competitive { until, .. } => (now >= *until, true),
            Mode::Default
                if self.delays.is_standing
                    && (has_overflowed || now - self.delays.short_at > rounds) =>
            {
                (true, true)
            }
            Mode::Default => {
                let since = self.delays.least_at.max(self.drained_at);
                (!self.is_slow_start && now - since > LEAST_AGE.max(LEAST_AGE_ROUNDS * srtt), false)
            }
        };
        if is_due {
            self.begin_drain(window, now, queueing, verifies);
        }
        is_due
    }

    fn begin_drain(
        &mut self,
        window: &mut Window,
        now: Instant,
        queueing: Duration,
        verifies: bool,
    ) {
        let standing = self.delays.rtt_standing.unwrap_or_default();
        let least = self.delays.rtt_least;
        let share = least.as_secs_f64() / standing.as_secs_f64().max(1e-9);
        let of_path = (window.cwnd as f64 * share.min(1.0)) as u64;
        let floor = LEAST_PACKETS as u64 * window.packet;
        self.drain = Some(Drain {
            began: now,
            // The queue drains, and a round trip later the ACKs show it.
            ends: now + standing + least,
            least,
            queueing,
            cwnd: window.cwnd,
            of_path: of_path.max(floor),
            verifies,
        });
        window.cwnd = (of_path / 2).max(floor);
    }

    /// Competitive mode, because other senders fill the queue: CUBIC, which begins as a new sender does, or goes on.
    fn compete(&mut self, window: &mut Window, now: Instant, time: Duration) {
        let cubic = match std::mem::replace(&mut self.mode, Mode::Default) {
            Mode::Competitive { cubic, .. } => cubic,
            Mode::Default => {
                window.ssthresh = u64::MAX;
                Box::default()
            }
        };
        self.is_slow_start = false;
        self.mode = Mode::Competitive { cubic, began: now, until: now + time };
    }

    fn end_drain(
        &mut self,
        window: &mut Window,
        (now, srtt): (Instant, Duration),
        drain: Drain,
        found: Found,
    ) {
        self.drain = None;
        self.drained_at = now;
        self.delays.short_at = now;
        if drain.verifies && found != Found::Empty {
            window.cwnd = drain.cwnd;
            let time = match found {
                Found::Others => COMPETITIVE_TIME.max(COMPETITIVE_TIME_ROUNDS * srtt),
                Found::Empty | Found::Unknown => LEAST_AGE.max(LEAST_AGE_ROUNDS * srtt),
            };
            self.compete(window, now, time);
        } else {
            window.cwnd = drain.of_path;
            self.mode = Mode::Default;
        }
        self.overflowed_at = None;
        self.turn(true);
        self.round = Round::new(now, window.cwnd);
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

    /// An ACK of retransmitted data, or of small packets alone.
    fn on_acked_without_sample(&mut self, window: &mut Window, acked: &Acked) {
        if self.drain.is_some() {
            return;
        }
        if let Mode::Competitive { cubic, .. } = &mut self.mode {
            return cubic.on_acked(window, acked);
        }
        if self.is_slow_start && acked.rtt.is_none() && window.cwnd < window.ssthresh {
            window.cwnd += acked.bytes;
        }
        if let Some(srtt) = acked.srtt {
            self.end_round(window, acked.now, srtt);
        }
    }

    /// The change of the window, in packets, for `acked` packets with this queueing delay.
    fn step(
        &mut self,
        window: &mut Window,
        acked: f64,
        queueing: Duration,
        standing: Duration,
    ) -> f64 {
        let cwnd = window.cwnd as f64 / window.packet as f64;
        let rate = cwnd * queueing.as_secs_f64();
        let is_up = rate <= INVERSE_DELTA * standing.as_secs_f64();
        if is_up != self.is_up && self.velocity > 1.0 {
            window.cwnd = self.round.cwnd;
            self.turn(is_up);
        }
        let step = self.velocity * INVERSE_DELTA * acked / cwnd;
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
        // Small packets alone take less time at the bottleneck: they say nothing of a full window, nor of an empty queue.
        let is_small = 2 * acked.bytes < window.packet;
        self.now = acked.now;
        let Some(rtt) = acked.rtt.filter(|_| is_limited && !is_small) else {
            if is_limited {
                self.on_acked_without_sample(window, acked);
            }
            return;
        };
        let srtt = acked.srtt.unwrap_or(rtt);
        let is_competitive = self.is_competitive();
        let queueing = self.delays.measure(acked.now, rtt, srtt, is_competitive);
        if self.drain(window, acked.now, srtt, queueing) {
            return;
        }
        if let Mode::Competitive { cubic, .. } = &mut self.mode {
            if acked.now - self.delays.filled_at <= COMPETITIVE_ROUNDS * srtt {
                return cubic.on_acked(window, acked);
            }
            self.mode = Mode::Default;
        }
        self.end_round(window, acked.now, srtt);
        let packet = window.packet as f64;
        let cwnd = window.cwnd as f64 / packet;
        let standing = self.delays.rtt_standing.unwrap_or(rtt);
        let is_below = cwnd * queueing.as_secs_f64() <= INVERSE_DELTA * standing.as_secs_f64();
        if self.is_slow_start && is_below {
            window.cwnd += acked.bytes;
            return;
        }
        self.leave_slow_start(window);
        let step = self.step(window, acked.bytes as f64 / packet, queueing, standing);
        let next = (window.cwnd as f64 + self.fraction + step * packet).max(LEAST_PACKETS * packet);
        window.cwnd = next as u64;
        self.fraction = next - window.cwnd as f64;
    }

    /// Only the competitive mode follows losses (§2.2).
    fn on_loss(&mut self, window: &mut Window, flight_size: u64) {
        if self.delays.is_at_peak {
            self.overflowed_at = Some(self.now);
        }
        let rtt = self.delays.rtt_standing.unwrap_or_default();
        match &mut self.mode {
            // In the first round trip packets are lost that were sent before; the drain was the reduction for them.
            Mode::Competitive { cubic, began, .. }
                if self.drain.is_none() && self.now - *began > rtt =>
            {
                cubic.on_loss(window, flight_size);
            }
            _ => {}
        }
    }

    /// A mark counts in each mode: a router sees a queue that delays do not show yet. A drain has reduced the window already.
    fn on_marked(&mut self, window: &mut Window, flight_size: u64) {
        match &mut self.mode {
            Mode::Competitive { .. } => self.on_loss(window, flight_size),
            Mode::Default if self.drain.is_some() => {}
            Mode::Default if self.is_slow_start => self.leave_slow_start(window),
            Mode::Default => {
                let floor = (LEAST_PACKETS * window.packet as f64) as u64;
                window.cwnd = ((window.cwnd as f64 * AFTER_OVERLOAD) as u64).max(floor);
                self.turn(false);
            }
        }
    }

    fn on_packet_lost(&mut self) {
        self.round.packets_lost += 1;
    }

    /// The others that fill the queue are still there: competitive mode goes on as after any loss.
    fn on_timeout(&mut self, window: &mut Window, timed_out: TimedOut) {
        let before = self.drain.take().map_or(window.cwnd, |drain| drain.cwnd);
        if let Mode::Competitive { cubic, .. } = &mut self.mode {
            return cubic.on_timeout(window, timed_out);
        }
        if !timed_out.is_repeated {
            window.ssthresh = (before / 2).max(LEAST_PACKETS as u64 * window.packet);
        }
        window.cwnd = window.packet;
        self.begin_slow_start();
    }
}

#[cfg(test)]
mod tests;
