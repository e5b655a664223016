//! `rexmit completions` and `rexmit man`.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::commands::examples::examples;
use crate::failure::Outcome;
use crate::output;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit completions bash > /etc/bash_completion.d/rexmit\n  rexmit completions fish | source"))]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut whole: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut whole, "rexmit", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
