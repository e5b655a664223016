//! `rexmit study run`.

use clap::Args;
use rexmit_study::VerdictKind;

use super::select::{Seeds, Selection};
use super::summary::{Summary, counts, failures};
use super::work::{self, Done, Options, StudyDone};
use crate::commands::examples::examples;
use crate::failure::Outcome;
use crate::output::{self, Format};

/// Run studies and write their reports.
///
/// Each study gets a directory: the report with the figures and the verdicts (report.html, and
/// report.json for programs), a table of all runs (runs.parquet), a table of all messages if the
/// study keeps them (messages.parquet), and the exact inputs (study.toml, runs.jsonl,
/// version.json). index.html links all of them.
///
/// Results of earlier runs by the same program are reused: interrupt it at any time, and repeat the
/// command to continue. If a run fails, the others continue; at the end the failure is reported,
/// with the command to repeat it alone. A claim that does not hold is a result, not a failure.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit study run petlund2009-fig8a
  rexmit study run petlund2009-fig8a --seeds 2 --out quick
  rexmit study run rr-sctp --all
  rexmit study run papers
  rexmit study run ./my-study.toml --jobs 1
  rexmit study run --all --json | jq '.studies[] | {name, claims: [.claims[].verdict]}'"))]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { selection, seeds, options, format } = arguments;
    let mut chosen = selection.named()?;
    seeds.apply(&mut chosen);
    let done = work::run(&chosen, options, format.json)?;
    match format.json {
        true => output::json_line(&Summary::new(&done))?,
        false => output::print(&text(&done))?,
    }
    failures(&done)
}

fn text(done: &Done) -> String {
    let mut text: String = done.studies.iter().map(study).collect();
    text += &format!("{}; all reports: {}\n", counts(done), done.index.display());
    text
}

/// One study's claims and the place of its report, as text.
fn study(done: &StudyDone) -> String {
    let StudyDone { page, folder, .. } = done;
    let mut text = format!("{}: {}\n", page.study.name, page.study.title);
    for claim in &page.claims {
        text += &format!("  {:13}  {}\n", claim.verdict.words(), claim.says);
    }
    let of = |kind| page.claims.iter().filter(|claim| claim.verdict == kind).count();
    if !page.claims.is_empty() {
        let (hold, all) = (of(VerdictKind::Holds), page.claims.len());
        text += &format!("  {hold} of {all} claims hold\n");
    }
    text.extend(page.notes.iter().map(|note| format!("  {note}\n")));
    text + &format!("  {}\n\n", folder.join("report.html").display())
}
