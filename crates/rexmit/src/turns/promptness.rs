//! Whether a message is sent by the calling task, or in the driver's next turn.

use std::time::Duration;

use rexmit_core::Instant;

/// Messages in a row that the calling task sends itself.
const BURST: u32 = 16;
/// The time after which the allowance grows by one message.
const REFILL: Duration = Duration::from_micros(50);

/// An allowance for sending in the calling task, which only busy senders use up.
///
/// A message that is sent at once is sent soonest, but each one costs a system call and a packet. For a busy
/// sender the driver task collects messages: small messages share packets, and packets share a system call.
/// On one core over loopback this quadruples the rate of 100-byte messages.
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
    /// Takes one message from the allowance. Returns whether a message accepted at `now` is sent by the calling task.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
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
        assert!((0..10_000).all(|n| promptness.take(START + REFILL * n)));
    }

    #[test]
    fn a_burst_is_prompt_and_then_as_often_as_is_refilled() {
        let mut promptness = Promptness::default();
        let prompt = (0..1000).filter(|_| promptness.take(START)).count();
        assert_eq!(prompt, BURST as usize);
        let each = REFILL / 10;
        let prompt = (1..=1000).filter(|&n| promptness.take(START + each * n)).count();
        assert_eq!(prompt, 100);
        // Silence restores no more than a burst.
        let later = START + Duration::from_secs(3600);
        let prompt = (0..1000).filter(|_| promptness.take(later)).count();
        assert_eq!(prompt, BURST as usize);
    }
}
