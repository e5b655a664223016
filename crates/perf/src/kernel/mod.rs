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

/// The environment variable with the path of the kernel, if it is not where `scripts/kernel-host` puts it.
const VARIABLE: &str = "REXMIT_KERNEL";
/// The path of the kernel built by `scripts/kernel-host`, in cargo's target directory.
const BUILT: &str = "kernel-host/linux";
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

/// The kernel that was built: from `REXMIT_KERNEL`, or in the target directory of this program or of the current
/// directory.
#[must_use]
pub fn built() -> Option<PathBuf> {
    let chosen = std::env::var_os(VARIABLE).map(PathBuf::from);
    if chosen.is_some() {
        return chosen.filter(|path| path.is_file());
    }
    let program = std::env::current_exe().ok();
    // target/release/rexmit, or target/debug/deps/test-0123.
    let beside = program.iter().flat_map(|path| path.ancestors().skip(2).take(2));
    let beside = beside.map(|folder| folder.join(BUILT));
    let mut places = beside.chain([PathBuf::from("target").join(BUILT)]);
    places.find(|path| path.is_file())
}
