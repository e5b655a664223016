//! An endpoint: a host's TCP, all its connections, and the dispatch of segments to them (RFC 9293 §3.10.7).

mod cookie;
mod four_tuple;
mod id;
mod isn;
mod listener;
mod lookup;
mod machine;
mod ports;
mod reset;
mod time_wait;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::table::Table;
use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Seed};
use rexmit_recovery::{ThinConfig, Unanswered};
use rustc_hash::FxHashMap;

use crate::config::{ConfigError, ConnectionConfig, EndpointConfig};
use crate::connection::{
    ChallengeLimit, Connection, Context, Identity, State, Surroundings, report_unanswered,
};
use crate::error::{ConnectError, ReceiveError, SendError, ThinError};
use crate::statistics::{ConnectionStatistics, EndpointStatistics};
use crate::wire::Header;

use cookie::Cookies;
use four_tuple::FourTuple;
pub use id::ConnectionId;
use isn::Beginnings;
use listener::Listener;
use lookup::{Lookup, Slot};
use ports::EphemeralPorts;
use time_wait::TimeWaits;

/// The most answers that wait for [`poll_transmit`](rexmit_core::Machine::poll_transmit); further ones are dropped, as
/// a network could drop them.
const MAX_REPLIES: usize = 256;

/// A segment that is sent without a connection.
#[derive(Clone, Copy, Debug)]
struct Reply {
    tuple: FourTuple,
    header: Header,
}

