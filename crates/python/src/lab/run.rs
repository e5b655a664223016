//! One run.

use std::fs::File;
use std::sync::Mutex;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use rexmit_lab::scenario::{
    ExecuteError, MessageRow, PacketRow, Scenario, execute, execute_with_packets,
};
use rexmit_study::results::{Field, Kind};
use rexmit_study::store::{Program, packed};
use rexmit_study::{DOCUMENT_SCHEMA, RunDocument};

use super::table::{Rows, Table};
use super::{detached, interruptible};
use crate::convert::{Whole, number};
use crate::errors::RunError;

/// The program to which results belong: the digest of the file of this module, computed once.
pub(super) fn program_of(py: Python<'_>, file: &str) -> PyResult<Program> {
    static KNOWN: Mutex<Option<(String, Program)>> = Mutex::new(None);
    detached(py, || {
        let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, program)) = known.as_ref().filter(|(path, _)| path == file) {
            return Ok(program.clone());
        }
        let program = File::open(file)
            .and_then(Program::of)
            .map_err(|error| PyOSError::new_err(format!("{file} cannot be read: {error}")))?;
        *known = Some((file.to_owned(), program.clone()));
        Ok(program)
    })
}

/// The digest of `file`, which is that of this module.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, file: &str) -> PyResult<String> {
    Ok(program_of(py, file)?.as_str().to_owned())
}

/// The kind of a failure, and its text: what `sweep::failure` makes an error of again.
pub(super) fn failure(error: &ExecuteError) -> (&'static str, String) {
    match error {
        ExecuteError::NotPermitted(what) => ("not permitted", what.clone()),
        ExecuteError::NotBuilt(what) => ("not built", (*what).to_owned()),
        ExecuteError::Failed(what) => ("failed", what.clone()),
        ExecuteError::Scenario(problem) => ("failed", format!("scenario.{problem}")),
    }
}

/// Executes a document of a sweep. Returns the file of its result for the store, or the failure.
#[pyfunction]
pub(crate) fn execute_run<'py>(
    py: Python<'py>,
    document: &str,
    program: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    let program = program_of(py, program)?;
    let done = detached(py, || {
        let document: RunDocument = serde_json::from_str(document)
            .map_err(|error| PyValueError::new_err(format!("this is not a run: {error}")))?;
        if document.schema != DOCUMENT_SCHEMA {
            let (it, ours) = (document.schema, DOCUMENT_SCHEMA);
            let text = format!("the run has format {it}, but this version of rexmit has {ours}");
            return Err(PyValueError::new_err(text));
        }
        let outcome = match execute(&document.scenario, document.seed) {
            Ok(outcome) => outcome,
            Err(error) => return Ok(Err(failure(&error))),
        };
        if let Some(name) = outcome.not_finite() {
            return Ok(Err(("failed", format!("{name} is not a finite number"))));
        }
        let file = packed(&program, &document.key(), outcome);
        file.map(Ok).map_err(|error| RunError::new_err(error.to_string()))
    })?;
    match done {
        Ok(file) => (PyBytes::new(py, &file), py.None()).into_pyobject(py),
        Err(failure) => (py.None(), failure).into_pyobject(py),
    }
}

/// The text of an error in a scenario, with the field instead of the line: `text` has one per line, indented by a space per table.
fn unreadable(text: &str, error: &serde_json::Error) -> String {
    let what = error.to_string();
    let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
    let lines = text.lines().take(error.line()).collect::<Vec<_>>();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_end = |line: &str| line.trim_start().starts_with(['}', ']']);
    // A mistake of a whole field is reported at the end of its table; the field is the last one there.
    let mut depth = lines.last().map_or(0, |last| indent(last) + 1 + usize::from(is_end(last)));
    let mut names = Vec::new();
    for line in lines.iter().rev().filter(|line| !is_end(line)) {
        if indent(line) < depth {
            depth = indent(line);
            let field = line.trim_start().strip_prefix('"').and_then(|it| it.split_once("\":"));
            names.extend(field.map(|(name, _)| name));
        }
    }
    names.reverse();
    if names.is_empty() {
        format!("the scenario: {what}")
    } else {
        format!("{}: {what}", names.join("."))
    }
}

