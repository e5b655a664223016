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
