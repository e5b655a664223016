//! Deadlines: when a message must arrive, and with which probability.

use std::num::NonZeroU32;
use std::time::Duration;

/// Parts of a whole.
const MILLION: u32 = 1_000_000;

/// When a message must arrive, and with which probability.
///
/// ```
/// use rexmit_deadline::Deadline;
/// use std::time::Duration;
///
/// let deadline = Deadline::new(Duration::from_millis(150), 0.999);
/// assert_eq!(deadline.probability(), 0.999);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    within_us: u32,
    /// Of a million messages, how many may be late.
    late_ppm: NonZeroU32,
}

impl Deadline {
    /// `within` is at most 71 minutes, in microseconds. Of a million messages at least one may be late, and at least one must
    /// be in time: `probability` is rounded to the next that is possible.
    #[must_use]
    pub fn new(within: Duration, probability: f64) -> Self {
        let late = ((1.0 - probability) * f64::from(MILLION)).round();
        // A cast of a float saturates, and makes 0 of what is no number.
        let late_ppm = NonZeroU32::new((late as u32).min(MILLION - 1)).unwrap_or(NonZeroU32::MIN);
        Self { within_us: u32::try_from(within.as_micros()).unwrap_or(u32::MAX), late_ppm }
    }

    /// The time from when the application gives the message until the peer has all of it.
    #[must_use]
    pub const fn within(&self) -> Duration {
        Duration::from_micros(self.within_us as u64)
    }

    /// The probability that a message is in time.
    #[must_use]
    pub fn probability(&self) -> f64 {
        f64::from(MILLION - self.late_ppm.get()) / f64::from(MILLION)
    }

    /// The probability that a message is late.
    #[must_use]
    pub fn late(&self) -> f64 {
        f64::from(self.late_ppm.get()) / f64::from(MILLION)
    }
}

/// The form of a deadline in files: `{ within = "150ms", probability = 0.999 }`.
#[cfg(feature = "serde")]
mod words {
    use super::{Deadline, Duration};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct InWords {
        #[serde(with = "rexmit_core::words::duration")]
        within: Duration,
        probability: f64,
    }

    impl Serialize for Deadline {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            InWords { within: self.within(), probability: self.probability() }.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Deadline {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let InWords { within, probability } = InWords::deserialize(deserializer)?;
            if !(0.0..1.0).contains(&probability) {
                return Err(Error::custom(
                    "the probability of a deadline is from 0 to 1, and not 1",
                ));
            }
            Ok(Self::new(within, probability))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_one_that_can_be_met() {
        let second = Duration::from_secs(1);
        for (given, kept) in [
            (0.999, 0.999),
            (1.0, 0.999_999),
            (7.0, 0.999_999),
            (-1.0, 1e-6),
            (f64::NAN, 0.999_999),
        ] {
            assert_eq!(Deadline::new(second, given).probability(), kept, "{given}");
        }
    }
}
