//! Errors of calls by the application. Protocol errors of the peer are reported as an
//! [`Event`](crate::Event).

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
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
    /// The message is larger than [`max_message_bytes`](crate::AssociationConfig::max_message_bytes).
    #[error("the message is larger than max_message_bytes = {limit}")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The send buffer is full: wait for [`Event::Writable`](crate::Event::Writable).
    #[error("the send buffer is full")]
    BufferFull,
}

/// Why an association could not be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has [`max_associations`](crate::EndpointConfig::max_associations) associations.
    #[error("the endpoint has reached max_associations")]
    TooManyAssociations,
    /// There is already an association with this peer's address and port.
    #[error("there is an association with this address and port")]
    AlreadyConnected,
    /// Port 0 cannot be used.
    #[error("the peer's SCTP port is 0")]
    PortZero,
    /// No route was given, or too many.
    #[error("there must be from 1 to {limit} routes to the peer")]
    Routes {
        /// The largest number of routes.
        limit: usize,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] crate::ConfigError),
}

/// Why a path could not be made the primary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrimaryError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// There is no path with this number.
    #[error("there is no path with this number")]
    NoSuchPath,
    /// The path is not confirmed (RFC 9260 §5.4).
    #[error("the path is not confirmed yet")]
    Unconfirmed,
}

/// Why a local address could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The association is not established (any more).
    #[error("addresses are changed only in an established association")]
    NotEstablished,
    /// The peer does not support dynamic addresses, or our configuration disables them.
    #[error("the peer does not support dynamic addresses, or our configuration disables them")]
    NotSupported,
    /// The scope of the address is too small for the peer (link-local, private or loopback), or it is not the
    /// address of a single host.
    #[error("the peer cannot use this address")]
    OutOfScope,
    /// The association already has the address, or is adding it.
    #[error("the association has this address already")]
    AlreadyThere,
    /// The association has no such local address.
    #[error("the association has no such address")]
    NoSuchAddress,
    /// The address is the last local one, which cannot be deleted.
    #[error("the last address cannot be deleted; add another one before, or move")]
    LastAddress,
    /// The limit is reached.
    #[error("an association has at most {limit} addresses")]
    TooManyAddresses {
        /// The largest number allowed.
        limit: usize,
    },
    /// Too many changes wait for a response of the peer.
    #[error("at most {limit} changes can be queued behind an unanswered one")]
    TooManyChanges {
        /// The limit.
        limit: usize,
    },
}

/// Why a shared key could not be set, selected or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The peer does not support authenticated chunks, or our configuration disables them.
    #[error("the peer does not support authentication, or our configuration disables it")]
    NotSupported,
    /// There is no key with this number.
    #[error("there is no key with this number")]
    NoSuchKey,
    /// The key authenticates outgoing chunks, and cannot be deleted.
    #[error("the key is in use")]
    InUse,
    /// The limit is reached.
    #[error("an association has at most {limit} keys")]
    TooMany {
        /// The largest number allowed.
        limit: usize,
    },
}

/// Why the mechanisms for thin streams could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThinError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The stream does not exist.
    #[error("there is no such stream: the association has streams 0 to {}", streams - 1)]
    InvalidStream {
        /// The number of outgoing streams.
        streams: u16,
    },
    /// Too many streams of the association were singled out in its life.
    #[error("at most {limit} streams of an association can be singled out")]
    TooManyStreams {
        /// The limit.
        limit: usize,
    },
    /// A value is out of its range.
    #[error("a timer bound of the thin-stream mechanisms is out of range")]
    Invalid,
}

/// Why a priority or a scheduler could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorityError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The stream does not exist.
    #[error("there is no such stream: the association has streams 0 to {}", streams - 1)]
    InvalidStream {
        /// The number of outgoing streams.
        streams: u16,
    },
}

/// Why streams could not be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetError {
    /// The id names no association (any more).
    #[error("there is no such association")]
    UnknownAssociation,
    /// The association is not established (any more).
    #[error("streams are reset only in an established association")]
    NotEstablished,
    /// The peer does not support stream reset, or our configuration disables it.
    #[error("the peer does not support stream reset, or our configuration disables it")]
    NotSupported,
    /// A stream does not exist.
    #[error("there is no such stream")]
    InvalidStream,
    /// The streams do not fit one request. An empty list resets all.
    #[error("at most {limit} streams can be named in one packet; name none to reset all")]
    TooManyStreams {
        /// The limit.
        limit: usize,
    },
    /// An earlier request was not answered yet.
    #[error("a reset is in progress; wait for its end")]
    InProgress,
}
