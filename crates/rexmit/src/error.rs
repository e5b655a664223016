//! What can go wrong at the edge to the operating system, in words that say what to do.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// Why a local address cannot be used.
#[derive(Debug, Error)]
pub enum BindError {
    /// Somebody else has it.
    #[error("{address} is in use: choose another port, or 0 for any free one")]
    InUse {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// No interface of this machine has it.
    #[error("{address} is not an address of this machine: `ip address` lists those that are")]
    NotLocal {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// Not without privileges.
    #[error("{address} is not allowed: ports below 1024 need CAP_NET_BIND_SERVICE")]
    Permission {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// Another error of the operating system.
    #[error("{address} cannot be used: {source}")]
    Io {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

impl BindError {
    pub(crate) fn new(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::AddrNotAvailable => Self::NotLocal { address },
            io::ErrorKind::PermissionDenied => Self::Permission { address },
            _ => Self::Io { address, source },
        }
    }
}
