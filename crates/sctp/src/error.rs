//! Errors of calls by the application. Protocol errors of the peer are reported as an
//! [`Event`](crate::Event).

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
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
    /// The send buffer is full: wait for [`Event::Writable`](crate::Event::Writable).
    #[error("the send buffer is full")]
    BufferFull,
}

/// Why no association is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has reached its limit.
    #[error("the endpoint has reached max_associations")]
    TooManyAssociations,
    /// There is one with this peer's address and port.
    #[error("there is an association with this address and port")]
    AlreadyConnected,
    /// Port 0 cannot be used.
    #[error("the peer's SCTP port is 0")]
    PortZero,
    /// There is no way to the peer, or there are too many.
    #[error("there must be from 1 to {limit} ways to the peer")]
    Routes {
        /// The most there may be.
        limit: usize,
    },
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] crate::ConfigError),
}

/// Why a path does not become the primary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrimaryError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// There are fewer paths.
    #[error("there is no path of this number")]
    NoSuchPath,
    /// The peer has not proved to be there (RFC 9260 §5.4).
    #[error("the path is not confirmed yet")]
    Unconfirmed,
}

/// Why a local address is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The association is not established (any more).
    #[error("addresses are changed only in an established association")]
    NotEstablished,
    /// The peer, or the own configuration, does not know dynamic addresses.
    #[error("the peer or the own configuration does not support dynamic addresses")]
    NotSupported,
    /// It means something else to the peer, or is that of no single host.
    #[error("the peer cannot use this address")]
    OutOfScope,
    /// The association already has the address, or is adding it.
    #[error("the association has this address")]
    AlreadyThere,
    /// It is not a local address.
    #[error("the association has no such address")]
    NoSuchAddress,
    /// Without it there would be none.
    #[error("the last address cannot be deleted; add another one before, or move")]
    LastAddress,
    /// The limit is reached.
    #[error("an association has at most {limit} addresses")]
    TooManyAddresses {
        /// How many there may be.
        limit: usize,
    },
    /// Too many changes wait for a response of the peer.
    #[error("at most {limit} changes can wait for the answer to the one before")]
    TooManyChanges {
        /// How many can.
        limit: usize,
    },
}

/// Why a shared key is not set, used or forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The peer, or the own configuration, does not authenticate.
    #[error("the peer or the own configuration does not support authentication")]
    NotSupported,
    /// The number is unknown.
    #[error("there is no key of this number")]
    NoSuchKey,
    /// It authenticates outgoing chunks.
    #[error("the key is in use")]
    InUse,
    /// The limit is reached.
    #[error("an association has at most {limit} keys")]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
}

/// Why the mechanisms for thin streams do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThinError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The stream does not exist.
    #[error("there is no such stream: the association has streams 0 to {}", streams - 1)]
    InvalidStream {
        /// How many outgoing streams there are.
        streams: u16,
    },
    /// So many streams of the association had mechanisms of their own.
    #[error("at most {limit} streams of an association can be singled out")]
    TooManyStreams {
        /// How many can.
        limit: usize,
    },
    /// The values make no sense.
    #[error("a bound of the timers of thin streams is out of range")]
    Invalid,
}

/// Why a priority or a scheduler is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorityError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The stream does not exist.
    #[error("there is no such stream: the association has streams 0 to {}", streams - 1)]
    InvalidStream {
        /// How many outgoing streams there are.
        streams: u16,
    },
}

/// Why streams are not reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The association is not established (any more).
    #[error("streams are reset only in an established association")]
    NotEstablished,
    /// The peer, or the own configuration, does not know stream reset.
    #[error("the peer or the own configuration does not support stream reset")]
    NotSupported,
    /// A stream does not exist.
    #[error("there is no such stream")]
    InvalidStream,
    /// They do not fit one packet. Naming none resets all.
    #[error("at most {limit} streams can be named in one packet; name none to reset all")]
    TooManyStreams {
        /// How many can be named.
        limit: usize,
    },
    /// An earlier request is not answered yet.
    #[error("a reset is under way; wait for its end")]
    InProgress,
}
