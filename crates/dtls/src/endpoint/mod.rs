//! An SCTP endpoint with encryption: one DTLS connection per peer.

mod hello;
mod machine;
mod rebinding;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use dimpl::Output;
use rexmit_core::{Ecn, Instant, Machine as _, Route, Seed};
use rexmit_sctp::{AssociationConfig, AssociationId, ConfigError, ConnectError, EndpointConfig};
#[cfg(feature = "serde")]
use serde::Serialize;
use slab::Slab;

use crate::config::{MAX_PACKET_BYTES, RECORD_OVERHEAD_BYTES};
use crate::connection::{Clock, Connection, LEAST, State, library_config};
use crate::cookie::Cookies;
use crate::record::admissible;
use crate::{Encryption, Fingerprint, HandshakeError};

/// The most answers to ClientHellos without a cookie that wait to be transmitted; further ones are dropped.
const MAX_ANSWERS: usize = 64;

/// An event of a connection or an association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer at `remote` has proved that it owns this trusted certificate: associations with it can begin.
    Secured {
        /// The peer's address.
        remote: SocketAddr,
        /// The fingerprint of the peer's certificate.
        peer: Fingerprint,
    },
    /// The connection with `remote` has failed or ended; its associations were aborted.
    Ended {
        /// The peer's address.
        remote: SocketAddr,
        /// Why.
        error: HandshakeError,
    },
    /// An event of an association.
    Association(AssociationId, rexmit_sctp::Event),
}

/// Counters of connections, and of datagrams that belong to none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// ClientHellos without a cookie, answered with one.
    pub cookies_sent: u64,
    /// ClientHellos with a cookie that is not ours, not for that address, or too old.
    pub cookies_refused: u64,
    /// ClientHellos with a cookie, and handshakes in progress, that were dropped because of `max_handshakes` or
    /// `max_connections`.
    pub handshakes_dropped: u64,
    /// Handshakes completed with a trusted peer.
    pub handshakes_completed: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
    /// Changes of a peer's UDP port that were followed.
    pub rebindings: u64,
    /// Datagrams that are not DTLS, or belong to no connection.
    pub discarded: u64,
    /// Datagrams of protected records from the address of an established connection that yielded no SCTP packet: replayed,
    /// not authentic, or messages of DTLS itself, such as the acknowledgement of a handshake's last flight.
    pub without_packet: u64,
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        let Self {
            cookies_sent,
            cookies_refused,
            handshakes_dropped,
            handshakes_completed,
            handshakes_failed,
            rebindings,
            discarded,
            without_packet,
        } = other;
        self.cookies_sent += cookies_sent;
        self.cookies_refused += cookies_refused;
        self.handshakes_dropped += handshakes_dropped;
        self.handshakes_completed += handshakes_completed;
        self.handshakes_failed += handshakes_failed;
        self.rebindings += rebindings;
        self.discarded += discarded;
        self.without_packet += without_packet;
    }
}

/// An SCTP endpoint whose packets are encrypted (RFC 8261): a [`Machine`](rexmit_core::Machine) around an
/// SCTP endpoint, which [`sctp`](Self::sctp) gives access to.
///
/// A client calls [`connect`](Self::connect), and the association begins when the handshake is complete. To
/// do both steps separately it calls [`begin_handshake`](Self::begin_handshake), waits until the connection is
/// [secured](Event::Secured), and connects the [SCTP endpoint](Self::sctp_mut). Packets for peers without a
/// secured connection are dropped.
pub struct Endpoint {
    sctp: rexmit_sctp::Endpoint,
    accepts: bool,
    encryption: Encryption,
    library: Arc<dimpl::Config>,
    clock: Clock,
    cookies: Cookies,
    connections: Slab<Connection>,
    /// The secured connection with each address of a peer.
    secured: BTreeMap<SocketAddr, usize>,
    /// The connection in its handshake with each address. If the peer has restarted, there is a secured connection with
    /// the same address, too.
    handshaking: BTreeMap<SocketAddr, usize>,
    deadlines: BTreeSet<(Instant, usize)>,
    /// The number of handshakes in progress that peers initiated.
    in_progress: usize,
    queues: Queues,
    buffers: Buffers,
    /// The ECN field of the datagram that was polled last: that of the SCTP packet in it.
    transmit_ecn: Ecn,
    statistics: Statistics,
}

/// How a datagram arrived: its addresses, and the ECN field of its IP header.
#[derive(Clone, Copy)]
struct Arrival {
    route: Route,
    ecn: Ecn,
}

