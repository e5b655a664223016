//! The process of a kernel (User Mode Linux), and the directory that it shares with this one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::fs::StatVfsMountFlags;
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};
use tempfile::TempDir;

use crate::config::KernelConfig;

/// The socket of the kernel's clock, in the shared directory.
const CLOCK: &str = "clock";
/// The socket of the network device.
const DEVICE: &str = "device";
/// The first program of the kernel.
const INIT: &str = "init";
/// The commands that the first program executes.
const SCRIPT: &str = "script";
/// The output of the kernel and its programs.
const CONSOLE: &str = "console";
/// The shared directory as programs of the kernel see it: an empty directory that every Linux system has.
const SHARED: &str = "/mnt";
/// The library that is preloaded, beside the kernel: it replaces random numbers of the system by those of a seed.
const PRELOADED: &str = "pinned.so";
/// The virtio number of a network device.
const NETWORK: u32 = 1;
/// The directory in memory for the kernel's pages, if it is large enough.
const IN_MEMORY: &str = "/dev/shm";
/// The argument of `personality` that changes nothing.
const PRESENT: libc::c_ulong = 0xffff_ffff;
/// The number of lines of the console in error messages.
const LINES: usize = 3;

/// A running kernel. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Whether the number of the process is free for another one.
    is_reaped: bool,
    shared: TempDir,
}

/// A kernel that was just started, and the sockets to which it will connect.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) clock: UnixListener,
    pub(crate) device: UnixListener,
}

impl Process {
    pub(crate) fn start(config: &KernelConfig) -> io::Result<Started> {
        let shared = tempfile::Builder::new().prefix("rexmit-kernels-").tempdir()?;
        let place = shared.path();
        fs::write(place.join(SCRIPT), &config.script)?;
        symlink(existing(&config.init)?, place.join(INIT))?;
        let clock = UnixListener::bind(place.join(CLOCK))?;
        let device = UnixListener::bind(place.join(DEVICE))?;
        let child = command(config, place)?.spawn().map_err(explained)?;
        Ok(Started { process: Self { child, is_reaped: false, shared }, clock, device })
    }

    pub(crate) fn shared(&self) -> &Path {
        self.shared.path()
    }

    /// Waits for the end of a kernel that has closed its sockets.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.waited(WaitIdOptions::empty())?;
        self.kill();
        let status = self.child.wait()?;
        self.is_reaped = true;
        Ok(status)
    }

    /// Whether the kernel has ended.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        self.waited(WaitIdOptions::NOHANG)
    }

    /// Whether it has ended; waits for it unless the options say otherwise. Its number stays in use.
    fn waited(&self, options: WaitIdOptions) -> io::Result<bool> {
        let Some(number) = Pid::from_raw(self.child.id().cast_signed()) else { return Ok(true) };
        let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        Ok(retry_on_intr(|| waitid(WaitId::Pid(number), options))?.is_some())
    }

    /// Kills all of its processes.
    fn kill(&self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // They may all have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// The last lines of the kernel's output, for an error message.
    pub(crate) fn console(&self) -> String {
        let printed = fs::read(self.shared.path().join(CONSOLE)).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let lines: Vec<_> =
            printed.lines().map(str::trim).filter(|line| is_message(line)).collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join(" / ");
        if last.is_empty() { last } else { format!(": {last}") }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// The absolute path of a file, or an error that names it.
fn existing(path: &Path) -> io::Result<PathBuf> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    path.canonicalize().map_err(named)
}

/// Why the system does not start a kernel.
fn explained(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let what = "the system does not allow address-space randomization to be switched off, as in a container with a seccomp \
                profile: allow personality(2), or start this program with setarch -R";
    io::Error::new(error.kind(), format!("{error}: {what}"))
}

/// Whether a line of the console says something; a dump of the kernel's stack does not.
fn is_message(line: &str) -> bool {
    let is_address =
        |word: &str| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_dump = line.starts_with("[<") || ["Call Trace:", "Stack:"].contains(&line);
    !line.is_empty() && !is_dump && !line.split(' ').all(is_address)
}

fn command(config: &KernelConfig, shared: &Path) -> io::Result<Command> {
    let image = existing(&config.image)?;
    let preloaded = image.with_file_name(PRELOADED);
    if !preloaded.is_file() {
        // The loader would go on without it, and runs would differ.
        let what = format!("{} is missing: scripts/kernel-host builds it", preloaded.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    let console = File::create(shared.join(CONSOLE))?;
    let mut command = Command::new(image);
    // The kernel mixes its command line into its random numbers, so nothing here depends on the run or the machine: the
    // shared directory is its working directory.
    command.args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]);
    command.args(["con=null", "con0=null,fd:1", "uml_dir=./", "umid=kernel"]);
    command.arg(format!("time-travel=ext:0:{CLOCK}"));
    command.arg(format!("virtio_uml.device={DEVICE}:{NETWORK}"));
    command.arg(format!("mem={}M", config.memory >> 20));
    let script =
        format!("mount -t hostfs none -o /proc/self/cwd {SHARED} && exec {SHARED}/{INIT} run");
    command.args(["init=/bin/sh", "--", "-c", &format!("\"{script}\"")]);
    command.current_dir(shared).env_clear();
    command.env("LD_PRELOAD", preloaded).env("REXMIT_KERNEL_SEED", config.seed.to_string());
    command.env("HOME", ".").env("TMPDIR", pages(config.memory));
    command.stdin(Stdio::null()).process_group(0);
    command.stderr(console.try_clone()?).stdout(console);
    let prepare = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The receive buffers of TCP were different in each run: their limit probably depends on where the heap of the kernel begins.
        // SAFETY: system calls that only read and change flags of this process.
        let [before, after] = unsafe {
            let before = libc::personality(PRESENT);
            let is_off = before & libc::ADDR_NO_RANDOMIZE != 0;
            [
                before,
                if is_off {
                    0
                } else {
                    libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong)
                },
            ]
        };
        if before == -1 || after == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec it does system calls only, and no allocation.
    unsafe { command.pre_exec(prepare) };
    Ok(command)
}

/// The directory for the kernel's memory.
fn pages(memory: u64) -> PathBuf {
    let is_large = rustix::fs::statvfs(IN_MEMORY).is_ok_and(|place| {
        let may_execute = !place.f_flag.contains(StatVfsMountFlags::NOEXEC);
        may_execute && place.f_bavail.saturating_mul(place.f_frsize) >= memory
    });
    if is_large { PathBuf::from(IN_MEMORY) } else { std::env::temp_dir() }
}
