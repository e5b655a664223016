//! Bytes from the application until the peer has acknowledged them.

use std::collections::VecDeque;

/// The bytes of the stream from the first unacknowledged one to the last accepted one. Grows as needed.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    start: u64,
    bytes: VecDeque<u8>,
}

impl SendBuffer {
    /// An empty buffer whose first byte will have the sequence number `start`.
    pub(crate) const fn new(start: u64) -> Self {
        Self { start, bytes: VecDeque::new() }
    }

    /// The sequence number after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Bytes in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends as many of `bytes` as fit into a buffer of `limit` bytes; returns their number.
    pub(crate) fn push(&mut self, bytes: &[u8], limit: usize) -> usize {
        let room = limit.saturating_sub(self.bytes.len());
        let taken = &bytes[..bytes.len().min(room)];
        self.reserve(taken.len(), limit);
        self.bytes.extend(taken);
        taken.len()
    }

    /// Makes room by doubling, but never beyond `limit`: a full ring is walked through from end to
    /// end, and ought to fit into the processor's cache.
    fn reserve(&mut self, more: usize, limit: usize) {
        let (needed, capacity) = (self.bytes.len() + more, self.bytes.capacity());
        if needed > capacity {
            let target = needed.max((2 * capacity).min(limit));
            self.bytes.reserve_exact(target - self.bytes.len());
        }
    }

    /// Drops the bytes below `sequence`, which are acknowledged.
    pub(crate) fn acknowledge_to(&mut self, sequence: u64) {
        let acknowledged = sequence.min(self.end()).saturating_sub(self.start);
        self.bytes.drain(..acknowledged as usize);
        self.start += acknowledged;
    }

    /// `len` bytes from `sequence` on, in two parts; fewer if the buffer has fewer.
    pub(crate) fn slices(&self, sequence: u64, len: usize) -> (&[u8], &[u8]) {
        let from = (sequence.saturating_sub(self.start) as usize).min(self.bytes.len());
        let to = (from + len).min(self.bytes.len());
        let (front, back) = self.bytes.as_slices();
        let middle = front.len();
        (
            &front[from.min(middle)..to.min(middle)],
            &back[from.max(middle) - middle..to.max(middle) - middle],
        )
    }

    /// Forgets everything: the connection has ended.
    pub(crate) fn clear(&mut self) {
        self.start = self.end();
        self.bytes = VecDeque::new();
    }

    /// Releases memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    #[test]
    fn agrees_with_a_plain_stream_under_random_operations() {
        for seed in 0..50 {
            let mut rng = Seed::from_u64(seed).rng();
            let base = (2 << 32) - 100;
            let (mut buffer, mut stream, mut acked) = (SendBuffer::new(base), Vec::new(), 0);
            for _ in 0..300 {
                match rng.below(3) {
                    0 => {
                        let bytes: Vec<u8> = (0..rng.below(60)).map(|_| rng.u32() as u8).collect();
                        let taken = buffer.push(&bytes, 100);
                        assert_eq!(taken, bytes.len().min(100 - (stream.len() - acked)));
                        stream.extend(&bytes[..taken]);
                    }
                    1 => {
                        acked += rng.below((stream.len() - acked) as u64 + 1) as usize;
                        buffer.acknowledge_to(base + acked as u64);
                    }
                    _ => {
                        let from = acked + rng.below((stream.len() - acked) as u64 + 1) as usize;
                        let len = rng.below(80) as usize;
                        let (a, b) = buffer.slices(base + from as u64, len);
                        assert_eq!([a, b].concat(), stream[from..(from + len).min(stream.len())]);
                    }
                }
                assert_eq!(buffer.end(), base + stream.len() as u64);
                assert_eq!(buffer.len(), stream.len() - acked);
            }
        }
    }

    #[test]
    fn the_ring_is_not_larger_than_the_limit() {
        const LIMIT: usize = 100_000;
        let mut buffer = SendBuffer::new(0);
        while buffer.push(&[1; 9_000], LIMIT) == 9_000 {}
        assert_eq!((buffer.len(), buffer.bytes.capacity()), (LIMIT, LIMIT));
    }

    #[test]
    fn release_memory_frees_an_empty_buffer() {
        let mut buffer = SendBuffer::new(0);
        buffer.push(&[1; 5000], 10_000);
        buffer.acknowledge_to(5000);
        assert!(buffer.bytes.capacity() >= 5000);
        buffer.release_memory();
        assert_eq!(buffer.bytes.capacity(), 0);
    }
}
