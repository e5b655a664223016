//! The paths of an association: the routes between addresses of ours and of the peer
//! (RFC 9260 §5.1.2, §6.4). One path is the special case in which the list has one entry.
//!
//! A path is an address of the peer with the address of ours from which it is reached. Each address of the peer has a
//! path, and a local address that no path uses gets an additional one: two hosts with two addresses each have two
//! paths, and so do a host with two addresses and one with a single address. Both ends form the same pairs where the
//! networks distinguish the addresses.
//!
//! The state of each, and the path of data, are kept in loss recovery,
//! under the same index.

mod discovery;
mod failure;
mod heartbeat;
mod packet_size;
mod port_probe;
mod sampling;
mod watch;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rexmit_core::{Instant, Route};
use rexmit_recovery::PathChange;

use super::addresses::{local_for, nearest_of, routed_local, unspecified_like, unused_locals};
use super::context::{Context, Recovery, Surroundings};
use crate::config::{AssociationConfig, MAX_ADDRESSES, SourceAddresses};

use failure::Errors;
use heartbeat::Heartbeat;
use packet_size::PacketSizes;
use port_probe::Transports;
use sampling::Sampling;

/// One path.
#[derive(Debug)]
pub(super) struct PathEntry {
    pub(super) route: Route,
    /// Whether the local address was chosen among our own, so that the driver must not replace it.
    is_local_chosen: bool,
    /// Whether the application knows it as the path of new data.
    is_followed: bool,
    /// Whether one of its addresses was deleted. A new path may replace it under the same number.
    is_removed: bool,
    heartbeat: Heartbeat,
    sampling: Sampling,
    /// The last time at which something that measures the path was sent over it (RFC 9260 §8.3, "idle").
    last_used: Instant,
}

impl PathEntry {
    fn new(route: Route, own: &[IpAddr]) -> Self {
        Self {
            route,
            is_local_chosen: own.contains(&route.local.ip()),
            is_followed: false,
            is_removed: false,
            heartbeat: Heartbeat::Off,
            sampling: Sampling::default(),
            last_used: Instant::ZERO,
        }
    }

    pub(super) const fn is_removed(&self) -> bool {
        self.is_removed
    }
}

/// The paths of an association; never empty.
#[derive(Debug)]
pub(super) struct Paths {
    config: Arc<AssociationConfig>,
    entries: Vec<PathEntry>,
    /// The path of the last packet received.
    latest: u8,
    /// The path of the last packet received over a confirmed path, which replies take (RFC 9260 §6.4).
    pub(super) reply: u8,
    /// The path of control chunks that belong to no particular path.
    control: u8,
    /// Consecutive timeouts and unanswered HEARTBEATs.
    pub(super) errors: Errors,
    source_addresses: SourceAddresses,
    /// Whether HEARTBEATs are sent (RFC 9260 §8.3).
    is_watched: bool,
    /// The peer's transport addresses, as they change.
    pub(super) transports: Transports,
    /// How large packets may be.
    pub(super) sizes: PacketSizes,
}

impl Paths {
    /// The paths along `routes`, which the application named or the peer's packets came over.
    pub(super) fn new(
        config: Arc<AssociationConfig>,
        routes: &[Route],
        around: &Surroundings,
    ) -> Self {
        let source_addresses = around.source_addresses;
        let own = match source_addresses {
            SourceAddresses::Paired => around.addresses.as_slice(),
            SourceAddresses::Routed => &[],
        };
        let entry = |&route: &Route| {
            let chosen = Some(route.local.ip())
                .filter(IpAddr::is_unspecified)
                .and_then(|_| local_for(route.remote.ip(), own, routes));
            PathEntry::new(Route { local: chosen.unwrap_or(route.local), ..route }, own)
        };
        let mut entries: Vec<PathEntry> = routes.iter().map(entry).collect();
        entries[0].is_followed = true;
        Self {
            sizes: PacketSizes::new(&config, routes),
            config,
            entries,
            latest: 0,
            reply: 0,
            control: 0,
            errors: Errors::default(),
            source_addresses,
            is_watched: false,
            transports: Transports::default(),
        }
    }

    /// Replaces the paths `before`, which the endpoint still has in its lookup table.
    pub(super) fn succeeding(mut self, before: &mut Self) -> Self {
        self.transports = std::mem::take(&mut before.transports).of_other_paths();
        self
    }

    /// Adds paths to further addresses of the peer, with the encapsulation port of the first path. Returns
    /// the number of paths added.
    pub(super) fn add(&mut self, remotes: &[IpAddr], own: &[IpAddr]) -> usize {
        let before = self.entries.len();
        for &remote in remotes {
            if self.find(remote).is_none() && self.address_count() <= MAX_ADDRESSES {
                let port = self.entries[0].route.remote.port();
                self.add_remote(SocketAddr::new(remote, port), own);
            }
        }
        if self.source_addresses == SourceAddresses::Paired {
            self.add_unused_locals(own);
        }
        self.entries.len() - before
    }

    /// Adds a path to a further address of the peer. Returns the path; `None` if none of our addresses can
    /// reach it.
    pub(super) fn add_remote(&mut self, remote: SocketAddr, own: &[IpAddr]) -> Option<u8> {
        let routes = self.routes();
        let (local, own) = match self.source_addresses {
            SourceAddresses::Paired => (local_for(remote.ip(), own, &routes)?, own),
            SourceAddresses::Routed => (routed_local(remote.ip(), own, &routes)?, &[][..]),
        };
        Some(self.enter(PathEntry::new(Route { local, remote }, own)))
    }