/// A TCP endpoint: a [`Machine`](rexmit_core::Machine) with the calls of an application. Its packets are TCP segments,
/// their routes are addresses with port 0; the driver handles IP headers.
///
/// ```
/// use rexmit_tcp::{Endpoint, EndpointConfig, Event, Instant, Machine, Seed};
///
/// let now = Instant::ZERO;
/// let mut client = Endpoint::new(EndpointConfig::default(), &Seed::from_u64(1))?;
/// let mut server = Endpoint::new(EndpointConfig::default(), &Seed::from_u64(2))?;
/// server.listen(80, None)?;
/// let connection = client.connect(now, "192.0.2.1:0".parse()?, "192.0.2.2:80".parse()?)?;
/// client.send(now, connection, b"hello")?;
/// client.finish(now, connection);
///
/// let mut packet = Vec::new();
/// loop {
///     let mut is_quiet = true;
///     while let Some(route) = client.poll_transmit(now, &mut packet) {
///         server.handle_input(now, route.reversed(), &packet);
///         is_quiet = false;
///     }
///     while let Some(route) = server.poll_transmit(now, &mut packet) {
///         client.handle_input(now, route.reversed(), &packet);
///         is_quiet = false;
///     }
///     if is_quiet {
///         break;
///     }
/// }
/// let (accepted, event) = server.poll_event().expect("a connection");
/// assert!(matches!(event, Event::Connected { incoming: true, .. }));
/// let mut bytes = [0; 100];
/// assert_eq!(server.receive(now, accepted, &mut bytes)?, 5);
/// assert_eq!(&bytes[..5], b"hello");
/// assert_eq!(server.receive(now, accepted, &mut bytes)?, 0); // The client has finished.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint {
    config: EndpointConfig,
    table: Table<Slot>,
    lookup: Lookup,
    time_waits: TimeWaits,
    /// By port. The application chooses the ports, so that a fast hash is safe.
    listeners: FxHashMap<u16, Listener>,
    cookies: Cookies,
    beginnings: Beginnings,
    ports: EphemeralPorts,
    resets: ChallengeLimit,
    time_wait_answers: ChallengeLimit,
    around: Surroundings,
    replies: VecDeque<Reply>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.table.len())
            .field("time_waits", &self.time_waits.len())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint whose sequence numbers, ports and secrets are drawn from `seed`, which must have full
    /// entropy on a real network; in a simulation it is fixed.
    ///
    /// # Errors
    /// If a value of `config` is out of range.
    pub fn new(config: EndpointConfig, seed: &Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            table: Table::default(),
            lookup: Lookup::new(seed),
            time_waits: TimeWaits::new(seed, config.max_time_wait),
            listeners: FxHashMap::default(),
            cookies: Cookies::new(seed),
            beginnings: Beginnings::new(seed, config.initial_sequence),
            ports: EphemeralPorts::new(seed, config.ephemeral_ports),
            resets: ChallengeLimit::new(config.out_of_the_blue_responses_per_second),
            time_wait_answers: ChallengeLimit::new(config.out_of_the_blue_responses_per_second),
            around: Surroundings {
                recovery: None,
                unanswered: Unanswered::default(),
                rng: seed.split("endpoint").rng(),
                events: VecDeque::new(),
                sink: None,
                challenges: ChallengeLimit::new(config.challenge_acks_per_second),
                statistics: EndpointStatistics::default(),
            },
            replies: VecDeque::new(),
            config,
        })
    }

    /// Begins a connection from `local`, whose port may be 0 for an ephemeral one, to `remote`, with the
    /// endpoint's configuration of connections. [`Event::Connected`](crate::Event::Connected) or
    /// [`Event::Closed`](crate::Event::Closed) reports the result.
    ///
    /// Bytes can be given to [`send`](Self::send) at once; they are transmitted when the connection is
    /// established.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<ConnectionId, ConnectError> {
        let config = Arc::clone(&self.config.connection);
        self.connect_with(now, local, remote, config)
    }

    /// As [`Self::connect`], with the configuration `config` for this connection.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_with(
        &mut self,
        now: Instant,
        mut local: SocketAddr,
        remote: SocketAddr,
        config: Arc<ConnectionConfig>,
    ) -> Result<ConnectionId, ConnectError> {
        config.validate()?;
        if !self.has_room() {
            return Err(ConnectError::TooManyConnections);
        }
        if local.port() == 0 {
            local.set_port(self.ephemeral_port(local, remote)?);
        }
        let tuple = FourTuple::new(local, remote);
        if !tuple.is_possible() {
            return Err(ConnectError::BadAddress);
        } else if self.is_in_use(&tuple) {
            return Err(ConnectError::AddressInUse);
        }
        let identity = self.identity(now, &tuple);
        let id = ConnectionId(self.table.next_key());
        let mut cx = Context { now, id, around: &mut self.around };
        let connection = Connection::connect(&mut cx, config, identity);
        let slot = Slot { is_announced: true, ..Slot::new(connection, tuple) };
        self.insert(slot);
        self.settle(now, id.index());
        Ok(id)
    }

    /// A port from which `remote` can be reached, and that has no listener.
    fn ephemeral_port(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<u16, ConnectError> {
        let tuple = |port| FourTuple::new((local.ip(), port).into(), remote);
        let (lookup, time_waits) = (&self.lookup, &self.time_waits);
        let is_free = |port| {
            let tuple = tuple(port);
            tuple.local != tuple.remote
                && !self.listeners.contains_key(&port)
                && lookup.by_tuple(&tuple).is_none()
                && !time_waits.contains(&tuple)
        };
        // One of two ports is enough to find out whether the addresses are possible.
        let (first, last) = self.config.ephemeral_ports;
        if !tuple(first).is_possible() && !tuple(last).is_possible() {
            return Err(ConnectError::BadAddress);
        }
        self.ports.choose(local.ip(), remote, is_free).ok_or(ConnectError::NoFreePort)
    }

    fn is_in_use(&self, tuple: &FourTuple) -> bool {
        self.lookup.by_tuple(tuple).is_some() || self.time_waits.contains(tuple)
    }

    fn identity(&self, now: Instant, tuple: &FourTuple) -> Identity {
        Identity {
            local: tuple.local(),
            remote: tuple.remote(),
            iss: self.beginnings.sequence(now, tuple),
            timestamp_offset: self.beginnings.timestamp_offset(tuple),
        }
    }

    /// Accepts as many of `bytes` as the send buffer has room for, and returns their number. If that is 0 for
    /// a non-empty slice, wait for [`Event::Writable`](crate::Event::Writable).
    ///
    /// # Errors
    /// See [`SendError`]; nothing was accepted.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        let index = self.table.index_of(id.0).ok_or(SendError::UnknownConnection)?;
        self.call(now, index, |connection, cx| connection.send(cx, bytes))
            .unwrap_or(Err(SendError::UnknownConnection))
    }

    /// Reads received bytes into `into`, and returns their number. 0 for a non-empty slice means that the
    /// peer has finished sending.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn receive(
        &mut self,
        now: Instant,
        id: ConnectionId,
        into: &mut [u8],
    ) -> Result<usize, ReceiveError> {
        let index = self.table.index_of(id.0).ok_or(ReceiveError::UnknownConnection)?;
        let received = self.call(now, index, |connection, cx| connection.receive(cx, into));
        self.remove_if_over(index);
        received.unwrap_or(Err(ReceiveError::UnknownConnection))
    }

    /// As [`Self::receive`] without copying: `read` gets the next bytes, and returns how many of them it has
    /// consumed. The slice need not have all received bytes. At the end of the peer's data `read` is not
    /// called, and the result is 0.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn receive_with(
        &mut self,
        now: Instant,
        id: ConnectionId,
        read: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, ReceiveError> {
        let index = self.table.index_of(id.0).ok_or(ReceiveError::UnknownConnection)?;
        let received = self.call(now, index, |connection, cx| connection.receive_with(cx, read));
        self.remove_if_over(index);
        received.unwrap_or(Err(ReceiveError::UnknownConnection))
    }

    /// Finishes sending: a FIN follows the accepted bytes. Data of the peer is still received.
    pub fn finish(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.table.index_of(id.0) {
            self.call(now, index, Connection::finish);
        }
    }

    /// Closes the connection in both directions: sending is finished as by [`Self::finish`], received bytes
    /// are discarded, and if more arrive the connection is reset (RFC 9293 §3.6.1).
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.table.index_of(id.0) {
            self.call(now, index, Connection::close);
            self.remove_if_over(index);
        }
    }

    /// Sets the mechanisms of the connection while it is thin.
    ///
    /// # Errors
    /// See [`ThinError`].
    pub fn set_thin(
        &mut self,
        now: Instant,
        id: ConnectionId,
        thin: ThinConfig,
    ) -> Result<(), ThinError> {
        let index = self.table.index_of(id.0).ok_or(ThinError::UnknownConnection)?;
        self.call(now, index, |connection, _| connection.set_thin(thin))
            .unwrap_or(Err(ThinError::UnknownConnection))
    }

    /// Resets the connection at once (RST). Undelivered data is lost.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.table.index_of(id.0) {
            self.call(now, index, Connection::abort);
        }
    }

    /// The counters of the connection; `None` if its id is invalid. Right after
    /// [`Event::Closed`](crate::Event::Closed) was returned they are final.
    #[must_use]
    pub fn statistics(&self, id: ConnectionId) -> Option<ConnectionStatistics> {
        self.table.find(id.0).map(|slot| slot.connection.statistics())
    }

    /// The state of the connection; `None` if its id is invalid.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.table.find(id.0).map(|slot| slot.connection.state())
    }

    /// Counters of the endpoint.
    #[must_use]
    pub const fn endpoint_statistics(&self) -> &EndpointStatistics {
        &self.around.statistics
    }

    /// Sends the trace events of all connections to `sink`; `None` disables tracing.
    pub fn set_trace(&mut self, sink: Option<Box<dyn TraceSink>>) {
        self.around.sink = sink;
    }

    /// The number of connections, including those being set up, and ended ones whose data was not all read;
    /// without those in TIME-WAIT.
    #[must_use]
    pub const fn connection_count(&self) -> usize {
        self.table.len()
    }

    /// The number of connections in TIME-WAIT.
    #[must_use]
    pub fn time_wait_count(&self) -> usize {
        self.time_waits.len()
    }

    /// Whether no connection has queued or outstanding data, or a segment to send.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.table.iter().all(|slot| slot.connection.is_idle())
    }

    /// Calls the connection `index` with the state of the endpoint, then updates the tables.
    fn call<R>(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let (key, slot) = self.table.get_mut(index)?;
        let told_before = self.around.events.len();
        let mut cx = Context { now, id: ConnectionId(key), around: &mut self.around };
        let result = act(&mut slot.connection, &mut cx);
        report_unanswered(&mut slot.connection, &mut cx, &mut slot.unanswered);
        slot.is_announced |= self.around.events.len() > told_before;
        self.settle(now, index);
        Some(result)
    }

    /// Adds a connection, created for the next free key of the table.
    fn insert(&mut self, slot: Slot) {
        self.lookup.insert(self.table.next_key().index(), &slot);
        self.table.insert(slot);
    }

    /// Updates the tables after a call of the connection `index`: its deadline, whether it is half-open, and
    /// whether segments still belong to it.
    fn settle(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.table.update(index) else { return };
        if let Some(port) = slot.half_open_at.filter(|_| !slot.connection.is_half_open()) {
            slot.half_open_at = None;
            if let Some(listener) = self.listeners.get_mut(&port) {
                listener.half_open = listener.half_open.saturating_sub(1);
            }
        }
        match slot.connection.state() {
            State::TimeWait if slot.is_entered => self.hand_over(now, index),
            State::Closed => self.lookup.release(slot),
            _ => {}
        }
    }

    /// Removes the connection if it is over and the application has read its last event, or gets none.
    fn remove_if_over(&mut self, index: u32) {
        let is_reported = self.table.is_end_reported(index);
        let is_done = |slot: &Slot| (is_reported || !slot.is_announced) && slot.is_over();
        if self.table.get(index).is_some_and(is_done)
            && let Some(mut slot) = self.table.remove(index)
        {
            self.lookup.release(&mut slot);
        }
    }

    const fn has_room(&self) -> bool {
        self.table.len() < self.config.max_connections
    }

    fn reply(&mut self, reply: Reply) -> bool {
        let has_room = self.replies.len() < MAX_REPLIES;
        if has_room {
            self.replies.push_back(reply);
        }
        has_room
    }
}
