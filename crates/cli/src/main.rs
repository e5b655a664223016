//! The `rexmit` command: reads arguments, calls the library, prints what came of it.
//!
//! One file per subcommand under `commands/`. A subcommand is a clap `Args` struct and a `run` that
//! takes it; what it does is in the libraries. Results go to standard output, everything else to
//! standard error; [`failure`] says what the exit codes mean.

mod carry;
mod commands;
mod events;
mod failure;
mod names;
mod output;
mod signals;
mod transport;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

/// Reliable transport that recovers from loss before its users notice: SCTP in user space, and a
/// laboratory around it.
#[derive(Debug, Parser)]
#[command(name = "rexmit", version, max_term_width = 100, after_help = failure::EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match commands::run(CommandLine::parse().command, CommandLine::command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
