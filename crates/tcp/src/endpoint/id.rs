//! Ids of connections.

use rexmit_core::table::Key;

/// The id of a connection of an endpoint. It is never used again for another connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub(super) Key);

impl ConnectionId {
    /// The number of the connection in trace events. It may be used again after the connection has ended.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index()
    }

    #[cfg(test)]
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self(Key::new(index, generation))
    }
}
