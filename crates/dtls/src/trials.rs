//! A limit on how often records from unknown ports are tried with a connection.

use std::time::Duration;

use rexmit_core::Instant;

/// The most records that are tried at once.
const BURST: u32 = 32;
/// The interval after which another record may be tried.
const INTERVAL: Duration = Duration::from_millis(125);

/// A connection's budget of decryptions for records that may not be its own. It is large enough to find all peers
/// behind a restarted NAT, and bounds the cost of a flood with their IP address as its source.
pub(crate) struct Trials {
    left: u32,
    refilled: Instant,
}

impl Trials {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: BURST, refilled: now }
    }

    /// Whether another record may be tried; charges it to the budget.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let earned = (now - self.refilled).as_nanos() / INTERVAL.as_nanos();
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(BURST);
            self.left = self.left.saturating_add(earned).min(BURST);
            self.refilled = now;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_per_interval() {
        let mut now = Instant::from_millis(1000);
        let mut trials = Trials::new(now);
        let taken = |trials: &mut Trials, now| (0..100).filter(|_| trials.take(now)).count();
        assert_eq!(taken(&mut trials, now), BURST as usize);
        now += INTERVAL;
        assert_eq!(taken(&mut trials, now), 1);
        now += INTERVAL * 1000;
        assert_eq!(taken(&mut trials, now), BURST as usize);
    }
}
