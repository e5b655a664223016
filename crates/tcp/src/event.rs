//! Events of an endpoint for its application (RFC 9293 §3.9.1).

use std::net::SocketAddr;

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established.
    Connected {
        /// Whether the peer initiated the connection.
        incoming: bool,
        /// Our address and port.
        local: SocketAddr,
        /// The peer's address and port.
        remote: SocketAddr,
    },
    /// [`Endpoint::receive`](crate::Endpoint::receive) has data, or has reached the end of the peer's data.
    /// Reported once until `receive` has returned [`ReceiveError::Empty`](crate::ReceiveError::Empty).
    Readable,
    /// [`Endpoint::send`](crate::Endpoint::send) has room again after it accepted fewer bytes than given.
    Writable,
    /// The connection has ended; this is its last event. Received data can still be read; then the id becomes
    /// invalid.
    Closed(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides sent FIN and had it acknowledged: everything was delivered.
    Finished,
    /// The application aborted it.
    Aborted,
    /// The peer reset the connection after it was established.
    Reset,
    /// The peer refused the connection: a RST answered our SYN.
    Refused,
    /// The peer acknowledged nothing, or answered no probe, for too long.
    TimedOut,
    /// The peer never answered our SYN.
    ConnectTimedOut,
}
