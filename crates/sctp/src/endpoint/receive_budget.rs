//! What all associations hold of received data until the application reads it, together.
//!
//! Each association has a receive buffer of its own. A program that does not read, or a server with very many peers,
//! would hold one of them for each: this is the limit of all. At the limit an association keeps what is reserved for it, and
//! one packet at a time beyond that if nothing of its peer waits to be read. Chunks and messages are charged with their
//! overhead.

use super::lookup::Slot;

/// The bytes that are charged, and their limit.
#[derive(Debug)]
pub(super) struct ReceiveBudget {
    limit: u64,
    charged: u64,
}

impl ReceiveBudget {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit: limit as u64, charged: 0 }
    }

    /// Called before the association is called: it may hold what the others leave.
    #[inline]
    pub(super) fn lend(&self, slot: &mut Slot) {
        let others = self.charged - u64::from(slot.charged);
        let room = self.limit.saturating_sub(others);
        // More than any receive buffer makes no difference.
        slot.association.inbound.set_room(u32::try_from(room).unwrap_or(u32::MAX));
    }

    /// Called after the association was called.
    #[inline]
    pub(super) fn settle(&mut self, slot: &mut Slot) {
        // At most two receive buffers and their overhead.
        let charged = slot.association.inbound.charged_bytes() as u32;
        self.charged = self.charged - u64::from(slot.charged) + u64::from(charged);
        slot.charged = charged;
    }

    /// Whether what the association holds is what is charged for it.
    pub(super) fn is_settled(&self, slot: &Slot) -> bool {
        slot.association.inbound.charged_bytes() == slot.charged as usize
    }

    /// Called when the association was removed: what it could not deliver is gone with it.
    pub(super) fn release(&mut self, removed: Option<&Slot>) {
        self.charged -= removed.map_or(0, |slot| slot.charged.into());
    }

    /// Whether nothing is charged, as without associations.
    pub(super) const fn is_free(&self) -> bool {
        self.charged == 0
    }
}
