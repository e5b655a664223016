//! Runs inside a Linux kernel in virtual time.
//!
//! The kernel is User Mode Linux, an ordinary process that needs no privileges; `scripts/kernel-host` builds it. It
//! boots with `time-travel=inf-cpu`: its clock jumps to the next timer whenever everything is idle, and code takes no
//! time. [`run`] boots one for each run, with this program as its first process, which must then call [`serve`]. There,
//! the scenario is executed as anywhere else, except that hosts are network namespaces (`inside`).
//!
//! # Determinism
//! With the same seed, kernel and program, a run gives the same figures: the kernel's clock starts at the same time,
//! its random numbers come from the seed (a preloaded library answers its requests to the system), there is one
//! processor, and no input from outside. Another build of the kernel may draw other numbers.

mod boot;
mod inside;
pub mod programs;

use std::path::PathBuf;

use rexmit_lab::scenario::{RunOutcome, Scenario};
use serde::{Deserialize, Serialize};

pub use boot::{end_all, run};
pub use inside::serve;

use self::programs::{Programs, ProgramsOutcome};

/// The argument that makes this program call [`serve`].
pub const INIT_ARGUMENT: &str = "kernel-init";

/// The environment variable with the path of a kernel that is used for all hosts, whatever their release.
const VARIABLE: &str = "REXMIT_KERNEL";
/// The kernel that `scripts/kernel-host` builds by default.
const STANDARD: &str = "linux-6.12";
/// The directory of that kernel in cargo's target directory; those of other releases have the release at the end.
const FOLDER: &str = "kernel-host";
/// The preloaded library, in the directory of the kernel.
const PRELOADED: &str = "pinned.so";

/// The directory that is shared with the kernel, as its processes see it. Every Linux system has an empty one there.
const SHARED: &str = "/mnt";
/// The run, in the shared directory.
const ORDER: &str = "order.json";
/// The result, in the shared directory.
const ANSWER: &str = "answer.json";

/// A run.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    what: What,
    seed: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum What {
    Scenario(Box<Scenario>),
    Programs(Programs),
}

/// The result of a run.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Scenario(RunOutcome),
    Programs(ProgramsOutcome),
    Failed(String),
}

impl What {
    /// The name of the kernel in which it runs: that of the hosts.
    fn kernel(&self) -> &str {
        match self {
            Self::Scenario(scenario) => scenario.hosts.values().next().map(|hosts| &*hosts.kernel),
            Self::Programs(_) => None,
        }
        .unwrap_or(STANDARD)
    }
}

/// Where `scripts/kernel-host` puts the kernel `name`, such as `linux-6.12`, in cargo's target directory.
fn place(name: &str) -> PathBuf {
    let release = name.rsplit('-').next().filter(|_| name != STANDARD);
    let folder = release.map_or_else(|| FOLDER.into(), |release| format!("{FOLDER}-{release}"));
    PathBuf::from(folder).join("linux")
}

/// The kernel `name` that was built: from `REXMIT_KERNEL`, or in the target directory of this program or of the current
/// directory.
fn built(name: &str) -> Option<PathBuf> {
    let chosen = std::env::var_os(VARIABLE).map(PathBuf::from);
    if chosen.is_some() {
        return chosen.filter(|path| path.is_file());
    }
    let program = std::env::current_exe().ok();
    // target/release/rexmit, or target/debug/deps/test-0123.
    let beside = program.iter().flat_map(|path| path.ancestors().skip(2).take(2));
    let beside = beside.map(|folder| folder.join(place(name)));
    let mut places = beside.chain([PathBuf::from("target").join(place(name))]);
    places.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_a_place_of_its_own() {
        assert_eq!(place(STANDARD), PathBuf::from("kernel-host/linux"));
        assert_eq!(place("linux-6.1"), PathBuf::from("kernel-host-6.1/linux"));
    }
}
