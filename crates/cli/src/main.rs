//! The `rexmit` command: reads arguments, calls the library and prints the result.
//!
//! One file per subcommand under `commands/`. A subcommand is a clap `Args` struct and a function
//! `run` with that struct as its argument; the work is done in the libraries. Results go to
//! standard output, everything else to standard error; [`failure`] defines the exit codes.

mod carry;
mod commands;
mod events;
mod executable;
mod failure;
mod metrics;
mod names;
mod output;
mod qlog;
mod signals;
mod tls;
mod transport;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

/// Reliable transport that recovers from loss before its users notice: SCTP and TCP in user
/// space, and a laboratory around them.
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
