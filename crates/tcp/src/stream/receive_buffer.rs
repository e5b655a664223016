//! Received bytes: those in order wait for the application, those beyond a gap for the gap to be filled. Both
//! are in one ring, at their final place, so that a byte is copied once when received and once when read.

use rexmit_core::RangeSet;

use super::ring::Ring;
use crate::wire::{MAX_SACK_BLOCKS, SackBlocks};

/// The result of inserting the bytes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inserted {
    /// The number of bytes by which the data received in order grew.
    pub(crate) advanced: u64,
    /// Whether a part of a gap was filled.
    pub(crate) has_filled: bool,
    /// Whether some of the bytes are beyond a gap.
    pub(crate) is_beyond_gap: bool,
    /// The first range of bytes in the segment that had arrived before: its first number, and the one after its last.
    pub(crate) duplicate: Option<(u64, u64)>,
    /// Whether the segment was dropped because of a limit.
    pub(crate) is_dropped: bool,
}

impl Inserted {
    /// Whether all bytes of the segment had arrived before.
    pub(crate) const fn is_known(&self) -> bool {
        self.advanced == 0 && !self.is_beyond_gap && !self.is_dropped
    }
}

/// The received bytes that the application has not read. Accepted bytes are never dropped.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    /// The next sequence number in order.
    next: u64,
    /// Unread bytes up to `next`, and after them the bytes beyond gaps, at their places.
    ring: Ring,
    /// The number of bytes in order, which can be read.
    readable: usize,
    /// Sequence numbers beyond a gap.
    held: RangeSet,
    /// A sequence number in each of the ranges that changed last, the newest first (RFC 2018 §4).
    recent: [u64; MAX_SACK_BLOCKS],
    /// The size up to which the ring grows ahead of need, in bytes.
    limit: usize,
    max_held: usize,
}

impl ReceiveBuffer {
    /// An empty buffer whose first byte will be `next`, for about `limit` bytes, and at most `max_held` runs beyond gaps.
    pub(crate) fn new(next: u64, limit: usize, max_held: usize) -> Self {
        Self {
            next,
            ring: Ring::default(),
            readable: 0,
            held: RangeSet::new(),
            recent: [0; MAX_SACK_BLOCKS],
            limit,
            max_held,
        }
    }

    /// The next sequence number in order.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that the application can read.
    pub(crate) const fn readable(&self) -> usize {
        self.readable
    }

    /// Bytes kept, those beyond a gap and the gaps between them included.
    pub(crate) fn len(&self) -> usize {
        self.held.max().map_or(self.readable, |last| (last + 1 - self.base()) as usize)
    }

    /// The sequence number of the first byte that is not read.
    const fn base(&self) -> u64 {
        self.next - self.readable as u64
    }

