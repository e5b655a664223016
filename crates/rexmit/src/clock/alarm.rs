//! Precise waiting for one deadline: a kernel timer behind a file descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};

use rexmit_core::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel that makes its file descriptor readable at the deadline.
#[derive(Debug)]
pub(crate) struct TimerFd {
    fd: OwnedFd,
    /// The deadline the kernel knows; `FAR_FUTURE` once it has fired.
    armed: Instant,
}

impl TimerFd {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { fd, armed: Instant::FAR_FUTURE })
    }

    /// Makes sure that the timer fires at `deadline` at the latest.
    ///
    /// An earlier deadline that is armed stays: protocol deadlines mostly move away (a
    /// retransmission timer restarts with each acknowledgement), and one wake-up too many is
    /// cheaper than a system call per packet.
    pub(crate) fn arm(&mut self, deadline: Instant) {
        if deadline >= self.armed {
            return;
        }
        // Zero would disarm the timer instead of firing it at once.
        let nanos = deadline.as_nanos().max(1);
        let value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: once, it_value: value };
        let set = timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &timer);
        debug_assert!(set.is_ok(), "the descriptor and the time are valid: {set:?}");
        self.armed = deadline;
    }

    /// Takes the expiry, if the timer has fired.
    pub(crate) fn take_expiry(&mut self) -> io::Result<()> {
        rustix::io::read(&self.fd, &mut [0; 8])?;
        self.armed = Instant::FAR_FUTURE;
        Ok(())
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

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
pub struct Alarm(AsyncFd<TimerFd>);

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver enabled.
    pub fn new() -> io::Result<Self> {
        let timer = TimerFd::new()?;
        // SAFETY: the timer owns its descriptor, which is open and is neither replaced nor closed
        // before the timer is dropped.
        Ok(Self(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?))
    }

    /// Makes sure that the alarm goes off at `deadline` at the latest.
    ///
    /// It may go off earlier, namely at an earlier deadline that was set before and has not been
    /// waited for: look at the clock and set it again.
    pub fn arm(&mut self, deadline: Instant) {
        self.0.get_mut().arm(deadline);
    }

    /// Ready once the alarm has gone off; it is not set any more after that.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready_mut(cx))?;
            match guard.try_io(|fd| fd.get_mut().take_expiry()) {
                Ok(result) => return Poll::Ready(result),
                // Re-armed between the kernel's report and the read: not due yet.
                Err(_would_block) => {}
            }
        }
    }

    /// Waits until the alarm goes off.
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
        assert_eq!(alarm.0.get_ref().armed, Instant::FAR_FUTURE);
    }

    #[tokio::test]
    async fn the_origin_of_time_is_a_deadline_too() {
        let mut alarm = Alarm::new().unwrap();
        alarm.arm(Instant::ZERO);
        alarm.expired().await.unwrap();
    }
}
