//! The counters of an emulator.

use rexmit_netsim::path::{ArrivalStats, PathStats};
use serde::Serialize;

use super::lateness::Lateness;
use super::priority::Priority;

/// The counters of the emulator so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct EmulatorStatistics {
    /// Packets from the clients to the server.
    pub forward: DirectionStatistics,
    /// Packets from the server to the clients.
    pub backward: DirectionStatistics,
    /// Clients known now.
    pub clients: usize,
    /// Packets dropped because they came from one client too many.
    pub refused: u64,
    /// Packets that are missing in the capture, because its writer failed or did not keep up.
    pub uncaptured: u64,
    /// How late packets left, both directions together.
    pub lateness: Lateness,
    /// How the relay's thread is scheduled.
    pub priority: Priority,
}

/// What became of the packets of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DirectionStatistics {
    /// The decisions of the path.
    pub path: PathStats,
    /// What came out of it.
    pub arrivals: ArrivalStats,
    /// Dropped because too many packets were under way.
    pub overflowed: u64,
    /// Came out of the path but could not be sent: the client is forgotten, the socket's buffer is
    /// full, or the system refused.
    pub unsent: u64,
}
