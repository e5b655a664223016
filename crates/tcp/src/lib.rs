//! TCP (RFC 9293) as a state machine: bytes and time in, bytes and events out.
//!
//! An [`Endpoint`] is a value that owns no socket, reads no clock and takes randomness only from the seed it
//! was given. A driver feeds it through [`Machine`]; the application calls [`Endpoint::listen`],
//! [`Endpoint::connect`], [`Endpoint::send`], [`Endpoint::receive`] and reads [`Event`]s. The page of
//! [`Endpoint`] has both ends of a connection as an example.
//!
//! # The contract
//! - Bytes that [`Endpoint::send`] accepted are delivered in order, or [`Event::Closed`] has another reason
//!   than [`CloseReason::Finished`].
//! - [`Event::Closed`] is the last event of a connection. Received data can still be read; afterwards its
//!   [`ConnectionId`] is invalid.
//! - No packet can make an endpoint panic, or use more memory than [`ConnectionConfig`] and
//!   [`EndpointConfig`] allow.
//! - A listener keeps the state of `syn_backlog` handshakes; beyond that it uses SYN cookies, which need no
//!   state.
//!
//! # Features
//! `serde`: the crate `serde` can write configurations and statistics, and also read a `RecoveryConfig`.
//!
//! # Where it departs from RFC 9293 and its companions, or chooses
//! Left to the driver or not supported:
//! - §3.9.2: ICMP messages (MUST-54 to MUST-56), type of service, time to live and source routes (MUST-48 to
//!   MUST-53) are left to the driver; there are no soft errors to report (MUST-47). There is no path MTU
//!   discovery; a segment is never larger than the configured MSS allows.
//! - §3.8.5: urgent data is ordinary data; the application is not informed that it is urgent (MUST-30 to
//!   MUST-33), and none is sent.
//! - §3.8.3: there is no notice at R1 (MUST-20, SHLD-9); reaching R2 ends the connection.
//! - §3.9.1.1: a port is listened on at every local address (MUST-43).
//! - RFC 3168: there is no ECN (SHLD-8).
//!
//! Opening and closing:
//! - §3.10.4: finishing before the connection is established queues the FIN behind the data; only
//!   closing with nothing queued deletes a connection in SYN-SENT.
//! - §3.10.7.2: a SYN with a FIN for a listener is dropped silently. While SYN cookies are in use, a segment with data
//!   that belongs to no connection and whose ACK is not a cookie is dropped, too: it may have overtaken the segment
//!   with the cookie, and will be retransmitted.
//! - §3.10.7.4: a SYN retransmitted in SYN-RECEIVED is answered by the SYN-ACK, not by an ACK, which a client
//!   in SYN-SENT could not use.
//! - §3.6.1: TIME-WAIT lasts two MSL (MUST-13) of 30 s unless configured otherwise, not of two minutes, and ends early
//!   beyond `max_time_wait`. A SYN that reopens the connection ends TIME-WAIT permanently, even if its handshake fails
//!   (MAY-2); one that may not reopen it is acknowledged, not dropped (RFC 6191 §2).
//! - §3.8.6.1: a closed window that the peer keeps acknowledging keeps the connection open (MUST-37) only
//!   until the application has closed it; then probes count towards R2.
//! - RFC 6298 §2.1: with a probe timer (`tcp-interactive`) a SYN is retransmitted after a quarter of RTO.Initial.
//! - RFC 6298 §5.7: after a SYN was retransmitted, a round trip measured by its timestamp echo sets the first
//!   timeout; without one it is 3 s. The probe timer takes the time since the latest SYN until data is acknowledged,
//!   as the echo may be that of an earlier SYN, whose answer was lost.
//!
//! Segments that arrive:
//! - §3.10.7.4, first check: an empty segment right behind a full window is acceptable, since a peer that has
//!   filled the window sends its acknowledgements there; and the ACK, RST and FIN of a segment at RCV.NXT are
//!   processed although the window is closed.
//! - §3.10.7.4: an unacceptable segment without data or FIN is answered once in 100 ms.
//! - RFC 5961 §7: the limit of challenge ACKs is drawn at random each second, so that an attacker cannot
//!   infer it. A RST that follows data beyond a gap is challenged like any other.
//! - RFC 7323 §3.2: a segment without the negotiated timestamps is dropped silently, unless it is a RST, as
//!   recommended there.
//! - RFC 2018 §5.1: SACK information is kept after a timeout: a peer that reneges is detected when its
//!   cumulative ACK stops before reported data (RFC 6675 §5.1).
//! - RFC 2018 §8: a peer that drops more reported data than was sent to it is treated as one without SACK.
//!
//! Outgoing segments:
//! - §3.10.7.4: a segment without data has SND.NXT as its sequence number, but at most the right edge of the
//!   peer's window, beyond which the peer would not accept it.
//! - §3.8.6: of data beyond a window that shrank, one segment at a time is retransmitted (MAY-7).
//! - §3.8.6.2.2: a window update is sent on its own only when the window has doubled.
//! - §3.7.4: a small segment waits, even without Nagle's algorithm, while 2048 segments are outstanding.
//! - RFC 5681 §3.2: adjacent lost segments are retransmitted in one if they fit, filled up with new data.
//! - Petlund 2008 (RDB): while a connection is thin and its configuration says so, segments with new data, and
//!   retransmissions, also carry outstanding data. If the peer reports duplicates, a loss repaired that way reduces the
//!   window like any other; if it does not, an ACK of two segments at once counts as such a loss.
//! - RFC 6675 §4: each reported segment counts as a discontiguous sequence, so that a hole below three small
//!   segments is lost.
//! - RFC 6298 §5.3: an ACK that ends within a segment does not restart the timer.
//! - RFC 7323 §4: round trips are measured by the time at which segments were sent; for retransmitted
//!   segments, by timestamp echoes.

mod config;
mod connection;
mod endpoint;
mod error;
mod event;
mod statistics;
mod stream;
// For tests, benchmarks and the lab of this project: not part of the API, and not covered by semantic versioning.
#[doc(hidden)]
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
pub use statistics::{
    ConnectionStatistics, CookieStatistics, DroppedSegments, EndpointStatistics,
    TimeWaitStatistics, Traffic, ZeroWindows,
};
