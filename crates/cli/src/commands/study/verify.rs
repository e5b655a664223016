//! `rexmit study verify`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use rexmit_study::{renewed, verdict_markdown, verdict_table};

use super::select::{Seeds, Selection};
use super::summary::{Summary, counts, failures};
use super::work::{self, Done, Options};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::{self, Format};

/// Check the claims of studies: run what is missing, and print the verdicts.
///
/// Without a NAME, all built-in studies are checked. A claim holds if the 95 % confidence interval
/// confirms it at every point for which it is made; it is undecided if the interval allows either.
/// The exit code is 0 whatever the verdicts are. Reports are written as well, as by `run`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit study verify
  rexmit study verify petlund2009-fig8a
  rexmit study verify rr-sctp --json | jq '.studies[].claims[] | {says, verdict}'"))]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    options: Options,
    /// Print a table in Markdown, as in docs/studies.md.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Renew the rows of these studies in FILE, a page in Markdown such as docs/studies.md; the rest of the page is
    /// unchanged.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
    renew: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { selection, seeds, options, markdown, renew, format } = arguments;
    // Checked before the runs, which may take hours.
    renew.as_deref().map_or(Ok(String::new()), read)?;
    let mut chosen = selection.or_all()?;
    seeds.apply(&mut chosen);
    let done = work::run(&chosen, options, format.json)?;
    if format.json {
        output::json_line(&Summary::new(&done))?;
    } else if let Some(file) = renew {
        // Read again: it may have changed since.
        let pages = done.studies.iter().map(|study| &study.page);
        let text = renewed(&read(file)?, pages)
            .map_err(|wrong| Failure::new(Kind::File, wrong.join("\n")))?;
        fs::write(file, text).map_err(|error| unusable(file, &error))?;
    } else if *markdown {
        let pages = done.studies.iter().map(|study| &study.page);
        output::print(&verdict_markdown(pages))?;
    } else {
        output::print(&text(&done))?;
    }
    failures(&done)
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, error: &io::Error) -> Failure {
    let message = format!("{}: {error}; --renew needs a page that exists", file.display());
    Failure::new(Kind::File, message)
}

fn text(done: &Done) -> String {
    let pages = || done.studies.iter().map(|study| &study.page);
    let table = verdict_table(pages(), width());
    format!("{table}{}; all reports: {}\n", counts(done), done.index.display())
}

/// The terminal's width in columns; `None` without a terminal.
fn width() -> Option<u16> {
    rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col)
}
