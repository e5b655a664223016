//! Whether a message leaves in the task that sends it, or with the driver's next turn.

use std::time::Duration;

use rexmit_core::Instant;

/// Messages in a row that leave at once.
const BURST: u32 = 16;
/// Time after which one more may.
const REFILL: Duration = Duration::from_micros(50);

/// An allowance for leaving at once, which only those use up who send a lot.
///
/// A message that is sent at once leaves soonest, but each one costs a system call and a packet.
/// From a sender of many the driver, which runs next to it, collects what has gathered meanwhile:
/// small messages share packets, and packets share a system call. On one core of loopback this
/// makes 100-byte messages four times as many.
#[derive(Debug)]
pub(crate) struct Promptness {
    allowance: u32,
    refilled_at: Instant,
}

impl Default for Promptness {
    fn default() -> Self {
        Self { allowance: BURST, refilled_at: Instant::ZERO }
    }
}

impl Promptness {
    /// Whether a message that was accepted at `now` is to leave at once.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        if self.allowance < BURST {
            let refills = (now - self.refilled_at).as_nanos() / REFILL.as_nanos();
            let refills = u32::try_from(refills).unwrap_or(u32::MAX).min(BURST);
            self.allowance = (self.allowance + refills).min(BURST);
            self.refilled_at += REFILL * refills;
        }
        if self.allowance == BURST {
            self.refilled_at = now; // A full allowance does not grow.
        }
        let allows = self.allowance > 0;
        self.allowance -= u32::from(allows);
        allows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(1_000_000);

    #[test]
    fn a_thin_sender_is_always_prompt() {
        let mut promptness = Promptness::default();
        assert!((0..10_000).all(|n| promptness.allows(START + REFILL * n)));
    }

    #[test]
    fn a_burst_is_prompt_and_then_as_often_as_is_refilled() {
        let mut promptness = Promptness::default();
        let prompt = (0..1000).filter(|_| promptness.allows(START)).count();
        assert_eq!(prompt, BURST as usize);
        let each = REFILL / 10;
        let prompt = (1..=1000).filter(|&n| promptness.allows(START + each * n)).count();
        assert_eq!(prompt, 100);
        // Silence restores no more than a burst.
        let later = START + Duration::from_secs(3600);
        let prompt = (0..1000).filter(|_| promptness.allows(later)).count();
        assert_eq!(prompt, BURST as usize);
    }
}
