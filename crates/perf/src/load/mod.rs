//! Load between two programs, in real time: many thin streams, or bulk.
//!
//! The thin load is that of interactive servers: many associations, each with a small message every
//! so often, their beginnings spread over one interval ([`schedule`]). Each message says when it was
//! meant to be sent ([`stamp`]), so what it waited for in the sender counts. A receiver on the same
//! machine, or on one whose `CLOCK_MONOTONIC` is the same, measures the latency.
//!
//! [`send`] and [`receive`] are the two programs; [`result`] is what they measured.

mod connections;
pub mod receive;
pub mod result;
pub mod schedule;
pub mod send;
pub mod stamp;

pub use connections::{Lingering, Target};

use std::io;

use rexmit::{BindError, ConnectError};
use thiserror::Error;

/// Why a load did not run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A local address cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An association cannot be set up.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It was stopped before it had begun.
    #[error("stopped before all connections were set up")]
    Stopped,
    /// The system refused something, or the record cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}
