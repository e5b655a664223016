//! Messages of captured traffic.

use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rexmit_lab::traffic::{Sender, Trace, TraceError};

use super::detached;
use crate::errors::system_text;

/// The number of a flow, the side that sends, and its messages: microseconds and bytes.
type Side = (u32, &'static str, Vec<(u64, u32)>);

/// The exception for a file that cannot be read, or is no trace.
pub(super) fn unreadable(error: TraceError, path: &str) -> PyErr {
    match error {
        TraceError::Unreadable { source, .. } if source.raw_os_error().is_some() => {
            let text = system_text(&source);
            PyOSError::new_err((source.raw_os_error(), text, path.to_owned()))
        }
        error => PyValueError::new_err(error.to_string()),
    }
}

/// Reads a trace (CSV) or a capture (pcap, pcapng).
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: &str) -> PyResult<Vec<Side>> {
    let trace =
        detached(py, || Trace::open(Path::new(path)).map_err(|error| unreadable(error, path)))?;
    let mut sides = Vec::new();
    for flow in &trace.flows {
        for (sender, name) in [(Sender::Client, "c2s"), (Sender::Server, "s2c")] {
            let messages = flow.messages(sender).iter();
            let messages: Vec<_> =
                messages.map(|it| (it.at.as_micros() as u64, it.bytes)).collect();
            if !messages.is_empty() {
                sides.push((flow.id, name, messages));
            }
        }
    }
    Ok(sides)
}
