//! TCP (RFC 9293) as a state machine: bytes and time in, bytes and events out.
//!
//! An [`Endpoint`] is a value that owns no socket, reads no clock and draws only from the seed it
//! was given. A driver feeds it through [`rexmit_core::Machine`]; the application calls
//! [`Endpoint::listen`], [`Endpoint::connect`], [`Endpoint::send`], [`Endpoint::receive`] and reads
//! [`Event`]s. The page of [`Endpoint`] has both ends of a connection as an example.
//!
//! # The contract
//! - Bytes that [`Endpoint::send`] accepted are delivered in order, or [`Event::Closed`] says that
//!   the connection did not end by [`CloseReason::Finished`].
//! - [`Event::Closed`] is the last event of a connection. What had arrived can still be received;
//!   after that its [`ConnectionId`] is good for nothing.
//! - Nothing that arrives can make it panic or grow beyond the limits in [`ConnectionConfig`] and
//!   [`EndpointConfig`].
//! - A listener keeps the state of `syn_backlog` handshakes; under a flood it goes on with SYN
//!   cookies and keeps none.

mod config;
mod connection;
mod endpoint;
mod error;
mod event;
mod statistics;
mod stream;
pub mod wire;

pub use config::{
    ConfigError, ConnectionConfig, EndpointConfig, KeepAlive, MAX_ACK_DELAY, MAX_MSS,
    MAX_RECEIVE_BUFFER_BYTES, MIN_MSS,
};
pub use connection::State;
pub use endpoint::{ConnectionId, Endpoint};
pub use error::{ConnectError, ListenError, ReceiveError, SendError};
pub use event::{CloseReason, Event};
pub use rexmit_recovery as recovery;
pub use statistics::{ConnectionStatistics, EndpointStatistics, Traffic};
