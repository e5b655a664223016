//! `rexmit study`.

mod bar;
mod exec;
mod interrupt;
mod list;
mod plan;
mod quantities;
mod run;
mod select;
mod show;
mod statements;
mod summary;
mod verify;
mod work;

use clap::{Args, Subcommand};

pub(super) use self::work::{Cache, run_missing};

use crate::commands::examples::examples;
use crate::failure::Outcome;

/// Reproduce the figures of papers: run their studies, draw the figures, and check the papers'
/// claims.
///
/// A study is a file that defines the runs, the measurements, the figures, and the claims of its
/// source. `rexmit study list` shows the built-in ones. A NAME that ends in `.toml` or is a
/// directory is read as a file or as a directory of files, so that you can change a study or write
/// your own.
///
/// Results of single runs are cached: no run is repeated, and an interrupted study continues where
/// it stopped.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit study list
  rexmit study show petlund2009-fig8a
  rexmit study run petlund2009-fig8a
  rexmit study verify --all"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Run(run::Arguments),
    Verify(verify::Arguments),
    Quantities(quantities::Arguments),
    Statements(statements::Arguments),
    Plan(plan::Arguments),
    Exec(exec::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Quantities(arguments) => quantities::run(arguments),
        Command::Statements(arguments) => statements::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Exec(arguments) => exec::run(arguments),
    }
}
