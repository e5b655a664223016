//! `rexmit demo`.

use clap::Args;

use super::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;

/// Replay a captured game over an emulated lossy link, once per recovery profile.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit demo"))]
pub(crate) struct Arguments {
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let _ = arguments.format;
    Err(Failure::new(Kind::Failed, "the demo is not there yet"))
}
