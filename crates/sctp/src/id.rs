//! What names an association of an endpoint.

use rexmit_core::table::Key;

/// Names an association of an endpoint. An id is not used again for another association.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(pub(crate) Key);

impl AssociationId {
    /// The number that trace events bear; it is used again after the association is gone.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index()
    }

    /// The id as a number, for languages that know no other handles.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// The id that [`to_bits`](Self::to_bits) made this number of. With any other number calls fail, or concern
    /// another association.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(Key::from_bits(bits))
    }
}
