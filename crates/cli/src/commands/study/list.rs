//! `rexmit study list`.

use std::path::PathBuf;

use clap::Args;
use rexmit_study::Outline;
use serde::Serialize;

use super::select::Selection;
use crate::commands::examples::examples;
use crate::failure::Outcome;
use crate::output::Format;

/// List the built-in studies, or those of a directory.
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
    /// `null` for a built-in study.
    path: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let (outlines, wrong) = arguments.selection.outlines()?;
    let listed: Vec<Listed> = outlines.into_iter().map(Listed::new).collect();
    arguments.format.print(&listed, |listed| text(listed))?;
    wrong.map_or(Ok(()), Err)
}

impl Listed {
    fn new((outline, path): (Outline, Option<PathBuf>)) -> Self {
        let Outline { name, title, source, runs } = outline;
        let path = path.map(|path| path.display().to_string());
        Self { name, title, source, runs, path }
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
