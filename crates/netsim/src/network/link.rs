//! One direction of a link.

use std::collections::BTreeMap;

use rexmit_core::Instant;

use super::ids::{Direction, LinkId, NodeId};
use super::packets::Slot;
use super::tap;
use crate::path::{ArrivalStats, PathModel};

/// One direction of a link; the two directions of a link are adjacent.
pub(super) struct LinkEnd {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) path: PathModel,
    pub(super) arrivals: ArrivalStats,
    /// Packets that the path holds back, by number.
    pub(super) held: Vec<(u64, Slot)>,
    /// Boxed because few links have any.
    pub(super) waiting: Option<Box<Waiting>>,
    pub(super) entry_taps: Vec<tap::Interface>,
    pub(super) exit_taps: Vec<tap::Interface>,
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

impl LinkEnd {
    pub(super) fn new(from: NodeId, to: NodeId, path: PathModel) -> Self {
        Self {
            from,
            to,
            path,
            arrivals: ArrivalStats::default(),
            held: Vec::new(),
            waiting: None,
            entry_taps: Vec::new(),
            exit_taps: Vec::new(),
        }
    }

    /// Removes a packet that was held back.
    pub(super) fn release(&mut self, number: u64) -> Option<Slot> {
        let place = self.held.iter().position(|&(held, _)| held == number)?;
        Some(self.held.remove(place).1)
    }
}
