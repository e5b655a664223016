//! The events of a network.

use super::ids::HostId;
use super::packets::Slot;

/// A scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A packet reaches the end of a link direction.
    Arrival { link: u32, packet: Slot },
    /// A link direction may send the next packet of its queues.
    Departure { link: u32 },
    /// A call with a token is due.
    Wake { host: HostId, token: u64 },
    /// A closure is due.
    Call { host: HostId, call: u32 },
}
