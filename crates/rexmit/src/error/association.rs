//! Errors of associations.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_sctp::CloseReason;
use thiserror::Error;

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The association is shutting down, or has ended.
    #[error("the association is closing and accepts no more messages")]
    Closing,
    /// The stream does not exist.
    #[error("there is no such stream: the association has streams 0 to {}", streams - 1)]
    InvalidStream {
        /// The number of outgoing streams.
        streams: u16,
    },
    /// The message is empty (RFC 9260 §6.2 allows no empty DATA chunk).
    #[error("the message is empty; SCTP carries no empty messages")]
    Empty,
    /// The message is larger than `max_message_bytes`.
    #[error("the message is larger than max_message_bytes = {limit}")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Why a message was not sent without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send buffer has no room for the message now: [`send`](crate::Association::send) waits for room.
    #[error("the send buffer is full: send() waits for room")]
    Full,
    /// The message cannot be sent.
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
            // The association is closing, or has been removed because it has ended.
            _ => SendError::Closing,
        })
    }
}

/// Why an association could not be established.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has been shut down.
    #[error("the endpoint is shut down: bind another one")]
    EndpointClosed,
    /// The name has no address.
    #[error("{name} cannot be resolved: {source}; an address is HOST:PORT, such as localhost:9899")]
    Unresolved {
        /// The address given.
        name: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// The local socket could not be bound.
    #[error("no socket for the association: {0}")]
    Bind(#[from] super::BindError),
    /// No certificate could be generated for this side.
    #[cfg(feature = "dtls")]
    #[error(transparent)]
    Identity(rexmit_dtls::IdentityError),
    /// The endpoint refused to begin the association.
    #[error(transparent)]
    Refused(#[from] rexmit_sctp::ConnectError),
    /// This machine cannot send to the peer.
    #[error("nothing can be sent to {remote} from {local}: {source}{}", remedy(*local, *remote))]
    Unreachable {
        /// The address that the endpoint is bound to.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The peer's host has answered that nothing is bound to the UDP port (ICMP). Reported on Linux; other systems
    /// report [`NoAnswer`](Self::NoAnswer) or `Handshake` after the time limit.
    #[error("nothing listens on UDP port {} of {}: check the port, and that the peer runs", remote.port(), remote.ip())]
    PortUnreachable {
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The DTLS handshake failed; `source` says which side refused, and the reason.
    #[cfg(feature = "dtls")]
    #[error("no encrypted connection with {remote}: {source}")]
    Handshake {
        /// The peer's address.
        remote: SocketAddr,
        /// The reason.
        source: rexmit_dtls::HandshakeError,
    },
    /// The peer never answered.
    #[error(
        "SCTP port {port} of {remote} did not answer within {:.1} s: check address and ports, that \
         it is listening, that both sides encrypt or neither does, and that no firewall is in between",
        waited.as_secs_f64()
    )]
    NoAnswer {
        /// The peer's address.
        remote: SocketAddr,
        /// The peer's SCTP port.
        port: u16,
        /// The time for which the connection was tried.
        waited: Duration,
    },
    /// The peer refused the association with an ABORT.
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
    /// The association ended before it was established.
    #[error("the association with SCTP port {port} of {remote} ended during its setup: {reason}")]
    Ended {
        /// The peer's address.
        remote: SocketAddr,
        /// The peer's SCTP port.
        port: u16,
        /// Why.
        reason: CloseReason,
    },
}

/// The remedy, as text, if an endpoint bound to `local` cannot send to `remote`.
fn remedy(local: SocketAddr, remote: SocketAddr) -> &'static str {
    let is_other_family = remote.is_ipv6() != local.is_ipv6();
    let serves_both = local.is_ipv6() && local.ip().is_unspecified();
    if is_other_family && !serves_both {
        "; bind the endpoint to [::]:0, which serves IPv4 and IPv6"
    } else if local.ip().is_loopback() && !remote.ip().is_loopback() {
        "; bind the endpoint to 0.0.0.0:0 or [::]:0: a loopback address reaches this machine only"
    } else {
        ""
    }
}
