//! An endpoint: a host's TCP, all connections on it, and the way of a segment to the one it is for
//! (RFC 9293 §3.10.7).

mod cookie;
mod four_tuple;
mod isn;
mod listener;
mod ports;
mod stray;
mod table;
mod time_wait;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Machine, Route, Seed};
use rustc_hash::FxHashMap;

use crate::config::{ConfigError, ConnectionConfig, EndpointConfig};
use crate::connection::{ChallengeLimit, Connection, Context, Identity, State, Surroundings};
use crate::error::{ConnectError, ReceiveError, SendError};
use crate::event::Event;
use crate::statistics::{ConnectionStatistics, EndpointStatistics};
use crate::wire::{Header, ParseError, Segment};

use cookie::Cookies;
use four_tuple::FourTuple;
use isn::Beginnings;
use listener::Listener;
use ports::EphemeralPorts;
pub use table::ConnectionId;
use table::Table;
use time_wait::{TimeWaits, Verdict};

/// Answers that wait for [`Machine::poll_transmit`]; more are dropped, as a network would.
const MAX_REPLIES: usize = 256;

/// A segment that is sent without a connection.
#[derive(Clone, Copy, Debug)]
struct Reply {
    tuple: FourTuple,
    header: Header,
}

/// A TCP endpoint: a [`Machine`] with the calls of an application. Its packets are TCP segments,
/// their routes are addresses with port 0; IP headers are the driver's.
///
/// ```
/// use rexmit_core::{Instant, Machine, Seed};
/// use rexmit_tcp::{Endpoint, EndpointConfig, Event};
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
    table: Table,
    time_waits: TimeWaits,
    /// The keys are our own choice, so that a fast hash is safe.
    listeners: FxHashMap<u16, Listener>,
    cookies: Cookies,
    beginnings: Beginnings,
    ports: EphemeralPorts,
    stray_answers: ChallengeLimit,
    around: Surroundings,
    replies: VecDeque<Reply>,
    /// The connection whose last event was taken just now: its statistics can still be asked for.
    told: Option<u32>,
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
    /// An endpoint whose sequence numbers, ports and secrets come from `seed`: of full entropy on a
    /// network, fixed in a simulation.
    ///
    /// # Errors
    /// The first field of `config` that makes no sense.
    pub fn new(config: EndpointConfig, seed: &Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            table: Table::new(seed),
            time_waits: TimeWaits::new(seed, config.max_time_wait),
            listeners: FxHashMap::default(),
            cookies: Cookies::new(seed),
            beginnings: Beginnings::new(seed, config.initial_sequence),
            ports: EphemeralPorts::new(seed, config.ephemeral_ports),
            stray_answers: ChallengeLimit::new(config.stray_answers_per_second),
            around: Surroundings {
                rng: seed.split("endpoint").rng(),
                events: VecDeque::new(),
                sink: None,
                challenges: ChallengeLimit::new(config.challenge_acks_per_second),
                statistics: EndpointStatistics::default(),
            },
            replies: VecDeque::new(),
            told: None,
            config,
        })
    }

    /// Begins a connection from `local`, whose port may be 0 for an ephemeral one, to `remote`, with
    /// the endpoint's configuration of connections. [`Event::Connected`] or [`Event::Closed`] tells
    /// the outcome.
    ///
    /// Bytes can be sent at once; they leave when the connection is established.
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

    /// As [`Self::connect`], with a configuration of its own.
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
        if self.table.len() >= self.config.max_connections {
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
        let id = self.table.next_id();
        let mut cx = Context { now, id, around: &mut self.around };
        let connection = Connection::connect(&mut cx, config, identity);
        self.table.insert(connection, tuple).is_announced = true;
        self.settle(now, id.index());
        Ok(id)
    }

    /// A port from which `remote` can be reached, and on which nobody listens.
    fn ephemeral_port(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<u16, ConnectError> {
        let tuple = |port| FourTuple::new((local.ip(), port).into(), remote);
        let (table, time_waits) = (&self.table, &self.time_waits);
        let is_free = |port| {
            let tuple = tuple(port);
            tuple.local != tuple.remote
                && !self.listeners.contains_key(&port)
                && table.by_tuple(&tuple).is_none()
                && !time_waits.contains(&tuple)
        };
        // Whether it is possible at all hardly depends on the port.
        let (first, last) = self.config.ephemeral_ports;
        if !tuple(first).is_possible() && !tuple(last).is_possible() {
            return Err(ConnectError::BadAddress);
        }
        self.ports.choose(local.ip(), remote, is_free).ok_or(ConnectError::NoFreePort)
    }

    fn is_in_use(&self, tuple: &FourTuple) -> bool {
        self.table.by_tuple(tuple).is_some() || self.time_waits.contains(tuple)
    }

    fn identity(&self, now: Instant, tuple: &FourTuple) -> Identity {
        Identity {
            local: tuple.local(),
            remote: tuple.remote(),
            iss: self.beginnings.sequence(now, tuple),
            timestamp_offset: self.beginnings.timestamp_offset(tuple),
        }
    }

    /// Accepts bytes for the peer of `id`, as many as find room, and returns how many. None, of
    /// some, means to wait for [`Event::Writable`].
    ///
    /// # Errors
    /// See [`SendError`]; nothing was accepted.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        let index = self.index_of(id).ok_or(SendError::UnknownConnection)?;
        self.call(now, index, |connection, cx| connection.send(cx, bytes))
            .unwrap_or(Err(SendError::UnknownConnection))
    }

    /// Takes bytes that arrived from the peer of `id` into `into`, and returns how many. None, with
    /// room for some, means that the peer has finished sending.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn receive(
        &mut self,
        now: Instant,
        id: ConnectionId,
        into: &mut [u8],
    ) -> Result<usize, ReceiveError> {
        let index = self.index_of(id).ok_or(ReceiveError::UnknownConnection)?;
        let received = self.call(now, index, |connection, cx| connection.receive(cx, into));
        self.table.remove_if_over(index);
        received.unwrap_or(Err(ReceiveError::UnknownConnection))
    }

    /// As [`Self::receive`], but lends the next bytes to `read`, which returns how many of them it
    /// has taken, instead of copying them: not necessarily all that have arrived, and none, without
    /// a call of `read`, at the end of the peer's data.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn receive_with(
        &mut self,
        now: Instant,
        id: ConnectionId,
        read: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, ReceiveError> {
        let index = self.index_of(id).ok_or(ReceiveError::UnknownConnection)?;
        let received = self.call(now, index, |connection, cx| connection.receive_with(cx, read));
        self.table.remove_if_over(index);
        received.unwrap_or(Err(ReceiveError::UnknownConnection))
    }

    /// Finishes sending: the peer is told the end after everything that was accepted. Its own data
    /// still arrives.
    pub fn finish(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index_of(id) {
            self.call(now, index, Connection::finish);
        }
    }

    /// Leaves the connection: sending is finished as by [`Self::finish`], what has arrived is
    /// discarded, and if more arrives the connection is reset (RFC 9293 §3.6.1).
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index_of(id) {
            self.call(now, index, Connection::close);
            self.table.remove_if_over(index);
        }
    }

    /// Ends the connection at once, and tells the peer by a RST. What was not delivered is lost.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(index) = self.index_of(id) {
            self.call(now, index, Connection::abort);
        }
    }

    /// Counters of the connection, while its id is good; the final ones right after
    /// [`Event::Closed`] was taken.
    #[must_use]
    pub fn statistics(&self, id: ConnectionId) -> Option<ConnectionStatistics> {
        self.table.find(id).map(|slot| slot.connection.statistics())
    }

    /// The state of the connection, while its id is good.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.table.find(id).map(|slot| slot.connection.state())
    }

    /// Counters of the endpoint.
    #[must_use]
    pub const fn endpoint_statistics(&self) -> &EndpointStatistics {
        &self.around.statistics
    }

    /// Sends the events of all connections to `sink` from now on, or to nobody.
    pub fn set_trace(&mut self, sink: Option<Box<dyn TraceSink>>) {
        self.around.sink = sink;
    }

    /// How many connections there are: half-open ones, and those that ended and are not read to the
    /// end, included; those in TIME-WAIT, of which only the memory is kept, not.
    #[must_use]
    pub const fn connection_count(&self) -> usize {
        self.table.len()
    }

    /// How many connections are remembered in TIME-WAIT.
    #[must_use]
    pub fn time_wait_count(&self) -> usize {
        self.time_waits.len()
    }

    /// Whether no connection has anything queued, outstanding or owed to its peer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.table.iter().all(|slot| slot.connection.is_idle())
    }

    /// Calls the connection `index` with its surroundings, then enters what changed.
    fn call<R>(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let slot = self.table.slot_mut(index)?;
        let told_before = self.around.events.len();
        let mut cx = Context { now, id: slot.id, around: &mut self.around };
        let result = act(&mut slot.connection, &mut cx);
        slot.is_announced |= self.around.events.len() > told_before;
        self.settle(now, index);
        Some(result)
    }

    /// Enters what may have changed about the connection `index`: when it is due, whether it counts
    /// as half-open, and whether segments are still for it.
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
            State::Closed => self.table.release_tuple(index),
            _ => {}
        }
    }

    /// The connection `index` is in TIME-WAIT: once it has no other duty, it becomes an entry that
    /// takes less room.
    fn hand_over(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.table.slot(index) else { return };
        let Some(seed) = slot.connection.time_wait() else { return };
        let offset = slot.connection.identity().timestamp_offset;
        let was_full = self.time_waits.insert(now, slot.tuple, seed, offset);
        self.around.statistics.time_wait_evicted += u64::from(was_full);
        self.table.release_tuple(index);
    }

    fn index_of(&self, id: ConnectionId) -> Option<u32> {
        self.table.find(id).map(|slot| slot.id.index())
    }

    /// A segment arrived for a connection in TIME-WAIT.
    fn on_time_wait(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        segment: &Segment<'_>,
        (verdict, header): (Verdict, Header),
    ) {
        match verdict {
            Verdict::Nothing => {}
            Verdict::Reopen(floor) if self.may_reopen(tuple) => {
                self.time_waits.remove(tuple);
                self.around.statistics.time_wait_reopened += 1;
                self.accept(now, tuple, segment, Some(floor));
            }
            Verdict::Reopen(_) if self.listeners.contains_key(&tuple.local.1) => {
                // No room to keep it, and a cookie would not come after what was sent before: the
                // peer will try again.
            }
            Verdict::Reopen(_) | Verdict::Acknowledge => {
                if self.answer_stray(now, Reply { tuple: *tuple, header }) {
                    self.around.statistics.time_wait_acks_sent += 1;
                }
            }
        }
    }

    /// Whether a SYN for `tuple` would be kept as state.
    fn may_reopen(&self, tuple: &FourTuple) -> bool {
        let listener = self.listeners.get(&tuple.local.1);
        self.table.len() < self.config.max_connections
            && listener.is_some_and(|listener| listener.half_open < self.config.syn_backlog)
    }

    /// A segment arrived that is nobody's.
    fn on_stray(&mut self, now: Instant, tuple: &FourTuple, segment: &Segment<'_>) {
        self.around.statistics.strays += 1;
        if let Some(header) = stray::reset_for(segment)
            && self.answer_stray(now, Reply { tuple: *tuple, header })
        {
            self.around.statistics.resets_sent += 1;
        }
    }

    /// Sends an answer without a connection, unless there were too many of late.
    fn answer_stray(&mut self, now: Instant, reply: Reply) -> bool {
        let may = self.stray_answers.may_send(now, &mut self.around.rng) && self.reply(reply);
        self.around.statistics.stray_answers_suppressed += u64::from(!may);
        may
    }

    fn reply(&mut self, reply: Reply) -> bool {
        let has_room = self.replies.len() < MAX_REPLIES;
        if has_room {
            self.replies.push_back(reply);
        }
        has_room
    }
}

