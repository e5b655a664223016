//! The results of a study.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rexmit_study::advice::Advice;
use rexmit_study::page::{StudyPage, study};
use rexmit_study::results::rows::{
    distribution_columns, each_message, each_run, each_value, message_columns, run_columns,
};
use rexmit_study::results::{Field, Kind, Results, StudyRun, write_index};
use rexmit_study::runner::FailedRun;
use rexmit_study::store::Store;
use rexmit_study::{RunDocument, RunKey};

use super::detached;
use super::table::{Rows, Table};
use crate::convert::Real;
use crate::errors::RunError;

/// The results of a study: its page, and the store that has the outcome of each run.
#[pyclass(frozen, module = "rexmit._rexmit")]
pub(crate) struct LabResults {
    pub(super) text: String,
    pub(super) documents: Vec<RunDocument>,
    pub(super) failed: BTreeMap<RunKey, FailedRun>,
    pub(super) page: StudyPage,
    pub(super) store: Store,
    /// Number of results that were in the store before.
    #[pyo3(get)]
    pub(super) found: usize,
    /// Number of runs executed.
    #[pyo3(get)]
    pub(super) executed: usize,
}

impl LabResults {
    fn run(&self) -> StudyRun<'_> {
        let Self { text, documents, failed, page, .. } = self;
        StudyRun { text, documents, failed, page }
    }

    fn table(
        &self,
        columns: Vec<(String, Kind)>,
        fill: impl FnOnce(&mut dyn FnMut(&[Field<'_>]) -> io::Result<()>) -> io::Result<()>,
    ) -> PyResult<Table> {
        let mut rows = Rows::new(columns);
        fill(&mut |row| rows.push(row).map_err(io::Error::other))
            .map_err(|error| RunError::new_err(error.to_string()))?;
        rows.finish()
    }
}

#[pymethods]
impl LabResults {
    /// A row per run.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        let run = self.run();
        detached(py, || self.table(run_columns(&run), |push| each_run(&run, &self.store, push)))
    }

    /// A row per message.
    fn messages(&self, py: Python<'_>) -> PyResult<Table> {
        let run = self.run();
        let fill = |push: &mut dyn FnMut(&[Field<'_>]) -> io::Result<()>| {
            each_message(&run, &self.store, push)
        };
        detached(py, || self.table(message_columns(&run), fill))
    }

    /// A row per value of a distribution and run.
    fn distribution(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let run = self.run();
        let table = detached(py, || {
            let columns = distribution_columns(&run);
            self.table(columns, |push| each_value(&run, &self.store, name, push))
        })?;
        if table.len() == 0 {
            let text = format!(
                "no run has the distribution {name:?}; it is the name of a flow and of what is measured, as 'game.latency'"
            );
            return Err(PyValueError::new_err(text));
        }
        Ok(table)
    }

    /// Claims, figures and estimates as JSON.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || {
            serde_json::to_string(&self.page).map_err(|error| RunError::new_err(error.to_string()))
        })
    }

    /// The advice that the results give, as text and as JSON, if the study is one of `advice_study`.
    fn advice(&self, py: Python<'_>, max_cost: Real) -> PyResult<(String, String)> {
        detached(py, || {
            let advice = Advice::new(&self.page, max_cost.0);
            let json = serde_json::to_string(&advice);
            Ok((advice.to_string(), json.map_err(|error| RunError::new_err(error.to_string()))?))
        })
    }

    /// The report as one HTML file.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || {
            study::html(&self.page).map_err(|error| RunError::new_err(error.to_string()))
        })
    }

    /// Writes the directory of results that `rexmit study run` writes. Returns its path.
    fn save(&self, py: Python<'_>, directory: &str) -> PyResult<PathBuf> {
        let directory = Path::new(directory);
        detached(py, || {
            let write = || {
                let results = Results::new(directory, &self.page.study.name)?;
                results.write(&self.run(), &self.store)?;
                results.write_failed(&self.documents, &self.failed)?;
                write_index(directory)?;
                Ok(results.folder().to_owned())
            };
            write().map_err(|error: rexmit_study::results::ResultsError| {
                PyOSError::new_err(format!("{error}; choose another directory"))
            })
        })
    }

    /// The failed runs: the document and the reason of each.
    fn failed(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let text = |run: &FailedRun| {
            let document = serde_json::to_string(&run.document);
            let document = document.map_err(|error| RunError::new_err(error.to_string()))?;
            Ok((document, run.why.to_string()))
        };
        detached(py, || self.failed.values().map(text).collect())
    }
}
