//! `rexmit study verify`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use rexmit_study::results::replace_text;
use rexmit_study::studies::BUILT_IN;
use rexmit_study::{check_rows, renewed, verdict_markdown, verdict_table};

use super::select::{Chosen, Seeds, Selection};
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
    let mut chosen = selection.or_all()?;
    // Checked before the runs, which may take hours.
    if let Some(file) = renew {
        check(file, &chosen)?;
    }
    seeds.apply(&mut chosen);
    let done = work::run(&chosen, options, format.json)?;
    if format.json {
        output::json_line(&Summary::new(&done))?;
    } else if let Some(file) = renew {
        // Read again: it may have changed since.
        let pages = done.studies.iter().map(|study| &study.page);
        let text = renewed(&read(file)?, pages)
            .map_err(|wrong| Failure::new(Kind::File, wrong.join("\n")))?;
        replace_text(file, &text).map_err(|error| Failure::new(Kind::File, error.to_string()))?;
    } else if *markdown {
        let pages = done.studies.iter().map(|study| &study.page);
        output::print(&verdict_markdown(pages))?;
    } else {
        output::print(&text(&done))?;
    }
    failures(&done)
}

/// Checks that the page has rows of these studies, and that these are the studies that it is about.
fn check(file: &Path, chosen: &[Chosen]) -> Outcome {
    let page = read(file)?;
    let mut wrong = Vec::new();
    for Chosen { study, text, path } in chosen {
        let built_in = BUILT_IN.iter().find(|own| own.name == study.name);
        if let Some(path) = path
            && built_in.is_some_and(|own| own.text != text)
        {
            let (path, name) = (path.display(), &study.name);
            wrong.push(format!("{path} is not the built-in study `{name}`: give it another name"));
        } else if study.has_claims() {
            let missing = check_rows(&page, &study.name).err();
            wrong.extend(missing.map(|what| format!("{}: {what}", file.display())));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(Kind::File, wrong.join("\n"))) }
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
