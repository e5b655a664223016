//! SCTP (RFC 9260) as a state machine: bytes and time in, bytes and events out.
//!
//! An [`Endpoint`] is a value that owns no socket, reads no clock and takes randomness only from the seed it
//! was given. A driver feeds it through [`Machine`]; the application calls [`Endpoint::connect`],
//! [`Endpoint::send`], [`Endpoint::receive`] and reads [`Event`]s. The page of [`Endpoint`] has both ends of
//! an association as an example.
//!
//! # The contract
//! - A message that [`Endpoint::send`] accepted is delivered, or [`Event::MessageFailed`] gives it
//!   back with the reason. Nothing is lost silently.
//! - [`Event::Closed`] is the last event of an association. Messages that had arrived can still be received;
//!   afterwards its [`AssociationId`] is invalid.
//! - No packet can make an endpoint panic, or use more memory than the limits in [`AssociationConfig`] and
//!   [`EndpointConfig`] allow.
//! - A path is an address of the peer whose scope fits, with the local address nearest to it. It gets data
//!   once it has answered a HEARTBEAT (RFC 9260 §5.4), or if the application has named it.
//! - Extensions: partial reliability (RFC 3758, RFC 7496), stream reset (RFC 6525), interleaved messages with
//!   stream schedulers (RFC 8260), dynamic addresses (RFC 5061) with authenticated chunks (RFC 4895), and explicit congestion
//!   notification (RFC 3168, RFC 4960 appendix A).
//!   Each can be disabled.
//!
//! # Where it departs from a SHOULD of RFC 9260
//! - §6.2: acknowledged data is never dropped (no reneging); instead, a full receiver accepts chunks that
//!   close a gap, up to twice its buffer.
//! - §6.2: a window advertised as 0 only because less than a packet is free (silly window avoidance) still
//!   accepts chunks that fit.
//! - §6.2.1 D iii: reneging is detected when the cumulative TSN reaches the chunk, not at the first SACK
//!   without it, which may be an old SACK that was overtaken.
//! - §3.3.3: an INIT ACK with a window below 1500 is discarded as required, but no ABORT is sent.
//!
//! # Features
//! `serde`: the crate `serde` can write configurations and statistics, and also read a `RecoveryConfig`.

mod association;
mod config;
mod endpoint;
mod error;
mod event;
mod id;
mod message;
mod statistics;
mod streams;
// For tests, benchmarks and the lab of this project: not part of the API, and not covered by semantic versioning.
#[doc(hidden)]
pub mod wire;

pub use association::{MAX_SHARED_KEYS, SharedKey};
pub use config::{
    AckCopies, AckCopyConfig, AssociationConfig, AuthenticationConfig, BufferConfig, ConfigError,
    EndpointConfig, ExtensionConfig, FailureConfig, HandshakeConfig, MAX_ADDRESSES,
    MAX_AUTHENTICATED_CHUNKS, MAX_HOST_ADDRESSES, MAX_PACKET_BYTES, MAX_SACK_DELAY, MAX_SHARDS,
    MIN_PACKET_BYTES, MIN_RECEIVE_BUFFER_BYTES, MessageConfig, MultihomingConfig,
    OversizedMessages, PathMtuConfig, SackConfig, SourceAddresses, StreamConfig,
};
pub use endpoint::{AssociationId, Endpoint, TagClass};
pub use error::{
    AddressError, ConnectError, KeyError, PrimaryError, PriorityError, ResetError, SendError,
    ThinError,
};
pub use event::{AddressChange, CloseReason, DroppedEvents, Event, FailReason};
pub use message::{InboundMessage, MessageId, OutboundMessage, Reliability};
pub use rexmit_core::{Instant, Machine, Route, Seed, trace};
pub use rexmit_recovery::PathState;
pub use rexmit_recovery::public as recovery;
pub use statistics::{
    AssociationStatistics, CongestionMarks, EndpointStatistics, PathMtuState, PathStatistics,
    Traffic,
};
pub use streams::{DEFAULT_PRIORITY, Scheduling};

/// The code of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
