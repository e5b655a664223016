//! One queue of events for the devices and sockets of all hosts.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// The most events read at once.
const EVENTS: usize = 256;
/// The token of the timer, which differs from those of all hosts.
const TIMER: u64 = u64::MAX;

/// The queue.
pub(super) struct Queue {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The events of each host that it has not read yet.
    unread: Mutex<Vec<VecDeque<Report>>>,
    /// Whether a host has called the kernel since the last read, so that there may be events.
    is_used: AtomicBool,
}

/// An event: the number under which a descriptor is watched, and its readiness.
pub(super) type Report = (u32, EventFlags);

impl Queue {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, unread: Mutex::default(), is_used: AtomicBool::new(false) })
    }

    /// Reads the pending events, and adds the hosts that have some to `ready`, in their order.
    pub(super) fn look(&self, ready: &mut Vec<usize>) -> io::Result<()> {
        self.read(Some(&Timespec::default()), ready)
    }

    /// Waits for events until `at` on the kernel's clock; otherwise as [`look`](Self::look).
    pub(super) fn wait(&self, at: Duration, ready: &mut Vec<usize>) -> io::Result<()> {
        // A timer is exact; the timeouts of this call are not.
        let value = Timespec {
            tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.read(None, ready)
    }

    fn read(&self, timeout: Option<&Timespec>, ready: &mut Vec<usize>) -> io::Result<()> {
        let mut events = [MaybeUninit::uninit(); EVENTS];
        let (events, _) = epoll::wait(&self.epoll, &mut events, timeout)?;
        let mut unread = self.unread();
        for event in events {
            let number = event.data.u64();
            let host = (number >> 32) as usize;
            // The timer is no host.
            if let Some(unread) = unread.get_mut(host) {
                unread.push_back((number as u32, event.flags));
                ready.push(host);
            }
        }
        ready.sort_unstable();
        ready.dedup();
        Ok(())
    }

    /// Whether a host has called the kernel since this function was last called.
    pub(super) fn take_is_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    fn unread(&self) -> MutexGuard<'_, Vec<VecDeque<Report>>> {
        // A panic elsewhere ends the run.
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The event queue, as used by one host.
pub(super) struct Reports {
    queue: Arc<Queue>,
    host: usize,
}

impl Reports {
    /// Adds host number `host`.
    pub(super) fn new(queue: &Arc<Queue>, host: usize) -> Self {
        queue.unread().resize_with(host + 1, VecDeque::new);
        Self { queue: Arc::clone(queue), host }
    }

    /// Watches the descriptor `what` from now on, under `number`; each event is reported once.
    pub(super) fn watch(&self, what: BorrowedFd<'_>, number: u32) -> io::Result<()> {
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64((self.host as u64) << 32 | u64::from(number));
        Ok(epoll::add(&self.queue.epoll, what, data, events)?)
    }

    /// Records that the host has called the kernel.
    pub(super) fn on_call(&self) {
        self.queue.is_used.store(true, Ordering::Relaxed);
    }

    /// The next event.
    pub(super) fn next(&self) -> Option<Report> {
        self.queue.unread()[self.host].pop_front()
    }
}
