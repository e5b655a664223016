//! Errors of a simulation with kernels.

use std::io;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_netsim::path::ConfigError;
use thiserror::Error;

use crate::host_id::HostId;

/// A simulation cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A kernel sent nothing for the limit of real time: a program in it computes without end, or it has stopped.
    #[error("kernel {kernel} sent nothing for {limit:?} of real time{console}")]
    Hung {
        /// The kernel's name.
        kernel: String,
        /// The limit, [`KernelConfig::limit`](crate::KernelConfig::limit).
        limit: Duration,
        /// The last lines that it printed.
        console: String,
    },
    /// A kernel ended before it had booted, or in the middle of a message.
    #[error("kernel {kernel} has ended: {what}{console}")]
    Ended {
        /// The kernel's name.
        kernel: String,
        /// The data that was to be read or written.
        what: &'static str,
        /// The last lines that it printed.
        console: String,
    },
    /// A kernel sent a message that the protocol of time travel, vhost-user or virtio does not allow here.
    #[error("kernel {kernel}: {what}")]
    Protocol {
        /// The kernel's name.
        kernel: String,
        /// The message, and what was expected.
        what: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The purpose of the call.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A path has a configuration with illegal values.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// A host is connected already: each host has one network device.
    #[error("host {0:?} is connected already")]
    Connected(HostId),
    /// Virtual time does not advance: hosts cause events at one instant without end.
    #[error("no host becomes idle at {at:?}: {events} events at this instant")]
    Livelock {
        /// The instant.
        at: Instant,
        /// The number of events.
        events: u32,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Why the conversation with a kernel failed, without its name.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing arrived in time.
    Silent,
    /// The other end has closed the connection.
    Closed(&'static str),
    /// An impossible message.
    Protocol(String),
    /// A system call failed.
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            io::ErrorKind::UnexpectedEof => Self::Closed("a message was cut short"),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                Self::Closed("it has closed its socket")
            }
            _ => Self::Io(error),
        }
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}
