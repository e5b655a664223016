//! Executes the runs of studies on all cores, and stores their results.
//!
//! Results are not kept in memory: each is written to the [`Store`] at once, and read from there
//! one at a time. Runs whose result is in the store are not executed. A run that fails or panics is
//! reported in [`Finished`]; the others continue.

mod board;
mod queue;
mod weight;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use rexmit_core::Instant;
use rexmit_lab::scenario::{ExecuteError, RunOutcome};

use self::board::Board;
pub use self::board::Progress;
use self::queue::{Job, Queue};
pub use self::weight::{estimated_time, weight};
use crate::store::{Found, Store, StoreError};
use crate::{RunDocument, RunKey};

/// The options for executing runs.
#[derive(Clone, Copy, Debug)]
pub struct Runner<'a> {
    /// The store of results.
    pub store: &'a Store,
    /// Number of concurrent runs, without those that are paced.
    pub jobs: NonZeroUsize,
    /// The relative duration of a run, in any unit. The longest begin first, so that no long run is
    /// left alone at the end.
    pub weigh: fn(&RunDocument) -> f64,
    /// Which runs use the real clock, and whether others may run at the same time.
    pub pacing: Pacing,
    /// The clock for estimating the remaining time.
    pub now: fn() -> Instant,
}

/// Runs on the real clock. They are idle nearly all of the time but must wake up punctually, so
/// they run one at a time.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    /// Whether a run uses the real clock.
    pub is_paced: fn(&RunDocument) -> bool,
    /// Whether nothing else may run at the same time. Otherwise, all `jobs` run simulations
    /// meanwhile.
    pub is_alone: bool,
}

/// The result of all runs.
#[derive(Debug, Default)]
pub struct Finished {
    /// Number of distinct runs.
    pub runs: usize,
    /// Number of results found in the store.
    pub found: usize,
    /// Number of damaged results in the store, which were computed again.
    pub damaged: usize,
    /// The failed runs.
    pub failed: BTreeMap<RunKey, FailedRun>,
}

impl Finished {
    /// Number of failed runs for which this machine does not grant the required permissions.
    #[must_use]
    pub fn not_permitted(&self) -> usize {
        self.failed.values().filter(|run| run.why.is_not_permitted()).count()
    }
}

/// A failed run.
#[derive(Debug)]
pub struct FailedRun {
    /// The run.
    pub document: RunDocument,
    /// The reason.
    pub why: ExecuteError,
}

/// The number of jobs that this machine can run concurrently.
#[must_use]
pub fn all_cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

impl Runner<'_> {
    /// Executes those of `documents` that have no result yet with `execute`. Calls `watch` with the
    /// progress, from any thread, one call at a time.
    ///
    /// # Errors
    /// If a result cannot be stored; no further run is started then.
    pub fn run(
        &self,
        documents: &[RunDocument],
        execute: impl Fn(&RunDocument) -> Result<RunOutcome, ExecuteError> + Sync,
        watch: impl Fn(&Progress) + Sync,
    ) -> Result<Finished, StoreError> {
        let jobs = different(documents, self.weigh);
        let board = Board::new(&jobs, self.now, &watch);
        let (missing, damaged) = self.missing(jobs, &board);
        let found = board.progress().done;
        board.on_begin();
        let is_paced = |job: &Job<'_>| (self.pacing.is_paced)(job.document);
        let (paced, unpaced) = missing.into_iter().partition(is_paced);
        let [paced, unpaced] = [paced, unpaced].map(|jobs| Mutex::new(Queue::new(jobs)));
        let work = Work { runner: self, execute: &execute, board, paced, unpaced };
        let failed = work.share()?;
        let runs = work.board.progress().runs;
        Ok(Finished { runs, found, damaged, failed })
    }

    /// The jobs without a valid result, and the number of damaged results.
    fn missing<'d>(&self, jobs: Vec<Job<'d>>, board: &Board<'_>) -> (Vec<Job<'d>>, usize) {
        let count = jobs.len();
        let unread = Mutex::new(jobs.into_iter());
        let look = || {
            let (mut missing, mut damaged) = (Vec::new(), 0);
            loop {
                let Some(job) = locked(&unread).next() else { return (missing, damaged) };
                match self.store.look_up(&job.key) {
                    Found::Result => board.on_found(&job),
                    Found::Nothing => missing.push(job),
                    Found::Damaged(_) => {
                        damaged += 1;
                        missing.push(job);
                    }
                }
            }
        };
        let parts = on_threads(self.jobs, count, look);
        let damaged = parts.iter().map(|(_, damaged)| damaged).sum();
        (parts.into_iter().flat_map(|(missing, _)| missing).collect(), damaged)
    }
}

