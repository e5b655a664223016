//! Ids of associations.

use rexmit_core::table::Key;

/// The id of an association of an endpoint. It is never used again for another association.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(pub(crate) Key);

impl AssociationId {
    /// The number of the association in trace events. It may be used again after the association has ended.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.index()
    }

    /// The id as an integer, for bindings to other languages.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// The inverse of [`to_bits`](Self::to_bits). Calls with an id made from any other number fail, or concern another
    /// association.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(Key::from_bits(bits))
    }
}
