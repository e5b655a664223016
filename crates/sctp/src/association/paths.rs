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

use std::net::IpAddr;

use rexmit_core::{Instant, Route};

use super::addresses::{local_for, unused_locals};
use super::heartbeat::Heartbeat;
use super::thin::Sampling;
use crate::config::MAX_ADDRESSES;

/// One path.
#[derive(Debug)]
pub(super) struct PathEntry {
    pub(super) route: Route,
    /// The local address was chosen among our own, and is not the driver's to change.
    is_local_chosen: bool,
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
            heartbeat: Heartbeat::Off,
            sampling: Sampling::default(),
            last_used: Instant::ZERO,
        }
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
            let routes = self.routes();
            if self.find(remote).is_some() || self.address_count() > MAX_ADDRESSES {
                continue;
            }
            let Some(local) = local_for(remote, own, &routes) else { continue };
            let remote = std::net::SocketAddr::new(remote, routes[0].remote.port());
            self.entries.push(PathEntry::new(Route { local, remote }, own));
        }
        let ways = unused_locals(own, &self.routes());
        self.entries.extend(ways.into_iter().map(|route| PathEntry::new(route, own)));
        self.entries.len() - before
    }

    fn routes(&self) -> Vec<Route> {
        self.entries.iter().map(|path| path.route).collect()
    }

    pub(super) const fn len(&self) -> u8 {
        self.entries.len() as u8
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, PathEntry> {
        self.entries.iter()
    }

    /// How many addresses of the peer there are.
    fn address_count(&self) -> usize {
        let is_first =
            |&(index, path): &(usize, &PathEntry)| self.find(path.route.remote.ip()) == Some(index);
        self.entries.iter().enumerate().filter(is_first).count()
    }

    fn find(&self, address: IpAddr) -> Option<usize> {
        self.entries.iter().position(|path| path.route.remote.ip() == address)
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
        if self.entries[self.latest].route != route {
            self.latest = self.learn(route)?;
        }
        Some(self.latest as u8)
    }

    fn learn(&mut self, route: Route) -> Option<usize> {
        let is_exact = |path: &PathEntry| {
            let ips = |route: Route| (route.local.ip(), route.remote.ip());
            ips(path.route) == ips(route)
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
