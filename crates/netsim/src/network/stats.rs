//! Counters of a run.

use serde::Serialize;

use crate::path::{ArrivalStats, PathStats};

/// Counters of one direction of a link. Bytes are those of IP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LinkStats {
    /// Packets that entered, and their fates.
    pub path: PathStats,
    /// Packets that arrived.
    pub arrivals: ArrivalStats,
}

impl LinkStats {
    /// Counters of a direction with this path.
    #[must_use]
    pub const fn new(path: PathStats, arrivals: ArrivalStats) -> Self {
        Self { path, arrivals }
    }
}

/// Counters of one host. Bytes exclude IP and UDP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct HostStats {
    /// Packets that arrived.
    pub packets_in: u64,
    /// The bytes of these packets.
    pub bytes_in: u64,
    /// Packets that the host sent.
    pub packets_out: u64,
    /// The bytes of these packets.
    pub bytes_out: u64,
    /// Packets without a route, and packets that do not fit into an IP packet.
    pub unsendable: u64,
    /// Packets that arrived for an address that the host does not have.
    pub misdelivered: u64,
}

impl NetworkStats {
    /// Adds the counters of a part.
    pub(super) const fn add(&mut self, part: &Self) {
        let Self { events, no_route, hop_limit_exceeded } = *part;
        self.events += events;
        self.no_route += no_route;
        self.hop_limit_exceeded += hop_limit_exceeded;
    }
}

/// Counters of the whole network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct NetworkStats {
    /// Events processed: arrivals, deadlines, calls.
    pub events: u64,
    /// Packets for which a router had no route.
    pub no_route: u64,
    /// Packets whose hop limit was exceeded.
    pub hop_limit_exceeded: u64,
}
