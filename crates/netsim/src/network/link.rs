//! One direction of a link: the end at which packets enter, and the one at which they arrive.

use std::collections::BTreeMap;

use rexmit_core::Instant;

use super::ids::{Direction, LinkId};
use super::packets::Slot;
use super::tap;
use crate::path::{ArrivalStats, PathModel};

/// Where packets enter a link direction; the numbers of the two directions of a link are adjacent.
pub(super) struct LinkEntry {
    pub(super) path: PathModel,
    /// Packets that the path holds back, by number.
    pub(super) held: Vec<(u64, Slot)>,
    /// Boxed because few links have any.
    pub(super) waiting: Option<Box<Waiting>>,
    pub(super) taps: Vec<tap::Interface>,
}

/// Where packets arrive over a link direction.
#[derive(Default)]
pub(super) struct LinkExit {
    pub(super) arrivals: ArrivalStats,
    pub(super) taps: Vec<tap::Interface>,
}

/// The packets that wait in the path's queues of FQ-CoDel.
#[derive(Default)]
pub(super) struct Waiting {
    /// By number.
    pub(super) packets: BTreeMap<u64, Slot>,
    /// The time of the scheduled departure.
    pub(super) departure_at: Option<Instant>,
}

impl LinkId {
    /// The index of a direction among all link ends.
    pub(super) const fn end(self, direction: Direction) -> usize {
        let link = self.0 as usize * 2;
        match direction {
            Direction::Forward => link,
            Direction::Backward => link + 1,
        }
    }
}

/// The direction with this index among all link ends.
pub(super) const fn direction_of(end: usize) -> (LinkId, Direction) {
    let direction = if end.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
    (LinkId((end / 2) as u32), direction)
}

impl LinkEntry {
    pub(super) const fn new(path: PathModel) -> Self {
        Self { path, held: Vec::new(), waiting: None, taps: Vec::new() }
    }

    /// The slots of all packets that have entered and wait.
    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        let waiting = self.waiting.iter_mut().flat_map(|waiting| waiting.packets.values_mut());
        self.held.iter_mut().map(|(_, slot)| slot).chain(waiting)
    }

    /// Removes a packet that was held back.
    pub(super) fn release(&mut self, number: u64) -> Option<Slot> {
        let place = self.held.iter().position(|&(held, _)| held == number)?;
        Some(self.held.remove(place).1)
    }
}
