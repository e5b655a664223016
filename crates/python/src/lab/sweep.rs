//! The runs of a study: which results are missing, and where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Clock};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rexmit_core::Instant;
use rexmit_lab::rivals::HOW_TO_BUILD;
use rexmit_lab::scenario::{ExecuteError, execute};
use rexmit_study::runner::{FailedRun, Pacing, Progress, Runner, all_cores, weight};
use rexmit_study::store::{AddError, Found, Program, Store};
use rexmit_study::{RunDocument, RunKey, Study};

use super::detached;
use super::results::LabResults;
use crate::convert::Whole;
use crate::errors::{RunError, StoreError};

/// The runs of a study, and the store of their results. Results arrive from threads of this process (`run_here`), or from
/// other processes (`missing`, `add`, `fail`).
#[pyclass(frozen, module = "rexmit._rexmit")]
pub(crate) struct Sweep {
    study: Study,
    documents: Vec<RunDocument>,
    /// The first document of each key.
    keys: BTreeMap<RunKey, usize>,
    store: Store,
    stops: AtomicBool,
    found: AtomicUsize,
    progress: Mutex<Progress>,
    /// Failed runs by key.
    failed: Mutex<BTreeMap<RunKey, FailedRun>>,
    /// The runs that have a result or have failed: what arrives for them again is ignored.
    settled: Mutex<BTreeSet<RunKey>>,
}

/// The error of a failure that `run::failure` has put into words.
fn failure(kind: &str, what: &str) -> PyResult<ExecuteError> {
    match kind {
        "not permitted" => Ok(ExecuteError::NotPermitted(what.to_owned())),
        // The other process has the same program.
        "not built" => Ok(ExecuteError::NotBuilt(HOW_TO_BUILD)),
        "failed" => Ok(ExecuteError::Failed(what.to_owned())),
        _ => Err(PyValueError::new_err(format!("there is no kind of failure {kind:?}"))),
    }
}

