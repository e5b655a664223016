//! Monotonic time as a plain number, so that simulations can set it freely.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A point in monotonic time: nanoseconds since an origin that the driver chooses.
///
/// Two instants are comparable only if they come from the same driver. Arithmetic saturates, so
/// that a far deadline can never wrap into the past.
///
/// ```
/// use rexmit_core::Instant;
/// use std::time::Duration;
/// let later = Instant::ZERO + Duration::from_millis(200);
/// assert_eq!(later - Instant::ZERO, Duration::from_millis(200));
/// assert_eq!(Instant::ZERO - later, Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(transparent))]
pub struct Instant(u64);

impl Instant {
    /// The driver's origin.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, for reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// The duration in nanoseconds, saturating. Called for every deadline, so it avoids the 128-bit
/// arithmetic of [`Duration::as_nanos`].
#[inline]
fn nanos(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1_000_000_000);
    whole.saturating_add(duration.subsec_nanos().into())
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(nanos(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(rhs)))
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// The time from `rhs` to `self`; zero if `rhs` is later.
    fn sub(self, rhs: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(rhs.0))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::ZERO + Duration::MAX, Instant::FAR_FUTURE);
    }
}
