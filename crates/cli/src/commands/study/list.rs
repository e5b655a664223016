//! `rexmit study list`.

use clap::Args;
use serde::Serialize;

use super::super::examples;
use super::select::{Chosen, Selection};
use crate::failure::Outcome;
use crate::output::Format;

/// List studies: those that come with rexmit, or those of a directory.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit study list\n  rexmit study list petlund2009\n  \
    rexmit study list studies/\n  rexmit study list --json | jq -r '.[].name'"))]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    title: String,
    source: String,
    runs: usize,
    /// `null` if it comes with rexmit.
    path: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let (chosen, wrong) = arguments.selection.readable()?;
    let listed: Vec<Listed> = chosen.iter().map(Listed::new).collect();
    arguments.format.print(&listed, |listed| text(listed))?;
    wrong.map_or(Ok(()), Err)
}

impl Listed {
    fn new(chosen: &Chosen) -> Self {
        let Chosen { study, path, .. } = chosen;
        Self {
            name: study.name.clone(),
            title: study.title.clone(),
            source: study.source.clone(),
            runs: study.runs(),
            path: path.as_ref().map(|path| path.display().to_string()),
        }
    }
}

fn text(listed: &[Listed]) -> String {
    let widest = |field: fn(&Listed) -> &str| {
        listed.iter().map(|listed| field(listed).chars().count()).max().unwrap_or_default()
    };
    let (names, sources) = (widest(|listed| &listed.name), widest(|listed| &listed.source));
    let line = |listed: &Listed| {
        let Listed { name, title, source, runs, .. } = listed;
        format!("{name:names$}  {runs:>6} runs  {source:sources$}  {title}\n")
    };
    listed.iter().map(line).collect()
}
