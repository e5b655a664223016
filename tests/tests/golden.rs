//! Behaviour compared with the golden set: the same seed gives the recorded bytes and statistics.
//!
//! ```text
//! cargo test -p rexmit-tests --test golden                              a part of each file
//! REXMIT_GOLDEN=all cargo test --release -p rexmit-tests --test golden      all of it: `make golden`
//! REXMIT_GOLDEN=renew cargo test --release -p rexmit-tests --test golden    records it anew
//! ```

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use rexmit_tests::golden::{self, Case, Fingerprint, Subject};

/// The short form compares one of this many runs of each file.
const STRIDE: usize = 5;
/// The most differences reported per file.
const MOST_TOLD: usize = 5;
/// The least number of runs in which any two profiles must differ.
const MIN_DIFFERING: usize = 20;

fn carry_out(subject: Subject, cases: &[Case]) -> Vec<(Case, Fingerprint)> {
    let run = |&case: &Case| {
        let fingerprint = catch_unwind(AssertUnwindSafe(|| subject.run(case)));
        (case, fingerprint.unwrap_or_else(|_| panic!("{} {case}: the run failed", subject.name())))
    };
    let (one, other) = cases.split_at(cases.len() / 2);
    thread::scope(|scope| {
        let other = scope.spawn(|| other.iter().map(run).collect::<Vec<_>>());
        let mut all: Vec<_> = one.iter().map(run).collect();
        all.extend(other.join().expect("each run is caught"));
        all
    })
}

fn differences(subject: Subject, is_whole: bool) -> Vec<String> {
    let recorded = golden::read(subject).unwrap_or_else(|error| panic!("{error}"));
    let cases: Vec<Case> = recorded.iter().map(|(case, _)| *case).collect();
    assert_eq!(cases, subject.cases(), "{}: other runs than recorded", subject.name());
    let stride = if is_whole { 1 } else { STRIDE };
    let wanted: Vec<_> = recorded.into_iter().step_by(stride).collect();
    let cases: Vec<Case> = wanted.iter().map(|(case, _)| *case).collect();
    let found = carry_out(subject, &cases);
    let differing = wanted.iter().zip(&found).filter(|(wanted, found)| wanted != found);
    let told = |((case, wanted), (_, found)): (&(Case, Fingerprint), &(Case, Fingerprint))| {
        let what = if wanted.bytes == found.bytes { "statistics" } else { "packets" };
        let (wanted, found) = (wanted.packets, found.packets);
        format!("{} {case}: other {what} ({wanted} packets recorded, {found} sent)", subject.name())
    };
    differing.map(told).collect()
}

#[test]
fn behaviour_is_as_recorded() {
    let mode = std::env::var("REXMIT_GOLDEN").unwrap_or_default();
    if mode == "renew" {
        // No file is read first: this records what there was none of, too.
        for subject in Subject::all() {
            let runs = carry_out(subject, &subject.cases());
            golden::write(subject, &runs).unwrap_or_else(|error| panic!("{error}"));
            eprintln!("{}: {} runs recorded", subject.name(), runs.len());
        }
        return;
    }
    assert!(matches!(&*mode, "" | "all"), "REXMIT_GOLDEN is \"all\" or \"renew\", not {mode:?}");
    let mut all = Vec::new();
    for subject in Subject::all() {
        let found = differences(subject, mode == "all");
        found.iter().take(MOST_TOLD).for_each(|difference| eprintln!("{difference}"));
        all.extend(found);
    }
    assert!(all.is_empty(), "{} runs differ; `make golden-renew` records a change", all.len());
}

/// Runs that are the same with two profiles would not test the difference between them.
#[test]
fn the_recorded_runs_differ_between_seeds_and_profiles() {
    let of = |subject| golden::read(subject).unwrap_or_else(|error| panic!("{error}"));
    let hashes =
        |subject| -> BTreeSet<u64> { of(subject).iter().map(|(_, run)| run.bytes).collect() };
    let subjects = Subject::all();
    for (index, &subject) in subjects.iter().enumerate() {
        let (known, name) = (hashes(subject), subject.name());
        assert!(known.len() >= 200, "{name}: {} runs", known.len());
        assert_eq!(known.len(), of(subject).len(), "{name}: the same packets twice");
        for &other in &subjects[..index] {
            let differing = known.difference(&hashes(other)).count();
            assert!(differing >= MIN_DIFFERING, "{name} and {}: {differing} differ", other.name());
        }
    }
}
