//! Errors of a stack, with texts that say what to do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rexmit_tcp::{CloseReason, ConfigError};
use thiserror::Error;

/// Why a stack could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No address was given.
    #[error("a stack needs an address of its own: one in the network of its device")]
    NoAddress,
    /// The address cannot be that of a host.
    #[error("{0} is not the address of a host: choose one in the network of the device")]
    BadAddress(IpAddr),
    /// The MTU of the device is too small.
    #[error("an MTU of {mtu} leaves no room for segments: make it {least} at least")]
    MtuTooSmall {
        /// The device's.
        mtu: u16,
        /// The least it may be.
        least: u16,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The operating system gave no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Entropy(io::Error),
    /// The operating system gave no timer.
    #[error("the system provides no timer: {0}")]
    Timer(io::Error),
}

/// Why listening failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The stack has been shut down.
    #[error("the stack is shut down: open another one")]
    StackClosed,
    /// The protocol refused to listen.
    #[error("cannot listen on port {port}: {source}")]
    Refused {
        /// The requested port.
        port: u16,
        /// Why.
        source: rexmit_tcp::ListenError,
    },
}

/// Why a connection could not be established.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The stack has been shut down.
    #[error("the stack is shut down: open another one")]
    StackClosed,
    /// The stack has no address of the peer's family.
    #[error("the stack has no address from which {remote} can be reached: give it one")]
    NoLocalAddress {
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The protocol refused to begin the connection.
    #[error(transparent)]
    Refused(#[from] rexmit_tcp::ConnectError),
    /// The device accepts no packet to the peer.
    #[error("nothing can be sent to {remote}: {source}")]
    Unreachable {
        /// The peer's address.
        remote: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The peer never answered.
    #[error(
        "{remote} did not answer within {:.1} s: check address and routes, and that no firewall \
         is in between",
        waited.as_secs_f64()
    )]
    NoAnswer {
        /// The peer's address.
        remote: SocketAddr,
        /// The time for which the connection was attempted.
        waited: Duration,
    },
    /// The peer refused the connection with an RST.
    #[error("{remote} refused the connection: check that something listens on that port")]
    RefusedByPeer {
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The connection ended before it was established.
    #[error("the connection with {remote} ended during its setup: {reason:?}")]
    Ended {
        /// The peer's address.
        remote: SocketAddr,
        /// Why.
        reason: CloseReason,
    },
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::StackClosed => io::ErrorKind::NotConnected,
            ConnectError::NoLocalAddress { .. } => io::ErrorKind::AddrNotAvailable,
            ConnectError::Refused(rexmit_tcp::ConnectError::AddressInUse) => {
                io::ErrorKind::AddrInUse
            }
            ConnectError::Refused(_) => io::ErrorKind::InvalidInput,
            ConnectError::Unreachable { source, .. } => source.kind(),
            ConnectError::NoAnswer { .. } => io::ErrorKind::TimedOut,
            ConnectError::RefusedByPeer { .. } => io::ErrorKind::ConnectionRefused,
            ConnectError::Ended { .. } => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}
