//! Booting a kernel for one run, from outside.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rexmit::clock;
use rexmit::tun::end_with_parent;
use rexmit_lab::connections::SocketsError;
use rexmit_lab::scenario::{RunOutcome, Scenario};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{ANSWER, Answer, INIT_ARGUMENT, ORDER, Order, PRELOADED, SHARED, What, built};

/// The real time after which a run is aborted.
const LIMIT: Duration = Duration::from_secs(3600);
/// The memory of the kernel in bytes; unused pages occupy no memory of the host.
const MEMORY: u64 = 1 << 30;
/// The time at which the kernel's clock starts, in nanoseconds since 1970: arbitrary, but always the same.
const START: &str = "1700000000000000000";
/// The most bytes of the kernel's output that are kept for error messages.
const KEPT: usize = 4096;
/// The remedy if no kernel was built, for error messages.
const MISSING: &str = "there is no kernel to run this in: scripts/kernel-host builds one (a few minutes; linux-6.1: with --version 6.1)";
/// The directory in memory for the kernel's pages, if it is large enough.
const IN_MEMORY: &str = "/dev/shm";

/// Boots a kernel and runs `scenario` in it.
///
/// # Errors
/// If there is no kernel, it does not boot, or the run fails.
pub fn run(scenario: &Scenario, seed: u64) -> Result<RunOutcome, SocketsError> {
    let what = What::Scenario(Box::new(scenario.clone()));
    match execute(&Order { what, seed })? {
        Answer::Scenario(outcome) => Ok(outcome),
        answer => Err(failure(answer)),
    }
}

pub(super) fn failure(answer: Answer) -> SocketsError {
    SocketsError::Failed(match answer {
        Answer::Failed(what) => what,
        Answer::Scenario(_) | Answer::Programs(_) => "the kernel ran something else".into(),
    })
}

/// Boots a kernel that executes `order`, and returns its answer.
pub(super) fn execute(order: &Order) -> Result<Answer, SocketsError> {
    let kernel = built(order.what.kernel()).ok_or(SocketsError::NoKernel(MISSING))?;
    let failed = |error: &dyn std::fmt::Display| SocketsError::Failed(error.to_string());
    let shared = tempfile::Builder::new().prefix("rexmit-kernel-").tempdir();
    let shared = shared.map_err(|error| failed(&error))?;
    let printed = boot(&kernel, shared.path(), order).map_err(|error| failed(&error))?;
    let answer = fs::read(shared.path().join(ANSWER)).map_err(|_| failed(&described(&printed)))?;
    serde_json::from_slice(&answer).map_err(|error| failed(&error))
}

/// Runs the kernel until it is switched off; returns the end of its output.
fn boot(kernel: &Path, shared: &Path, order: &Order) -> io::Result<String> {
    fs::write(shared.join(ORDER), serde_json::to_vec(order)?)?;
    symlink(std::env::current_exe()?, shared.join("init"))?;
    let mut child = command(kernel, shared, order.seed)?.spawn()?;
    let running = Running { group: group(&child), shared: shared.to_owned() };
    all_running().push(running);
    let mut printed = Vec::new();
    if let Some(stdout) = &mut child.stdout {
        read(stdout, &mut printed)?;
    }
    end(&mut child);
    all_running().retain(|running| running.shared != shared);
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

fn command(kernel: &Path, shared: &Path, seed: u64) -> io::Result<Command> {
    let kernel = kernel.canonicalize()?;
    let preloaded = kernel.with_file_name(PRELOADED);
    let mut command = Command::new(kernel);
    // The kernel mixes its command line into its random numbers: nothing here depends on the run. The shared
    // directory is therefore its working directory, which the kernel itself finds by that name.
    command.args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]);
    command.args(["con=null", "con0=null,fd:1", "uml_dir=./", "umid=kernel"]);
    command.args(["time-travel=inf-cpu", &format!("time-travel-start={START}")]);
    command.arg(format!("mem={}M", MEMORY >> 20));
    let script = format!(
        "mount -t hostfs none -o /proc/self/cwd {SHARED} && exec {SHARED}/init {INIT_ARGUMENT}"
    );
    command.args(["init=/bin/sh", "--", "-c", &format!("\"{script}\"")]);
    command.current_dir(shared).env_clear();
    command.env("LD_PRELOAD", preloaded).env("REXMIT_KERNEL_SEED", seed.to_string());
    command.env("HOME", ".").env("TMPDIR", pages());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    end_with_parent(&mut command);
    Ok(command)
}

/// The directory for the kernel's memory.
fn pages() -> PathBuf {
    let is_large = rustix::fs::statvfs(IN_MEMORY)
        .is_ok_and(|place| place.f_bavail.saturating_mul(place.f_frsize) >= MEMORY);
    if is_large { PathBuf::from(IN_MEMORY) } else { std::env::temp_dir() }
}

/// Reads until the end or the limit; keeps the last bytes.
fn read(stdout: &mut ChildStdout, kept: &mut Vec<u8>) -> io::Result<()> {
    let deadline = clock::now() + LIMIT;
    let mut bytes = [0; KEPT];
    loop {
        let left = deadline - clock::now();
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        if poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&timeout))? == 0 {
            kept.extend_from_slice(b"\nit did not end in an hour");
            return Ok(());
        }
        let read = stdout.read(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        kept.extend_from_slice(&bytes[..read]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
}

/// Ends the kernel and its processes, if they still run.
fn end(child: &mut Child) {
    kill(group(child));
    let _ = child.wait();
}

fn group(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().cast_signed())
}

fn kill(group: Option<Pid>) {
    // They may all have ended.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

/// A running kernel, and the directory that it shares.
struct Running {
    group: Option<Pid>,
    shared: PathBuf,
}

fn all_running() -> MutexGuard<'static, Vec<Running>> {
    static ALL: Mutex<Vec<Running>> = Mutex::new(Vec::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all running kernels, and removes their directories: for a program that is ended by a signal.
pub fn end_all() {
    for Running { group, shared } in all_running().drain(..) {
        kill(group);
        // The end of a process takes a moment, in which it may still write.
        let _ = (0..10).any(|_| fs::remove_dir_all(&shared).is_ok());
    }
}

fn described(printed: &str) -> String {
    let lines: Vec<_> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" / ");
    if last.is_empty() {
        "the kernel ended without a result, and printed nothing".to_owned()
    } else {
        format!("the kernel ended without a result: {last}")
    }
}
