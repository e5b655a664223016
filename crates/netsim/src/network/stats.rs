//! What happened in a run, in numbers.

use serde::Serialize;

use super::{Direction, HostId, LinkId, Network};
use crate::path::{ArrivalStats, PathStats};
use rexmit_core::Machine;

/// Counts of one direction of a link. Bytes are those of IP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LinkStats {
    /// What was offered, and what was decided about it.
    pub path: PathStats,
    /// What has arrived.
    pub arrivals: ArrivalStats,
}

/// Counts of one host. Bytes are those the machine sees, without IP or UDP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HostStats {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets that left.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Packets for which there was no route, or which do not fit into an IP packet.
    pub unsendable: u64,
    /// Packets that arrived for an address that the host does not have.
    pub misdelivered: u64,
}

/// Counts of the whole network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct NetworkStats {
    /// Things that happened: arrivals, deadlines, calls.
    pub events: u64,
    /// Packets for which a router knew no route.
    pub no_route: u64,
    /// Packets that had passed too many links.
    pub hop_limit_exceeded: u64,
}

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
