//! Executes the runs of a question on several threads, and stops when no reader waits for the answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rexmit_lab::scenario::RunOutcome;
use rexmit_perf::execute;
use rexmit_study::page::StudyPage;
use rexmit_study::{RunDocument, Study};

/// The outcome of a question.
#[derive(Debug)]
pub(super) enum Ended {
    /// All runs are done.
    Page(Box<StudyPage>),
    /// A run failed.
    Failed(String),
    /// The reader has disconnected.
    Left,
}

/// Runs all of `study` with `jobs` threads. `watch` gets the number of finished runs after each, and returns whether the client
/// still waits; once it answers no, no further run begins. A run that has begun ends: its length has a limit
/// (`explore::MAX_MESSAGES`, `MAX_PAYLOAD_BYTES`).
pub(super) fn run(study: &Study, jobs: usize, watch: impl Fn(usize) -> bool + Sync) -> Ended {
    let documents = study.plan();
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(!watch(0)));
    let done = Mutex::new(Done::default());
    let take_part = || {
        while !is_over.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(RunDocument { scenario, seed, .. }) = documents.get(index) else { break };
            let outcome = execute(scenario, *seed);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(outcome) => done.outcomes.insert(index, study.needed(outcome)),
                Err(error) => {
                    done.failed.get_or_insert(error.to_string());
                    is_over.store(true, Ordering::Relaxed);
                    break;
                }
            };
            if !watch(done.outcomes.len()) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.min(documents.len()) {
            scope.spawn(take_part);
        }
    });
    let Done { mut outcomes, failed } = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failed) = failed {
        return Ended::Failed(failed);
    }
    if outcomes.len() < documents.len() {
        return Ended::Left;
    }
    let mut order = 0..;
    Ended::Page(Box::new(study.page(|_| outcomes.remove(&order.next()?))))
}

#[derive(Default)]
struct Done {
    /// Outcomes by the index of the run in the plan.
    outcomes: BTreeMap<usize, RunOutcome>,
    failed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_study::explore::Settings;

    fn study() -> Study {
        let systems = ["rfc9260", "thin"].map(Into::into).to_vec();
        Settings { duration_s: 5, seeds: 4, systems, ..Settings::default() }.study().unwrap()
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_page() {
        let page = |jobs| match run(&study(), jobs, |_| true) {
            Ended::Page(page) => page,
            other => panic!("{other:?}"),
        };
        let (one, many) = (page(1), page(5));
        assert_eq!(one.study.runs, 8);
        assert_eq!(one, many);
    }

    #[test]
    fn runs_end_when_nobody_waits() {
        for leaves_after in [0, 1, 7] {
            let last = AtomicUsize::new(0);
            let watch = |done| {
                last.store(done, Ordering::Relaxed);
                done < leaves_after
            };
            assert!(matches!(run(&study(), 1, watch), Ended::Left));
            assert_eq!(last.into_inner(), leaves_after);
        }
    }
}
