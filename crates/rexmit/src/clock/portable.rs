//! The clock and the timer of systems other than Linux: those of the standard library and of tokio.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rexmit_core::Instant;
use tokio::time::Sleep;

/// The longest wait requested from tokio's timer; a timer that expires early is armed again.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Nanoseconds since the first call, plus one second, so that instants before the first call can be expressed.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "only its timer is tested there"))]
pub(super) fn monotonic_nanos() -> u64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = START.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).saturating_add(1_000_000_000)
}

/// The timer of an [`Alarm`](super::Alarm); it expires up to two milliseconds late.
#[derive(Debug)]
pub(super) struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// The deadline that tokio knows; `FAR_FUTURE` once it has passed.
    armed: Instant,
}

impl Timer {
    #[expect(clippy::unnecessary_wraps, reason = "the same interface as on Linux")]
    pub(super) fn new() -> io::Result<Self> {
        let sleep = Box::pin(tokio::time::sleep(LONGEST_WAIT));
        Ok(Self { sleep, armed: Instant::FAR_FUTURE })
    }

    pub(super) fn arm(&mut self, deadline: Instant) {
        if deadline < self.armed {
            self.set(deadline);
        }
    }

    fn set(&mut self, deadline: Instant) {
        let wait = (deadline - super::now()).min(LONGEST_WAIT);
        #[expect(clippy::disallowed_methods, reason = "tokio's timer takes tokio's time")]
        let now = tokio::time::Instant::now();
        // The task that has polled it is woken up at the new deadline.
        self.sleep.as_mut().reset(now + wait);
        self.armed = deadline;
    }

    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            let is_due = super::now() >= self.armed;
            let next = if is_due { Instant::FAR_FUTURE } else { self.armed };
            self.set(next);
            if is_due {
                return Poll::Ready(Ok(()));
            }
        }
    }

    #[cfg(all(test, not(target_os = "linux")))]
    pub(super) fn armed(&self) -> Instant {
        self.armed
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn expired(timer: &mut Timer) {
        poll_fn(|cx| timer.poll_expired(cx)).await.unwrap();
    }

    #[tokio::test]
    async fn expires_at_the_earliest_deadline_and_again_once_it_is_set_again() {
        let mut timer = Timer::new().unwrap();
        for micros in [0, 1, 900, 3000] {
            let deadline = crate::clock::now() + Duration::from_micros(micros);
            timer.arm(deadline + Duration::from_secs(3600));
            timer.arm(deadline);
            timer.arm(deadline + Duration::from_secs(3600));
            expired(&mut timer).await;
            assert!(crate::clock::now() >= deadline);
        }
        timer.arm(Instant::ZERO);
        expired(&mut timer).await;
    }

    /// The alarm is set while the driver waits for it.
    #[tokio::test]
    async fn a_task_that_waits_is_woken_up_at_a_deadline_that_is_set_meanwhile() {
        let timer = std::sync::Mutex::new(Timer::new().unwrap());
        let waits = poll_fn(|cx| timer.lock().unwrap().poll_expired(cx));
        let sets = async {
            tokio::task::yield_now().await;
            timer.lock().unwrap().arm(crate::clock::now() + Duration::from_millis(1));
        };
        let both = async { tokio::join!(waits, sets) };
        let (result, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
        result.unwrap();
    }
}
