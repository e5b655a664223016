//! Studies: built in, from files, or from text.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rexmit_study::studies::BUILT_IN;
use rexmit_study::{MAX_SEEDS, Mistakes, RunDocument, Study, StudyError};

use super::sweep::Sweep;
use super::{detached, run};
use crate::convert::{Whole, number};
use crate::errors::{self, guarded};

/// A valid study.
#[pyclass(frozen, module = "rexmit._rexmit")]
pub(crate) struct LabStudy {
    pub(super) study: Study,
}

fn mistaken(py: Python<'_>, mistakes: &Mistakes) -> PyErr {
    let error = errors::StudyError::new_err(mistakes.to_string());
    let list = mistakes.list.iter().map(|it| (it.line, it.column, it.what.as_str()));
    match PyTuple::new(py, list).and_then(|list| error.value(py).setattr("mistakes", list)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// The names of the studies in the package.
#[pyfunction]
pub(crate) fn study_names(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, BUILT_IN.iter().map(|study| study.name))
}

#[pymethods]
impl LabStudy {
    /// The study `name` of those that the package contains.
    #[staticmethod]
    fn built_in(py: Python<'_>, name: &str) -> PyResult<Self> {
        let Some(found) = BUILT_IN.iter().find(|study| study.name == name) else {
            let likeness = |other: &str| strsim::jaro(name, other);
            let names = BUILT_IN.iter().map(|study| study.name);
            let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let text = format!(
                "there is no study {name:?}; did you mean {:?}? rexmit.lab.STUDIES has all; for a file, give its \
                 path: {:?}",
                nearest.unwrap_or_default(),
                format!("./{name}.toml")
            );
            return Err(errors::UnknownStudyError::new_err(text));
        };
        Self::parse(py, found.name, found.text)
    }

    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str) -> PyResult<Self> {
        let study = detached(py, || Ok(Study::load(Path::new(path))))?;
        study.map(|study| Self { study }).map_err(|error| match error {
            StudyError::Mistaken(mistakes) => mistaken(py, &mistakes),
            StudyError::Unreadable { error, .. } if error.raw_os_error().is_some() => {
                let number = error.raw_os_error();
                // With the number it becomes a FileNotFoundError or its like.
                pyo3::exceptions::PyOSError::new_err((
                    number,
                    errors::system_text(&error),
                    path.to_owned(),
                ))
            }
            error => errors::StudyError::new_err(error.to_string()),
        })
    }

    /// Reads the text of a file.
    #[staticmethod]
    fn parse(py: Python<'_>, name: &str, text: &str) -> PyResult<Self> {
        let study = detached(py, || Ok(Study::parse(name, text)))?;
        study.map(|study| Self { study }).map_err(|mistakes| mistaken(py, &mistakes))
    }

    /// The same study with other seeds.
    fn with_seeds(&self, py: Python<'_>, seeds: Vec<Whole>) -> PyResult<Self> {
        let seeds = seeds.into_iter().map(|seed| number("a seed", seed.0));
        let seeds = seeds.collect::<PyResult<Vec<u64>>>()?;
        detached(py, || {
            let mut sorted = seeds.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if seeds.is_empty() || seeds.len() > MAX_SEEDS || sorted.len() < seeds.len() {
                let text = format!("seeds must be 1 to {MAX_SEEDS} different numbers");
                return Err(pyo3::exceptions::PyValueError::new_err(text));
            }
            let mut study = self.study.clone();
            study.seeds = seeds;
            Ok(Self { study })
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.study.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.study.title
    }

    #[getter]
    fn source(&self) -> &str {
        &self.study.source
    }

    #[getter]
    fn about(&self) -> &str {
        &self.study.about
    }

    #[getter]
    fn text(&self) -> &str {
        &self.study.text
    }

    #[getter]
    fn seeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.study.seeds)
    }

    /// The labels of each axis.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let axes = PyDict::new(py);
        for axis in &self.study.axes {
            let labels = axis.points.iter().map(|point| point.label.as_str());
            axes.set_item(&axis.name, PyTuple::new(py, labels)?)?;
        }
        Ok(axes)
    }

    fn __len__(&self) -> PyResult<usize> {
        guarded(|| Ok(self.study.runs()))
    }

    /// The approximate processor time of all runs, in seconds.
    fn estimated_seconds(&self, py: Python<'_>) -> PyResult<f64> {
        let time = |document: &RunDocument| {
            rexmit_study::runner::estimated_time(&document.scenario).as_secs_f64()
        };
        detached(py, || {
            // It does not depend on the seed.
            let mut one = self.study.clone();
            one.seeds.truncate(1);
            let of_a_seed: f64 = one.plan().iter().map(time).sum();
            Ok(of_a_seed * self.study.seeds.len() as f64)
        })
    }

    /// The runs of the study, with the results that the store has. `program` is the file of this module.
    #[pyo3(signature = (program, store=None))]
    fn sweep(&self, py: Python<'_>, program: &str, store: Option<PathBuf>) -> PyResult<Sweep> {
        let program = run::program_of(py, program)?;
        detached(py, || Sweep::new(self.study.clone(), program, store))
    }
}
