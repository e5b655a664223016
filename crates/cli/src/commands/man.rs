//! `rexmit man`.

use clap::{Args, Command};

use crate::commands::examples::examples;
use crate::failure::Outcome;
use crate::output;

/// Print the manual page of rexmit or of a subcommand.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit man | man -l -\n  rexmit man perf send | man -l -"))]
pub(crate) struct Arguments {
    /// The subcommand, and its own subcommand if any.
    #[arg(value_name = "SUBCOMMAND")]
    path: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, mut root: Command) -> Outcome {
    root.build();
    let mut command = &root;
    for name in &arguments.path {
        command = command.find_subcommand(name).ok_or_else(|| {
            use crate::failure::{Failure, Kind};
            Failure::new(
                Kind::Usage,
                format!("there is no subcommand `{name}`: see `rexmit --help`"),
            )
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    output::print(&String::from_utf8_lossy(&page))
}
