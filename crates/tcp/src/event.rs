//! Events of an endpoint for its application (RFC 9293 §3.9.1).

use std::net::SocketAddr;

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Established.
    Connected {
        /// Whether the peer asked for it.
        incoming: bool,
        /// Our address and port.
        local: SocketAddr,
        /// The peer's address and port.
        remote: SocketAddr,
    },
    /// [`Endpoint::receive`](crate::Endpoint::receive) has something again, or has reached the
    /// end of the peer's data. Told once until it was found empty.
    Readable,
    /// [`Endpoint::send`](crate::Endpoint::send) takes bytes again after it took less than it was
    /// given.
    Writable,
    /// The last event: nothing more arrives or leaves. What had arrived can still be received;
    /// then the id is gone.
    Closed(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides sent FIN and had it acknowledged: everything was delivered.
    Finished,
    /// By our own abort.
    Aborted,
    /// By a RST of the peer after it was established.
    Reset,
    /// Refused: by a RST in answer to our SYN.
    Refused,
    /// The peer acknowledged nothing, or answered no probe, for too long.
    TimedOut,
    /// The peer never answered our SYN.
    ConnectTimedOut,
}