/// Runs one scenario in virtual time; Ctrl-C stops it. Returns its quantities, distributions, packets and messages.
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: Whole,
) -> PyResult<Bound<'py, PyTuple>> {
    let seed = number("seed", seed.0)?;
    let (outcome, packets, messages) = interruptible(py, |stops| {
        let scenario: Scenario = serde_json::from_str(scenario)
            .map_err(|error| PyValueError::new_err(unreadable(scenario, &error)))?;
        if let Err(problems) = scenario.validate() {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(PyValueError::new_err(lines.join("\n")));
        }
        let (outcome, packets) = execute_with_packets(&scenario, seed, stops)
            .map_err(|error| RunError::new_err(error.to_string()))?;
        let tables = (packet_table(&packets)?, message_table(&outcome.messages)?);
        Ok((outcome, tables.0, tables.1))
    })?;
    let quantities = PyDict::new(py);
    for (name, value) in &outcome.quantities {
        quantities.set_item(name, value)?;
    }
    let distributions = PyDict::new(py);
    for (name, it) in outcome.distributions {
        distributions.set_item(name, (it.values, it.counts))?;
    }
    (quantities, distributions, packets, messages).into_pyobject(py)
}

fn packet_table(packets: &[PacketRow]) -> PyResult<Table> {
    let columns = [
        ("flow", Kind::Text),
        ("direction", Kind::Text),
        ("sent_s", Kind::Number),
        ("arrived_s", Kind::Number),
        ("lost", Kind::Text),
        ("bytes", Kind::Integer),
        ("payload_bytes", Kind::Integer),
        ("repeated_bytes", Kind::Integer),
        ("sequence", Kind::Integer),
        ("acknowledged", Kind::Integer),
    ];
    let integer = |value: usize| Field::Integer(value as u64);
    let optional =
        |value: Option<u32>| value.map_or(Field::Nothing, |it| Field::Integer(it.into()));
    let rows = packets.iter().map(|packet| {
        [
            Field::Text(&packet.flow),
            Field::Text(if packet.is_forward { "forward" } else { "backward" }),
            Field::Number(packet.sent_s),
            packet.arrived_s.into(),
            packet.lost.map_or(Field::Nothing, Field::Text),
            integer(packet.bytes),
            integer(packet.content.payload_bytes),
            integer(packet.content.repeated_bytes),
            optional(packet.content.sequence),
            optional(packet.content.acknowledged),
        ]
    });
    table(&columns, rows)
}

fn message_table(messages: &[MessageRow]) -> PyResult<Table> {
    let columns = [
        ("flow", Kind::Text),
        ("message", Kind::Integer),
        ("bytes", Kind::Integer),
        ("intended_s", Kind::Number),
        ("transport_ms", Kind::Number),
        ("application_ms", Kind::Number),
        ("transmissions", Kind::Integer),
    ];
    let rows = messages.iter().map(|message| {
        [
            Field::Text(&message.flow),
            Field::Integer(message.message),
            Field::Integer(message.bytes.into()),
            Field::Number(message.intended_s),
            message.transport_ms.into(),
            message.application_ms.into(),
            message.transmissions.map_or(Field::Nothing, |times| Field::Integer(times.into())),
        ]
    });
    table(&columns, rows)
}

pub(super) fn table<'a, const N: usize>(
    columns: &[(&str, Kind); N],
    rows: impl Iterator<Item = [Field<'a>; N]>,
) -> PyResult<Table> {
    let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    let mut table = Rows::new(columns);
    for row in rows {
        table.push(&row).map_err(|error| RunError::new_err(error.to_string()))?;
    }
    table.finish()
}
