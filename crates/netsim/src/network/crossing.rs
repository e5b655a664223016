//! Packets from one part of a network to another.

use std::sync::Arc;

use super::agenda::Key;
use super::packets::Packet;

/// A packet on a link to another part, and the key of its arrival.
pub(super) struct Crossing {
    pub(super) link: usize,
    pub(super) key: Key,
    pub(super) packet: Packet,
}

/// The other parts, as seen by one.
pub(super) struct Others {
    /// The number of this part.
    own: usize,
    /// The part at the end of each link direction.
    part_at_end: Arc<[usize]>,
    /// Packets for the other parts, by part.
    pub(super) outbox: Vec<Vec<Crossing>>,
}

impl Others {
    pub(super) fn new(own: usize, parts: usize, part_at_end: Arc<[usize]>) -> Self {
        Self { own, part_at_end, outbox: (0..parts).map(|_| Vec::new()).collect() }
    }

    /// The part at the end of a link direction, if it is another one.
    pub(super) fn part_at_end(&self, link: usize) -> Option<usize> {
        Some(self.part_at_end[link]).filter(|&part| part != self.own)
    }

    pub(super) fn send(&mut self, part: usize, crossing: Crossing) {
        self.outbox[part].push(crossing);
    }
}
