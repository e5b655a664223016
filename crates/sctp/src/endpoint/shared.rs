//! State shared by the associations of an endpoint: the budgets of copies per destination, and the receive budget.

use super::destinations::Destinations;
use super::lookup::Slot;
use super::receive_budget::ReceiveBudget;

/// The shared budgets. An association uses its part of them while it is called.
#[derive(Debug)]
pub(super) struct Shared {
    destinations: Destinations,
    receive_budget: ReceiveBudget,
}

impl Shared {
    pub(super) fn new(max_receive_bytes: usize) -> Self {
        Self {
            destinations: Destinations::default(),
            receive_budget: ReceiveBudget::new(max_receive_bytes),
        }
    }

    /// Called before the association is called.
    #[inline]
    pub(super) fn lend(&mut self, slot: &mut Slot) {
        self.destinations.exchange(slot);
        self.receive_budget.lend(slot);
    }

    /// Called after the association was called.
    #[inline]
    pub(super) fn take_back(&mut self, slot: &mut Slot) {
        self.destinations.exchange(slot);
    }

    /// Whether the association certainly has nothing to send, with its part of what is shared.
    pub(super) fn is_certain_to_be_silent(&mut self, slot: &mut Slot) -> bool {
        self.lend(slot);
        let is_silent = slot.association.is_certain_to_be_silent();
        self.take_back(slot);
        is_silent
    }

    /// Called after the association may have changed its destination, or what it holds of received data.
    #[inline]
    pub(super) fn update(&mut self, slot: &mut Slot) {
        self.destinations.follow(slot);
        self.receive_budget.settle(slot);
    }

    /// Whether [`Self::update`] would change nothing.
    pub(super) fn is_up_to_date(&self, slot: &Slot) -> bool {
        Destinations::is_followed(slot) && self.receive_budget.is_settled(slot)
    }

    /// Called when the association was removed, for what it could not deliver.
    pub(super) fn release(&mut self, removed: Option<&Slot>) {
        self.receive_budget.release(removed);
    }

    /// Whether no association holds received data.
    pub(super) const fn is_free(&self) -> bool {
        self.receive_budget.is_free()
    }
}
