//! ICE of one peer, with restarts (RFC 8445 §9): the generation whose pair carries data, the next one while it searches
//! for a pair, and the former one for packets in flight.

mod generation;

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Route};

use crate::Candidate;
use crate::sdp::Description;

use generation::Generation;
pub use generation::MAX_PEER_ADDRESSES;
pub(crate) use generation::{Credentials, Role, local_ufrag};

/// The time for which checks and data of the generation before a restart are still accepted: the peer may find the new
/// pair later than this side.
const FORMER_LIMIT: Duration = Duration::from_secs(5);

/// A generation that ends at a given time.
struct Temporary {
    generation: Generation,
    until: Instant,
}

/// The ICE agent of one peer: three generations at most.
pub(crate) struct Ice {
    role: Role,
    rng: Rng,
    active: Generation,
    /// The next generation, which replaces `active` when it has a pair.
    next: Option<Temporary>,
    former: Option<Temporary>,
    /// The addresses of the peer in all generations.
    sources: Vec<SocketAddr>,
    /// Counts changes other than additions: of the generations, and so of user name fragments and addresses.
    revision: u32,
    has_restarted: bool,
}

impl Ice {
    pub(crate) fn new(role: Role, mut rng: Rng) -> Self {
        Self {
            active: Generation::new(&role, &mut rng),
            role,
            rng,
            next: None,
            former: None,
            sources: Vec::new(),
            revision: 0,
            has_restarted: false,
        }
    }

    fn generations(&self) -> impl Iterator<Item = &Generation> {
        let others = [&self.next, &self.former];
        let others = others.into_iter().flatten().map(|it| &it.generation);
        std::iter::once(&self.active).chain(others)
    }

    fn generations_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        let others = [&mut self.next, &mut self.former];
        let others = others.into_iter().flatten().map(|it| &mut it.generation);
        std::iter::once(&mut self.active).chain(others)
    }

    /// The generation of the last description.
    fn latest(&self) -> &Generation {
        self.next.as_ref().map_or(&self.active, |it| &it.generation)
    }

    fn latest_mut(&mut self) -> &mut Generation {
        self.next.as_mut().map_or(&mut self.active, |it| &mut it.generation)
    }

    /// The credentials of this side for the next description.
    pub(crate) fn credentials(&self) -> &Credentials {
        self.latest().credentials()
    }

    /// The user name fragments by which the peer's checks may name this agent.
    pub(crate) fn ufrags(&self) -> impl Iterator<Item = &str> {
        self.generations().map(|it| &it.credentials().ufrag[..])
    }

    /// Whether `description` has credentials that the peer has not used before.
    pub(crate) fn is_restart(&self, description: &Description) -> bool {
        self.latest().remote() != Some(&Credentials::of(description))
    }

    /// Draws new credentials; the peer's are set later. The active pair is used until there is a new one. If there is
    /// none at `until`, the restart is abandoned. An earlier restart without a pair is replaced.
    pub(crate) fn restart(&mut self, until: Instant) {
        let generation = Generation::new(&self.role, &mut self.rng);
        self.next = Some(Temporary { generation, until });
        self.on_generations();
    }

    /// Whether the peer's answer has not arrived yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.latest().has_remote()
    }

    pub(crate) fn set_remote(&mut self, now: Instant, remote: &Description) {
        self.latest_mut().set_remote(now, remote);
        self.on_progress(now);
    }

    /// Adds a candidate address of the peer. A lite agent, which sends no checks, ignores it.
    pub(crate) fn add_candidate(&mut self, now: Instant, candidate: &Candidate) {
        let generation = self.latest_mut();
        generation.add_candidate(candidate);
        generation.handle_timeout(now);
    }

    /// Handles a STUN message. Returns whether it is the peer's.
    pub(crate) fn handle_input(&mut self, now: Instant, route: Route, datagram: &[u8]) -> bool {
        let is_peers = self.generations_mut().any(|it| it.handle_input(now, route, datagram));
        if is_peers {
            if !self.sources.contains(&route.remote) {
                self.sources.push(route.remote);
            }
            self.on_progress(now);
        }
        is_peers
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for generation in self.generations_mut() {
            if generation.poll_timeout().is_some_and(|at| at <= now) {
                generation.handle_timeout(now);
            }
        }
        let is_over = |it: &mut Temporary| it.until <= now;
        let ended = [self.next.take_if(is_over), self.former.take_if(is_over)];
        if ended.iter().any(Option::is_some) {
            self.on_generations();
        }
        self.on_progress(now);
    }

    /// Activates the next generation once it has a pair.
    fn on_progress(&mut self, now: Instant) {
        let has_pair = |it: &mut Temporary| it.generation.nominated().is_some();
        if let Some(Temporary { generation, .. }) = self.next.take_if(has_pair) {
            let generation = std::mem::replace(&mut self.active, generation);
            self.former = Some(Temporary { generation, until: now + FORMER_LIMIT });
            self.has_restarted = true;
            self.on_generations();
        }
    }

    fn on_generations(&mut self) {
        self.revision += 1;
        let mut sources: Vec<SocketAddr> = Vec::new();
        for &address in self.generations().flat_map(Generation::sources) {
            if !sources.contains(&address) {
                sources.push(address);
            }
        }
        self.sources = sources;
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(Route, Vec<u8>)> {
        self.generations_mut().find_map(Generation::poll_transmit)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let ends = [&self.next, &self.former].into_iter().flatten().map(|it| it.until);
        self.generations().filter_map(Generation::poll_timeout).chain(ends).min()
    }

    /// Whether a restart has found a pair since the last call.
    pub(crate) fn take_restarted(&mut self) -> bool {
        std::mem::take(&mut self.has_restarted)
    }

    /// An address to which the handshake may be sent already: see [`Generation::destination`].
    pub(crate) fn destination(&self) -> Option<Route> {
        self.active.destination()
    }

    /// The route of data; `None` before a pair is nominated.
    pub(crate) const fn nominated(&self) -> Option<Route> {
        self.active.nominated()
    }

    /// Whether the peer has sent an authenticated check from this address; other datagrams from there are dropped.
    pub(crate) fn is_source(&self, address: SocketAddr) -> bool {
        self.sources.contains(&address)
    }

    /// The addresses from which the peer has sent authenticated STUN messages. They are only appended to, as long as
    /// [`revision`](Self::revision) stays the same.
    pub(crate) fn sources(&self) -> &[SocketAddr] {
        &self.sources
    }

    pub(crate) const fn revision(&self) -> u32 {
        self.revision
    }

    pub(crate) const fn consent_at(&self) -> Option<Instant> {
        self.active.consent_at()
    }

    /// The round-trip time of the last check that was answered.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.active.round_trip()
    }
}
