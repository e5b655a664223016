//! The results of studies, as text and as JSON.

use std::collections::BTreeMap;

use rexmit_study::{RunDocument, Verdict};
use serde::Serialize;

use super::work::{Done, FailedDone, StudyDone};
use crate::failure::{Failure, Kind, Outcome};

/// The most failed runs that are listed; further ones of a study usually have the same cause.
const NAMED_FAILURES: usize = 10;

/// The results of studies, as JSON.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    studies: Vec<StudySummary<'a>>,
    /// Distinct runs of all studies.
    runs: usize,
    /// Runs whose results were in the cache.
    found: usize,
    /// Runs that failed.
    failed: usize,
    /// Failed runs for which this machine does not grant the required permissions.
    not_permitted: usize,
    index: String,
}

#[derive(Serialize)]
struct StudySummary<'a> {
    name: &'a str,
    title: &'a str,
    /// The directory of its results.
    folder: String,
    // The name by which programs that read this identify it.
    #[serde(rename = "report")]
    page: String,
    claims: &'a [Verdict],
    /// What no number shows, such as messages that were never delivered.
    notes: &'a [String],
    failed: Vec<FailedTold>,
}

#[derive(Serialize)]
struct FailedTold {
    document: String,
    why: String,
}

impl<'a> Summary<'a> {
    pub(super) fn new(done: &'a Done) -> Self {
        Self {
            studies: done.studies.iter().map(StudySummary::new).collect(),
            runs: done.finished.runs,
            found: done.finished.found,
            failed: done.finished.failed.len(),
            not_permitted: done.finished.not_permitted(),
            index: done.index.display().to_string(),
        }
    }
}

impl<'a> StudySummary<'a> {
    fn new(done: &'a StudyDone) -> Self {
        let failed = |failed: &'a FailedDone| FailedTold {
            document: failed.path.display().to_string(),
            why: failed.why.to_string(),
        };
        Self {
            name: &done.page.study.name,
            title: &done.page.study.title,
            folder: done.folder.display().to_string(),
            page: done.folder.join("report.html").display().to_string(),
            claims: &done.page.claims,
            notes: &done.page.notes,
            failed: done.failed.iter().map(failed).collect(),
        }
    }
}

/// Counts such as `300 runs, 120 of them found in the cache, 2 failed`.
pub(super) fn counts(done: &Done) -> String {
    let finished = &done.finished;
    let mut words = match finished.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    for (count, what) in [
        (finished.found, "found in the cache"),
        (finished.damaged, "damaged in the cache and run again"),
        (finished.failed.len() - done.finished.not_permitted(), "failed"),
        (done.finished.not_permitted(), "not possible here"),
    ] {
        if count > 0 {
            words += &format!(", {count} {what}");
        }
    }
    words
}

/// A failure if any run failed: which runs, why, and how to repeat them alone. Missing permissions
/// are not a failure, and are reported separately.
pub(super) fn failures(done: &Done) -> Outcome {
    let failed = done.studies.iter().flat_map(|study| &study.failed);
    let (not_permitted, failed): (Vec<&FailedDone>, Vec<_>) =
        failed.partition(|failed| failed.why.is_not_permitted());
    tell_not_permitted(&not_permitted);
    if failed.is_empty() {
        return Ok(());
    }
    let mut message =
        format!("{} of {} runs failed; the others are kept", failed.len(), done.finished.runs);
    for FailedDone { document, path, why } in failed.iter().take(NAMED_FAILURES) {
        let path = path.display();
        let place = place(document);
        message += &format!("\n{place}: {why}\n  alone: rexmit study exec {path}");
    }
    if failed.len() > NAMED_FAILURES {
        let more = failed.len() - NAMED_FAILURES;
        message += &format!("\nand {more} more, in the folders `failed` of their studies");
    }
    Err(Failure::new(Kind::Failed, message))
}

/// Prints one line per study and reason: the remedy is the same for all its runs.
fn tell_not_permitted(runs: &[&FailedDone]) {
    let mut counts = BTreeMap::<_, usize>::new();
    for run in runs {
        *counts.entry((run.document.study.as_str(), run.why.to_string())).or_default() += 1;
    }
    for ((study, why), count) in counts {
        let words = if count == 1 { "1 run was".into() } else { format!("{count} runs were") };
        eprintln!("rexmit: {study}: {words} not made, and what needs them is undecided: {why}");
    }
}

/// The place of a run, such as `petlund2009-fig8a at system "thin", seed 3`.
fn place(document: &RunDocument) -> String {
    let mut words: Vec<String> = document
        .point
        .iter()
        .map(|coordinate| format!("{} \"{}\"", coordinate.axis, coordinate.label))
        .collect();
    words.push(format!("seed {}", document.seed));
    format!("{} at {}", document.study, words.join(", "))
}
