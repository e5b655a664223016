//! `rexmit study statements`.

use clap::Args;
use rexmit_study::statements::{page, papers, totals};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output;

/// Show how many statements of the papers are tested by claims of studies, and with which verdict.
///
/// Nothing runs: the verdicts are those of docs/studies.md when rexmit was built.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  rexmit study statements\n  rexmit study statements --markdown >docs/claims.md"))]
pub(super) struct Arguments {
    /// Print every statement with its claims, as in docs/claims.md.
    #[arg(long)]
    markdown: bool,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let papers = papers().map_err(|wrong| Failure::new(Kind::File, wrong.join("\n")))?;
    output::print(&if arguments.markdown { page(&papers) } else { totals(&papers) })
}
