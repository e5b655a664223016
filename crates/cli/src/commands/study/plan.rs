//! `rexmit study plan`.

use clap::Args;

use super::select::{Seeds, Selection};
use crate::commands::examples::examples;
use crate::failure::Outcome;
use crate::output;

/// Print every run of a study: one complete JSON document per line.
///
/// `rexmit study exec` runs such a document, so that runs can be distributed over machines that
/// have the same version of rexmit.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit study plan petlund2009-fig8a | head -1 | rexmit study exec\n  \
    rexmit study plan petlund2009-fig8a | parallel --pipe -N1 rexmit study exec"))]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    seeds: Seeds,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let mut chosen = arguments.selection.named()?;
    arguments.seeds.apply(&mut chosen);
    let documents = chosen.iter().flat_map(|chosen| chosen.study.plan());
    documents.into_iter().try_for_each(|document| output::json_line(&document))
}
