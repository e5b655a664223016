//! The counters of a network.

use rexmit_core::Machine;

use super::Network;
use super::ids::{Direction, HostId, LinkId};
use super::stats::{HostStats, LinkStats, NetworkStats};

impl<M: Machine> Network<M> {
    /// The counters of one direction of a link.
    #[must_use]
    pub fn link_stats(&self, link: LinkId, direction: Direction) -> LinkStats {
        let end = link.end(direction);
        LinkStats { path: *self.entries[end].path.stats(), arrivals: self.exits[end].arrivals }
    }

    /// The counters of a host.
    #[must_use]
    pub fn host_stats(&self, host: HostId) -> &HostStats {
        &self.hosts[host.0 as usize].stats
    }

    /// The counters of the whole network.
    #[must_use]
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }

    /// The number of packets in flight, and the largest number of packet buffers used at once.
    #[must_use]
    pub fn packets_in_flight(&self) -> (usize, usize) {
        self.packets.usage()
    }

    /// The number of scheduled events: packets in flight and calls, and a departure for each link with packets in queues of
    /// FQ-CoDel. Timers are not included.
    #[must_use]
    pub fn scheduled_events(&self) -> usize {
        self.agenda.len()
    }
}
