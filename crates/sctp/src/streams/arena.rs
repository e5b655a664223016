//! Memory for received payloads.

use bytes::{Bytes, BytesMut};

/// The size of a block.
pub(crate) const BLOCK_BYTES: usize = 16 * 1024;

/// Payloads above this size get an allocation of their own.
pub(crate) const SHARED_PAYLOAD_BYTES: usize = BLOCK_BYTES / 4;

/// Copies payloads out of received packets into blocks of [`BLOCK_BYTES`], so that a packet costs
/// no allocation. One serves all associations of an endpoint.
///
/// A block lives as long as any payload in it. So one retained message of at most
/// [`SHARED_PAYLOAD_BYTES`] pins at most one block of 16 KiB, whatever its size, and less the more
/// of its neighbours are retained as well; a larger message pins nothing but itself. A block whose
/// payloads are all gone when it is full is used again.
#[derive(Debug, Default)]
pub(crate) struct PayloadArena {
    block: BytesMut,
}

impl PayloadArena {
    /// Without memory until the first payload.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A copy of `payload`.
    pub(crate) fn copy(&mut self, payload: &[u8]) -> Bytes {
        if payload.len() > SHARED_PAYLOAD_BYTES {
            return Bytes::copy_from_slice(payload);
        }
        if self.block.capacity() < payload.len() {
            self.block.reserve(BLOCK_BYTES);
        }
        self.block.extend_from_slice(payload);
        self.block.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_right_and_share_blocks() {
        let mut arena = PayloadArena::new();
        let copies: Vec<Bytes> = (0..200u8).map(|n| arena.copy(&vec![n; 300])).collect();
        for (n, copy) in copies.iter().enumerate() {
            assert_eq!(copy, &vec![n as u8; 300]);
        }
        let is_new_block = |pair: &&[Bytes]| pair[0].as_ptr().wrapping_add(300) != pair[1].as_ptr();
        let blocks = 1 + copies.windows(2).filter(is_new_block).count();
        assert_eq!(blocks, (200 * 300usize).div_ceil(BLOCK_BYTES / 300 * 300));
    }

    #[test]
    fn a_block_is_used_again_when_all_its_payloads_are_gone() {
        let mut arena = PayloadArena::new();
        let payload = [7; 1024];
        let first = arena.copy(&payload).as_ptr();
        for _ in 1..BLOCK_BYTES / payload.len() {
            assert_ne!(arena.copy(&payload).as_ptr(), first);
        }
        assert_eq!(arena.copy(&payload).as_ptr(), first);
    }

    #[test]
    fn a_large_payload_pins_no_block() {
        let mut arena = PayloadArena::new();
        let payload = vec![1; SHARED_PAYLOAD_BYTES + 1];
        let copy = arena.copy(&payload);
        assert_eq!(copy, payload);
        assert_eq!(arena.block.capacity(), 0, "no block was taken");
    }
}
