//! The first process of a kernel: makes its hosts, waits on its clock, and executes the run.

mod host;
mod socket;

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_lab::kernel::{HostPlan, Kernel, KernelError, KernelHost};
use rexmit_lab::scenario::execute_in;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use self::host::Namespace;
use super::{ANSWER, Answer, ORDER, Order, SHARED};

/// Descriptors of this process: each host has a device, a queue of events, a namespace and its sockets.
const MAX_FILES: u64 = 65_536;
/// Events that are read at once.
const EVENTS: usize = 64;
/// Marks the timer among the hosts.
const TIMER: u64 = u64::MAX;

/// Executes the run that [`run`](super::run) has ordered, and switches the kernel off. Only for the first process of
/// a kernel that was booted for it.
///
/// # Errors
/// If this is not such a process. Otherwise it does not return.
pub fn serve() -> io::Result<()> {
    let shared = Path::new(SHARED);
    let is_first = rustix::process::getpid() == rustix::process::Pid::INIT;
    if !is_first || !shared.join(ORDER).is_file() {
        return Err(io::Error::other("this is the first program of a kernel, not for users"));
    }
    let answer = answer(shared).unwrap_or_else(|error| Answer::Failed(error.to_string()));
    fs::write(shared.join(ANSWER), serde_json::to_vec(&answer)?)?;
    rustix::fs::sync();
    Ok(reboot(RebootCommand::PowerOff)?)
}

fn answer(shared: &Path) -> io::Result<Answer> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")] {
        mount(kind, place, kind, MountFlags::empty(), None)?;
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(MAX_FILES), maximum: Some(MAX_FILES) })?;
    let order: Order = serde_json::from_slice(&fs::read(shared.join(ORDER))?)?;
    let mut kernel = Inside::new()?;
    Ok(match execute_in(&mut kernel, &order.scenario, order.seed) {
        Ok(outcome) => Answer::Done(outcome),
        Err(error) => Answer::Failed(error.to_string()),
    })
}

/// The kernel in which this process runs.
struct Inside {
    /// The hosts' queues of events, and the timer.
    queue: OwnedFd,
    timer: OwnedFd,
    /// When the run began, on the kernel's clock.
    origin: Option<Duration>,
    /// Whether each host has something to do.
    awake: Vec<Arc<AtomicBool>>,
}

impl Inside {
    fn new() -> io::Result<Self> {
        let queue = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&queue, &timer, EventData::new_u64(TIMER), events)?;
        Ok(Self { queue, timer, origin: None, awake: Vec::new() })
    }

    fn wait(&mut self, until: Instant, ready: &mut Vec<usize>) -> io::Result<Instant> {
        ready.clear();
        let origin = *self.origin.get_or_insert_with(now);
        let is_due = until <= Instant::ZERO + (now() - origin);
        if !is_due {
            self.set_timer(origin + (until - Instant::ZERO))?;
        }
        let mut events = [MaybeUninit::uninit(); EVENTS];
        let timeout = is_due.then(Timespec::default);
        let (events, _) = epoll::wait(&self.queue, &mut events, timeout.as_ref())?;
        for event in events {
            if event.data.u64() != TIMER {
                let number = event.data.u64() as usize;
                self.awake[number].store(true, Ordering::Relaxed);
                ready.push(number);
            }
        }
        // The order of a queue of events is not defined.
        ready.sort_unstable();
        Ok(Instant::ZERO + (now() - origin))
    }

    fn set_timer(&self, at: Duration) -> io::Result<()> {
        let value = Timespec { tv_sec: at.as_secs() as i64, tv_nsec: at.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    fn host(&mut self, plan: HostPlan) -> Result<Namespace, KernelError> {
        let is_awake = Arc::new(AtomicBool::new(true));
        let host = Namespace::new(plan, Arc::clone(&is_awake))?;
        let number = EventData::new_u64(self.awake.len() as u64);
        epoll::add(&self.queue, host.queue(), number, EventFlags::IN)
            .map_err(|error| KernelError::Failed(error.to_string()))?;
        self.awake.push(is_awake);
        Ok(host)
    }
}

impl Kernel for Inside {
    fn host(&mut self, plan: HostPlan) -> Result<Box<dyn KernelHost>, KernelError> {
        Ok(Box::new(Self::host(self, plan)?))
    }

    fn wait(&mut self, until: Instant, ready: &mut Vec<usize>) -> Result<Instant, KernelError> {
        let failed = |error: io::Error| KernelError::Failed(format!("waiting failed: {error}"));
        Self::wait(self, until, ready).map_err(failed)
    }
}

/// The kernel's clock.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
