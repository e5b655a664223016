//! The counters of a network.

use rexmit_core::Machine;

use super::Network;
use super::ids::{Direction, HostId, LinkId};
use super::stats::{HostStats, LinkStats, NetworkStats};

impl<M: Machine> Network<M> {
    /// Counts of one direction of a link.
    #[must_use]
    pub fn link_stats(&self, link: LinkId, direction: Direction) -> LinkStats {
        let end = &self.links[link.end(direction)];
        LinkStats { path: *end.path.stats(), arrivals: end.arrivals }
    }

    /// Counts of a host.
    #[must_use]
    pub fn host_stats(&self, host: HostId) -> &HostStats {
        &self.hosts[host.0 as usize].stats
    }

    /// Counts of the whole network.
    #[must_use]
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }

    /// Packets under way now, and buffers for packets ever needed at once.
    #[must_use]
    pub fn packets_under_way(&self) -> (usize, usize) {
        self.packets.usage()
    }

    /// Events scheduled now: packets under way and calls. Timers take no room.
    #[must_use]
    pub fn scheduled_events(&self) -> usize {
        self.agenda.len()
    }
}
