//! Pauses of copies where they do more harm than good: where copies fill the path, most messages are late, whatever their number.

use std::time::Duration;

use rexmit_core::Instant;

/// The weight of a unit in the mean share of late ones.
const LATE_WEIGHT: f64 = 1.0 / 32.0;
/// Copies pause if this share of units is late, and twice the share of losses: they fill the path.
const MOST_LATE: f64 = 0.25;
/// The duration of a pause.
const MIN_PAUSE: Duration = Duration::from_secs(10);
/// Each pause soon after another is twice as long, and no longer than this.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The share of late units, and the pause that followed from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    /// The mean share of acknowledged units that were late, without those of pauses.
    late: f64,
    /// The end of the last pause, and its duration.
    until: Instant,
    duration: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { late: 0.0, until: Instant::ZERO, duration: Duration::ZERO }
    }
}

impl Pauses {
    /// A unit has arrived, late or in time; `lost` is the share of first transmissions that are lost. Without copies these
    /// would be late.
    pub(super) fn on_arrived(&mut self, now: Instant, is_late: bool, lost: f64) {
        if self.is_on(now) {
            return;
        }
        self.late += (f64::from(u8::from(is_late)) - self.late) * LATE_WEIGHT;
        if self.late < (2.0 * lost).max(MOST_LATE) {
            return;
        }
        let is_again = now - self.until < self.duration * 2;
        self.duration = if is_again { (self.duration * 2).min(MAX_PAUSE) } else { MIN_PAUSE };
        (self.until, self.late) = (now + self.duration, 0.0);
    }

    /// Whether no copies are to be sent now.
    pub(super) fn is_on(&self, now: Instant) -> bool {
        now < self.until
    }
}
