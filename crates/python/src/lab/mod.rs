//! The laboratory: studies, single runs and their results as Arrow tables.
//!
//! The package `rexmit.lab` wraps these classes. Runs take place without the GIL; a panic inside of one is an exception.
//!
//! | file | what is in it |
//! |---|---|
//! | `study` | studies, read from files, from the package or from text |
//! | `sweep` | the runs of a study: which are missing in the store, executed on threads or by other processes |
//! | `results` | the page of a study, and its tables |
//! | `run` | one run: a document for a sweep, or a scenario with its packets |
//! | `analysis` | what captures show of loss recovery |
//! | `advice` | which profile to choose for captured traffic |
//! | `trace` | messages of captured traffic |
//! | `table` | tables for the Arrow C data interface |

mod advice;
mod analysis;
mod results;
mod run;
mod study;
mod sweep;
mod table;
mod trace;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::guarded;

pub(crate) use advice::advice_study;
pub(crate) use analysis::analyse_capture;
pub(crate) use results::LabResults;
pub(crate) use run::{execute_run, program, simulate};
pub(crate) use study::{LabStudy, study_names};
pub(crate) use sweep::Sweep;
pub(crate) use table::Table;
pub(crate) use trace::read_trace;

/// How often a call looks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Calls `act` without the GIL. A panic is an `InternalError`.
fn detached<R: Send>(py: Python<'_>, act: impl FnOnce() -> PyResult<R> + Send) -> PyResult<R> {
    py.detach(|| guarded(act))
}

/// As `detached`, in a thread of its own, so that Ctrl-C is noticed: `act` shall end soon after its argument is set.
fn interruptible<R: Send>(
    py: Python<'_>,
    act: impl FnOnce(&AtomicBool) -> PyResult<R> + Send,
) -> PyResult<R> {
    let stops = AtomicBool::new(false);
    let result = Mutex::new(None);
    let has_ended = Condvar::new();
    let locked = || result.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let done = guarded(|| act(&stops));
            *locked() = Some(done);
            has_ended.notify_one();
        });
        let wait = |at_most| {
            let waited = has_ended.wait_timeout_while(locked(), at_most, |done| done.is_none());
            waited.unwrap_or_else(PoisonError::into_inner).0.take()
        };
        loop {
            if let Some(done) = py.detach(|| wait(SIGNALS_EVERY)) {
                return done;
            }
            if let Err(interrupt) = py.check_signals() {
                stops.store(true, Ordering::Relaxed);
                py.detach(|| while wait(SIGNALS_EVERY).is_none() {});
                return Err(interrupt);
            }
        }
    })
}
