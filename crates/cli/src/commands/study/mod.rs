//! `rexmit study`.

mod bar;
mod exec;
mod interrupt;
mod list;
mod plan;
mod run;
mod select;
mod show;
mod telling;
mod verify;
mod work;

use clap::{Args, Subcommand};

use crate::commands::examples::examples;
use crate::failure::Outcome;

/// Redo the figures of papers: run their studies, draw them, and judge what they claim.
///
/// A study is a file that says what to run, what to measure, what to draw, and what its source
/// claims. Some come with rexmit (`rexmit study list`); a NAME that ends in `.toml`, or is a
/// directory, is read instead, so that anyone can change a study or write one.
///
/// Results of single runs are kept, so that nothing is run twice and an interrupted study goes on
/// where it was.
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
    Plan(plan::Arguments),
    Exec(exec::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Exec(arguments) => exec::run(arguments),
    }
}
