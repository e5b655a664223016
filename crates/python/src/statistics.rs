//! Counters, as the classes of `rexmit._statistics`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rexmit_sctp::recovery::ByCause;
use rexmit_sctp::{AssociationStatistics, PathStatistics};

use crate::convert::address_to_python;
use crate::events::path_state;

/// Makes an object of the class `$class` with the keyword arguments that are fields of `$from`, and others.
macro_rules! object {
    ($py:ident, $class:literal, $from:expr => [$($field:ident)*], $($name:ident = $value:expr),* $(,)?) => {{
        let fields = PyDict::new($py);
        $(fields.set_item(stringify!($field), $from.$field)?;)*
        $(fields.set_item(stringify!($name), $value)?;)*
        $py.import("rexmit._statistics")?.getattr($class)?.call((), Some(&fields))
    }};
}

fn by_cause<'py>(py: Python<'py>, count: &ByCause) -> PyResult<Bound<'py, PyAny>> {
    object!(py, "ByCause", count => [
        timeout fast_retransmit bundled window_probe early redundant probe
    ],)
}

fn path<'py>(py: Python<'py>, path: &PathStatistics) -> PyResult<Bound<'py, PyAny>> {
    object!(py, "PathStatistics", path => [
        is_primary errors cwnd ssthresh packets_in_flight bytes_in_flight
    ],
        local = address_to_python(py, path.local)?,
        remote = address_to_python(py, path.remote)?,
        state = path_state(path.state),
        srtt = path.srtt.map(|time| time.as_secs_f64()),
        rto = path.rto.as_secs_f64(),
        packets = path.counters.packets,
        packets_lost = path.counters.packets_lost,
        timeouts = path.counters.timeouts,
    )
}

/// A `rexmit.Statistics`.
pub(crate) fn association<'py>(
    py: Python<'py>,
    all: &AssociationStatistics,
) -> PyResult<Bound<'py, PyAny>> {
    let paths = all.paths.iter().map(|it| path(py, it)).collect::<PyResult<Vec<_>>>()?;
    object!(py, "Statistics", all.traffic => [
        packets_sent bytes_sent packets_received bytes_received messages_accepted messages_delivered
        messages_failed payload_accepted_bytes payload_delivered_bytes duplicates_received sacks_sent
        sacks_received
    ],
        marks_received = all.marks.marks_received,
        echoes_received = all.marks.echoes_received,
        send_buffered_bytes = all.send_buffered_bytes,
        receive_buffered_bytes = all.receive_buffered_bytes,
        packets_lost = all.recovery.packets_lost,
        timeouts = all.recovery.timeouts,
        retransmitted = by_cause(py, &all.recovery.retransmitted)?,
        spurious = by_cause(py, &all.recovery.spurious)?,
        is_thin = all.thin.is_thin,
        paths = PyTuple::new(py, paths)?,
    )
}
