//! The effect of ordered delivery on a bound.

use std::time::Duration;

use super::{Bound, MAX_COPIES, NEGLIGIBLE, Step};

impl Bound {
    /// The bound for messages every `interval` with ordered delivery, where each message waits for
    /// all earlier ones. Valid for independent losses and copies in packets of their own: a message
    /// is then in time if it arrives in time, the previous one arrives within that time plus one
    /// interval, and so on.
    #[must_use]
    pub fn in_order(&self, interval: Duration) -> Self {
        let mut latencies: Vec<Duration> = Vec::new();
        for step in &self.steps {
            // Messages behind it wait for it, down to the latency of a message that does not wait.
            let waits = (0..).map_while(|n| step.latency.checked_sub(interval * n));
            let least = self.steps[0].latency;
            let waits = waits.take(MAX_COPIES).take_while(|latency| *latency >= least);
            latencies.extend(waits);
        }
        latencies.sort_unstable();
        latencies.dedup();
        let steps = latencies.into_iter().map(|latency| {
            let before = (0..MAX_COPIES as u32).map(|n| self.beyond(latency + interval * n));
            let in_time: f64 =
                before.take_while(|late| *late > NEGLIGIBLE).map(|late| 1.0 - late).product();
            Step { latency, beyond: 1.0 - in_time }
        });
        Self { steps: steps.collect(), extra_packets: self.extra_packets }
    }

    /// The probability that a message takes longer than `latency`.
    fn beyond(&self, latency: Duration) -> f64 {
        let known = self.steps.partition_point(|step| step.latency <= latency);
        known.checked_sub(1).map_or(1.0, |last| self.steps[last].beyond)
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;
    use crate::bound::{LossModel, Strategy};

    const DELAY: Duration = Duration::from_millis(50);

    fn quantiles(strategy: Strategy, interval_ms: u64) -> [u128; 2] {
        let bound = Bound::new(strategy, DELAY, LossModel::Uniform(0.05));
        let ordered = bound.in_order(Duration::from_millis(interval_ms));
        [0.99, 0.999].map(|quantile| ordered.quantile(quantile).as_millis())
    }

    /// By hand for 5 %, every 50 ms: 1 − 0.9975²·0.999875² = 0.5 % take longer than 150 ms, and
    /// 0.028 % longer than 250 ms.
    #[test]
    fn quantiles_at_five_percent() {
        assert_eq!(quantiles(Strategy::Reactive, 50), [150, 250]);
        assert_eq!(quantiles(Strategy::Doubled, 50), [150, 150]);
        // Every 25 ms 1 − 0.9975⁴·0.999875⁴ = 1.05 % take longer than 150 ms.
        assert_eq!(quantiles(Strategy::Reactive, 25), [175, 250]);
    }

    #[test]
    fn chance_gives_the_same() {
        const MESSAGES: u64 = 400_000;
        for interval_ms in [20, 50, 70] {
            let (interval, loss) = (Duration::from_millis(interval_ms), 0.2);
            let bound = Bound::new(Strategy::Reactive, DELAY, LossModel::Uniform(loss));
            let ordered = bound.in_order(interval);
            let mut rng = Seed::from_u64(interval_ms).rng();
            let (mut free, mut late) = (Duration::ZERO, vec![0_u64; ordered.steps.len()]);
            for n in 0..MESSAGES {
                let sent = Duration::from_millis(interval_ms * n);
                let mut arrived = sent + DELAY;
                while rng.chance(loss) {
                    arrived += 2 * DELAY;
                }
                free = free.max(arrived);
                let taken = free - sent;
                for (step, late) in ordered.steps.iter().zip(&mut late) {
                    *late += u64::from(taken > step.latency);
                }
            }
            for (step, late) in ordered.steps.iter().zip(late) {
                let measured = late as f64 / MESSAGES as f64;
                // Messages that wait for the same message are not independent, which widens the margin.
                let deviation = (8.0 * step.beyond.max(1e-6) / MESSAGES as f64).sqrt();
                let away = (measured - step.beyond).abs();
                assert!(away <= 5.0 * deviation, "{interval_ms} ms: {measured} and {step:?}");
            }
        }
    }
}
