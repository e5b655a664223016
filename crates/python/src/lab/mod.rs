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

/// Calls `act` without the GIL. A panic is an `InternalError`.
fn detached<R: Send>(py: Python<'_>, act: impl FnOnce() -> PyResult<R> + Send) -> PyResult<R> {
    py.detach(|| guarded(act))
}
