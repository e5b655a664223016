//! The clock of Linux, and precise waiting for one deadline: a kernel timer behind a file descriptor.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, RawFd};
use std::task::{Context, Poll, ready};

use rexmit_core::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn monotonic_nanos() -> u64 {
    nanos(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_REALTIME`.
#[cfg(feature = "emulator")]
pub(super) fn wall_clock_nanos() -> u64 {
    nanos(libc::CLOCK_REALTIME)
}

fn nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time to `time`, which outlives the call.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(result, 0, "Linux has had both clocks for ever");
    // Neither clock is negative: monotonic time starts at boot, wall-clock time in 1970.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A timer of the kernel that makes its file descriptor readable at the deadline.
#[derive(Debug)]
pub(crate) struct TimerFd {
    fd: File,
    /// The deadline the kernel knows; `FAR_FUTURE` once it has fired.
    armed: Instant,
}

impl TimerFd {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and open, and nothing else owns it.
        Ok(Self { fd: unsafe { File::from_raw_fd(fd) }, armed: Instant::FAR_FUTURE })
    }

    /// Makes sure that the timer fires at `deadline` at the latest.
    ///
    /// If it is armed for an earlier deadline, it is not changed: protocol deadlines mostly move later (a
    /// retransmission timer restarts with each acknowledgement), and a spurious wake-up is cheaper than a system call
    /// per packet.
    pub(crate) fn arm(&mut self, deadline: Instant) {
        if deadline >= self.armed {
            return;
        }
        // Zero would disarm the timer instead of firing it at once.
        let nanos = deadline.as_nanos().max(1);
        let value = libc::timespec {
            tv_sec: (nanos / 1_000_000_000).try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        let once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = libc::itimerspec { it_interval: once, it_value: value };
        // SAFETY: the kernel reads `timer`, which outlives the call, and writes to no address.
        let result = unsafe {
            let (fd, flags) = (self.fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
            libc::timerfd_settime(fd, flags, &raw const timer, std::ptr::null_mut())
        };
        debug_assert_eq!(result, 0, "the descriptor and the time are valid");
        self.armed = deadline;
    }

    /// Reads the expiry, if the timer has expired.
    pub(crate) fn take_expiry(&mut self) -> io::Result<()> {
        self.fd.read_exact(&mut [0; 8])?;
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

/// The timer of an [`Alarm`](super::Alarm).
#[derive(Debug)]
pub(super) struct Timer(AsyncFd<TimerFd>);

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let timer = TimerFd::new()?;
        // SAFETY: the timer owns its descriptor, which is open and is neither replaced nor closed
        // before the timer is dropped.
        Ok(Self(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?))
    }

    pub(super) fn arm(&mut self, deadline: Instant) {
        self.0.get_mut().arm(deadline);
    }

    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready_mut(cx))?;
            match guard.try_io(|fd| fd.get_mut().take_expiry()) {
                Ok(result) => return Poll::Ready(result),
                // Re-armed between the kernel's report and the read: not due yet.
                Err(_would_block) => {}
            }
        }
    }

    #[cfg(test)]
    pub(super) fn armed(&self) -> Instant {
        self.0.get_ref().armed
    }
}
