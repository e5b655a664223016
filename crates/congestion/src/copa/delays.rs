//! Copa's estimate of the queueing delay from RTT samples.

use std::time::Duration;

use rexmit_core::Instant;

use super::super::recent::Recent;

/// Round trips without a nearly empty queue after which other senders are assumed to fill it.
pub(super) const COMPETITIVE_ROUNDS: u32 = 5;
/// The window over which the minimum RTT is taken.
const LEAST_WINDOW: Duration = Duration::from_secs(10);
/// The window over which the minimum RTT is taken while other senders fill the queue, which hides it until they end.
const COMPETITIVE_LEAST_WINDOW: Duration = Duration::from_secs(300);
/// A queue is nearly empty if it delays by less than this part of the recent round trips' range (§2.2).
const NEARLY_EMPTY: f64 = 0.1;
/// The number of round trips over which the range of round-trip times is taken.
const RANGE_ROUNDS: u32 = 4;
/// Queueing delay that, for [`COMPETITIVE_ROUNDS`], is not caused by senders that use Copa.
const LONG_QUEUE: Duration = Duration::from_millis(50);
/// An RTT within this fraction (1/n) of the minimum counts as the minimum again.
const LEAST_TOLERANCE: u32 = 64;

#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// The least of the last half round trip, of ten seconds, and the largest of four round trips.
    standing: Recent,
    least: Recent,
    largest: Recent,
    pub(super) rtt_standing: Option<Duration>,
    pub(super) rtt_least: Duration,
    /// When the queue was nearly empty last.
    pub(super) nearly_empty_at: Instant,
    /// When the queue was not nearly empty last.
    pub(super) filled_at: Instant,
    /// When the queue was shorter than [`LONG_QUEUE`] last.
    pub(super) short_at: Instant,
    /// When the least round trip was seen last.
    pub(super) least_at: Instant,
    /// The queue has not been nearly empty for [`COMPETITIVE_ROUNDS`].
    pub(super) is_standing: bool,
    /// The queue is standing, and is in the upper half of its range.
    pub(super) is_at_peak: bool,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            standing: Recent::least(),
            least: Recent::least(),
            largest: Recent::largest(),
            rtt_standing: None,
            rtt_least: Duration::ZERO,
            nearly_empty_at: Instant::ZERO,
            filled_at: Instant::ZERO,
            short_at: Instant::ZERO,
            least_at: Instant::ZERO,
            is_standing: false,
            is_at_peak: false,
        }
    }
}

impl Delays {
    /// Enters a sample; returns the queueing delay.
    pub(super) fn measure(
        &mut self,
        now: Instant,
        rtt: Duration,
        srtt: Duration,
        is_competitive: bool,
    ) -> Duration {
        let standing = self.standing.on_sample(now, srtt / 2, rtt);
        let window = if is_competitive { COMPETITIVE_LEAST_WINDOW } else { LEAST_WINDOW };
        let least = self.least.on_sample(now, window, rtt);
        let largest = self.largest.on_sample(now, RANGE_ROUNDS * srtt, rtt);
        self.rtt_standing = Some(standing);
        self.rtt_least = least;
        if rtt <= least + least / LEAST_TOLERANCE {
            self.least_at = now;
        }
        let queueing = standing.saturating_sub(least);
        let range = largest.saturating_sub(least);
        if queueing <= range.mul_f64(NEARLY_EMPTY) {
            self.nearly_empty_at = now;
        } else {
            self.filled_at = now;
        }
        if queueing < LONG_QUEUE {
            self.short_at = now;
        }
        self.is_standing = now - self.nearly_empty_at > COMPETITIVE_ROUNDS * srtt;
        self.is_at_peak = self.is_standing && queueing >= range / 2;
        queueing
    }
}