/// The state shared by the threads.
struct Work<'a, 'd, E> {
    runner: &'a Runner<'a>,
    execute: &'a E,
    board: Board<'a>,
    paced: Mutex<Queue<'d>>,
    unpaced: Mutex<Queue<'d>>,
}

/// The most threads for runs.
const MAX_JOBS: usize = 1024;

/// The failures of one thread.
type Share = Result<Vec<(RunKey, FailedRun)>, StoreError>;

impl<'d, E> Work<'_, 'd, E>
where
    E: Fn(&RunDocument) -> Result<RunOutcome, ExecuteError> + Sync,
{
    fn share(&self) -> Result<BTreeMap<RunKey, FailedRun>, StoreError> {
        let paced = || self.take_part(&self.paced);
        let runs = locked(&self.unpaced).len();
        let unpaced = || on_threads(self.runner.jobs, runs, || self.take_part(&self.unpaced));
        let (first, rest) = match self.runner.pacing.is_alone {
            true => (paced(), unpaced()),
            false => thread::scope(|scope| {
                let beside = scope.spawn(paced);
                let rest = unpaced();
                (joined(beside), rest)
            }),
        };
        let mut failed: BTreeMap<_, _> = first?.into_iter().collect();
        for part in rest {
            failed.extend(part?);
        }
        Ok(failed)
    }

    fn take_part(&self, queue: &Mutex<Queue<'d>>) -> Share {
        let mut failed = Vec::new();
        loop {
            let Some(job) = locked(queue).next() else { return Ok(failed) };
            match self.settle(job, queue) {
                Ok(None) => {}
                Ok(Some(failure)) => failed.push(failure),
                Err(error) => {
                    locked(&self.paced).clear();
                    locked(&self.unpaced).clear();
                    return Err(error);
                }
            }
        }
    }

    /// Executes the job unless it has a result, or puts it back if another process is executing it.
    /// Returns a failure.
    fn settle(
        &self,
        job: Job<'d>,
        queue: &Mutex<Queue<'d>>,
    ) -> Result<Option<(RunKey, FailedRun)>, StoreError> {
        let store = self.runner.store;
        let claim = match job.is_elsewhere {
            false => store.try_claim(&job.key)?,
            true => Some(store.claim(&job.key)?),
        };
        let Some(claim) = claim else {
            locked(queue).put_back(job);
            return Ok(None);
        };
        // Another process may have made it since.
        if !matches!(store.look_up(&job.key), Found::Result) {
            match attempt(self.execute, job.document) {
                Ok(outcome) => claim.fulfil(outcome)?,
                Err(why) => {
                    self.board.on_failed(&job);
                    return Ok(Some((job.key, FailedRun { document: job.document.clone(), why })));
                }
            }
        }
        self.board.on_done(&job);
        Ok(None)
    }
}

/// Each distinct run once, even if several studies contain it.
fn different(documents: &[RunDocument], weigh: fn(&RunDocument) -> f64) -> Vec<Job<'_>> {
    let mut seen = BTreeSet::new();
    let job = |document| Job::new(document, weigh(document));
    documents.iter().map(job).filter(|job| seen.insert(job.key.clone())).collect()
}

/// Executes a document. A panic is reported as a failure, and so is a number that is not finite,
/// which could not be stored.
fn attempt(
    execute: impl Fn(&RunDocument) -> Result<RunOutcome, ExecuteError>,
    document: &RunDocument,
) -> Result<RunOutcome, ExecuteError> {
    let outcome = catch_unwind(AssertUnwindSafe(|| execute(document)))
        .unwrap_or_else(|panic| Err(ExecuteError::Failed(words(&*panic))))?;
    match outcome.not_finite() {
        Some(name) => Err(ExecuteError::Failed(format!("{name} is not a finite number"))),
        None => Ok(outcome),
    }
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

/// Runs `part` on `jobs` threads, but not on more than there are runs, and returns the results.
fn on_threads<T: Send>(jobs: NonZeroUsize, runs: usize, part: impl Fn() -> T + Sync) -> Vec<T> {
    let count = jobs.get().min(runs.max(1)).min(MAX_JOBS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&part)).collect();
        threads.into_iter().map(joined).collect()
    })
}

/// The return value of a thread. Panics of runs have been caught; a panic of the runner is
/// propagated.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Locks a mutex even if it is poisoned: its data is consistent, because no code of callers runs under these locks.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
