//! What happened in a run, in numbers.

use serde::Serialize;

use crate::path::{ArrivalStats, PathStats};

/// Counts of one direction of a link. Bytes are those of IP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LinkStats {
    /// Offered packets, and the decisions about them.
    pub path: PathStats,
    /// Received data.
    pub arrivals: ArrivalStats,
}

/// Counts of one host. Bytes are those the machine sees, without IP or UDP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HostStats {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets that were sent.
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
