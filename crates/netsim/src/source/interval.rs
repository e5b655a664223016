//! Messages of one size, at constant or random intervals.

use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

use super::SourceError;
use crate::draw::exponential;

/// Messages of constant size.
///
/// At constant intervals, message n is sent at `start + n · interval`. At random intervals, the
/// messages are a Poisson process: the times between them are exponential with this mean, and the
/// first is sent after such a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervals {
    /// Time between two messages, or its mean.
    pub interval: Duration,
    /// Whether the intervals are random.
    pub is_random: bool,
    /// Payload of a message, in bytes.
    pub bytes: usize,
    /// Time of the first message at constant intervals; begin of the Poisson process at random
    /// ones.
    pub start: Instant,
}

impl Intervals {
    /// The endless sequence of messages; all randomness comes from `seed`.
    ///
    /// # Errors
    /// If the message size or the interval is zero.
    pub fn source(&self, seed: &Seed) -> Result<IntervalSource, SourceError> {
        if self.bytes == 0 {
            return Err(SourceError::ZeroSize("a message"));
        }
        if self.interval.is_zero() {
            return Err(SourceError::ZeroInterval("interval of messages"));
        }
        Ok(IntervalSource { config: *self, last: self.start, sent: 0, rng: seed.rng() })
    }
}

/// The messages of [`Intervals`].
#[derive(Clone, Debug)]
pub struct IntervalSource {
    config: Intervals,
    last: Instant,
    sent: u64,
    rng: Rng,
}

impl Iterator for IntervalSource {
    /// Time, and size in bytes.
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let Intervals { interval, is_random, bytes, .. } = self.config;
        if is_random {
            self.last += exponential(&mut self.rng, interval.as_nanos() as f64);
        } else if self.sent > 0 {
            self.last += interval;
        }
        self.sent += 1;
        (self.last < Instant::FAR_FUTURE).then_some((self.last, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Intervals = Intervals {
        interval: Duration::from_millis(250),
        is_random: false,
        bytes: 100,
        start: Instant::from_millis(1000),
    };

    #[test]
    fn even_messages_keep_their_times() {
        let source = EVEN.source(&Seed::from_u64(1)).unwrap();
        let times: Vec<_> = source.take(4).collect();
        assert_eq!(times, [1000, 1250, 1500, 1750].map(|ms| (Instant::from_millis(ms), 100)));
    }

    #[test]
    fn random_ones_are_a_poisson_process() {
        const COUNT: usize = 100_000;
        let random = Intervals { is_random: true, ..EVEN };
        let times: Vec<_> = random.source(&Seed::from_u64(1)).unwrap().take(COUNT).collect();
        let gaps: Vec<_> =
            times.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // 5 standard deviations of the mean; the share of times above the mean is e⁻¹.
        assert!((mean / 0.25 - 1.0).abs() < 5.0 / (COUNT as f64).sqrt(), "{mean}");
        let above = gaps.iter().filter(|&&gap| gap > 0.25).count() as f64 / gaps.len() as f64;
        assert!((above - (-1.0_f64).exp()).abs() < 0.01, "{above}");
    }

    #[test]
    fn sources_without_end_or_begin_are_refused() {
        assert!(Intervals { bytes: 0, ..EVEN }.source(&Seed::from_u64(1)).is_err());
        let no_time = Intervals { interval: Duration::ZERO, ..EVEN };
        assert!(no_time.source(&Seed::from_u64(1)).is_err());
    }
}
