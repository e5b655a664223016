//! Packets that are held back until a number of later ones have passed.

use rexmit_core::Instant;

use super::{Delivery, Hold};

/// The packets that are held back now.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldPackets {
    plan: Vec<Hold>,
    next_planned: usize,
    held: Vec<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    delivery: Delivery,
    copy: Option<Delivery>,
    still: u32,
}

impl HeldPackets {
    pub(super) fn new(plan: &[Hold]) -> Self {
        let mut held = Self::default();
        held.reconfigure(plan);
        held
    }

    /// Replaces the plan. Packets already held keep their number of positions.
    pub(super) fn reconfigure(&mut self, plan: &[Hold]) {
        self.plan = plan.to_vec();
        self.plan.sort_unstable();
        self.next_planned = 0;
    }

    /// The number of positions by which packet `number` is to be held back, once it is offered. Numbers are ascending.
    pub(super) fn planned(&mut self, number: u64) -> Option<u32> {
        while self.plan.get(self.next_planned).is_some_and(|hold| hold.packet < number) {
            self.next_planned += 1;
        }
        self.plan.get(self.next_planned).filter(|hold| hold.packet == number).map(|hold| hold.by)
    }

    /// Holds a packet until `by` later ones have passed.
    pub(super) fn keep(&mut self, delivery: Delivery, copy: Option<Delivery>, by: u32) {
        self.held.push(Held { delivery, copy, still: by });
    }

    /// Records that a packet passes and arrives at `at`; it counts for packets held that were
    /// offered before it.
    pub(super) fn on_passed(&mut self, packet: u64, at: Instant) {
        let waiting = self.held.iter_mut().filter(|held| held.still > 0);
        for held in waiting.filter(|held| held.delivery.packet < packet) {
            held.still -= 1;
            held.delivery.at = held.delivery.at.max(at);
        }
    }

    /// Removes a packet whose condition is met, the earliest offered first, and its copy. The
    /// caller must call [`on_passed`](Self::on_passed) for it.
    pub(super) fn release(&mut self) -> Option<(Delivery, Option<Delivery>)> {
        let due = self.held.iter().position(|held| held.still == 0)?;
        let Held { delivery, copy, .. } = self.held.remove(due);
        let copy = copy.map(|copy| Delivery { at: copy.at.max(delivery.at), ..copy });
        Some((delivery, copy))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