/// The outputs that wait to be polled.
#[derive(Default)]
struct Queues {
    /// Cookies.
    answers: VecDeque<(Route, Vec<u8>)>,
    /// Handshakes and alerts.
    outgoing: VecDeque<(Route, Vec<u8>)>,
    events: VecDeque<Event>,
}

/// Buffers that are reused.
#[derive(Default)]
struct Buffers {
    /// A packet of SCTP before it is encrypted.
    packet: Vec<u8>,
    /// A buffer for outputs of the library.
    output: Vec<u8>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("identity", &self.encryption.identity)
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

/// The configuration of associations over DTLS, made from `config`: smaller packets, one address on either side (RFC
/// 8261 §6.1), and no checksum if the peer agrees (RFC 9653).
#[must_use]
pub fn within_records(config: &AssociationConfig) -> AssociationConfig {
    let room = config.max_packet_bytes.saturating_sub(RECORD_OVERHEAD_BYTES);
    let packet = (room & !3).clamp(rexmit_sctp::MIN_PACKET_BYTES, MAX_PACKET_BYTES);
    let path_mtu = config.path_mtu.clone().map(|path_mtu| {
        let max_mtu = path_mtu.max_mtu.min((MAX_PACKET_BYTES + RECORD_OVERHEAD_BYTES) as u16);
        path_mtu.max_mtu(max_mtu).record_bytes(RECORD_OVERHEAD_BYTES as u16)
    });
    // Records are authenticated, so that a checksum is redundant (RFC 9653).
    let config = config.clone().max_packet_bytes(packet).path_mtu(path_mtu);
    config.dynamic_addresses(false).zero_checksum(true)
}

impl Endpoint {
    /// An endpoint whose cookies and SCTP tags are drawn from `seed`. Keys are drawn from the system's random
    /// source by the DTLS library. `max_packet_bytes` is what UDP may carry: the
    /// [overhead](RECORD_OVERHEAD_BYTES) of records is subtracted.
    ///
    /// # Errors
    /// If a value of `config` is out of range, or it has several addresses: an association over DTLS has one
    /// on either side.
    pub fn new(
        mut config: EndpointConfig,
        encryption: Encryption,
        seed: &Seed,
    ) -> Result<Self, ConfigError> {
        if config.addresses.len() > 1 {
            let (name, value) = ("addresses, with encryption,", config.addresses.len());
            return Err(ConfigError::OutOfBounds { name, value, min: 0, max: 1 });
        }
        config.association.validate()?;
        let datagram = config.association.max_packet_bytes.min(MAX_PACKET_BYTES);
        config.association = Arc::new(within_records(&config.association));
        Ok(Self {
            accepts: config.accept,
            library: library_config(&encryption, datagram),
            cookies: Cookies::new(seed),
            sctp: rexmit_sctp::Endpoint::new(config, seed)?,
            encryption,
            clock: Clock::new(),
            connections: Slab::new(),
            secured: BTreeMap::new(),
            handshaking: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            in_progress: 0,
            queues: Queues::default(),
            buffers: Buffers::default(),
            transmit_ecn: Ecn::NotEct,
            statistics: Statistics::default(),
        })
    }

    /// The SCTP endpoint, for reading its state. Packets must go through the encrypted endpoint.
    #[must_use]
    pub const fn sctp(&self) -> &rexmit_sctp::Endpoint {
        &self.sctp
    }

    /// The SCTP endpoint, for the calls of an application. Configurations of single associations must be made
    /// by [`within_records`].
    pub const fn sctp_mut(&mut self) -> &mut rexmit_sctp::Endpoint {
        &mut self.sctp
    }

    /// Begins an association with the peer at the far end of `route`, after a DTLS handshake unless there is
    /// a connection. Messages can be given to [`sctp_mut`](Self::sctp_mut) at once; they wait for the
    /// handshake. If it fails, or the peer refuses this side afterwards, the association is aborted, and the
    /// reason in [`CloseReason::Aborted`](rexmit_sctp::CloseReason::Aborted) is the text of the
    /// [`HandshakeError`].
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        route: Route,
        remote_port: u16,
        config: &AssociationConfig,
    ) -> Result<AssociationId, ConnectError> {
        let config = Arc::new(within_records(config));
        let id = self.sctp.connect_with(now, route, remote_port, config)?;
        if self.peer(route.remote).is_none() {
            self.sctp.hold_setup(now, id, true);
            self.begin_handshake(now, route);
        }
        Ok(id)
    }

