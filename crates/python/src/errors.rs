//! Exceptions, which `rexmit._errors` defines.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, PyResult};
use rexmit_sctp::{ConfigError, ConnectError, PriorityError, ResetError, SendError};

mod python {
    #![allow(missing_docs, reason = "they are documented where they are defined")]
    use pyo3::import_exception;

    import_exception!(rexmit._errors, RexmitError);
    import_exception!(rexmit._errors, ClosedError);
    import_exception!(rexmit._errors, BufferFullError);
    import_exception!(rexmit._errors, InternalError);
    import_exception!(rexmit._errors, UnknownProfileError);
    import_exception!(rexmit.lab._errors, StudyError);
    import_exception!(rexmit.lab._errors, UnknownStudyError);
    import_exception!(rexmit.lab._errors, RunError);
    import_exception!(rexmit.lab._errors, StoreError);
}

pub(crate) use python::*;

/// The text of a panic.
pub(crate) const DEFECT: &str =
    "a defect of rexmit: please report it with the text on standard error";

/// Calls `act`. A panic is an `InternalError`.
pub(crate) fn guarded<R>(act: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| Err(InternalError::new_err(DEFECT)))
}

/// The text of an error of the system, without its number, which Python adds.
pub(crate) fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The id of an association that has ended, or never was.
pub(crate) fn no_association() -> PyErr {
    ClosedError::new_err("there is no such association, or it has ended: connect again")
}

pub(crate) fn config(error: &ConfigError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn connect(error: &ConnectError) -> PyErr {
    match error {
        ConnectError::TooManyAssociations | ConnectError::AlreadyConnected => {
            RexmitError::new_err(error.to_string())
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn send(error: SendError) -> PyErr {
    match error {
        SendError::UnknownAssociation => no_association(),
        SendError::Closing => {
            ClosedError::new_err("the association is closing and accepts no more messages")
        }
        SendError::BufferFull => BufferFullError::new_err(
            "the send buffer is full: wait for the event Writable, or `await send(…)`",
        ),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn reset(error: &ResetError) -> PyErr {
    match error {
        ResetError::UnknownAssociation => no_association(),
        ResetError::InvalidStream | ResetError::TooManyStreams { .. } => {
            PyValueError::new_err(error.to_string())
        }
        _ => RexmitError::new_err(error.to_string()),
    }
}

pub(crate) fn priority(error: &PriorityError) -> PyErr {
    match error {
        PriorityError::UnknownAssociation => no_association(),
        _ => PyValueError::new_err(error.to_string()),
    }
}
