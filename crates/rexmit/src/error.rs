//! What can go wrong at the edge to the operating system, in words that say what to do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rexmit_sctp::{CloseReason, ConfigError};
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
    #[error("{} is not an address of this machine: `ip address` lists those that are", address.ip())]
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
    /// SCTP directly over IP is not for everybody.
    #[error(
        "SCTP directly over IP on {address} needs CAP_NET_RAW: run as root, give the program the \
         capability (setcap cap_net_raw+ep), or use UDP encapsulation"
    )]
    NeedsRawSockets {
        /// The address that was asked for.
        address: IpAddr,
    },
    /// The kernel speaks SCTP itself and would answer the same packets, with an ABORT.
    #[error(
        "the kernel's own SCTP answers on {address} too: unload it (rmmod sctp), or use UDP \
         encapsulation"
    )]
    KernelSctp {
        /// The address that was asked for.
        address: IpAddr,
    },
    /// One socket is to send from several addresses.
    #[error(
        "an endpoint with several addresses is not bound to {address} alone: bind a wildcard address"
    )]
    NotWildcard {
        /// The address that was asked for.
        address: IpAddr,
    },
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Without randomness no endpoint is safe.
    #[error("the system gives no random numbers: {0}")]
    Entropy(io::Error),
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

    pub(crate) fn raw(address: IpAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NeedsRawSockets { address },
            _ => Self::new((address, 0).into(), source),
        }
    }
}

/// Why there is no association with a peer.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The endpoint has been shut down.
    #[error("the endpoint is shut down: bind another one")]
    EndpointClosed,
    /// The endpoint refuses to try.
    #[error(transparent)]
    Refused(#[from] rexmit_sctp::ConnectError),
    /// This machine cannot send to the peer.
    #[error("nothing can be sent to {remote}: {source}")]
    Unreachable {
        /// The peer's address.
        remote: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The peer never answered.
    #[error(
        "SCTP port {port} of {remote} did not answer within {:.1} s: check address and ports, that \
         it is listening, and that no firewall is in between",
        waited.as_secs_f64()
    )]
    NoAnswer {
        /// The peer's address.
        remote: SocketAddr,
        /// The peer's SCTP port.
        port: u16,
        /// How long it was tried.
        waited: Duration,
    },
    /// The peer does not want to.
    #[error(
        "SCTP port {port} of {remote} refused the association (cause {cause}): check that \
         something accepts associations on that port"
    )]
    RefusedByPeer {
        /// The peer's address.
        remote: SocketAddr,
        /// The peer's SCTP port.
        port: u16,
        /// The cause code of its ABORT (RFC 9260 §3.3.10); 0 if it had none.
        cause: u16,
    },
    /// It ended before it had begun.
    #[error("the association with SCTP port {port} of {remote} ended in its set-up: {reason:?}")]
    Ended {
        /// The peer's address.
        remote: SocketAddr,
        /// The peer's SCTP port.
        port: u16,
        /// Why.
        reason: CloseReason,
    },
}
