//! An endpoint: one local SCTP port, all associations on it, and the way of a packet to the one it
//! is for (RFC 9260 §8.5).

mod addresses;
mod cookie;
mod paths;
mod retired;
mod round_trips;
mod setup;
mod stray;
mod table;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Machine, Rng, Route, Seed};
use rexmit_recovery::ThinConfig;

use crate::association::{Association, Context, Identity, RANDOM_LEN, Surroundings, begins_with};
use crate::config::{AssociationConfig, ConfigError, EndpointConfig};
use crate::error::{ConnectError, ResetError, SendError, ThinError};
use crate::event::Event;
use crate::message::{InboundMessage, MessageId, OutboundMessage};
use crate::statistics::{AssociationStatistics, EndpointStatistics};
use crate::streams::PayloadArena;
use crate::wire::{Chunk, Packet, kind};

use cookie::CookieSigner;
pub(crate) use round_trips::RoundTrips;
pub use table::AssociationId;
use table::Table;

/// Answers that wait for [`Machine::poll_transmit`]; more are dropped, as a network would.
const MAX_REPLIES: usize = 64;

/// An SCTP endpoint: a [`Machine`] with the calls of an application.
///
/// ```
/// use rexmit_core::{Instant, Machine, Route, Seed};
/// use rexmit_sctp::{Endpoint, EndpointConfig, OutboundMessage};
///
/// let now = Instant::ZERO;
/// let mut client = Endpoint::new(EndpointConfig::default(), &Seed::from_u64(1))?;
/// let mut server = Endpoint::new(
///     EndpointConfig { accept: true, ..EndpointConfig::default() },
///     &Seed::from_u64(2),
/// )?;
/// let route = Route {
///     local: "192.0.2.1:9899".parse()?,
///     remote: "192.0.2.2:9899".parse()?,
/// };
/// let association = client.connect(now, route, 5000)?;
/// client.send(now, association, OutboundMessage::new(0, "hello"))?;
///
/// let mut packet = Vec::new();
/// loop {
///     let mut is_quiet = true;
///     while client.poll_transmit(now, &mut packet).is_some() {
///         server.handle_input(now, route.reversed(), &packet);
///         is_quiet = false;
///     }
///     while server.poll_transmit(now, &mut packet).is_some() {
///         client.handle_input(now, route, &packet);
///         is_quiet = false;
///     }
///     if is_quiet {
///         break;
///     }
/// }
/// let (accepted, _connected) = server.poll_event().expect("an association");
/// assert_eq!(server.receive(now, accepted).expect("a message").payload, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint {
    config: EndpointConfig,
    table: Table,
    signer: CookieSigner,
    around: Surroundings,
    replies: VecDeque<(Route, Vec<u8>)>,
    /// What RANDOM has in our INITs; of its own, so that it changes nothing else.
    randoms: Rng,
    /// The association whose last event was taken just now: its statistics can still be asked for.
    told: Option<u32>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("port", &self.config.port)
            .field("associations", &self.table.len())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint whose tags, cookies and jitter come from `seed`: of full entropy on a network,
    /// fixed in a simulation.
    ///
    /// # Errors
    /// The first field of `config` that makes no sense.
    pub fn new(config: EndpointConfig, seed: &Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            signer: CookieSigner::new(seed, config.cookie_secret_lifetime),
            table: Table::new(config.cookie_lifetime + setup::MAX_COOKIE_EXTENSION),
            around: Surroundings {
                addresses: config.addresses.clone(),
                association: (
                    Arc::clone(&config.association),
                    Arc::new(config.association.recovery.clone()),
                ),
                round_trips: RoundTrips::default(),
                rng: seed.split("endpoint").rng(),
                arena: PayloadArena::new(),
                events: VecDeque::new(),
                statistics: EndpointStatistics::default(),
                sink: None,
            },
            replies: VecDeque::new(),
            randoms: seed.split("authentication").rng(),
            told: None,
            config,
        })
    }

    /// Begins an association with the peer at the far end of `route`, with the endpoint's
    /// configuration of associations. [`Event::Connected`] or [`Event::Closed`] tells the outcome.
    ///
    /// Messages can be sent at once; they leave with the last packet of the setup.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        route: Route,
        remote_port: u16,
    ) -> Result<AssociationId, ConnectError> {
        let config = Arc::clone(&self.config.association);
        self.connect_with(now, route, remote_port, config)
    }

    /// As [`Self::connect`], with a configuration of its own.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_with(
        &mut self,
        now: Instant,
        route: Route,
        remote_port: u16,
        config: Arc<AssociationConfig>,
    ) -> Result<AssociationId, ConnectError> {
        self.connect_over(now, &[route], remote_port, config)
    }

    fn new_identity(&mut self, remote_port: u16) -> Identity {
        let local_tag = self.new_tag();
        let mut random = [0; RANDOM_LEN];
        self.randoms.fill(&mut random);
        // Drawn in any case, so that fixing the TSN changes nothing else.
        let random_tsn = self.around.rng.u32();
        Identity {
            local_port: self.config.port,
            remote_port,
            local_tag,
            local_initial_tsn: self.config.initial_tsn.unwrap_or(random_tsn),
            tie_tags: (self.around.rng.u32() | 1, self.around.rng.u32() | 1),
            random,
        }
    }

    /// A random tag that no association here has (RFC 9260 §5.3.1).
    fn new_tag(&mut self) -> u32 {
        loop {
            let tag = self.around.rng.u32();
            let is_free = self.table.by_tag(tag).is_none() && !self.table.is_retired(tag);
            if tag != 0 && is_free {
                return tag;
            }
        }
    }

    /// Accepts a message for the peer of `id`. What becomes of it is told by events: failures
    /// always, success if [`AssociationConfig::report_acknowledged`] is set.
    ///
    /// # Errors
    /// See [`SendError`]; the message was not accepted.
    pub fn send(
        &mut self,
        now: Instant,
        id: AssociationId,
        message: OutboundMessage,
    ) -> Result<MessageId, SendError> {
        let index = self.index_of(id).ok_or(SendError::UnknownAssociation)?;
        self.call(now, index, |association, cx| association.send(cx, message))
            .unwrap_or(Err(SendError::UnknownAssociation))
    }

    /// The next message from the peer of `id`, in delivery order.
    pub fn receive(&mut self, now: Instant, id: AssociationId) -> Option<InboundMessage> {
        let index = self.index_of(id)?;
        let message = self.call(now, index, |association, _| association.receive())?;
        self.table.remove_if_over(index);
        message
    }

    /// Ends the association gracefully: everything accepted on both sides is still delivered.
    pub fn shutdown(&mut self, now: Instant, id: AssociationId) {
        if let Some(index) = self.index_of(id) {
            self.call(now, index, Association::shutdown);
        }
    }

    /// Ends the association at once and tells the peer `reason` (its first 400 bytes). What was not
    /// acknowledged fails.
    pub fn abort(&mut self, now: Instant, id: AssociationId, reason: &[u8]) {
        if let Some(index) = self.index_of(id) {
            self.call(now, index, |association, cx| {
                association.abort_by_user(cx, reason);
            });
        }
    }

    /// Resets outgoing streams to sequence number 0 (RFC 6525); none means all.
    /// [`Event::StreamsReset`] tells the outcome.
    ///
    /// # Errors
    /// See [`ResetError`].
    pub fn reset_streams(
        &mut self,
        now: Instant,
        id: AssociationId,
        streams: &[u16],
    ) -> Result<(), ResetError> {
        let index = self.index_of(id).ok_or(ResetError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.reset_streams(streams))
            .unwrap_or(Err(ResetError::UnknownAssociation))
    }

    /// Changes what the association does about loss while it is thin, from now on; streams that were
    /// singled out keep their own.
    ///
    /// # Errors
    /// See [`ThinError`].
    pub fn set_thin(
        &mut self,
        now: Instant,
        id: AssociationId,
        thin: ThinConfig,
    ) -> Result<(), ThinError> {
        let index = self.index_of(id).ok_or(ThinError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.set_thin(thin))
            .unwrap_or(Err(ThinError::UnknownAssociation))
    }

    /// Singles an outgoing stream out: it is judged by its own packets in flight, with mechanisms of
    /// its own, whatever the other streams send. `None` lets what it sends from now on count as the
    /// association's again. At most [`MAX_GROUPS`](crate::recovery::MAX_GROUPS)` - 1` streams of an
    /// association can be singled out in its life.
    ///
    /// # Errors
    /// See [`ThinError`].
    pub fn set_stream_thin(
        &mut self,
        now: Instant,
        id: AssociationId,
        stream: u16,
        thin: Option<ThinConfig>,
    ) -> Result<(), ThinError> {
        let index = self.index_of(id).ok_or(ThinError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.set_stream_thin(stream, thin))
            .unwrap_or(Err(ThinError::UnknownAssociation))
    }

    /// Counters of the association, while its id is good; the final ones right after
    /// [`Event::Closed`] was taken.
    #[must_use]
    pub fn statistics(&self, id: AssociationId) -> Option<AssociationStatistics> {
        self.table.find(id).map(|slot| slot.association.statistics())
    }

    /// Counters of the endpoint.
    #[must_use]
    pub const fn endpoint_statistics(&self) -> &EndpointStatistics {
        &self.around.statistics
    }

    /// Sends the events of all associations to `sink` from now on, or to nobody.
    pub fn set_trace(&mut self, sink: Option<Box<dyn TraceSink>>) {
        self.around.sink = sink;
    }

    /// How many associations there are, those that ended and are not read to the end included.
    #[must_use]
    pub const fn association_count(&self) -> usize {
        self.table.len()
    }

    /// Whether no association has anything queued, outstanding or owed to its peer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.table.iter().all(|slot| slot.association.is_idle())
    }

    /// Calls the association `index` with its surroundings, then enters what changed.
    fn call<R>(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Association, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let slot = self.table.slot_mut(index)?;
        let mut cx = Context { now, id: slot.id, around: &mut self.around };
        let result = act(&mut slot.association, &mut cx);
        self.table.update(now, index);
        Some(result)
    }

    fn index_of(&self, id: AssociationId) -> Option<u32> {
        self.table.find(id).map(|slot| slot.id.index())
    }

    /// Hands a packet to the association that its tag names (RFC 9260 §8.5), or finds out what a
    /// packet that belongs to none is about.
    fn deliver(&mut self, now: Instant, route: Route, packet: &Packet<'_>, bytes: usize) {
        let header = packet.header;
        let by_address = self.table.by_address(route.remote.ip(), header.source_port);
        let by_tag = self.table.by_tag(header.verification_tag).filter(|&index| {
            let slot = self.table.slot(index);
            slot.is_some_and(|slot| {
                slot.association.identity().remote_port == header.source_port
                    && (slot.association.peer_addresses().any(|ip| ip == route.remote.ip())
                        || slot.association.may_be_from_elsewhere(packet))
            })
        });
        let is_setting_up =
            |index| self.table.slot(index).is_some_and(|slot| slot.association.is_setting_up());
        if by_address.is_some_and(is_setting_up) && has_shutdown_ack(packet) {
            // It ends an association before the one being set up (RFC 9260 §8.5.1 E).
            return self.on_stray(route, packet);
        }
        let found = by_tag.map(|index| (index, false)).or_else(|| {
            let index = by_address.filter(|_| bears_reflected_tag(packet))?;
            let slot = self.table.slot(index)?;
            (slot.association.peer_tag() == header.verification_tag).then_some((index, true))
        });
        match (found, by_address) {
            (Some((index, reflected)), _) => {
                self.call(now, index, |association, cx| {
                    association.count_received(bytes);
                    association.on_packet(cx, (route, reflected), packet);
                });
            }
            (None, Some(_)) => self.around.statistics.misdirected += 1,
            (None, None) => self.on_stray(route, packet),
        }
    }

    fn reply(&mut self, route: Route, packet: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back((route, packet));
        }
    }
}

