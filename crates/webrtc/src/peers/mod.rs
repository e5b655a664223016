//! Many peers behind one UDP port, without I/O: the dispatch of datagrams, and limits.

mod limits;
mod machine;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::table::{Key, Table, Timed};
use rexmit_core::{Ecn, Instant, Machine as _, Seed};
use rexmit_sctp::ConfigError;

use crate::servers::Servers;
use crate::{Agent, Candidate, CandidateKind, Description, Event, IceMode, OfferError, Settings};

use limits::Allowance;
pub use limits::ServeConfig;

/// The id of a peer of a server. It is never used again for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerId(Key);

/// Counters of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServeStatistics {
    /// Peers so far, both from offers that were answered and from offers that were made.
    pub peers: u64,
    /// Offers that were refused because of a limit.
    pub refused: u64,
    /// Datagrams that belong to no peer.
    pub discarded: u64,
}

/// The most peers that may share an address, because a NAT has assigned it anew, or because one of them forges it. DTLS identifies
/// the peer of a record, so each of them gets all datagrams from the address.
const MAX_OWNERS: usize = 4;
/// A setup that is younger than this is not replaced by another one.
const MIN_SETUP_TIME: Duration = Duration::from_secs(2);

struct Peer {
    agent: Agent,
    /// Since when the peer counts as being set up.
    setting_up_since: Option<Instant>,
    /// Whether the peer is in `Peers::active`.
    is_active: bool,
    /// The revision of the agent's user name fragments and addresses that are in the tables.
    ice_revision: u32,
    /// User name fragments in `Peers::by_ufrag`.
    ufrags: Vec<String>,
    /// Addresses in `Peers::by_address`.
    addresses: Vec<SocketAddr>,
    /// Addresses in `Peers::asked`.
    asked: Vec<SocketAddr>,
}

impl Timed for Peer {
    fn next_timeout(&self) -> Option<Instant> {
        self.agent.poll_timeout()
    }
}

/// The agents of all peers behind one UDP port: a [`Machine`](rexmit_core::Machine) whose events name the peer.
///
/// An authenticated ICE check (STUN) belongs to the peer with its user name; any other datagram to the peer
/// that ICE has found at its address. All others are dropped without leaving state.
pub struct Peers {
    config: ServeConfig,
    settings: Settings,
    seed: Seed,
    table: Table<Peer>,
    by_ufrag: BTreeMap<String, u32>,
    servers: Servers,
    /// The addresses from which peers have sent authenticated checks; at most [`MAX_OWNERS`] peers at each.
    by_address: BTreeMap<SocketAddr, Vec<u32>>,
    /// Addresses to which checks were sent, with the peers that sent them: a response has no user name.
    asked: BTreeSet<(SocketAddr, u32)>,
    /// Peers that are being set up, the oldest first.
    setups: BTreeSet<(Instant, Key)>,
    offers: Allowance,
    /// Peers that may have events.
    active: VecDeque<Key>,
    /// The ECN field for the datagram that was polled last.
    transmit_ecn: Ecn,
    statistics: ServeStatistics,
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").field("peers", &self.table.len()).finish_non_exhaustive()
    }
}

impl Peers {
    /// A set without peers. `seed` must have full entropy on a real network.
    ///
    /// # Errors
    /// If a value of the association's configuration is out of range.
    pub fn new(mut config: ServeConfig, seed: &Seed) -> Result<Self, ConfigError> {
        if config.relay_only || !config.servers.is_empty() {
            config.agent.ice = IceMode::Full;
        }
        let mut settings = Settings::new(config.agent.clone())?;
        settings.is_relay_only = config.relay_only;
        if config.relay_only {
            settings.candidates = Vec::new().into();
        }
        Ok(Self {
            servers: Servers::new(&config.servers, seed.split("servers").rng()),
            settings,
            offers: Allowance::new(config.offers_per_second),
            config,
            seed: seed.split("peers"),
            table: Table::default(),
            by_ufrag: BTreeMap::new(),
            by_address: BTreeMap::new(),
            asked: BTreeSet::new(),
            setups: BTreeSet::new(),
            active: VecDeque::new(),
            transmit_ecn: Ecn::NotEct,
            statistics: ServeStatistics::default(),
        })
    }

    /// Whether answers of STUN and TURN servers are missing; false at the latest
    /// [`GATHER_TIMEOUT`](crate::GATHER_TIMEOUT) after the first call. Descriptions made while it is true lack the
    /// addresses of these servers.
    #[must_use]
    pub fn is_gathering(&self) -> bool {
        self.servers.is_gathering()
    }

