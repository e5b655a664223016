//! `rexmit lab`.

mod serve;

use clap::{Args, Subcommand};

use crate::commands::examples::examples;
use crate::failure::Outcome;

/// Use the laboratory interactively.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit lab serve"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
    }
}