    /// The paths of addresses of our own that had none.
    pub(super) fn add_unused_locals(&mut self, own: &[IpAddr]) -> Vec<u8> {
        let routes = unused_locals(own, &self.routes());
        routes.into_iter().map(|route| self.enter(PathEntry::new(route, own))).collect()
    }

    /// Adds a path, in the place of a removed one if there is any. Returns its number.
    fn enter(&mut self, entry: PathEntry) -> u8 {
        self.transports.touch();
        let route = entry.route;
        let index = self.entries.iter().position(|path| path.is_removed);
        match index {
            Some(index) => self.entries[index] = entry,
            None => self.entries.push(entry),
        }
        let path = index.unwrap_or(self.entries.len() - 1) as u8;
        self.sizes.begin(path, route);
        path
    }

    /// Removes `path`; another one exists.
    pub(super) fn end(&mut self, cx: &mut Context<'_>, recovery: &mut Recovery, path: u8) {
        self.remove(path);
        recovery.change_path(cx.now, path, PathChange::Removed, &mut cx.tracer());
        let data_path = recovery.paths().data_path();
        if self.control == path {
            self.control = data_path;
        }
        if self.reply == path {
            self.reply = data_path;
        }
        self.follow_data_path(cx, recovery);
    }

    fn remove(&mut self, path: u8) {
        let entry = self.get_mut(path);
        (entry.is_removed, entry.heartbeat) = (true, Heartbeat::Off);
        entry.sampling = Sampling::default();
        let remote = entry.route.remote;
        self.sizes.end(path);
        let first = self.live().next().map(|(path, _)| path);
        self.latest = first.unwrap_or_default();
        self.leave_remote(remote);
        self.transports.on_path_removed(path);
    }

    /// Changes the local address of a path to `local`, and starts the search for its packet size anew.
    pub(super) fn redirect(&mut self, path: u8, local: SocketAddr) {
        let entry = self.get_mut(path);
        (entry.route.local, entry.is_local_chosen) = (local, true);
        entry.sampling = Sampling::default();
        let route = entry.route;
        self.sizes.begin(path, route);
    }

    /// Marks the local addresses of paths as chosen here if they are in `own`; the driver may replace all others.
    pub(super) fn settle_locals(&mut self, own: &[IpAddr]) {
        for entry in &mut self.entries {
            entry.is_local_chosen = own.contains(&entry.route.local.ip());
        }
    }

    /// The addresses of ours from which paths begin, without repetitions.
    pub(super) fn own_locals(&self) -> Vec<IpAddr> {
        let mut own = Vec::new();
        for (_, path) in self.live().filter(|(_, path)| path.is_local_chosen) {
            if !own.contains(&path.route.local.ip()) {
                own.push(path.route.local.ip());
            }
        }
        own
    }

    /// The local address that replaces that of `path`: the address in `choices` nearest to the peer's. If none has the
    /// family of the peer's address, the unspecified address: then the driver chooses.
    pub(super) fn local_instead(&self, path: u8, choices: &[IpAddr]) -> SocketAddr {
        let Route { local, remote } = self.get(path).route;
        let others: Vec<Route> =
            self.live().filter(|&(other, _)| other != path).map(|(_, it)| it.route).collect();
        let chosen = nearest_of(remote.ip(), choices, &others);
        SocketAddr::new(chosen.unwrap_or(unspecified_like(remote.ip())), local.port())
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

    /// Whether DAC (delayed ACKs for several paths) applies: packets come over several paths, so a gap hardly
    /// indicates a loss.
    pub(super) fn has_dac(&self) -> bool {
        self.len() > 1 && self.config.recovery.sctp.cmt.is_some_and(|cmt| cmt.delayed_ack)
    }

    /// The peer's address on each path.
    pub(super) fn remotes(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.live().map(|(_, path)| path.route.remote.ip())
    }

    pub(super) fn has_remote(&self, address: IpAddr) -> bool {
        self.find(address).is_some()
    }

    fn find(&self, address: IpAddr) -> Option<usize> {
        let is_it = |path: &PathEntry| path.route.remote.ip() == address && !path.is_removed;
        self.entries.iter().position(is_it)
    }

    pub(super) fn get(&self, path: u8) -> &PathEntry {
        &self.entries[usize::from(path)]
    }

    fn get_mut(&mut self, path: u8) -> &mut PathEntry {
        &mut self.entries[usize::from(path)]
    }

    /// Called when a packet with the right tag arrived over `route`: a new encapsulation port may become the
    /// peer's (RFC 6951 §5.4; see [`port_probe`]), and its local address is used if none was chosen here.
    /// Returns its path; `None` if it is not an address of the peer.
    ///
    /// While heartbeats are disabled no new data is sent, and a changed port is followed at once.
    pub(super) fn on_packet(&mut self, route: Route) -> Option<u8> {
        let latest = self.get(self.latest);
        if latest.route != route || latest.is_removed {
            self.latest = self.learn(route)?;
        }
        Some(self.latest)
    }

    fn learn(&mut self, route: Route) -> Option<u8> {
        let is_exact = |path: &PathEntry| {
            let ips = |route: Route| (route.local.ip(), route.remote.ip());
            ips(path.route) == ips(route) && !path.is_removed
        };
        let exact = self.entries.iter().position(is_exact);
        let index = exact.or_else(|| self.find(route.remote.ip()))?;
        let path = index as u8;
        if self.entries[index].route.remote != route.remote {
            if self.is_watched {
                self.transports.suspect(path, route.remote);
            } else {
                self.follow_port(path, route.remote);
            }
        }
        let entry = &mut self.entries[index];
        let is_told = !route.local.ip().is_unspecified();
        if exact.is_some() || (is_told && !entry.is_local_chosen) {
            entry.route.local = route.local;
        }
        Some(path)
    }
}
