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
}
