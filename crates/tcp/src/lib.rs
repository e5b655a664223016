//! TCP (RFC 9293) as a state machine: bytes and time in, bytes and events out.
//!
//! An [`Endpoint`] is a value that owns no socket, reads no clock and draws only from the seed it
//! was given. A driver feeds it through [`Machine`]; the application calls
//! [`Endpoint::listen`], [`Endpoint::connect`], [`Endpoint::send`], [`Endpoint::receive`] and reads
//! [`Event`]s. The page of [`Endpoint`] has both ends of a connection as an example.
//!
//! # The contract
//! - Bytes that [`Endpoint::send`] accepted are delivered in order, or [`Event::Closed`] says that
//!   the connection did not end by [`CloseReason::Finished`].
//! - [`Event::Closed`] is the last event of a connection. What had arrived can still be received;
//!   after that its [`ConnectionId`] is invalid.
//! - Nothing that arrives can make it panic or grow beyond the limits in [`ConnectionConfig`] and
//!   [`EndpointConfig`].
//! - A listener keeps the state of `syn_backlog` handshakes; under a flood it goes on with SYN
//!   cookies and keeps none.
//!
//! # Where it departs from RFC 9293 and its companions, or chooses
//! Left to the driver or not supported:
//! - §3.9.2: ICMP messages (MUST-54 to MUST-56), type of service, time to live and source routes
//!   (MUST-48 to MUST-53) are the driver's business; there are no soft errors to report (MUST-47).
//!   The path MTU is not discovered, and a segment never holds more than the configured MSS.
//! - §3.8.5: urgent data is ordinary data; the application is not informed that it is urgent (MUST-30 to
//!   MUST-33), and none are sent.
//! - §3.8.3: there is no notice at R1 (MUST-20, SHLD-9); reaching R2 ends the connection.
//! - §3.9.1.1: a port is listened on at every local address (MUST-43).
//! - RFC 3168: there is no ECN (SHLD-8).
//!
//! Opening and closing:
//! - §3.10.4: finishing before the connection is established queues the FIN behind the data; only
//!   closing with nothing queued deletes a connection in SYN-SENT.
//! - §3.10.7.2: a SYN with a FIN that meets a listener is dropped silently; so are, while SYN
//!   cookies are in use, data of no connection whose acknowledgement is not a cookie we can check:
//!   they may have overtaken the segment with one, and come again behind it.
//! - §3.10.7.4: a SYN that comes again in SYN-RECEIVED is answered by the SYN-ACK, not by an ACK,
//!   which a client in SYN-SENT could not use.
//! - §3.6.1: TIME-WAIT lasts two MSL (MUST-13) of 30 s unless configured otherwise, not of two
//!   minutes, and ends early beyond `max_time_wait`. A SYN that reopens it ends it for good, even
//!   if its handshake fails (MAY-2); one that may not reopen it is acknowledged, not dropped
//!   (RFC 6191 §2).
//! - §3.8.6.1: a closed window that the peer goes on confirming keeps a connection for ever
//!   (MUST-37) only until the application is gone; from then on its probes count towards R2.
//! - RFC 6298 §5.7: after a SYN was retransmitted, a round trip measured by its echo makes the first
//!   timeout; only without one it is 3 s.
//!
//! Segments that arrive:
//! - §3.10.7.4, first check: an empty segment right behind a full window is acceptable, since a
//!   peer that has filled the window sends its acknowledgements there; and what meets a closed
//!   window at RCV.NXT has its ACK, RST and FIN looked at.
//! - §3.10.7.4: an unacceptable segment without data or FIN is answered once in 100 ms.
//! - RFC 5961 §7: the limit of challenge ACKs is drawn anew each second, so that an attacker cannot count
//!   it out. A RST behind data held beyond a gap is challenged like any other.
//! - RFC 7323 §3.2: a segment without the timestamps agreed on is dropped silently, as it says it
//!   should be, unless it is a RST.
//! - RFC 2018 §5.1: reports outlive a timeout, since a peer that takes them back is found out by the
//!   first of them that it acknowledges up to (RFC 6675 §5.1).
//! - RFC 2018 §8: a peer that has taken back its reports eight times is served as one that makes
//!   none.
//!
//! Segments that leave:
//! - §3.10.7.4: what bears no data has SND.NXT as its number, but no more than the edge of the
//!   window that the peer told last, behind which it would not look at it.
//! - §3.8.6: of what lies beyond a window that shrank, one segment at a time is retransmitted (MAY-7).
//! - §3.8.6.2.2: a window is announced between two acknowledgements only once it has doubled.
//! - §3.7.4: a small segment waits, even without Nagle's algorithm, while 2048 are outstanding.
//! - RFC 5681 §3.2: segments lost side by side are retransmitted in one where they fit, and new data fill
//!   it up.
//! - Petlund 2008 (RDB): while a connection is thin and its configuration says so, new data take
//!   along outstanding data, and so does what is retransmitted. A loss repaired that way is answered
//!   as any other, if the peer reports duplicates; from one that does not, an acknowledgement of two
//!   segments at once is taken for such a loss.
//! - RFC 6675 §4: each segment that was reported counts as a sequence of its own, so that three
//!   small ones above a hole make it lost.
//! - RFC 6298 §5.3: an acknowledgement that ends within a segment does not restart the timer.
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
pub use rexmit_core::{Instant, Machine, Seed, trace};
pub use rexmit_recovery::public as recovery;
pub use statistics::{ConnectionStatistics, EndpointStatistics, Traffic};
