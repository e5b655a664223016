//! Waiting for one deadline at a time.

use std::io;
use std::task::{Context, Poll};

use rexmit_core::Instant;

use super::system::Timer;

/// Waits precisely for one deadline at a time, on a tokio runtime.
///
/// Unlike tokio's sleep it can be set from any thread without waking the task that waits for it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use rexmit::clock::{Alarm, now};
/// use std::time::Duration;
///
/// let mut alarm = Alarm::new()?;
/// let deadline = now() + Duration::from_micros(300);
/// alarm.arm(deadline);
/// alarm.expired().await?;
/// assert!(now() >= deadline);
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Alarm(Timer);

impl Alarm {
    /// An alarm that is not armed.
    ///
    /// # Errors
    /// If the process has no file descriptor left (Linux).
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver (Linux) or its timer (elsewhere) enabled.
    pub fn new() -> io::Result<Self> {
        Timer::new().map(Self)
    }

    /// Arms the alarm to expire at `deadline` at the latest.
    ///
    /// It may expire earlier, at an earlier deadline that was armed before and not waited for: compare the
    /// time, and arm it again.
    pub fn arm(&mut self, deadline: Instant) {
        self.0.arm(deadline);
    }

    /// Ready once the alarm has expired, which disarms it.
    ///
    /// # Errors
    /// If the runtime is shutting down.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_expired(cx)
    }

    /// Waits until the alarm expires.
    ///
    /// # Errors
    /// As [`poll_expired`](Self::poll_expired).
    pub async fn expired(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_expired(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::now;

    #[tokio::test]
    async fn never_goes_off_before_the_earliest_deadline() {
        let mut alarm = Alarm::new().unwrap();
        for micros in [0, 1, 50, 900, 3000] {
            let deadline = now() + Duration::from_micros(micros);
            alarm.arm(deadline + Duration::from_secs(3600));
            alarm.arm(deadline);
            alarm.expired().await.unwrap();
            assert!(now() >= deadline);
        }
    }

    #[tokio::test]
    async fn a_later_deadline_does_not_replace_an_earlier_one() {
        let mut alarm = Alarm::new().unwrap();
        alarm.arm(now() + Duration::from_millis(1));
        alarm.arm(now() + Duration::from_secs(3600));
        alarm.expired().await.unwrap();
    }

    #[tokio::test]
    async fn goes_off_again_after_it_was_set_again() {
        let mut alarm = Alarm::new().unwrap();
        for _ in 0..3 {
            alarm.arm(now());
            alarm.expired().await.unwrap();
        }
        assert_eq!(alarm.0.armed(), Instant::FAR_FUTURE);
    }

    #[tokio::test]
    async fn the_origin_of_time_is_a_deadline_too() {
        let mut alarm = Alarm::new().unwrap();
        alarm.arm(Instant::ZERO);
        alarm.expired().await.unwrap();
    }
}