impl Machine for Endpoint {
    type Event = (ConnectionId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        // Borrowed, not moved: a copy right after it was written in other widths takes its time.
        let parsed = Segment::parse(route.remote.ip(), route.local.ip(), packet);
        let segment = match &parsed {
            Ok(segment) => segment,
            Err(error) => {
                let statistics = &mut self.around.statistics;
                *match error {
                    ParseError::Truncated | ParseError::BadOffset => {
                        &mut statistics.malformed_header
                    }
                    ParseError::BadOption => &mut statistics.malformed_options,
                    ParseError::BadChecksum => &mut statistics.bad_checksum,
                } += 1;
                return;
            }
        };
        let tuple = FourTuple::of_arrival(route, &segment.header);
        if let Some(index) = self.table.of_segment(&tuple) {
            self.call(now, index, |connection, cx| connection.on_segment(cx, segment));
        } else if !tuple.is_possible() {
            self.around.statistics.misdirected += 1;
        } else if let Some(wanted) = self.time_waits.on_segment(now, &tuple, segment) {
            self.on_time_wait(now, &tuple, segment, wanted);
        } else if self.listeners.contains_key(&tuple.local.1) {
            self.on_listen(now, &tuple, segment);
        } else {
            self.on_stray(now, &tuple, segment);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.time_waits.expire(now);
        while let Some(index) = self.table.pop_due(now) {
            self.call(now, index, |connection, cx| {
                if connection.next_timeout().is_some_and(|at| at <= now) {
                    connection.on_timeout(cx);
                }
            });
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if let Some(Reply { tuple, header }) = self.replies.pop_front() {
            header.write((tuple.local.0, tuple.remote.0), (&[], &[]), packet);
            return Some(tuple.route());
        }
        while let Some(index) = self.table.first_ready() {
            let has_sent =
                self.call(now, index, |connection, cx| connection.poll_transmit(cx, packet));
            if has_sent == Some(true) {
                self.table.rotate_ready();
                return self.table.slot(index).map(|slot| slot.tuple.route());
            }
            self.table.has_nothing_to_send();
            self.table.remove_if_over(index);
        }
        packet.clear();
        None
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        if let Some(told) = self.told.take() {
            self.table.remove_if_over(told);
        }
        let (id, event) = self.around.events.pop_front()?;
        if matches!(event, Event::Closed(_))
            && let Some(slot) = self.table.slot_mut(id.index()).filter(|slot| slot.id == id)
        {
            slot.is_closed_told = true;
            self.told = Some(id.index());
        }
        Some((id, event))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.table.next_deadline(), self.time_waits.next_deadline()];
        deadlines.into_iter().flatten().min()
    }
}