/// Whether it is no address of many hosts (RFC 9260 §8.4 rule 1). A broadcast address of a subnet
/// cannot be told from others.
fn may_be_one_host(address: IpAddr) -> bool {
    !address.is_multicast() && address != IpAddr::V4(Ipv4Addr::BROADCAST)
}

fn has_shutdown_ack(packet: &Packet<'_>) -> bool {
    packet.chunks().flatten().any(|raw| raw.kind == kind::SHUTDOWN_ACK)
}

/// Whether the packet is an ABORT or SHUTDOWN COMPLETE with the T bit.
fn bears_reflected_tag(packet: &Packet<'_>) -> bool {
    let first = packet.chunks().next().and_then(Result::ok).map(|raw| raw.decode());
    matches!(
        first,
        Some(Ok(Chunk::Abort { t_bit: true, .. } | Chunk::ShutdownComplete { t_bit: true }))
    )
}

impl Machine for Endpoint {
    type Event = (AssociationId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, bytes: &[u8]) {
        let Ok(packet) = Packet::parse(bytes) else {
            self.around.statistics.malformed += 1;
            return;
        };
        // An unspecified local address only says that the driver does not know it.
        let is_unicast = may_be_one_host(route.remote.ip())
            && !route.remote.ip().is_unspecified()
            && may_be_one_host(route.local.ip());
        if packet.header.destination_port != self.config.port || !is_unicast {
            self.around.statistics.misdirected += 1;
            return;
        }
        match packet.chunks().next() {
            Some(Ok(raw)) if packet.header.verification_tag == 0 && raw.kind != kind::INIT => {
                // Only INIT may bear it (RFC 9260 §8.5.1 A); above all it is nobody's own tag.
                self.around.statistics.misdirected += 1;
            }
            Some(Ok(raw)) if raw.kind == kind::INIT => self.on_init(now, route, &packet),
            Some(Ok(raw)) if raw.kind == kind::COOKIE_ECHO => {
                self.on_cookie_echo(now, route, &packet, bytes.len());
            }
            Some(Ok(raw))
                if raw.kind == kind::AUTH
                    && begins_with(&packet, [kind::AUTH, kind::COOKIE_ECHO]) =>
            {
                self.on_cookie_echo(now, route, &packet, bytes.len());
            }
            Some(Ok(raw)) if raw.kind == kind::INIT_ACK => {
                self.on_init_ack(now, route, &packet, bytes.len());
            }
            Some(Ok(_)) => self.deliver(now, route, &packet, bytes.len()),
            Some(Err(_)) | None => self.around.statistics.malformed += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.table.pop_due(now) {
            self.call(now, index, |association, cx| {
                if association.next_timeout().is_some_and(|at| at <= now) {
                    association.on_timeout(cx);
                }
            });
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if let Some((route, reply)) = self.replies.pop_front() {
            packet.clear();
            packet.extend_from_slice(&reply);
            return Some(route);
        }
        while let Some(index) = self.table.first_ready() {
            let route =
                self.call(now, index, |association, cx| association.poll_transmit(cx, packet));
            if let Some(Some(route)) = route {
                self.table.rotate_ready();
                return Some(route);
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
        self.table.next_deadline()
    }
}
