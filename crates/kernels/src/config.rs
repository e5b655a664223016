//! The configuration of a kernel, and where its file is.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kernel of a simulation.
///
/// The random numbers of the kernel come from [`seed`](Self::seed): the same values in all fields, with the same kernel and
/// programs, give the same run.
#[derive(Clone, Debug)]
pub struct KernelConfig {
    /// The name in error messages and captures.
    pub name: String,
    /// The kernel's file, as built by `scripts/kernel-host`; see [`built_kernel`]. `pinned.so` must be in the same folder.
    pub image: PathBuf,
    /// The program `rexmit-kernels-init` of this crate, the first process of the kernel.
    pub init: PathBuf,
    /// Commands for `sh`, executed as root of the kernel. The file system is that of this machine, read-only, except
    /// `/run`, which is in memory, and `/mnt`, the [directory](crate::Simulation::directory) shared with this process.
    /// The network device is `eth0`; it is down and has no address. When the commands have ended, the kernel is
    /// switched off.
    pub script: String,
    /// The Ethernet address of the network device.
    pub mac: [u8; 6],
    /// The kernel's memory in bytes, a multiple of 2²⁰. Unused memory occupies none of the machine.
    pub memory: u64,
    /// The seed of the kernel's random numbers.
    pub seed: u64,
    /// The real time without a message of the kernel after which a run fails with [`Error::Hung`](crate::Error::Hung).
    pub limit: Duration,
}

impl KernelConfig {
    /// 256 MiB, for [`memory`](Self::memory).
    pub const MEMORY: u64 = 256 << 20;
    /// Two minutes, for [`limit`](Self::limit): a kernel on a busy machine that still runs sends a message sooner.
    pub const LIMIT: Duration = Duration::from_secs(120);
}

/// The kernel that `scripts/kernel-host` has built: the file that the environment variable `REXMIT_KERNEL` names, or
/// `kernel-host/linux` in the target directory of this program or of the current directory.
#[must_use]
pub fn built_kernel() -> Option<PathBuf> {
    const PLACE: &str = "kernel-host/linux";
    if let Some(chosen) = std::env::var_os("REXMIT_KERNEL") {
        return Some(PathBuf::from(chosen)).filter(|path| path.is_file());
    }
    let program = std::env::current_exe().ok();
    // target/release/program, target/debug/deps/test-0123, or target/TRIPLE/debug/deps/test-0123.
    let beside = program.iter().flat_map(|path| path.ancestors().skip(2).take(3));
    let mut places =
        beside.map(|folder| folder.join(PLACE)).chain([Path::new("target").join(PLACE)]);
    places.find(|path| path.is_file())
}
