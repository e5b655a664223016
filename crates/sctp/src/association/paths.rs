//! The paths of an association: the ways between addresses of ours and of the peer
//! (RFC 9260 §5.1.2, §6.4). One path is the special case in which the list has one entry.
//!
//! A path is an address of the peer with the address of ours from which it is reached. Each address
//! of the peer has one, and each of ours that would have none gets one, too: two hosts with two
//! addresses each have two paths, and so has a host with two addresses to one with a single
//! address. Both ends come to the same pairs where the networks tell the addresses apart.
//!
//! What is known of each, whether it works and which of them data take, is kept in loss recovery,
//! under the same index.

use std::net::{IpAddr, SocketAddr};

use rexmit_core::{Instant, Route};

use super::addresses::{local_for, nearest_of, unspecified_like, unused_locals};
use super::heartbeat::Heartbeat;
use super::thin::Sampling;
use crate::config::MAX_ADDRESSES;

/// One path.
#[derive(Debug)]
pub(super) struct PathEntry {
    pub(super) route: Route,
    /// The local address was chosen among our own, and is not the driver's to change.
    is_local_chosen: bool,
    /// One of its addresses was deleted. Its place, which is its number, may be taken by another.
    is_removed: bool,
    pub(super) heartbeat: Heartbeat,
    pub(super) sampling: Sampling,
    /// When something that measures the path was last sent over it (RFC 9260 §8.3, "idle").
    pub(super) last_used: Instant,
}

impl PathEntry {
    fn new(route: Route, own: &[IpAddr]) -> Self {
        Self {
            route,
            is_local_chosen: own.contains(&route.local.ip()),
            is_removed: false,
            heartbeat: Heartbeat::Off,
            sampling: Sampling::default(),
            last_used: Instant::ZERO,
        }
    }

    pub(super) const fn is_removed(&self) -> bool {
        self.is_removed
    }

    /// Whether a HEARTBEAT is to leave now, to see whether the peer is there or how far away.
    pub(super) fn is_heartbeat_due(&self) -> bool {
        matches!(self.heartbeat, Heartbeat::Due) || self.sampling.is_due()
    }
}

/// All paths of an association; never empty.
#[derive(Debug)]
pub(super) struct Paths {
    entries: Vec<PathEntry>,
    /// That of the last packet.
    latest: usize,
}

impl Paths {
    /// The ways that the application named, or that the peer came by; `own` are the addresses that a
    /// peer is told.
    pub(super) fn new(routes: &[Route], own: &[IpAddr]) -> Self {
        let entry = |&route: &Route| {
            let chosen = Some(route.local.ip())
                .filter(IpAddr::is_unspecified)
                .and_then(|_| local_for(route.remote.ip(), own, routes));
            PathEntry::new(Route { local: chosen.unwrap_or(route.local), ..route }, own)
        };
        Self { entries: routes.iter().map(entry).collect(), latest: 0 }
    }

    /// The peer can also be reached at `remotes`; they keep the encapsulation port of the first
    /// path. Returns how many paths there are more.
    pub(super) fn add(&mut self, remotes: &[IpAddr], own: &[IpAddr]) -> usize {
        let before = self.entries.len();
        for &remote in remotes {
            if self.find(remote).is_none() && self.address_count() <= MAX_ADDRESSES {
                let port = self.entries[0].route.remote.port();
                self.add_remote(SocketAddr::new(remote, port), own);
            }
        }
        self.add_unused_locals(own);
        self.entries.len() - before
    }

    /// The peer can also be reached at `remote`. Returns the path; `None` if there is no address of
    /// ours from which it could be.
    pub(super) fn add_remote(&mut self, remote: SocketAddr, own: &[IpAddr]) -> Option<u8> {
        let local = local_for(remote.ip(), own, &self.routes())?;
        Some(self.enter(PathEntry::new(Route { local, remote }, own)))
    }

    /// The paths of addresses of our own that had none.
    pub(super) fn add_unused_locals(&mut self, own: &[IpAddr]) -> Vec<u8> {
        let ways = unused_locals(own, &self.routes());
        ways.into_iter().map(|route| self.enter(PathEntry::new(route, own))).collect()
    }

    /// Takes the place of a path that was removed, if there is one.
    fn enter(&mut self, entry: PathEntry) -> u8 {
        let index = self.entries.iter().position(|path| path.is_removed);
        match index {
            Some(index) => self.entries[index] = entry,
            None => self.entries.push(entry),
        }
        index.unwrap_or(self.entries.len() - 1) as u8
    }

