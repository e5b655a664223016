//! The limit of challenge ACKs of an endpoint (RFC 5961 §7).

use std::time::Duration;

use rexmit_core::{Instant, Rng};

/// The period over which challenge ACKs are counted.
const PERIOD: Duration = Duration::from_secs(1);

/// Limits challenge ACKs per second, over all connections.
///
/// With a constant limit, an attacker could count the challenge ACKs that remain, and so learn whether guesses at
/// another connection were answered. So the limit of each second is drawn at random, from half to one and a half of the
/// configured one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengeLimit {
    per_second: u32,
    left: u32,
    until: Instant,
}

impl ChallengeLimit {
    /// About `per_second` in each second.
    pub(crate) const fn new(per_second: u32) -> Self {
        Self { per_second, left: 0, until: Instant::ZERO }
    }

    /// Grants another challenge ACK, and counts it, unless the limit is reached. Returns whether it is granted.
    pub(crate) fn grant(&mut self, now: Instant, rng: &mut Rng) -> bool {
        if now >= self.until {
            let half = u64::from(self.per_second / 2);
            self.left = (u64::from(self.per_second) - half + rng.below(2 * half + 1)) as u32;
            self.until = now + PERIOD;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    #[test]
    fn sends_about_as_many_a_second_as_allowed_and_not_the_same_number_twice() {
        let mut rng = Seed::from_u64(7).rng();
        let mut limit = ChallengeLimit::new(100);
        let counts: Vec<usize> = (0..50)
            .map(|second| {
                let now = Instant::from_millis(second * 1000);
                (0..1000).filter(|_| limit.grant(now, &mut rng)).count()
            })
            .collect();
        assert!(counts.iter().all(|count| (50..=150).contains(count)));
        assert!(counts.iter().any(|count| *count != counts[0]));
    }

    #[test]
    fn zero_sends_none() {
        let mut rng = Seed::from_u64(7).rng();
        assert!(!ChallengeLimit::new(0).grant(Instant::ZERO, &mut rng));
    }
}
