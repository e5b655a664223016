//! The names of connections.

/// Names a connection of an endpoint. An id is not used again for another connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

impl ConnectionId {
    /// The number that trace events bear; it is used again after the connection is gone.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// How many connections had this index before.
    pub(super) const fn generation(self) -> u32 {
        self.generation
    }
}
