//! The first process of a kernel: makes its hosts, waits on its clock, and executes the run.

mod host;
mod programs;
mod queue;
mod socket;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_lab::kernel::{HostPlan, Kernel, KernelError, KernelHost};
use rexmit_lab::scenario::execute_in;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};
use rustix::time::{ClockId, clock_gettime};

use self::host::Namespace;
use self::queue::{Queue, Reports};
use super::{ANSWER, Answer, ORDER, Order, SHARED, What};

/// The most descriptors of this process: each host has a device, a namespace and its sockets.
const MAX_FILES: u64 = 65_536;

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
    Ok(match &order.what {
        What::Scenario(scenario) => match execute_in(&mut Inside::new()?, scenario, order.seed) {
            Ok(outcome) => Answer::Scenario(outcome),
            Err(error) => Answer::Failed(error.to_string()),
        },
        What::Programs(plan) => Answer::Programs(programs::run(plan, order.seed)?),
    })
}

/// The kernel in which this process runs.
struct Inside {
    queue: Arc<Queue>,
    hosts: usize,
    /// When the run began, on the kernel's clock.
    origin: Option<Duration>,
    /// The time when the clock was last read.
    now: Instant,
}

impl Inside {
    fn new() -> io::Result<Self> {
        let queue = Arc::new(Queue::new()?);
        Ok(Self { queue, hosts: 0, origin: None, now: Instant::ZERO })
    }

    fn wait(&mut self, until: Instant, ready: &mut Vec<usize>) -> io::Result<Instant> {
        ready.clear();
        let origin = *self.origin.get_or_insert_with(now);
        // What follows at once from the last calls happens without time passing.
        if self.queue.take_is_used() {
            self.queue.look(ready)?;
            if !ready.is_empty() {
                return Ok(self.now);
            }
        }
        if until > self.now {
            self.queue.wait(origin + (until - Instant::ZERO), ready)?;
        } else {
            self.queue.look(ready)?;
        }
        self.now = Instant::ZERO + (now() - origin);
        Ok(self.now)
    }
}

impl Kernel for Inside {
    fn host(&mut self, plan: HostPlan) -> Result<Box<dyn KernelHost>, KernelError> {
        let host = Namespace::new(plan, Reports::new(&self.queue, self.hosts))?;
        self.hosts += 1;
        Ok(Box::new(host))
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
