//! The counters of an emulator.

use rexmit_netsim::path::{ArrivalStats, PathStats};
#[cfg(feature = "serde")]
use serde::Serialize;

use super::lateness::Lateness;
use super::priority::Priority;

/// The counters of the emulator so far.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct EmulatorStatistics {
    /// Packets from the clients to the server.
    pub forward: DirectionStatistics,
    /// Packets from the server to the clients.
    pub backward: DirectionStatistics,
    /// Clients known now.
    pub clients: usize,
    /// Packets dropped because [`max_clients`](super::EmulatorConfig::max_clients) was reached.
    pub refused: u64,
    /// Packets missing in the capture, because its writer failed or was too slow.
    pub uncaptured: u64,
    /// How late packets were sent, both directions together.
    pub lateness: Lateness,
    /// How the relay's thread is scheduled.
    pub priority: Priority,
}

/// The fate of the packets of one direction.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct DirectionStatistics {
    /// The decisions of the path.
    pub path: PathStats,
    /// Packets delivered by the path.
    pub arrivals: ArrivalStats,
    /// Packets dropped because too many were on the path.
    pub overflowed: u64,
    /// Packets delivered by the path that could not be sent: the client was forgotten, the socket's buffer
    /// was full, or the system refused.
    pub unsent: u64,
}
