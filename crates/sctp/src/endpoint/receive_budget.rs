//! What all associations hold of received data until the application reads it, together.
//!
//! Each association has a receive buffer of its own. A program that does not read, or a server with very many peers,
//! would hold one of them for each: this is the limit of all. At the limit no association offers a window but one packet to
//! a peer of which nothing waits to be read; data within the windows that were offered before is accepted up to twice the
//! limit.

use super::lookup::Slot;
use crate::association::Room;

/// The bytes that are held, and their limit.
#[derive(Debug)]
pub(super) struct ReceiveBudget {
    limit: u64,
    held: u64,
}

impl ReceiveBudget {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit: limit as u64, held: 0 }
    }

    /// Called before the association is called: it may hold what the others leave.
    #[inline]
    pub(super) fn lend(&self, slot: &mut Slot) {
        let others = self.held - u64::from(slot.charged);
        // More than any receive buffer makes no difference.
        let of = |limit: u64| u32::try_from(limit.saturating_sub(others)).unwrap_or(u32::MAX);
        let room = Room { bytes: of(self.limit), promised: of(self.limit.saturating_mul(2)) };
        slot.association.inbound.set_room(room);
    }

    /// Called after the association was called.
    #[inline]
    pub(super) fn settle(&mut self, slot: &mut Slot) {
        // At most two receive buffers.
        let held = slot.association.inbound.held_bytes() as u32;
        self.held = self.held - u64::from(slot.charged) + u64::from(held);
        slot.charged = held;
    }

    /// Called when the association was removed.
    pub(super) fn release(&mut self, removed: Option<&Slot>) {
        self.held -= removed.map_or(0, |slot| slot.charged.into());
    }
}
