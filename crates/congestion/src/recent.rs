//! The least or the largest of the latest samples, in constant memory.

use std::time::Duration;

use rexmit_core::Instant;

/// The number of parts into which the window is divided.
const PARTS: usize = 8;

/// The minimum or maximum of the samples of the last `window`, whose length may change. Samples are forgotten
/// in eighths of the window: each is remembered for the whole window, and for at most an eighth more.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    pick: fn(Duration, Duration) -> Duration,
    /// The extreme of each part, the newest first.
    parts: [Option<Duration>; PARTS + 1],
    began: Instant,
}

impl Recent {
    pub(super) const fn least() -> Self {
        Self { pick: std::cmp::min, parts: [None; PARTS + 1], began: Instant::ZERO }
    }

    pub(super) const fn largest() -> Self {
        Self { pick: std::cmp::max, ..Self::least() }
    }

    /// Adds `sample`, and returns the extreme of the last `window`.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        window: Duration,
        sample: Duration,
    ) -> Duration {
        let part = (window / PARTS as u32).as_nanos().max(1);
        let passed = (now - self.began).as_nanos() / part;
        if passed > 0 {
            let shift = usize::try_from(passed).unwrap_or(usize::MAX).min(PARTS + 1);
            self.parts.rotate_right(shift % (PARTS + 1));
            self.parts[..shift].fill(None);
            self.began = now;
        }
        let newest = self.parts[0].map_or(sample, |newest| (self.pick)(newest, sample));
        self.parts[0] = Some(newest);
        self.parts.iter().flatten().copied().reduce(self.pick).unwrap_or(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_sample_counts_for_the_window_and_little_longer() {
        let mut least = Recent::least();
        let at = Instant::from_millis;
        assert_eq!(least.on_sample(at(1000), MS(80), MS(20)), MS(20));
        let mut forgotten_after = None;
        for n in 1..200 {
            if least.on_sample(at(1000 + n), MS(80), MS(30)) == MS(30) {
                forgotten_after.get_or_insert(n);
            }
        }
        assert!((80..=100).contains(&forgotten_after.expect("forgotten")), "{forgotten_after:?}");
    }

    #[test]
    fn the_largest_is_kept_where_it_is_asked_for_and_a_pause_forgets_all() {
        let mut largest = Recent::largest();
        let at = Instant::from_millis;
        largest.on_sample(at(0), MS(80), MS(50));
        assert_eq!(largest.on_sample(at(1), MS(80), MS(30)), MS(50));
        assert_eq!(largest.on_sample(at(1_000_000), MS(80), MS(10)), MS(10));
    }
}