    /// Begins a handshake with the peer at the far end of `route`. [`Event::Secured`] or [`Event::Ended`]
    /// reports the result; at once, if there is a connection already.
    pub fn begin_handshake(&mut self, now: Instant, route: Route) {
        let remote = route.remote;
        if let Some(peer) = self.peer(remote) {
            return self.queues.events.push_back(Event::Secured { remote, peer });
        } else if self.connections.len() >= self.encryption.max_connections {
            let error = HandshakeError::Failed("there are max_connections already".to_owned());
            self.abort_associations(now, &[remote], &error);
            return self.queues.events.push_back(Event::Ended { remote, error });
        }
        if self.handshake_with(remote).is_some_and(Connection::is_client) {
            return;
        }
        let index = self.insert(now, route, None);
        self.advance(now, index, |connection| connection.handle_timeout(now));
    }

    /// The fingerprint of the peer at `remote`, if the connection with it is secured.
    #[must_use]
    pub fn peer(&self, remote: SocketAddr) -> Option<Fingerprint> {
        self.secured.get(&remote).and_then(|&index| self.connections[index].peer)
    }

    /// The fingerprint of this endpoint's certificate.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.encryption.identity.fingerprint()
    }

    /// The number of connections, handshakes included.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// The present counters.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn handshake_with(&self, remote: SocketAddr) -> Option<&Connection> {
        self.handshaking.get(&remote).map(|&index| &self.connections[index])
    }

    /// Enters a new connection; it replaces a handshake with the same address.
    fn insert(&mut self, now: Instant, route: Route, random: Option<[u8; 32]>) -> usize {
        if let Some(before) = self.handshaking.remove(&route.remote) {
            self.forget(before);
        }
        self.in_progress += usize::from(random.is_some());
        let settings = (&self.encryption, &self.library);
        let connection = Connection::new(now, self.clock, route, settings, random);
        let index = self.connections.insert(connection);
        self.handshaking.insert(route.remote, index);
        index
    }

    /// Calls the library for a connection, and handles its outputs.
    fn advance(
        &mut self,
        now: Instant,
        index: usize,
        act: impl FnOnce(&mut Connection) -> Result<(), dimpl::Error>,
    ) {
        let arrival = Arrival { route: self.connections[index].route, ecn: Ecn::NotEct };
        self.advance_from(now, index, arrival, act);
    }

    /// As [`Self::advance`], for a received datagram. Returns whether it contained an SCTP packet.
    fn advance_from(
        &mut self,
        now: Instant,
        index: usize,
        arrival: Arrival,
        act: impl FnOnce(&mut Connection) -> Result<(), dimpl::Error>,
    ) -> bool {
        let result = act(&mut self.connections[index]);
        let mut has_packet = false;
        let mut is_closed = false;
        while let Some(connection) = self.connections.get_mut(index)
            && let Some(output) = connection.poll_output(&mut self.buffers.output)
        {
            match output {
                Output::Packet(datagram) => {
                    self.queues.outgoing.push_back((connection.route, datagram.to_vec()));
                }
                Output::ApplicationData(packet) if connection.is_secured() => {
                    has_packet = true;
                    let Arrival { route, ecn } = arrival;
                    self.sctp.handle_input_with_ecn(now, route, ecn, packet);
                }
                Output::PeerCert(certificate) => {
                    connection.peer = Some(Fingerprint::of(certificate));
                    self.refuse_server(now, index);
                }
                Output::Connected => self.on_connected(now, index),
                Output::CloseNotify => is_closed = true,
                _ => {}
            }
        }
        match result {
            _ if !self.connections.contains(index) => {}
            Err(error) => self.fail(now, index, &error),
            Ok(()) if is_closed => self.on_closed(now, index),
            Ok(()) => self.schedule(now, index),
        }
        has_packet
    }

    /// Ends the handshake of a client with an untrusted server, before the client sends its own certificate.
    fn refuse_server(&mut self, now: Instant, index: usize) {
        let connection = &self.connections[index];
        if let Some(peer) = connection.peer.filter(|_| connection.is_client())
            && !self.encryption.trust.includes(peer)
        {
            self.end(now, index, HandshakeError::Untrusted(peer));
        }
    }

    fn on_connected(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let remote = connection.route.remote;
        self.in_progress -= usize::from(connection.counts_as_in_progress());
        let Some(peer) = connection.peer.filter(|&peer| self.encryption.trust.includes(peer))
        else {
            // Only a server gets here: a client has ended the handshake before.
            let farewell = connection.close(&mut self.buffers.output);
            self.queues.outgoing.push_back((connection.route, farewell.clone()));
            connection.refuse(now + self.encryption.handshake_timeout, farewell);
            self.statistics.handshakes_failed += 1;
            return;
        };
        let check_at = now + self.encryption.idle_timeout.max(LEAST);
        connection.state = State::Secured { check_at, is_unused: false };
        self.handshaking.remove(&remote);
        self.statistics.handshakes_completed += 1;
        if let Some(before) = self.give_up_address(remote) {
            self.end(now, before, HandshakeError::Replaced);
        }
        self.secured.insert(remote, index);
        self.queues.events.push_back(Event::Secured { remote, peer });
        let waiting: Vec<_> = self.sctp.associations_with(remote).collect();
        for id in waiting {
            self.sctp.hold_setup(now, id, false);
        }
    }

    /// Called when the peer has closed the connection.
    fn on_closed(&mut self, now: Instant, index: usize) {
        let connection = &self.connections[index];
        let is_new = self.sctp_associations(connection).next().is_none();
        let error = if connection.is_client() && (is_new || self.is_setting_up(index)) {
            HandshakeError::RefusedByPeer(self.fingerprint())
        } else {
            HandshakeError::EndedByPeer
        };
        self.end(now, index, error);
    }

    /// Whether no association with the peer has been established yet.
    fn is_setting_up(&self, index: usize) -> bool {
        let mut all = self.sctp_associations(&self.connections[index]);
        all.all(|id| {
            let statistics = self.sctp.statistics(id);
            statistics.is_none_or(|statistics| statistics.traffic.packets_received == 0)
        })
    }

    fn sctp_associations(&self, connection: &Connection) -> impl Iterator<Item = AssociationId> {
        connection.addresses.iter().flat_map(|&remote| self.sctp.associations_with(remote))
    }

    fn fail(&mut self, now: Instant, index: usize, error: &dimpl::Error) {
        let error = match error {
            dimpl::Error::Timeout(_) => {
                HandshakeError::NoAnswer(now - self.connections[index].begun)
            }
            error => HandshakeError::Failed(error.to_string()),
        };
        self.end(now, index, error);
    }

    /// Ends a connection, and the associations that use it: their packets must not be sent to a later peer at the same
    /// address.
    fn end(&mut self, now: Instant, index: usize, error: HandshakeError) {
        let connection = &self.connections[index];
        let (remote, is_reported) =
            (connection.route.remote, connection.is_client() || connection.is_secured());
        self.statistics.handshakes_failed += u64::from(connection.is_handshaking());
        // During a handshake only associations that wait for it exist, unless another connection is secured.
        if connection.is_secured() || self.peer(remote).is_none() {
            let addresses = connection.addresses.clone();
            self.abort_associations(now, &addresses, &error);
        }
        self.forget(index);
        if is_reported {
            self.queues.events.push_back(Event::Ended { remote, error });
        }
    }

    fn abort_associations(&mut self, now: Instant, peer: &[SocketAddr], error: &HandshakeError) {
        let with = peer.iter().flat_map(|&remote| self.sctp.associations_with(remote));
        let associations: Vec<_> = with.collect();
        for id in associations {
            self.sctp.abort(now, id, error.to_string().as_bytes());
        }
    }

    fn forget(&mut self, index: usize) {
        let connection = self.connections.remove(index);
        self.in_progress -= usize::from(connection.counts_as_in_progress());
        self.deadlines.remove(&(connection.deadline, index));
        for address in connection.addresses {
            for map in [&mut self.secured, &mut self.handshaking] {
                if map.get(&address) == Some(&index) {
                    map.remove(&address);
                }
            }
        }
    }

    /// Updates the deadline at which the connection is called next.
    fn schedule(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let deadline = connection.next_timeout(now, &self.encryption);
        if deadline == connection.deadline {
            return;
        }
        self.deadlines.remove(&(connection.deadline, index));
        connection.deadline = deadline;
        if deadline < Instant::FAR_FUTURE {
            self.deadlines.insert((deadline, index));
        }
    }

    /// Passes a datagram to an existing connection.
    fn deliver(&mut self, now: Instant, index: usize, arrival: Arrival, datagram: &[u8]) {
        let connection = &mut self.connections[index];
        if let Some(farewell) = connection.farewell() {
            return self.queues.outgoing.push_back((arrival.route, farewell));
        }
        let (is_charged, was_secured) =
            (connection.charge(datagram.len()), connection.is_secured());
        match admissible(datagram, connection.is_handshaking()).filter(|_| is_charged) {
            Some(records) => {
                let has_packet = self.advance_from(now, index, arrival, |connection| {
                    connection.handle_packet(now, records)
                });
                self.statistics.without_packet += u64::from(was_secured && !has_packet);
            }
            None => self.statistics.discarded += 1,
        }
    }
}

#[cfg(test)]
mod tests;
