//! The paths of an association: where the peer can be reached, and whether it can
//! (RFC 9260 §5.4, §8.2). One path is the special case in which the list has one entry.

use rexmit_core::{Instant, Route};

use super::heartbeat::Heartbeat;
use super::thin::Sampling;
use crate::config::MAX_ADDRESSES;

/// The index of the path that data take.
pub(super) const PRIMARY: u8 = 0;

/// One path.
#[derive(Debug)]
pub(super) struct PathEntry {
    pub(super) route: Route,
    /// Whether the peer has proved to be there; others get no data (RFC 9260 §5.4).
    pub(super) is_confirmed: bool,
    pub(super) is_active: bool,
    /// Timeouts and unanswered HEARTBEATs in a row.
    pub(super) error_count: u32,
    pub(super) heartbeat: Heartbeat,
    pub(super) sampling: Sampling,
    /// When something that measures the path was last sent over it (RFC 9260 §8.3, "idle").
    pub(super) last_used: Instant,
}

impl PathEntry {
    pub(super) fn new(route: Route, is_confirmed: bool) -> Self {
        Self {
            route,
            is_confirmed,
            is_active: true,
            error_count: 0,
            heartbeat: Heartbeat::Off,
            sampling: Sampling::default(),
            last_used: Instant::ZERO,
        }
    }
}

/// All paths of an association; never empty.
#[derive(Debug)]
pub(super) struct Paths(Vec<PathEntry>);

impl Paths {
    pub(super) fn new(primary: Route) -> Self {
        Self(vec![PathEntry::new(primary, true)])
    }

    /// Adds an address of the peer, not confirmed; it keeps the encapsulation port of the primary.
    /// Returns whether it was new, and there was room for it.
    pub(super) fn add(&mut self, address: std::net::IpAddr) -> bool {
        if self.find(address).is_some() || self.0.len() > MAX_ADDRESSES {
            return false;
        }
        let primary = self.primary().route;
        let remote = std::net::SocketAddr::new(address, primary.remote.port());
        self.0.push(PathEntry::new(Route { remote, ..primary }, false));
        true
    }

    pub(super) fn primary(&self) -> &PathEntry {
        &self.0[usize::from(PRIMARY)]
    }

    pub(super) fn primary_mut(&mut self) -> &mut PathEntry {
        &mut self.0[usize::from(PRIMARY)]
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, PathEntry> {
        self.0.iter()
    }

    pub(super) fn find(&self, address: std::net::IpAddr) -> Option<usize> {
        self.0.iter().position(|path| path.route.remote.ip() == address)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut PathEntry> {
        self.0.get_mut(index)
    }

    /// A packet with the right tag came over `route`: its encapsulation port is where the peer is
    /// reached from now on (RFC 6951 §5.4). Returns the path on which to answer: the packet's own,
    /// or the primary while that is not confirmed. `None` if the address is none of the peer's.
    pub(super) fn on_packet(&mut self, route: Route) -> Option<u8> {
        let index = self.find(route.remote.ip())?;
        self.0[index].route = route;
        let is_confirmed = self.0[index].is_confirmed;
        u8::try_from(index).ok().map(|index| if is_confirmed { index } else { PRIMARY })
    }
}
