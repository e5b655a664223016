//! The names of connections.

use rexmit_core::table::Key;

/// Names a connection of an endpoint. An id is not used again for another connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub(super) Key);

impl ConnectionId {
    /// The number that trace events bear; it is used again after the connection is gone.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index()
    }

    #[cfg(test)]
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self(Key::new(index, generation))
    }
}