    /// The path is no more.
    pub(super) fn remove(&mut self, path: u8) {
        let entry = self.get_mut(path);
        (entry.is_removed, entry.heartbeat) = (true, Heartbeat::Off);
        entry.sampling = Sampling::default();
        let first = self.live().next().map(|(path, _)| usize::from(path));
        self.latest = first.unwrap_or_default();
    }

    /// The path begins at `local` from now on.
    pub(super) fn redirect(&mut self, path: u8, local: SocketAddr) {
        let entry = self.get_mut(path);
        (entry.route.local, entry.is_local_chosen) = (local, true);
        entry.sampling = Sampling::default();
    }

    /// The local addresses that are in use are settled: those that are not `own` are the driver's.
    pub(super) fn settle_locals(&mut self, own: &[IpAddr]) {
        for entry in &mut self.entries {
            entry.is_local_chosen = own.contains(&entry.route.local.ip());
        }
    }

    /// Our own addresses from which paths begin, each once.
    pub(super) fn own_locals(&self) -> Vec<IpAddr> {
        let mut own = Vec::new();
        for (_, path) in self.live().filter(|(_, path)| path.is_local_chosen) {
            if !own.contains(&path.route.local.ip()) {
                own.push(path.route.local.ip());
            }
        }
        own
    }

    /// Of `choices`, the address from which `path` is to begin instead of its own; one that the driver
    /// chooses, if there is none of its family.
    pub(super) fn local_instead(&self, path: u8, choices: &[IpAddr]) -> SocketAddr {
        let Route { local, remote } = self.get(path).route;
        let others: Vec<Route> =
            self.live().filter(|&(other, _)| other != path).map(|(_, it)| it.route).collect();
        let chosen = nearest_of(remote.ip(), choices, &others);
        SocketAddr::new(chosen.unwrap_or(unspecified_like(remote.ip())), local.port())
    }

    /// Whether a path other than `path` leads from `local` to `remote`.
    pub(super) fn has_other(&self, path: u8, local: IpAddr, remote: IpAddr) -> bool {
        self.live().any(|(other, entry)| {
            other != path && entry.route.local.ip() == local && entry.route.remote.ip() == remote
        })
    }

    /// The paths that were not removed.
    pub(super) fn live(&self) -> impl Iterator<Item = (u8, &PathEntry)> {
        (0..).zip(&self.entries).filter(|(_, path)| !path.is_removed)
    }

    fn routes(&self) -> Vec<Route> {
        self.live().map(|(_, path)| path.route).collect()
    }

    pub(super) const fn len(&self) -> u8 {
        self.entries.len() as u8
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, PathEntry> {
        self.entries.iter()
    }

    /// How many addresses of the peer there are.
    pub(super) fn address_count(&self) -> usize {
        let is_first = |(index, path): &(u8, &PathEntry)| {
            self.find(path.route.remote.ip()) == Some(usize::from(*index))
        };
        self.live().filter(is_first).count()
    }

    fn find(&self, address: IpAddr) -> Option<usize> {
        let is_it = |path: &PathEntry| path.route.remote.ip() == address && !path.is_removed;
        self.entries.iter().position(is_it)
    }

    pub(super) fn get(&self, path: u8) -> &PathEntry {
        &self.entries[usize::from(path)]
    }

    pub(super) fn get_mut(&mut self, path: u8) -> &mut PathEntry {
        &mut self.entries[usize::from(path)]
    }

    /// The first path over which a HEARTBEAT is to leave now.
    pub(super) fn with_heartbeat_due(&self) -> Option<u8> {
        self.entries.iter().position(PathEntry::is_heartbeat_due).map(|index| index as u8)
    }

    /// A packet with the right tag came over `route`: its encapsulation port is where the peer is
    /// reached from now on (RFC 6951 §5.4), and a local address that was not chosen here is where
    /// it is reached from. Returns its path; `None` if the address is none of the peer's.
    pub(super) fn on_packet(&mut self, route: Route) -> Option<u8> {
        if self.entries[self.latest].route != route || self.entries[self.latest].is_removed {
            self.latest = self.learn(route)?;
        }
        Some(self.latest as u8)
    }

    fn learn(&mut self, route: Route) -> Option<usize> {
        let is_exact = |path: &PathEntry| {
            let ips = |route: Route| (route.local.ip(), route.remote.ip());
            ips(path.route) == ips(route) && !path.is_removed
        };
        let exact = self.entries.iter().position(is_exact);
        let index = exact.or_else(|| self.find(route.remote.ip()))?;
        let entry = &mut self.entries[index];
        entry.route.remote = route.remote;
        let is_told = !route.local.ip().is_unspecified();
        if exact.is_some() || (is_told && !entry.is_local_chosen) {
            entry.route.local = route.local;
        }
        Some(index)
    }
}
