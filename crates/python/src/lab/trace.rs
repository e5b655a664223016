//! Messages of captured traffic.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rexmit_lab::traffic::{Sender, Trace, TraceError};

use super::detached;

/// The number of a flow, the side that sends, and its messages: microseconds and bytes.
type Side = (u32, &'static str, Vec<(u64, u32)>);

/// Reads a trace (CSV) or a capture (pcap, pcapng).
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: &str) -> PyResult<Vec<Side>> {
    let trace = detached(py, || {
        Trace::open(Path::new(path)).map_err(|error| match error {
            TraceError::Unreadable { source, .. } if source.raw_os_error().is_some() => {
                let number = source.raw_os_error();
                pyo3::exceptions::PyOSError::new_err((number, source.to_string(), path.to_owned()))
            }
            error => PyValueError::new_err(error.to_string()),
        })
    })?;
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
