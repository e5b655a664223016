//! Advice for captured traffic.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rexmit_lab::traffic::Sender;
use rexmit_study::advice::{PathGiven, Question, QuestionError};

use super::detached;
use super::study::LabStudy;
use super::trace::unreadable;
use crate::convert::{Real, Whole, duration, number, whole};

/// The study that answers which profile to choose for the traffic of a file over a path: `link` in netem's notation, or `rtt` in
/// seconds and `loss`; what is missing is estimated.
#[pyfunction]
#[pyo3(signature = (path, *, rtt=None, loss=None, link=None, flow=None, from_client=false, ordered=false, seeds=5))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn advice_study(
    py: Python<'_>,
    path: &str,
    rtt: Option<Real>,
    loss: Option<Real>,
    link: Option<String>,
    flow: Option<Whole>,
    from_client: bool,
    ordered: bool,
    #[pyo3(from_py_with = whole)] seeds: i128,
) -> PyResult<LabStudy> {
    let sender = if from_client { Sender::Client } else { Sender::Server };
    let rtt = rtt.map(|rtt| duration("rtt", rtt)).transpose()?;
    let loss = loss.map(|loss| loss.0);
    let flow = flow.map(|flow| number("flow", flow.0)).transpose()?;
    let seeds = number("seeds", seeds)?;
    let given = PathGiven { rtt, loss, link };
    detached(py, || {
        let question = Question::open(Path::new(path), flow, sender, &given);
        let study = question.and_then(|mut question| {
            question.is_ordered = ordered;
            question.seeds = seeds;
            question.study()
        });
        let study = study.map_err(|error| match error {
            QuestionError::Unreadable(error) => unreadable(error, path),
            error => PyValueError::new_err(error.to_string()),
        });
        Ok(LabStudy { study: study? })
    })
}