fn unwritable(error: &rexmit_study::store::StoreError) -> PyErr {
    let hint = "finished runs are kept: make room or choose another directory with store=…";
    StoreError::new_err(format!("{error}; {hint}"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock for the estimate of the remaining time.
#[allow(clippy::disallowed_methods, reason = "the duration of runs is measured, not simulated")]
fn now() -> Instant {
    static ORIGIN: std::sync::OnceLock<Clock> = std::sync::OnceLock::new();
    Instant::ZERO + ORIGIN.get_or_init(Clock::now).elapsed()
}

impl Sweep {
    pub(super) fn new(study: Study, program: Program, place: Option<PathBuf>) -> PyResult<Self> {
        let place = place.or_else(Store::usual_place).ok_or_else(|| {
            PyOSError::new_err(
                "there is no home directory for results: choose a directory with store=…",
            )
        })?;
        let store = Store::open(&place, program).map_err(|error| unwritable(&error))?;
        let documents = study.plan();
        let mut keys = BTreeMap::new();
        for (index, document) in documents.iter().enumerate() {
            keys.entry(document.key()).or_insert(index);
        }
        let progress = Mutex::new(Progress { runs: keys.len(), ..Progress::default() });
        Ok(Self {
            study,
            documents,
            keys,
            store,
            stops: AtomicBool::new(false),
            found: AtomicUsize::new(0),
            progress,
            failed: Mutex::default(),
            settled: Mutex::default(),
        })
    }

    fn document(&self, key: &str) -> PyResult<(&RunKey, &RunDocument)> {
        let found = self.keys.get_key_value(key);
        let found = found.map(|(key, &index)| (key, &self.documents[index]));
        found.ok_or_else(|| PyValueError::new_err(format!("the study has no run {key:?}")))
    }
}

#[pymethods]
impl Sweep {
    /// Executes the missing runs on `jobs` threads, by default one per core.
    #[pyo3(signature = (jobs=None))]
    fn run_here(&self, py: Python<'_>, jobs: Option<Whole>) -> PyResult<()> {
        let jobs = match jobs {
            None => all_cores(),
            Some(Whole(jobs)) => {
                let given = usize::try_from(jobs).ok().and_then(NonZeroUsize::new);
                let text = format!("jobs is {jobs}; it must be from 1 to {}", usize::MAX);
                given.ok_or_else(|| PyValueError::new_err(text))?
            }
        };
        let runner = Runner {
            store: &self.store,
            jobs,
            weigh: |document| weight(&document.scenario),
            // Runs on real sockets fail at once.
            pacing: Pacing { is_paced: |_| false, is_alone: false },
            now,
        };
        detached(py, || {
            let run = |document: &RunDocument| {
                if self.stops.load(Ordering::Relaxed) {
                    return Err(ExecuteError::Failed("it was interrupted".into()));
                }
                execute(&document.scenario, document.seed)
            };
            let finished = runner.run(&self.documents, run, |now| *locked(&self.progress) = *now);
            let finished = finished.map_err(|error| unwritable(&error))?;
            self.found.store(finished.found, Ordering::Relaxed);
            *locked(&self.failed) = finished.failed;
            Ok(())
        })
    }

    /// Lets `run_here` end after the runs in progress.
    fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// Distinct runs; those with a result; those that failed; the estimated remaining time in seconds.
    fn progress(&self) -> (usize, usize, usize, Option<f64>) {
        let Progress { runs, done, failed, left } = *locked(&self.progress);
        (runs, done, failed, left.as_ref().map(Duration::as_secs_f64))
    }

    /// The runs without a result, the longest first: the key, the document and the approximate duration of each.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<(String, String, f64)>> {
        detached(py, || {
            let keyed = self.keys.iter().map(|(key, &index)| (key, &self.documents[index]));
            let missing =
                keyed.filter(|(key, _)| !matches!(self.store.look_up(key), Found::Result));
            let mut missing: Vec<_> = missing
                .map(|(key, document)| (key, document, weight(&document.scenario)))
                .collect();
            missing.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(b.0)));
            let is_missing: BTreeSet<&RunKey> = missing.iter().map(|(key, ..)| *key).collect();
            let found = self.keys.keys().filter(|key| !is_missing.contains(key));
            locked(&self.settled).extend(found.cloned());
            let mut progress = locked(&self.progress);
            progress.done = progress.runs - missing.len();
            self.found.store(progress.done, Ordering::Relaxed);
            drop(progress);
            let text = |document: &RunDocument| {
                serde_json::to_string(document)
                    .map_err(|error| RunError::new_err(error.to_string()))
            };
            let estimated = |document: &RunDocument| {
                rexmit_study::runner::estimated_time(&document.scenario).as_secs_f64()
            };
            let entry = |(key, document, _): (&RunKey, &RunDocument, f64)| {
                Ok((key.as_str().to_owned(), text(document)?, estimated(document)))
            };
            missing.into_iter().map(entry).collect()
        })
    }

    /// Adds a result that `execute_run` of another process has returned. Ignored if the run has a result or has failed.
    fn add(&self, py: Python<'_>, key: &str, file: &[u8]) -> PyResult<()> {
        let (key, _) = self.document(key)?;
        if !locked(&self.settled).insert(key.clone()) {
            return Ok(());
        }
        let added = detached(py, || {
            self.store.add(key, file).map_err(|error| match error {
                AddError::Store(error) => unwritable(&error),
                refused @ AddError::Refused(..) => RunError::new_err(refused.to_string()),
            })
        });
        match added {
            Ok(()) => locked(&self.progress).done += 1,
            Err(_) => drop(locked(&self.settled).remove(key)),
        }
        added
    }

    /// Records a failure that `execute_run` of another process has returned. Ignored if the run has a result or has failed.
    fn fail(&self, py: Python<'_>, key: &str, kind: &str, what: &str) -> PyResult<()> {
        detached(py, || {
            let (key, document) = self.document(key)?;
            let failed = FailedRun { document: document.clone(), why: failure(kind, what)? };
            if locked(&self.settled).insert(key.clone()) {
                locked(&self.failed).insert(key.clone(), failed);
                locked(&self.progress).failed += 1;
            }
            Ok(())
        })
    }

    /// The results, once there is one for each run or it failed.
    fn results(&self, py: Python<'_>) -> PyResult<LabResults> {
        let found = self.found.load(Ordering::Relaxed);
        let failed = std::mem::take(&mut *locked(&self.failed));
        detached(py, || {
            let outcome = |document: &RunDocument| self.store.outcome(&document.key()).ok();
            let page = self.study.page(outcome);
            let runs = locked(&self.progress).runs;
            Ok(LabResults {
                text: self.study.text.clone(),
                documents: self.documents.clone(),
                executed: runs.saturating_sub(found + failed.len()),
                failed,
                page,
                store: self.store.clone(),
                found,
            })
        })
    }
}
