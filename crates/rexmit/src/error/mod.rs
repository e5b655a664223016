//! Errors at the boundary to the operating system, with texts that say what to do.

#[cfg(feature = "udp")]
mod association;

use std::io;
use std::net::{IpAddr, SocketAddr};

use rexmit_sctp::ConfigError;
use thiserror::Error;

#[cfg(feature = "udp")]
pub use association::{ConnectError, SendError, TrySendError};

/// Why a local address could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is in use.
    #[error("{address} is in use: choose another port, or 0 for any free one")]
    InUse {
        /// The address given.
        address: SocketAddr,
    },
    /// No interface of this machine has the address.
    #[error("{} is not an address of this machine: `ip address` lists those that are", address.ip())]
    NotLocal {
        /// The address given.
        address: SocketAddr,
    },
    /// Binding the address requires privileges.
    #[error("{address} is not allowed: ports below 1024 need CAP_NET_BIND_SERVICE")]
    Permission {
        /// The address given.
        address: SocketAddr,
    },
    /// SCTP directly over IP requires privileges.
    #[error(
        "SCTP directly over IP on {address} needs CAP_NET_RAW: run as root, give the program the \
         capability (setcap cap_net_raw+ep), or use UDP encapsulation"
    )]
    NeedsRawSockets {
        /// The address given.
        address: IpAddr,
    },
    /// The kernel speaks SCTP itself and would answer the same packets, with an ABORT.
    #[error(
        "the kernel's own SCTP answers on {address} too: unload it (rmmod sctp), or use UDP \
         encapsulation"
    )]
    KernelSctp {
        /// The address given.
        address: IpAddr,
    },
    /// An endpoint with several addresses must be bound to a wildcard address.
    #[error(
        "an endpoint with several addresses is not bound to {address} alone: bind a wildcard address"
    )]
    NotWildcard {
        /// The address given.
        address: IpAddr,
    },
    /// An encrypted endpoint must have one address.
    #[error(
        "an encrypted endpoint has one address: an association over DTLS has a single path (RFC 8261)"
    )]
    SeveralAddresses,
    /// The name has no address.
    #[error("{name} cannot be resolved: {source}; an address is HOST:PORT, such as 0.0.0.0:9899")]
    Unresolved {
        /// The address given.
        name: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// Several [shards](crate::EndpointConfig::shards) are not supported here.
    #[error("an endpoint has one shard here, because {reason}")]
    Shards {
        /// The reason, such as the system.
        reason: &'static str,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The operating system gave no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Entropy(io::Error),
    /// Another error of the operating system.
    #[error("{address} cannot be used: {source}")]
    Io {
        /// The address given.
        address: SocketAddr,
        /// The error of the system.
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

    #[cfg(all(feature = "raw", target_os = "linux"))]
    pub(crate) fn raw(address: IpAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NeedsRawSockets { address },
            _ => Self::new((address, 0).into(), source),
        }
    }
}
