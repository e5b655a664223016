//! A ring buffer that is written and read at offsets from its front.
//!
//! Its memory is allocated as zeros and not touched before bytes are written: bytes far beyond a gap use only
//! the pages that they are in.

/// The least capacity, in bytes.
const MIN_CAPACITY: usize = 256;

/// A ring buffer. The caller keeps track of which bytes are in use.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: Box<[u8]>,
    /// The position of the first byte.
    head: usize,
}

impl Ring {
    /// The number of bytes for which memory is allocated.
    pub(super) const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// The index of the byte at offset `at` from the front.
    const fn place(&self, at: usize) -> usize {
        let place = self.head + at;
        if place < self.bytes.len() { place } else { place - self.bytes.len() }
    }

    /// Writes `bytes` at `at`; the caller has made room for them.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let from = self.place(at);
        let (first, second) = bytes.split_at(bytes.len().min(self.bytes.len() - from));
        self.bytes[from..from + first.len()].copy_from_slice(first);
        self.bytes[..second.len()].copy_from_slice(second);
    }

    /// Moves as many bytes as fit from the front to `into`.
    pub(super) fn read(&mut self, into: &mut [u8]) {
        let count = into.len();
        let (first, second) = into.split_at_mut(count.min(self.bytes.len() - self.head));
        first.copy_from_slice(&self.bytes[self.head..self.head + first.len()]);
        second.copy_from_slice(&self.bytes[..second.len()]);
        if count > 0 {
            self.skip(count);
        }
    }

    /// Up to `len` contiguous bytes from the front.
    pub(super) fn front(&self, len: usize) -> &[u8] {
        &self.bytes[self.head..self.bytes.len().min(self.head + len)]
    }

    /// Removes `count` bytes at the front.
    pub(super) const fn skip(&mut self, count: usize) {
        self.head = self.place(count);
    }

    /// Moves the front to the start of the memory, when the ring is empty, so that the same pages are reused.
    pub(super) const fn rewind(&mut self) {
        self.head = 0;
    }

    /// Makes room for `len` bytes and keeps the `runs` that are in use. Doubles, but not beyond `limit`.
    pub(super) fn grow_to(
        &mut self,
        len: usize,
        limit: usize,
        runs: impl Iterator<Item = (usize, usize)>,
    ) {
        if len > self.capacity() {
            let doubled = (2 * self.capacity()).max(MIN_CAPACITY).min(limit);
            self.resize(len.max(doubled), runs);
        }
    }

    /// Shrinks the memory to `len` bytes, if that saves much.
    pub(super) fn shrink_to(&mut self, len: usize, runs: impl Iterator<Item = (usize, usize)>) {
        if len == 0 || len < self.capacity() / 2 {
            self.resize(len, runs);
        }
    }

    fn resize(&mut self, capacity: usize, runs: impl Iterator<Item = (usize, usize)>) {
        let bytes = vec![0; capacity].into_boxed_slice();
        let old = std::mem::replace(self, Self { bytes, head: 0 });
        for (from, to) in runs {
            let (first, second) = old.slices(from, to);
            self.write(from, first);
            self.write(from + first.len(), second);
        }
    }

    /// The bytes `from..to`, in two parts.
    fn slices(&self, from: usize, to: usize) -> (&[u8], &[u8]) {
        if from == to {
            return (&[], &[]);
        }
        let (start, len) = (self.place(from), to - from);
        let in_first = len.min(self.bytes.len() - start);
        (&self.bytes[start..start + in_first], &self.bytes[..len - in_first])
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use super::*;

    #[test]
    fn bytes_keep_their_places_when_it_wraps_grows_and_shrinks() {
        let mut ring = Ring::default();
        ring.grow_to(200, 1000, std::iter::empty());
        assert_eq!(ring.capacity(), MIN_CAPACITY);
        ring.write(0, &[9; 200]);
        ring.read(&mut [0; 200]);
        // 56 before the end, 64 behind the wrap, and a run at 190.
        let bytes: Vec<u8> = (0..120).collect();
        ring.write(0, &bytes);
        ring.write(190, b"far");
        let runs = [(0, 120), (190, 193)];
        ring.grow_to(300, 1000, runs.into_iter());
        assert_eq!(ring.capacity(), 2 * MIN_CAPACITY);
        let mut into = [0; 120];
        ring.read(&mut into);
        assert_eq!(into[..], bytes);
        ring.shrink_to(73, once((70, 73)));
        assert_eq!(ring.capacity(), 73);
        ring.read(&mut [0; 70]);
        ring.read(&mut into[..3]);
        assert_eq!(&into[..3], b"far");
        ring.shrink_to(0, std::iter::empty());
        assert_eq!(ring.capacity(), 0);
    }

    #[test]
    fn it_doubles_up_to_the_limit() {
        let mut ring = Ring::default();
        for (len, capacity) in [(1, 256), (300, 512), (513, 1000), (1001, 1001)] {
            ring.grow_to(len, 1000, std::iter::empty());
            assert_eq!(ring.capacity(), capacity, "{len}");
        }
    }

    #[test]
    fn a_half_full_ring_is_not_shrunk() {
        let mut ring = Ring::default();
        ring.grow_to(1000, 1000, std::iter::empty());
        ring.shrink_to(500, once((0, 500)));
        assert_eq!(ring.capacity(), 1000);
        ring.shrink_to(499, once((0, 499)));
        assert_eq!(ring.capacity(), 499);
    }
}
