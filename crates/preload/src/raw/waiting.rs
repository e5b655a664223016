//! Sends that wait for room, and the signals that end them.
//!
//! A send that waits in the kernel for room in the pair seldom ends with a signal: the kernel wakes a sender when three
//! quarters of the pair are free, so that a sender that a signal wakes finds some room, and its message is accepted. Here
//! the wait is a call of its own, `ppoll`, which a signal always ends.

use std::mem::zeroed;
use std::ptr::{null, null_mut};

use libc::{c_int, msghdr, pollfd, sigset_t, timespec};

use super::{check, close, errno, is_non_blocking, libc_next, send_timeout, set_errno};
use crate::{Errno, Outcome};

const SIGNALS: std::ops::RangeInclusive<c_int> = 1..=64;
const NANOSECONDS: i64 = 1_000_000_000;

/// Sends a message, whose parts are ours or the program's.
pub(super) fn send(fd: c_int, message: &msghdr, flags: c_int) -> Outcome<usize> {
    // SAFETY: the kernel checks the memory of the parts.
    let attempt = |flags| check(unsafe { libc_next::sendmsg(fd, message, flags) });
    let sent = attempt(flags | libc::MSG_DONTWAIT);
    let may_wait = flags & libc::MSG_DONTWAIT == 0 && !is_non_blocking(fd);
    if sent != Err(Errno(libc::EAGAIN)) || !may_wait {
        return sent;
    }
    let timeout = send_timeout(fd);
    let Some(wait) = Wait::new(timeout.is_some()) else { return attempt(flags) };
    let end = timeout.map(|timeout| now().saturating_add(timeout));
    loop {
        match attempt(flags | libc::MSG_DONTWAIT) {
            Err(Errno(libc::EAGAIN)) => wait.until_writable(fd, end)?,
            done => return done,
        }
    }
}

/// A wait that signals end. Until it is dropped they are blocked but while it waits, so that none comes in between.
struct Wait {
    /// The signals that were blocked before.
    before: sigset_t,
    /// The signals that are blocked while it waits.
    during: sigset_t,
    /// The signals after whose handlers the call goes on (`SA_RESTART`), and a descriptor that is readable when one is pending; `None`
    /// if there are none.
    restarting: Option<(sigset_t, c_int)>,
}

impl Wait {
    /// `None` if no handler ends calls. Of calls with a timeout (`has_timeout`) all do (signal(7)).
    fn new(has_timeout: bool) -> Option<Self> {
        // SAFETY: sets and actions may be all zeros, and they live; the calls take them and numbers.
        unsafe {
            let (mut restarting, mut before, mut all): (sigset_t, sigset_t, sigset_t) = zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, null(), &raw mut before);
            let mut during = before;
            let (mut has_ending, mut has_restarting) = (false, false);
            for signal in SIGNALS {
                let mut action: libc::sigaction = zeroed();
                let is_known = libc::sigaction(signal, null(), &raw mut action) == 0;
                let has_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
                let is_blocked = libc::sigismember(&raw const before, signal) == 1;
                if !is_known || !has_handler || is_blocked {
                    continue;
                }
                if action.sa_flags & libc::SA_RESTART != 0 && !has_timeout {
                    has_restarting = true;
                    libc::sigaddset(&raw mut restarting, signal);
                    libc::sigaddset(&raw mut during, signal);
                } else {
                    has_ending = true;
                }
            }
            if !has_ending {
                return None;
            }
            let mut pending = -1;
            if has_restarting {
                pending = libc::signalfd(-1, &raw const restarting, libc::SFD_CLOEXEC);
            }
            if pending == -1 {
                // Without a descriptor, all handlers end the call.
                during = before;
            }
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, null_mut());
            let restarting = (pending != -1).then_some((restarting, pending));
            Some(Self { before, during, restarting })
        }
    }

    /// Waits until there is room, or the socket has an error.
    fn until_writable(&self, fd: c_int, end: Option<i64>) -> Outcome<()> {
        let pending = self.restarting.as_ref().map_or(-1, |(_, pending)| *pending);
        loop {
            let left = end.map(|end| end.saturating_sub(now()).max(0));
            let left = left
                .map(|left| timespec { tv_sec: left / NANOSECONDS, tv_nsec: left % NANOSECONDS });
            let timeout = left.as_ref().map_or(null(), std::ptr::from_ref);
            let mut waiting = [
                pollfd { fd, events: libc::POLLOUT, revents: 0 },
                pollfd { fd: pending, events: libc::POLLIN, revents: 0 },
            ];
            let during = &raw const self.during;
            // SAFETY: two entries, a time and a set that live.
            let ready = unsafe { libc::ppoll(waiting.as_mut_ptr(), 2, timeout, during) };
            if check(ready as isize)? == 0 {
                return Err(Errno(libc::EAGAIN));
            }
            if waiting[0].revents != 0 {
                return Ok(());
            }
            if let Some((restarting, _)) = &self.restarting {
                // Their handlers run.
                // SAFETY: the set lives.
                unsafe {
                    libc::pthread_sigmask(libc::SIG_UNBLOCK, restarting, null_mut());
                    libc::pthread_sigmask(libc::SIG_BLOCK, restarting, null_mut());
                }
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let before = errno();
        if let Some((_, pending)) = self.restarting {
            close(pending);
        }
        // SAFETY: the set lives.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, null_mut()) };
        set_errno(before);
    }
}

/// Nanoseconds of a clock that is never set.
fn now() -> i64 {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.saturating_mul(NANOSECONDS).saturating_add(time.tv_nsec)
}
