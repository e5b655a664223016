//! `rexmit kernel-init`: the first process of a kernel in which a run takes place. Not for users.

use clap::Args;
use rexmit_perf::kernel;

use crate::failure::{Failure, Kind, Outcome};

/// Run a scenario inside the kernel that was booted for it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(super) fn run() -> Outcome {
    kernel::serve().map_err(|error| Failure::new(Kind::Usage, error))
}
