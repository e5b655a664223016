//! Errors of calls by the application. Protocol errors of the peer are reported as an
//! [`Event`](crate::Event).

/// Why no bytes were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The id names no connection (any more).
    #[error("there is no such connection")]
    UnknownConnection,
    /// The application has finished sending, or the connection has ended.
    #[error("the connection accepts no more data")]
    Closing,
}

/// Why no bytes could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The id names no connection (any more).
    #[error("there is no such connection")]
    UnknownConnection,
    /// Nothing was received yet: wait for [`Event::Readable`](crate::Event::Readable).
    #[error("nothing has arrived yet")]
    Empty,
    /// The connection ended before the end of the peer's data; all that had arrived was received.
    #[error("the connection has ended")]
    Ended,
}

/// Why a connection could not be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has [`max_connections`](crate::EndpointConfig::max_connections) connections.
    #[error("the endpoint has reached max_connections")]
    TooManyConnections,
    /// There is already a connection between these addresses and ports.
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

/// Why the mechanisms for thin streams could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThinError {
    /// The id names no connection (any more).
    #[error("there is no such connection")]
    UnknownConnection,
    /// A value is out of its range.
    #[error("a timer bound of the thin-stream mechanisms is out of range")]
    Invalid,
}

/// Why listening failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The port has a listener already.
    #[error("the port has a listener already")]
    AddressInUse,
    /// Port 0 cannot be listened on.
    #[error("a listener cannot have port 0")]
    PortZero,
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] crate::ConfigError),
}
