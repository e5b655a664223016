//! Identifiers of hosts, routers, links and packets of a network.

/// A host of a [`Network`](super::Network).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub(super) u32);

/// A router of a [`Network`](super::Network).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouterId(pub(super) u32);

/// A host or a router, as an end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(super) u32);

/// A link, which has two directions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub(super) u32);

/// A direction of a link, relative to the order in which its ends were passed to `add_link`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
}

/// Identifies a packet on its whole way, over all links. Packets are counted from 0 in the whole
/// network, and with gaps in a run on several threads; a duplicate made by a link has the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId(pub u64);
