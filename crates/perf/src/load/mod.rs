//! Load between two programs, in real time: many thin streams, or bulk.
//!
//! The thin load resembles that of an interactive server: many associations, each with a small
//! message per interval, their first messages spread over one interval ([`schedule`]). Each message
//! carries the time at which it was due ([`stamp`]), so that waiting in the sender counts as
//! latency. A receiver on the same machine, or on one whose `CLOCK_MONOTONIC` is the same, measures
//! the latency.
//!
//! [`send`] and [`receive`] are the two programs; [`result`] holds their measurements.

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
    /// A local address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An association cannot be set up.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The load was stopped before it had begun.
    #[error("stopped before all connections were set up")]
    Stopped,
    /// A system call failed, or the record cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}
