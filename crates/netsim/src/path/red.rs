//! Random early detection: packets are dropped, or marked (RFC 3168 §7), before the queue is full (Floyd and Jacobson,
//! "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1993), and gradually above the upper threshold
//! ("gentle").

use std::time::Duration;

use rexmit_core::{Rng, Seed};
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// The configuration of random early detection. It acts on the average number of packets in the queue.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Lower threshold, in packets: with a shorter average, no packet is dropped.
    pub min: f64,
    /// Upper threshold, in packets. From it to twice its value the probability rises from
    /// [`probability`](Self::probability) to 1.
    pub max: f64,
    /// Probability of a drop at the upper threshold.
    #[serde(default = "default_probability")]
    pub probability: f64,
    /// Weight of the newest queue length in the average.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Whether ECN-capable packets are marked instead of dropped, unless the average is at least twice the upper threshold
    /// or the queue is full. Default false.
    #[serde(default)]
    pub ecn: bool,
}

const fn default_probability() -> f64 {
    0.1
}

const fn default_weight() -> f64 {
    0.002
}

impl Red {
    /// Random early detection between these thresholds in packets, with a probability of 0.1 at the upper one and an
    /// average over about 500 packets.
    #[must_use]
    pub const fn new(min: f64, max: f64) -> Self {
        let (probability, weight) = (default_probability(), default_weight());
        Self { min, max, probability, weight, ecn: false }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Self { min, max, .. } = *self;
        if min >= 0.0 && min < max && max.is_finite() {
            Ok(())
        } else {
            Err(ConfigError::RedThresholds { min, max })
        }
    }

    /// The probability of a drop for this average, before drops are spaced; 0 below the lower threshold.
    fn probability_at(&self, average: f64) -> f64 {
        if average < self.min {
            0.0
        } else if average < self.max {
            self.probability * (average - self.min) / (self.max - self.min)
        } else {
            let excess = (average - self.max) / self.max;
            (self.probability + (1.0 - self.probability) * excess).min(1.0)
        }
    }
}

/// What random early detection does with a packet that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// The average queue length, and the packets since the last drop or mark.
#[derive(Clone, Debug)]
pub(super) struct RedState {
    average: f64,
    /// Packets accepted since the last drop or mark while the average was above the lower threshold.
    since_drop: u32,
    rng: Rng,
}

impl RedState {
    pub(super) fn new(seed: &Seed) -> Self {
        Self { average: 0.0, since_drop: 0, rng: seed.split("red").rng() }
    }

    /// The fate of a packet that arrives with `queued` packets in the queue, and is ECN-capable or not. `idle` is how long
    /// the link was idle before, and `transmission` how long it sends such a packet.
    pub(super) fn judge(
        &mut self,
        red: &Red,
        is_ecn_capable: bool,
        queued: usize,
        (idle, transmission): (Duration, Duration),
    ) -> Verdict {
        if !self.chooses(red, queued, idle, transmission) {
            Verdict::Pass
        } else if red.ecn && is_ecn_capable && self.average < 2.0 * red.max {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Whether the packet is to be dropped or marked.
    fn chooses(
        &mut self,
        red: &Red,
        queued: usize,
        idle: Duration,
        transmission: Duration,
    ) -> bool {
        if idle.is_zero() {
            self.average += red.weight * (queued as f64 - self.average);
        } else {
            // As if so many packets had met an empty queue.
            let missed = idle.as_secs_f64() / transmission.as_secs_f64().max(1e-9);
            self.average *= libm::pow(1.0 - red.weight, missed);
        }
        let probability = red.probability_at(self.average);
        if probability <= 0.0 {
            self.since_drop = 0;
            return false;
        }
        // The intervals between drops are then uniform, and not geometric (§4 of the paper).
        let spent = f64::from(self.since_drop) * probability;
        let spaced = if spent < 1.0 { (probability / (1.0 - spent)).min(1.0) } else { 1.0 };
        let is_chosen = self.rng.chance(spaced);
        self.since_drop = if is_chosen { 0 } else { self.since_drop.saturating_add(1) };
        is_chosen
    }

    /// Called when the queue was full and the packet was dropped for that.
    pub(super) fn on_overflow(&mut self) {
        self.since_drop = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn state(average: f64) -> RedState {
        RedState { average, ..RedState::new(&Seed::from_u64(1)) }
    }

    #[test]
    fn probability_rises_from_threshold_to_threshold_and_then_to_one() {
        let red = Red::new(5.0, 15.0);
        let at = |average| red.probability_at(average);
        assert_eq!([at(0.0), at(4.9), at(5.0)], [0.0; 3]);
        assert!((at(10.0) - 0.05).abs() < 1e-12 && (at(15.0) - 0.1).abs() < 1e-12);
        assert!((at(22.5) - 0.55).abs() < 1e-12);
        assert_eq!([at(30.0), at(100.0)], [1.0; 2]);
    }

    #[test]
    fn the_average_follows_the_queue_slowly_and_falls_while_the_link_is_idle() {
        let red = Red { weight: 0.25, ..Red::new(50.0, 60.0) };
        let mut red_state = state(0.0);
        for expected in [2.0, 3.5, 4.625] {
            assert!(!red_state.chooses(&red, 8, Duration::ZERO, MS));
            assert!((red_state.average - expected).abs() < 1e-12, "{}", red_state.average);
        }
        // Two packets would have been sent meanwhile.
        red_state.chooses(&red, 0, 2 * MS, MS);
        assert!((red_state.average - 4.625 * 0.5625).abs() < 1e-9, "{}", red_state.average);
    }

    /// With a constant probability p, the packets from one drop to the next are uniform on 1 to 1/p (§4 of the paper):
    /// their mean is (1/p + 1)/2.
    #[test]
    fn drops_are_evenly_spaced() {
        let red = Red { weight: 0.0, ..Red::new(5.0, 15.0) };
        let mut red_state = state(10.0);
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..100_000 {
            gap += 1;
            if red_state.chooses(&red, 10, Duration::ZERO, MS) {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&20)));
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        // The standard deviation of a gap is 5.8, and there are about 9500.
        assert!((mean - 10.5).abs() < 0.25, "{mean}");
    }

    /// RFC 3168 §7 and RFC 7567 §4.2.1: the field of a packet that does not use ECN stays, and overload is not marked.
    #[test]
    fn capable_packets_are_marked_where_others_are_dropped_but_not_in_overload() {
        let verdict = |red: Red, is_capable, average| {
            let red = Red { weight: 0.0, probability: 1.0, ..red };
            state(average).judge(&red, is_capable, 0, (Duration::ZERO, MS))
        };
        let [off, on] = [false, true].map(|ecn| Red { ecn, ..Red::new(5.0, 15.0) });
        assert_eq!(verdict(on, true, 4.9), Verdict::Pass);
        assert_eq!(
            [15.0, 29.9, 30.0].map(|average| verdict(on, true, average)),
            [Verdict::Mark, Verdict::Mark, Verdict::Drop]
        );
        assert_eq!(verdict(on, false, 15.0), Verdict::Drop);
        assert_eq!(verdict(off, true, 15.0), Verdict::Drop);
    }

    #[test]
    fn a_short_queue_loses_nothing() {
        let mut red_state = state(0.0);
        let red = Red { weight: 1.0, ..Red::new(5.0, 15.0) };
        assert!((0..1000).all(|n| !red_state.chooses(&red, n % 5, Duration::ZERO, MS)));
    }
}
