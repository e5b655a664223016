//! An endpoint: one local SCTP port, all associations on it, and the dispatch of packets to them (RFC 9260
//! §8.5).

mod addresses;
mod amplification;
mod cookie;
mod cookie_secret;
mod destinations;
mod lookup;
mod machine;
mod out_of_the_blue;
mod paths;
mod receive_budget;
mod retired;
mod scheduling;
mod setup;
mod shared;
mod tags;
mod too_big;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::table::Table;
use rexmit_core::trace::TraceSink;
use rexmit_core::{Ecn, Instant, Rng, Route, Seed};
use rexmit_recovery::{ThinConfig, Unanswered};

use crate::association::{Association, Context, Identity, RANDOM_LEN, RoundTrips, Surroundings};
use crate::config::error::bound;
use crate::config::{AssociationConfig, ConfigError, EndpointConfig};
use crate::error::{ConnectError, ResetError, SendError, ThinError};
use crate::message::{InboundMessage, MessageId, OutboundMessage};
use crate::statistics::{AssociationStatistics, EndpointStatistics};

pub use crate::id::AssociationId;
use amplification::ExcessBudget;
use cookie::CookieSigner;
use lookup::{Lookup, Slot};
use shared::Shared;
pub use tags::TagClass;

/// The most answers that wait to be transmitted; further ones are dropped, as a network could drop them.
const MAX_REPLIES: usize = 64;

