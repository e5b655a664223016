//! The subcommands.

mod completions;
mod demo;
mod profiles;

use clap::Subcommand;

use crate::failure::Outcome;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Profiles(profiles::Arguments),
    Completions(completions::Arguments),
}

/// Does what was asked for.
pub(crate) fn run(command: Command) -> Outcome {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    }
}

/// The end of a subcommand's help: an example, then the exit codes.
macro_rules! examples {
    ($text:literal) => {
        concat!("Examples:\n", $text, "\n\nExit codes: see `rexmit --help`.")
    };
}
pub(crate) use examples;
