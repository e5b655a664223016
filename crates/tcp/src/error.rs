//! Errors of calls by the application. Protocol errors of the peer are reported as an
//! [`Event`](crate::Event).

/// Why no bytes are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The id names no connection (any more).
    #[error("there is no such connection")]
    UnknownConnection,
    /// The application has finished sending, or the connection has ended.
    #[error("the connection takes no more data")]
    Closing,
}

/// Why no bytes are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The id names no connection (any more).
    #[error("there is no such connection")]
    UnknownConnection,
    /// Nothing is there yet: wait for [`Event::Readable`](crate::Event::Readable).
    #[error("nothing has arrived yet")]
    Empty,
    /// The connection ended before the end of the peer's data; all that had arrived was received.
    #[error("the connection has ended")]
    Ended,
}

/// Why no connection is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has reached its limit.
    #[error("the endpoint has reached max_connections")]
    TooManyConnections,
    /// There is one between these addresses and ports.
    #[error("there is a connection between these addresses and ports")]
    AddressInUse,
    /// Every ephemeral port is in use towards this peer.
    #[error("no ephemeral port is free towards this peer")]
    NoFreePort,
    /// The addresses are of different families, unspecified, multicast, or the remote port is 0.
    #[error("no connection is possible between these addresses")]
    BadAddress,
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] crate::ConfigError),
}

/// Why the mechanisms for thin streams do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThinError {
    /// The id names no connection (any more).
    #[error("there is no such connection")]
    UnknownConnection,
    /// The values make no sense.
    #[error("a bound of the timers of thin streams is out of range")]
    Invalid,
}

/// Why listening failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The port has a listener already.
    #[error("the port is listened on already")]
    AddressInUse,
    /// Port 0 cannot be listened on.
    #[error("port 0 cannot be listened on")]
    PortZero,
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] crate::ConfigError),
}