    /// The candidates of this side for new descriptions: the addresses of the configuration, and those that servers
    /// have assigned.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.settings.candidates
    }

    /// Answers a peer's offer.
    ///
    /// # Errors
    /// If it cannot lead to a connection, or a limit was reached.
    pub fn answer(
        &mut self,
        now: Instant,
        offer: &Description,
    ) -> Result<(PeerId, Description), OfferError> {
        self.admit(now)?;
        let seed = self.next_seed();
        let (agent, answer) = Agent::answer(now, self.settings.clone(), offer, &seed)?;
        Ok((self.insert(now, agent), answer))
    }

    /// Makes an offer to a new peer; [`accept`](Self::accept) takes its answer.
    ///
    /// # Errors
    /// If a limit was reached.
    pub fn offer(&mut self, now: Instant) -> Result<(PeerId, Description), OfferError> {
        self.admit(now)?;
        let seed = self.next_seed();
        let (agent, offer) = Agent::offer(now, self.settings.clone(), &seed);
        Ok((self.insert(now, agent), offer))
    }

    /// Applies the answer to an offer.
    ///
    /// # Errors
    /// If it does not fit the offer.
    pub fn accept(
        &mut self,
        now: Instant,
        id: PeerId,
        answer: &Description,
    ) -> Result<(), OfferError> {
        let accepted = self.call(id, |agent| agent.accept(now, answer));
        accepted.unwrap_or(Err(OfferError::NotWaiting))
    }

    /// Calls `act` with a peer's agent; `None` if the peer does not exist any more.
    pub fn call<R>(&mut self, id: PeerId, act: impl FnOnce(&mut Agent) -> R) -> Option<R> {
        self.table.find(id.0)?;
        let (_, peer) = self.table.get_mut(id.0.index())?;
        let result = act(&mut peer.agent);
        self.update(id.0.index());
        self.activate(id.0.index());
        Some(result)
    }

    /// A peer's agent, read-only.
    #[must_use]
    pub fn agent(&self, id: PeerId) -> Option<&Agent> {
        self.table.find(id.0).map(|peer| &peer.agent)
    }

    /// The next event of one peer. After [`Event::Closed`] its id is invalid.
    pub fn poll_event_of(&mut self, id: PeerId) -> Option<Event> {
        self.table.find(id.0)?;
        let (_, peer) = self.table.get_mut(id.0.index())?;
        let event = peer.agent.poll_event();
        self.update(id.0.index());
        let event = event?;
        if matches!(event, Event::Closed(_)) {
            self.table.report_end(id.0);
        }
        Some(event)
    }

    /// Returns a peer that may have events: one that was called since this function last returned it.
    pub fn poll_active(&mut self) -> Option<PeerId> {
        loop {
            let key = self.active.pop_front()?;
            if self.table.find(key).is_some()
                && let Some((_, peer)) = self.table.get_mut(key.index())
            {
                peer.is_active = false;
                return Some(PeerId(key));
            }
        }
    }

    /// Closes the connection with a peer, and drops its events.
    pub fn forget(&mut self, now: Instant, id: PeerId) {
        if self.call(id, |agent| agent.close(now)).is_some() {
            self.table.report_end(id.0);
        }
    }

    /// The number of peers, including those being set up.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether the number of peers is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The present counters.
    #[must_use]
    pub const fn statistics(&self) -> ServeStatistics {
        self.statistics
    }

    /// Whether there is room for one more.
    fn admit(&mut self, now: Instant) -> Result<(), OfferError> {
        let (max_peers, max_setups) = (self.config.max_peers, self.config.max_setups);
        let has_setup_room =
            self.setups.len() < max_setups || self.replaceable_setup(now).is_some();
        let limits = [
            ("peers", max_peers, self.table.len() < max_peers),
            ("peers in setup", max_setups, has_setup_room),
        ];
        let full = limits.into_iter().find(|&(.., has_room)| !has_room);
        let full = full.map(|(what, limit, _)| (what, limit));
        let rate = ("offers per second", self.config.offers_per_second as usize);
        let full = full.or_else(|| (!self.offers.take(now)).then_some(rate));
        let Some((what, limit)) = full else { return Ok(()) };
        self.statistics.refused += 1;
        Err(OfferError::Busy { what, limit })
    }

    /// The oldest setup, if it has taken long enough to make room for another one. One host can thus fill `max_setups`, but
    /// others need not wait for the time limit of its setups.
    fn replaceable_setup(&self, now: Instant) -> Option<(Instant, Key)> {
        self.setups.first().copied().filter(|(since, _)| now - *since >= MIN_SETUP_TIME)
    }

    fn next_seed(&self) -> Seed {
        self.seed.split(&self.statistics.peers.to_string())
    }

    fn insert(&mut self, now: Instant, agent: Agent) -> PeerId {
        if self.setups.len() >= self.config.max_setups
            && let Some((since, key)) = self.replaceable_setup(now)
        {
            self.call(PeerId(key), |agent| agent.abandon_setup(now, now - since));
        }
        self.statistics.peers += 1;
        let index = self.table.next_key().index();
        let key = self.table.insert(Peer {
            agent,
            setting_up_since: Some(now),
            is_active: false,
            ice_revision: 0,
            ufrags: Vec::new(),
            addresses: Vec::new(),
            asked: Vec::new(),
        });
        self.setups.insert((now, key));
        self.enter_ufrags(index);
        self.update(index);
        self.activate(index);
        PeerId(key)
    }

    /// Updates the tables after a call of the peer `index`.
    fn update(&mut self, index: u32) {
        let Some(peer) = self.table.update(index) else { return };
        if peer.ice_revision != peer.agent.ice_revision() {
            peer.ice_revision = peer.agent.ice_revision();
            self.withdraw(index);
            self.enter_ufrags(index);
        }
        let Some((key, peer)) = self.table.get_mut(index) else { return };
        if !peer.agent.is_setting_up()
            && let Some(since) = peer.setting_up_since.take()
        {
            self.setups.remove(&(since, key));
        }
        let shown = peer.agent.peer_addresses();
        for &address in &shown[peer.addresses.len()..] {
            let owners = self.by_address.entry(address).or_default();
            // A peer that was here before keeps its place: the source of a check can be forged.
            owners.truncate(MAX_OWNERS - 1);
            owners.push(index);
            peer.addresses.push(address);
        }
    }

    /// Updates the candidates by the addresses that servers have assigned.
    fn update_candidates(&mut self) {
        if self.servers.take_changed() {
            let hosts = self.config.agent.addresses.iter();
            let hosts = hosts.map(|&address| (CandidateKind::Host, address));
            let assigned = self
                .servers
                .candidates()
                .filter(|(_, address)| !self.config.agent.addresses.contains(address));
            let is_relay_only = self.config.relay_only;
            let all = hosts.chain(assigned).enumerate();
            let all =
                all.filter(|(_, (kind, _))| !is_relay_only || *kind == CandidateKind::Relayed);
            let candidates = all.map(|(n, (kind, address))| Candidate::own(kind, n, address));
            self.settings.candidates = candidates.collect();
        }
    }

    /// Marks the peer `index` as one that may have events.
    fn activate(&mut self, index: u32) {
        if let Some((key, peer)) = self.table.get_mut(index)
            && !peer.is_active
        {
            peer.is_active = true;
            self.active.push_back(key);
        }
    }

    /// Enters the user name fragments of the peer `index`.
    fn enter_ufrags(&mut self, index: u32) {
        if let Some((_, peer)) = self.table.get_mut(index) {
            peer.ufrags = peer.agent.ufrags().map(str::to_owned).collect();
            self.by_ufrag.extend(peer.ufrags.iter().map(|ufrag| (ufrag.clone(), index)));
        }
    }

    /// Removes all entries of the peer `index` from the tables.
    fn withdraw(&mut self, index: u32) {
        let Some((_, peer)) = self.table.get_mut(index) else { return };
        for ufrag in std::mem::take(&mut peer.ufrags) {
            self.by_ufrag.remove(&ufrag);
        }
        for address in std::mem::take(&mut peer.addresses) {
            if let Entry::Occupied(mut owners) = self.by_address.entry(address) {
                owners.get_mut().retain(|&owner| owner != index);
                if owners.get().is_empty() {
                    owners.remove();
                }
            }
        }
        for address in std::mem::take(&mut peer.asked) {
            self.asked.remove(&(address, index));
        }
    }

    fn remove(&mut self, index: u32) {
        self.withdraw(index);
        if let Some((key, peer)) = self.table.get_mut(index)
            && let Some(since) = peer.setting_up_since
        {
            self.setups.remove(&(since, key));
        }
        self.table.remove(index);
    }
}
