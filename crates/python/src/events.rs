//! Events, as the classes of `rexmit._events`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};
use rexmit_dtls::Fingerprint;
use rexmit_sctp::{AssociationId, CloseReason, Event, FailReason, InboundMessage, PathState};

use crate::convert::address_to_python;

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let import = || py.import("rexmit._events").map(Bound::unbind);
    Ok(CLASSES.get_or_try_init(py, import)?.bind(py))
}

/// A `rexmit.Message`.
pub(crate) fn message<'py>(
    py: Python<'py>,
    message: &InboundMessage,
) -> PyResult<Bound<'py, PyAny>> {
    let payload = PyBytes::new(py, &message.payload);
    let fields = (payload, message.stream, message.ppid, message.unordered);
    classes(py)?.getattr("Message")?.call1(fields)
}

fn fail_reason(reason: FailReason) -> &'static str {
    match reason {
        FailReason::Expired => "expired",
        FailReason::RetransmissionLimit => "retransmission-limit",
        FailReason::NoSuchStream => "no-such-stream",
        FailReason::AssociationEnded => "association-ended",
        _ => "other",
    }
}

pub(crate) fn path_state(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially-failed",
        PathState::Inactive => "inactive",
        PathState::Removed => "removed",
        _ => "other",
    }
}

/// The reason as a word, the bytes that were given with it, and the error cause of an ABORT.
fn close_reason(reason: &CloseReason) -> (&'static str, &[u8], u16) {
    match reason {
        CloseReason::Shutdown => ("shutdown", b"", 0),
        CloseReason::Aborted { reason } => ("aborted", reason, 0),
        CloseReason::AbortedByPeer { cause, reason } => ("aborted-by-peer", reason, *cause),
        CloseReason::Unreachable => ("unreachable", b"", 0),
        CloseReason::ConnectTimedOut => ("connect-timed-out", b"", 0),
        _ => ("other", b"", 0),
    }
}

/// An event with the number of its association, and of `Connected` the certificate of the peer; `None` for an event that this version of the package does not know.
pub(crate) fn event<'py>(
    py: Python<'py>,
    id: AssociationId,
    event: &Event,
    peer_fingerprint: Option<Fingerprint>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let make = |name: &str, fields: Bound<'py, PyTuple>| classes(py)?.getattr(name)?.call1(fields);
    let none = || PyTuple::empty(py);
    let at = |address| address_to_python(py, address);
    let event = match event {
        Event::Connected { incoming, peer, outbound_streams, inbound_streams } => {
            let fingerprint = peer_fingerprint.map(|it| it.to_string());
            let fields = (*incoming, at(*peer)?, *outbound_streams, *inbound_streams, fingerprint);
            make("Connected", fields.into_pyobject(py)?)?
        }
        Event::Readable => make("Readable", none())?,
        Event::Writable => make("Writable", none())?,
        Event::MessageSent(id) => make("MessageSent", (id.0,).into_pyobject(py)?)?,
        Event::MessageAcknowledged(id) => make("MessageAcknowledged", (id.0,).into_pyobject(py)?)?,
        Event::MessageFailed { id, reason, was_begun, message } => {
            let payload = PyBytes::new(py, &message.payload);
            let fields = (id.0, fail_reason(*reason), *was_begun, message.stream, payload);
            make("MessageFailed", fields.into_pyobject(py)?)?
        }
        Event::MessageDropped { stream, ppid, unordered } => {
            make("MessageDropped", (*stream, *ppid, *unordered).into_pyobject(py)?)?
        }
        Event::Infeasible { achievable_ppm } => {
            make("Infeasible", (f64::from(*achievable_ppm) / 1e6,).into_pyobject(py)?)?
        }
        Event::PeerShutdown => make("PeerShutdown", none())?,
        Event::PeerRestarted => make("PeerRestarted", none())?,
        Event::StreamsReset { streams, performed } => {
            let fields = (PyTuple::new(py, streams)?, *performed);
            make("StreamsReset", fields.into_pyobject(py)?)?
        }
        Event::PeerResetStreams(streams) => {
            make("PeerResetStreams", (PyTuple::new(py, streams)?,).into_pyobject(py)?)?
        }
        Event::PathStatus { path, address, state } => {
            make("PathStatus", (*path, at(*address)?, path_state(*state)).into_pyobject(py)?)?
        }
        Event::DataPathChanged { path, address } => {
            make("DataPathChanged", (*path, at(*address)?).into_pyobject(py)?)?
        }
        Event::PeerError(cause) => make("PeerError", (*cause,).into_pyobject(py)?)?,
        Event::Closed(reason) => {
            let (word, bytes, cause) = close_reason(reason);
            let fields = (word, reason.to_string(), PyBytes::new(py, bytes), cause);
            make("Closed", fields.into_pyobject(py)?)?
        }
        _ => return Ok(None),
    };
    Ok(Some((id.to_bits(), event).into_pyobject(py)?))
}