    /// The ranges of the ring that contain bytes.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let place = |sequence: u64| (sequence - self.base()) as usize;
        let held = self.held.iter().map(move |run| (place(*run.start()), place(run.end() + 1)));
        std::iter::once((0, self.readable)).chain(held)
    }

    fn make_room(&mut self, len: usize) {
        if len > self.ring.capacity() {
            let mut ring = std::mem::take(&mut self.ring);
            ring.grow_to(len, self.limit, self.runs());
            self.ring = ring;
        }
    }

    /// Whether data beyond a gap is held.
    pub(crate) fn has_gap(&self) -> bool {
        !self.held.is_empty()
    }

    /// Adds the bytes of a segment that begins at `start`, up to `edge`.
    pub(crate) fn insert(&mut self, start: u64, bytes: &[u8], edge: u64) -> Inserted {
        if start == self.next && self.held.is_empty() && start + bytes.len() as u64 <= edge {
            self.make_room(self.readable + bytes.len());
            self.ring.write(self.readable, bytes);
            self.next += bytes.len() as u64;
            self.readable += bytes.len();
            return Inserted { advanced: bytes.len() as u64, ..Inserted::default() };
        }
        let end = start + bytes.len() as u64;
        let duplicate = self.first_duplicate(start, end);
        let (from, to) = (start.max(self.next), end.min(edge));
        if from >= to {
            return Inserted { duplicate, is_dropped: end > edge, ..Inserted::default() };
        }
        let is_beyond_gap = from > self.next;
        if is_beyond_gap && self.is_full_for(from, to) {
            return Inserted { duplicate, is_dropped: true, ..Inserted::default() };
        }
        let has_filled = !is_beyond_gap && !self.held.is_empty();
        self.place(from, to, &bytes[(from - start) as usize..]);
        let advanced = self.absorb();
        if is_beyond_gap {
            self.note_recent(from);
        }
        Inserted { advanced, has_filled, is_beyond_gap, duplicate, is_dropped: end > edge }
    }

    fn first_duplicate(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let run = if start < self.next {
            (start, end.min(self.next))
        } else {
            let held = self.held.iter_from(start).next()?;
            (start.max(*held.start()), end.min(held.end() + 1))
        };
        (run.0 < run.1).then_some(run)
    }

    /// Whether `from..to` would be one range more than may be held.
    fn is_full_for(&self, from: u64, to: u64) -> bool {
        let joins = self.held.iter_from(from - 1).next().is_some_and(|range| *range.start() <= to);
        !joins && self.held.range_count() >= self.max_held
    }

    /// Copies the new part of `from..to`; bytes that are present already are kept.
    fn place(&mut self, from: u64, to: u64, bytes: &[u8]) {
        let base = self.base();
        self.make_room((to - base) as usize);
        let Self { ring, held, .. } = self;
        held.insert_range(from, to - 1, |first, last| {
            let new = &bytes[(first - from) as usize..=(last - from) as usize];
            ring.write((first - base) as usize, new);
        });
    }

    /// Makes data readable that was beyond a gap and is in order now. Returns its number of bytes.
    fn absorb(&mut self) -> u64 {
        let Some(first) = self.held.first().filter(|range| *range.start() <= self.next) else {
            return 0;
        };
        let advanced = first.end() + 1 - self.next;
        self.next += advanced;
        self.readable += advanced as usize;
        self.held.remove_below(self.next);
        advanced
    }

    /// Makes the range that contains `sequence` the most recent one for SACK, and forgets the recent ones
    /// that it now contains.
    fn note_recent(&mut self, sequence: u64) {
        let Some(range) = self.held.iter_from(sequence).next() else { return };
        let mut recent = [0; MAX_SACK_BLOCKS];
        recent[0] = sequence;
        let others = self.recent.iter().filter(|point| !range.contains(point));
        for (place, &point) in recent[1..].iter_mut().zip(others) {
            *place = point;
        }
        self.recent = recent;
    }

    /// Appends up to `count` blocks in the order of RFC 2018 §4: the one that changed last, then
    /// those reported last, then any others.
    pub(crate) fn report(&self, count: usize, blocks: &mut SackBlocks) {
        if self.held.is_empty() || count == 0 {
            return;
        }
        let mut told = [0; MAX_SACK_BLOCKS];
        let mut number = 0;
        let containing = |&point: &u64| {
            self.held.iter_from(point).next().filter(|range| point > 0 && range.contains(&point))
        };
        let recent = self.recent.iter().filter_map(containing);
        for range in recent.chain(self.held.iter().rev()) {
            if number == count.min(MAX_SACK_BLOCKS) {
                break;
            }
            if !told[..number].contains(range.start()) {
                told[number] = *range.start();
                number += 1;
                blocks.push(*range.start() as u32, (*range.end() + 1) as u32);
            }
        }
    }

    /// Moves bytes in order to `into`; returns how many.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.readable);
        self.ring.read(&mut into[..count]);
        self.on_read(count);
        count
    }

    /// Passes the next bytes in order to `take`, which returns how many of them it has consumed; returns that number.
    pub(crate) fn lend(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize {
        let lent = self.ring.front(self.readable);
        let count = take(lent).min(lent.len());
        self.ring.skip(count);
        self.on_read(count);
        count
    }

    fn on_read(&mut self, count: usize) {
        self.readable -= count;
        if self.readable == 0 && self.held.is_empty() {
            self.ring.rewind();
        }
    }

    /// Discards unread data, because the application has closed the connection.
    pub(crate) fn discard(&mut self) {
        self.readable = 0;
        self.ring = Ring::default();
        self.held = RangeSet::new();
    }

    /// Drops the data beyond gaps, because the connection has ended and the gaps will not be filled.
    pub(crate) fn discard_held(&mut self) {
        self.held = RangeSet::new();
    }

    /// Releases memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        let mut ring = std::mem::take(&mut self.ring);
        ring.shrink_to(self.len(), self.runs());
        self.ring = ring;
        self.held.release_memory();
    }
}

#[cfg(test)]
mod tests;