/// An SCTP endpoint: a [`Machine`](rexmit_core::Machine) with the calls of an application.
///
/// ```
/// use rexmit_sctp::{Endpoint, EndpointConfig, Instant, Machine, OutboundMessage, Route, Seed};
///
/// let now = Instant::ZERO;
/// let mut client = Endpoint::new(EndpointConfig::default(), &Seed::from_u64(1))?;
/// let mut server = Endpoint::new(
///     EndpointConfig::default().accept(true),
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
    table: Table<Slot>,
    lookup: Lookup,
    signer: CookieSigner,
    around: Surroundings,
    shared: Shared,
    replies: VecDeque<(Route, Vec<u8>)>,
    /// The ECN field of the packet that was written last.
    transmit_ecn: Ecn,
    excess: ExcessBudget,
    /// The local tags that are drawn.
    tags: TagClass,
    /// Generator for RANDOM parameters, separate so that it does not change other random values.
    randoms: Rng,
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
    /// An endpoint whose tags, cookies and jitter are drawn from `seed`, which must have full entropy on a
    /// real network; in a simulation it is fixed.
    ///
    /// # Errors
    /// If the port is 0, or a value of `config` is out of range, or there is more than one shard.
    pub fn new(config: EndpointConfig, seed: &Seed) -> Result<Self, ConfigError> {
        if config.port == 0 {
            return Err(ConfigError::PortZero);
        }
        bound("shards", config.shards, 1, 1)?;
        config.validate()?;
        Ok(Self {
            signer: CookieSigner::new(seed, config.cookie_secret_lifetime, config.port),
            table: Table::default(),
            lookup: Lookup::new(config.cookie_lifetime + setup::MAX_COOKIE_EXTENSION),
            around: Surroundings {
                addresses: config.addresses.clone(),
                source_addresses: config.source_addresses,
                association: (
                    Arc::clone(&config.association),
                    Arc::new(config.association.recovery.clone()),
                ),
                round_trips: RoundTrips::default(),
                unanswered: Unanswered::default(),
                starved: Duration::ZERO,
                rng: seed.split("endpoint").rng(),
                events: VecDeque::new(),
                statistics: EndpointStatistics::default(),
                sink: None,
            },
            shared: Shared::new(config.max_receive_bytes),
            replies: VecDeque::new(),
            transmit_ecn: Ecn::NotEct,
            excess: ExcessBudget::default(),
            tags: TagClass::default(),
            randoms: seed.split("authentication").rng(),
            config,
        })
    }

    /// Begins an association with the peer at the far end of `route`, with the endpoint's configuration of
    /// associations. [`Event::Connected`](crate::Event::Connected) or [`Event::Closed`](crate::Event::Closed)
    /// reports the result.
    ///
    /// Messages can be given to [`send`](Self::send) at once; they are transmitted with the last packet of
    /// the handshake.
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

    /// As [`Self::connect`], with the configuration `config` for this association.
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
        let local_tag = new_tag(&mut self.around.rng, self.tags, &self.lookup);
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

    /// Accepts a message for the peer of `id`. Events report its fate: failures
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
        let index = self.table.index_of(id.0).ok_or(SendError::UnknownAssociation)?;
        let sent = self.act_on(now, index, |association, cx| association.send(cx, message));
        let slot = self.table.update_later(now, index);
        debug_assert!(
            slot.is_none_or(|slot| slot.is_entered_as_it_is() && self.shared.is_up_to_date(slot))
        );
        sent.unwrap_or(Err(SendError::UnknownAssociation))
    }

    /// The next message from the peer of `id`, in delivery order.
    pub fn receive(&mut self, now: Instant, id: AssociationId) -> Option<InboundMessage> {
        let index = self.table.index_of(id.0)?;
        let message = self.act_on(now, index, |association, _| association.receive())?;
        if let Some(slot) = self.table.update_later(now, index) {
            self.shared.update(slot);
            debug_assert!(slot.is_entered_as_it_is());
        }
        self.remove_if_over(index);
        message
    }

    /// Ends the association gracefully: everything accepted on both sides is still delivered.
    pub fn shutdown(&mut self, now: Instant, id: AssociationId) {
        if let Some(index) = self.table.index_of(id.0) {
            self.call(now, index, Association::shutdown);
        }
    }

    /// Aborts the association at once. The ABORT carries the first 400 bytes of `reason`. Unacknowledged
    /// messages fail.
    pub fn abort(&mut self, now: Instant, id: AssociationId, reason: &[u8]) {
        if let Some(index) = self.table.index_of(id.0) {
            self.call(now, index, |association, cx| {
                association.abort_by_user(cx, reason);
            });
        }
    }

    /// Resets outgoing streams to sequence number 0 (RFC 6525); an empty list resets all.
    /// [`Event::StreamsReset`](crate::Event::StreamsReset) reports the result.
    ///
    /// # Errors
    /// See [`ResetError`].
    pub fn reset_streams(
        &mut self,
        now: Instant,
        id: AssociationId,
        streams: &[u16],
    ) -> Result<(), ResetError> {
        let index = self.table.index_of(id.0).ok_or(ResetError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.reset_streams(streams))
            .unwrap_or(Err(ResetError::UnknownAssociation))
    }

    /// Sets the mechanisms of the association while it is thin. Streams singled out by
    /// [`set_stream_thin`](Self::set_stream_thin) keep theirs.
    ///
    /// # Errors
    /// See [`ThinError`].
    pub fn set_thin(
        &mut self,
        now: Instant,
        id: AssociationId,
        thin: ThinConfig,
    ) -> Result<(), ThinError> {
        let index = self.table.index_of(id.0).ok_or(ThinError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.outbound().set_thin(thin))
            .unwrap_or(Err(ThinError::UnknownAssociation))
    }

    /// Singles out an outgoing stream: whether it is thin depends on its own packets in flight only, and
    /// `thin` are its mechanisms. With `None`, chunks that it sends from now on count as the association's again. At
    /// most [`MAX_GROUPS`](crate::recovery::MAX_GROUPS)` - 1` streams can be singled out in the life of an association.
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
        let index = self.table.index_of(id.0).ok_or(ThinError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.outbound().set_stream_thin(stream, thin))
            .unwrap_or(Err(ThinError::UnknownAssociation))
    }

    /// Sets whether new associations of peers are accepted, in place of [`EndpointConfig::accept`]. Existing
    /// ones are unchanged.
    pub const fn set_accept(&mut self, is_accepting: bool) {
        self.config.accept = is_accepting;
    }

    /// Sets the configuration of associations that peers set up from now on, in place of
    /// [`EndpointConfig::association`]. Existing ones keep theirs. A driver may call it before each
    /// [`handle_input`](crate::Machine::handle_input), to treat some peers differently.
    ///
    /// # Errors
    /// If a value of `config` is out of range.
    pub fn set_association_config(
        &mut self,
        config: Arc<AssociationConfig>,
    ) -> Result<(), ConfigError> {
        config.validate()?;
        self.around.association = (Arc::clone(&config), Arc::new(config.recovery.clone()));
        self.config.association = config;
        Ok(())
    }

    /// The counters of the association; `None` if its id is invalid. Right after
    /// [`Event::Closed`](crate::Event::Closed) was returned they are final.
    #[must_use]
    pub fn statistics(&self, id: AssociationId) -> Option<AssociationStatistics> {
        self.table.find(id.0).map(|slot| slot.association.statistics())
    }

    /// Mixes `entropy` into the secrets of future cookies, so that they cannot be computed from an earlier
    /// state of this endpoint.
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.signer.mix_entropy(entropy);
    }

    /// Counters of the endpoint.
    #[must_use]
    pub const fn endpoint_statistics(&self) -> &EndpointStatistics {
        &self.around.statistics
    }

    /// Sends the trace events of all associations to `sink`; `None` disables tracing.
    pub fn set_trace(&mut self, sink: Option<Box<dyn TraceSink>>) {
        self.around.sink = sink;
    }

    /// The associations that have not ended and whose peer has the IP address and UDP port `remote`.
    pub fn associations_with(&self, remote: SocketAddr) -> impl Iterator<Item = AssociationId> {
        let indices = self.lookup.all_by_address(remote);
        indices.filter_map(|index| self.table.key_of(index).map(AssociationId))
    }

    /// The number of associations, including ended ones whose messages were not all received yet.
    #[must_use]
    pub const fn association_count(&self) -> usize {
        self.table.len()
    }

    /// Whether no association has queued or outstanding data, or an answer to send.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.table.iter().all(|slot| slot.association.is_idle())
    }

    /// Calls the association `index` with the state of the endpoint, then updates the lookup tables and timers.
    fn call<R>(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Association, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.table.settle();
        let result = self.act_on(now, index, act);
        self.update(now, index);
        result
    }

    /// As [`Self::call`], but nothing is updated. Sending and reading change neither the addresses nor the tags of the
    /// association, nor end it; nor does sending change what it holds of received data.
    fn act_on<R>(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Association, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let (key, slot) = self.table.get_mut(index)?;
        let mut cx = Context::new(now, AssociationId(key), &mut self.around);
        self.shared.lend(slot);
        let result = act(&mut slot.association, &mut cx);
        slot.association.report_unanswered(&mut cx, &mut slot.unanswered);
        self.shared.take_back(slot);
        Some(result)
    }

    /// Adds an association, created for the next free key of the table.
    fn insert(&mut self, now: Instant, association: Association) -> AssociationId {
        let slot = Slot::new(association);
        self.lookup.insert(self.table.next_key().index(), &slot);
        let key = self.table.insert(slot);
        self.update(now, key.index());
        AssociationId(key)
    }

    /// Updates what the endpoint knows of the association `index` after a call has changed it.
    fn update(&mut self, now: Instant, index: u32) {
        if let Some(slot) = self.table.update_at(now, index) {
            self.shared.update(slot);
            self.lookup.update(now, index, slot);
        }
    }

    /// Removes the association if it is over and the application has read its last event.
    fn remove_if_over(&mut self, index: u32) {
        let is_over = |slot: &Slot| slot.association.is_over();
        if self.table.is_end_reported(index) && self.table.get(index).is_some_and(is_over) {
            let removed = self.table.remove(index);
            self.shared.release(removed.as_ref());
            debug_assert!(!self.table.is_empty() || self.shared.is_free());
        }
    }

    fn reply(&mut self, route: Route, packet: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back((route, packet));
        }
    }
}

/// A random tag that no association here has (RFC 9260 §5.3.1).
fn new_tag(rng: &mut Rng, tags: TagClass, lookup: &Lookup) -> u32 {
    loop {
        let Some(tag) = tags.nearest(rng.u32()) else { continue };
        if tag != 0 && lookup.by_tag(tag).is_none() && !lookup.is_retired(tag) {
            return tag;
        }
    }
}

/// Whether the address can be that of a single host: neither broadcast nor multicast (RFC 9260 §8.4 rule 1). A
/// broadcast address of a subnet cannot be recognized.
fn may_be_one_host(address: IpAddr) -> bool {
    !address.is_multicast() && address != IpAddr::V4(Ipv4Addr::BROADCAST)
}
