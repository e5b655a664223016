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
//!
//! # Where it departs from RFC 9293 and its companions, or chooses
//! - §3.10.4: finishing before the connection is established queues the FIN behind the data; only
//!   closing with nothing queued deletes a connection in SYN-SENT.
//! - §3.10.7.4, first check: an empty segment right behind a full window is acceptable, since a
//!   peer that has filled the window sends its acknowledgements there; and what meets a closed
//!   window at RCV.NXT has its ACK, RST and FIN looked at.
//! - §3.10.7.4: a SYN that comes again in SYN-RECEIVED is answered by the SYN-ACK, not by an ACK,
//!   which a client in SYN-SENT could not use.
//! - §3.10.7.4: an empty unacceptable segment is answered once in 100 ms.
//! - §3.8.6.2.2: a window is announced between two acknowledgements only once it has doubled.
//! - §3.8.3: there is no notice at R1; reaching R2 ends the connection.
//! - §3.8.5: that data are urgent is not told; they are ordinary data.
//! - §3.9.2: ICMP messages, type of service and source routes are the driver's business; the path
//!   MTU is not discovered, and a segment never holds more than the configured MSS.
//! - RFC 5961 §7: the limit of challenge ACKs is drawn anew each second, so that nobody can count
//!   it out. A RST behind data held beyond a gap is challenged like any other.
//! - RFC 5681 §3.2: segments lost side by side leave again in one where they fit, and new data fill
//!   it up.
//! - Petlund 2008 (RDB): while a connection is thin and its configuration says so, new data take
//!   along what is outstanding, and so does what leaves again. A loss repaired that way is answered
//!   as any other, if the peer reports duplicates; from one that does not, an acknowledgement of two
//!   segments at once is taken for such a loss.
//! - RFC 7323 §3.2: a segment without the timestamps agreed on is dropped silently, as it says it
//!   should be, unless it is a RST.
//! - RFC 7323 §4: the ledger of what was sent measures round trips; echoes do for what was sent
//!   again.

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
pub use error::{ConnectError, ListenError, ReceiveError, SendError, ThinError};
pub use event::{CloseReason, Event};
pub use rexmit_recovery as recovery;
pub use statistics::{ConnectionStatistics, EndpointStatistics, Traffic};
