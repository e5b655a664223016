//! Analysis of the loss recovery in captures.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rexmit_lab::analysis::{Analysis, AnalysisError, Cause};
use rexmit_lab::traffic::Sender;
use rexmit_study::results::{Field, Kind};

use super::detached;
use super::run::table;
use super::table::Table;
use super::trace::unreadable;
use crate::errors::RunError;

/// Analyses a capture. Returns its figures as JSON and as text for a terminal, and a row per range of data.
#[pyfunction]
#[pyo3(signature = (path, other_end=None))]
pub(crate) fn analyse_capture(
    py: Python<'_>,
    path: &str,
    other_end: Option<&str>,
) -> PyResult<(String, String, Table)> {
    detached(py, || {
        let analysis = Analysis::open(Path::new(path), other_end.map(Path::new));
        let analysis = analysis.map_err(|error| match error {
            AnalysisError::Unreadable(error) => unreadable(error, path),
            error => PyValueError::new_err(error.to_string()),
        })?;
        let json = serde_json::to_string(&analysis);
        let json = json.map_err(|error| RunError::new_err(error.to_string()))?;
        Ok((json, analysis.to_string(), ranges(&analysis)?))
    })
}

fn ranges(analysis: &Analysis) -> PyResult<Table> {
    let columns = [
        ("flow", Kind::Integer),
        ("direction", Kind::Text),
        ("first", Kind::Integer),
        ("bytes", Kind::Integer),
        ("sent_s", Kind::Number),
        ("ack_ms", Kind::Number),
        ("arrival_ms", Kind::Number),
        ("retransmissions", Kind::Integer),
        ("repeated", Kind::Text),
    ];
    let all = analysis.directions.iter();
    let all =
        all.flat_map(|direction| direction.ranges.iter().map(move |range| (direction, range)));
    let words: Vec<String> = all
        .clone()
        .map(|(_, range)| {
            let words: Vec<_> = range.repeated.iter().map(|cause| cause.word()).collect();
            words.join(" ")
        })
        .collect();
    let rows = all.zip(&words).map(|((direction, range), words)| {
        let retransmissions = range.repeated.iter().filter(|it| !Cause::is_redundant(**it)).count();
        [
            Field::Integer(direction.flow.into()),
            Field::Text(match direction.direction {
                Sender::Client => "c2s",
                Sender::Server => "s2c",
            }),
            Field::Integer(range.first),
            Field::Integer(range.bytes.into()),
            Field::Number(range.sent_s),
            range.ack_ms.into(),
            range.arrival_ms.into(),
            Field::Integer(retransmissions as u64),
            if words.is_empty() { Field::Nothing } else { Field::Text(words) },
        ]
    });
    table(&columns, rows)
}
