//! The initial sequence number and timestamp of a connection: unpredictable for others, and above those of the previous
//! connection between the same two ends.

use rexmit_core::{Instant, Seed};

use super::four_tuple::{FourTuple, SecretKey};

/// The clock of sequence numbers (RFC 9293 §3.4.1).
const TICK_NANOS: u64 = 4_000;

/// The generator of initial sequence numbers and timestamps.
#[derive(Debug)]
pub(super) struct Beginnings {
    sequence_key: SecretKey,
    timestamp_key: SecretKey,
    fixed: Option<u32>,
}

impl Beginnings {
    /// Creates the generator. `fixed`, if given, is every initial sequence number.
    pub(super) fn new(seed: &Seed, fixed: Option<u32>) -> Self {
        Self {
            sequence_key: SecretKey::new(seed, "initial sequence"),
            timestamp_key: SecretKey::new(seed, "timestamp offset"),
            fixed,
        }
    }

    /// ISS = M + F(4-tuple, secret key) (RFC 6528 §3).
    pub(super) fn sequence(&self, now: Instant, tuple: &FourTuple) -> u32 {
        let clock = (now.as_nanos() / TICK_NANOS) as u32;
        self.fixed.unwrap_or_else(|| clock.wrapping_add(self.sequence_key.hash(tuple) as u32))
    }

    /// The offset of TSval from the clock (RFC 7323 §5.4). It is the same for all connections between two
    /// ends, so that timestamps distinguish a later connection from an earlier one (RFC 6191).
    pub(super) fn timestamp_offset(&self, tuple: &FourTuple) -> u32 {
        self.timestamp_key.hash(tuple) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(remote_port: u16) -> FourTuple {
        FourTuple::new(([192, 0, 2, 1], 80).into(), ([192, 0, 2, 2], remote_port).into())
    }

    #[test]
    fn a_clock_of_four_microseconds_drives_each_pair_of_ends_from_its_own_origin() {
        let beginnings = Beginnings::new(&Seed::from_u64(1), None);
        let at = |ms, port| beginnings.sequence(Instant::from_millis(ms), &tuple(port));
        assert_eq!(at(1000, 1).wrapping_sub(at(0, 1)), 250_000);
        assert_ne!(at(0, 1), at(0, 2));
        // The clock wraps after 4.77 hours, and goes on.
        assert_eq!(at(20_000_000, 1).wrapping_sub(at(19_999_999, 1)), 250);
        let other = Beginnings::new(&Seed::from_u64(2), None);
        assert_ne!(other.sequence(Instant::ZERO, &tuple(1)), at(0, 1));
        assert_ne!(other.timestamp_offset(&tuple(1)), beginnings.timestamp_offset(&tuple(1)));
    }

    #[test]
    fn tests_may_fix_it() {
        let beginnings = Beginnings::new(&Seed::from_u64(1), Some(7));
        assert_eq!(beginnings.sequence(Instant::from_millis(5), &tuple(1)), 7);
    }
}
