//! Advice for captured traffic.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rexmit_lab::traffic::{Sender, Trace};
use rexmit_study::advice::Question;

use super::detached;
use super::study::LabStudy;
use super::trace::unreadable;

/// The study that answers which profile to choose for the traffic of a file over `link`.
#[pyfunction]
#[pyo3(signature = (path, link, *, flow=None, from_client=false, ordered=false, seeds=5))]
pub(crate) fn advice_study(
    py: Python<'_>,
    path: &str,
    link: String,
    flow: Option<u32>,
    from_client: bool,
    ordered: bool,
    seeds: u64,
) -> PyResult<LabStudy> {
    let sender = if from_client { Sender::Client } else { Sender::Server };
    detached(py, || {
        let trace = Trace::open(Path::new(path)).map_err(|error| unreadable(error, path))?;
        let study = Question::new(&trace, flow, sender, link).and_then(|mut question| {
            question.is_ordered = ordered;
            question.seeds = seeds;
            question.study()
        });
        let study = study.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(LabStudy { study })
    })
}
