//! STUN and TURN servers, which provide addresses at which peers beyond NATs can reach the socket: server-reflexive and
//! relayed candidates (RFC 8445 §5.1.1.2). They belong to the socket, not to a peer: all peers share them.

mod reflexive;
mod relay;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::{Instant, Rng, Route};

use crate::CandidateKind;

use reflexive::Reflexive;
pub use relay::MAX_RELAYED_HOSTS;
use relay::Relay;

/// The most STUN and TURN servers that are used; further ones of a configuration are ignored.
pub const MAX_ICE_SERVERS: usize = 4;
/// Gathering ends after this time, whether all servers have answered or not.
pub const GATHER_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that provides further candidates.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IceServer {
    /// A STUN server (RFC 8489): reports the public address of this socket behind a NAT.
    Stun(SocketAddr),
    /// A TURN server (RFC 8656) over UDP: reports the public address, and relays datagrams.
    Turn {
        /// The server's address.
        address: SocketAddr,
        /// The user name of the long-term credentials (RFC 8489 §9.2).
        user: String,
        /// The password of the user.
        password: String,
    },
}

impl fmt::Debug for IceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stun(address) => f.debug_tuple("Stun").field(address).finish(),
            Self::Turn { address, user, .. } => {
                let mut shown = f.debug_struct("Turn");
                shown.field("address", address).field("user", user).finish_non_exhaustive()
            }
        }
    }
}

/// A received datagram, after the servers have handled it.
pub(crate) enum Received {
    /// The datagram does not come from a server.
    Direct,
    /// A server has relayed it.
    Relayed(Route, Vec<u8>),
    /// The datagram was an answer to the server's client, and is handled.
    Consumed,
}

/// The clients of all servers.
pub(crate) struct Servers {
    configured: Vec<IceServer>,
    reflexive: Vec<Reflexive>,
    relays: Vec<Relay>,
    rng: Rng,
    /// When the first request was due.
    begun_at: Option<Instant>,
    is_gathering: bool,
    assigned: Vec<(CandidateKind, SocketAddr)>,
    has_changed: bool,
}

impl Servers {
    pub(crate) fn new(configured: &[IceServer], rng: Rng) -> Self {
        let configured: Vec<IceServer> = configured.iter().take(MAX_ICE_SERVERS).cloned().collect();
        Self {
            is_gathering: !configured.is_empty(),
            configured,
            reflexive: Vec::new(),
            relays: Vec::new(),
            rng,
            begun_at: None,
            assigned: Vec::new(),
            has_changed: false,
        }
    }

    /// The addresses of this side that servers have assigned.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (CandidateKind, SocketAddr)> {
        self.assigned.iter().copied()
    }

    pub(crate) const fn is_gathering(&self) -> bool {
        self.is_gathering
    }

    /// Whether [`candidates`](Self::candidates) have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    fn begin(&mut self, now: Instant) {
        if self.begun_at.is_some() {
            return;
        }
        self.begun_at = Some(now);
        for server in &self.configured {
            match server {
                IceServer::Stun(address) => self.reflexive.push(Reflexive::new(now, *address)),
                IceServer::Turn { address, user, password } => {
                    self.reflexive.push(Reflexive::new(now, *address));
                    self.relays.push(Relay::new(now, *address, user, password));
                }
            }
        }
    }

    /// Handles a datagram of a STUN or TURN server; others are left to the peers.
    pub(crate) fn handle_input(
        &mut self,
        now: Instant,
        source: SocketAddr,
        datagram: &[u8],
    ) -> Received {
        if self.reflexive.iter_mut().any(|it| it.handle_input(now, source, datagram)) {
            self.update(now);
            return Received::Consumed;
        }
        let Some(relay) = self.relays.iter_mut().find(|relay| relay.server() == source) else {
            return Received::Direct;
        };
        let relayed = relay.handle_input(now, datagram);
        let local = relay.address();
        self.update(now);
        match (relayed, local) {
            (Some(it), Some(local)) => Received::Relayed(Route { local, remote: it.peer }, it.data),
            _ => Received::Consumed,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.begin(now);
        for relay in &mut self.relays {
            relay.handle_timeout(now);
        }
        self.update(now);
    }

    fn update(&mut self, now: Instant) {
        let reflexive = self.reflexive.iter().filter_map(Reflexive::mapped);
        let reflexive = reflexive.map(|address| (CandidateKind::ServerReflexive, address));
        let relayed = self.relays.iter().filter_map(Relay::address);
        let relayed = relayed.map(|address| (CandidateKind::Relayed, address));
        let mut assigned: Vec<_> = Vec::new();
        for candidate in reflexive.chain(relayed) {
            if !assigned.contains(&candidate) {
                assigned.push(candidate);
            }
        }
        if assigned != self.assigned {
            self.assigned = assigned;
            self.has_changed = true;
        }
        let is_complete = self.reflexive.iter().all(|it| it.mapped().is_some())
            && self.relays.iter().all(|it| it.address().is_some() || it.has_failed());
        let is_late = self.begun_at.is_some_and(|at| at + GATHER_TIMEOUT <= now);
        if self.begun_at.is_some() && (is_complete || is_late) {
            self.is_gathering = false;
        }
    }

    /// Sends a datagram by a server, if its source is one of the relayed addresses; returns whether that is so.
    pub(crate) fn send(&mut self, now: Instant, route: Route, datagram: &[u8]) -> bool {
        let is_own = |relay: &&mut Relay| relay.address() == Some(route.local);
        match self.relays.iter_mut().find(is_own) {
            Some(relay) => relay.send(now, route.remote, datagram),
            // A relayed address that is lost.
            None => return !route.local.ip().is_unspecified(),
        }
        true
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if self.configured.is_empty() {
            return None;
        }
        self.begin(now);
        let rng = &mut self.rng;
        let requests = self.reflexive.iter_mut().find_map(|it| it.poll_transmit(now, rng));
        let relays = self.relays.iter_mut();
        let (remote, datagram) = requests.or_else(|| {
            relays.map(|it| (it.server(), it.poll_transmit())).find_map(|(to, it)| Some((to, it?)))
        })?;
        *packet = datagram;
        let unspecified = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Some(Route { local: unspecified, remote })
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let Some(begun_at) = self.begun_at else {
            return (!self.configured.is_empty()).then_some(Instant::ZERO);
        };
        let late = self.is_gathering.then_some(begun_at + GATHER_TIMEOUT);
        let reflexive = self.reflexive.iter().map(Reflexive::poll_timeout);
        reflexive.chain(self.relays.iter().map(Relay::poll_timeout)).chain(late).min()
    }
}
