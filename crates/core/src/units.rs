//! Quantities with a unit.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A rate in bits per second, above zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(transparent))]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bits` per second; `None` for zero.
    #[must_use]
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The transmission time of `bytes` at this rate, rounded up to a nanosecond.
    #[must_use]
    pub fn transmission_time(self, bytes: usize) -> Duration {
        let nanos = (bytes as u128 * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b if b % 1_000_000_000 == 0 => write!(f, "{}gbit", b / 1_000_000_000),
            b if b % 1_000_000 == 0 => write!(f, "{}mbit", b / 1_000_000),
            b if b % 1000 == 0 => write!(f, "{}kbit", b / 1000),
            b => write!(f, "{b}bit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_takes_its_time_on_a_slow_link() {
        let rate = BitRate::new(10_000_000).unwrap();
        assert_eq!(rate.transmission_time(1500), Duration::from_micros(1200));
        assert_eq!(rate.to_string(), "10mbit");
        assert_eq!(BitRate::new(0), None);
    }
}
