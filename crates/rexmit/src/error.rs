//! What can go wrong at the edge to the operating system, in words that say what to do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rexmit_sctp::{CloseReason, ConfigError};
use thiserror::Error;

/// Why a local address cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// It is in use.
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

    pub(crate) fn raw(address: IpAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NeedsRawSockets { address },
            _ => Self::new((address, 0).into(), source),
        }
    }
}

/// Why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// Shutdown has begun, here or at the peer, or the association has ended.
    #[error("the association is closing and takes no more messages")]
    Closing,
    /// The stream does not exist.
    #[error("there is no such stream: the association has streams 0 to {}", streams - 1)]
    InvalidStream {
        /// How many outgoing streams there are.
        streams: u16,
    },
    /// A message has at least one byte (RFC 9260 §6.2).
    #[error("the message is empty; SCTP carries no empty messages")]
    Empty,
    /// The message is above the configured limit.
    #[error("the message is larger than max_message_bytes = {limit}")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Why a message is not sent without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send buffer has no room for it now: [`send`](crate::Association::send) waits for some.
    #[error("the send buffer is full: send() waits for room")]
    Full,
    /// It cannot be sent.
    #[error(transparent)]
    Refused(#[from] SendError),
}

impl TrySendError {
    pub(crate) const fn from_protocol(error: rexmit_sctp::SendError) -> Self {
        use rexmit_sctp::SendError as Protocol;
        Self::Refused(match error {
            Protocol::BufferFull => return Self::Full,
            Protocol::InvalidStream { streams } => SendError::InvalidStream { streams },
            Protocol::Empty => SendError::Empty,
            Protocol::TooLarge { limit } => SendError::TooLarge { limit },
            // Closing; and who holds a handle knows that the association was there.
            _ => SendError::Closing,
        })
    }
}

/// Why there is no association with a peer.
#[derive(Debug, Error)]
#[non_exhaustive]
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
        /// The error of the system.
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
    #[error("the association with SCTP port {port} of {remote} ended in its set-up: {reason}")]
    Ended {
        /// The peer's address.
        remote: SocketAddr,
        /// The peer's SCTP port.
        port: u16,
        /// Why.
        reason: CloseReason,
    },
}
