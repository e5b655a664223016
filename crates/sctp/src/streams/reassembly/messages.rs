//! What both ways to find the pieces of a message share: the limits, the counters, the message that is
//! assembled, and the complete ones.

use bytes::Bytes;

use super::delivery::{Complete, Delivery};
use super::piece::{Piece, ReassemblyError, ReassemblyLimits};

/// The largest buffer that is reserved ahead for a message of which only the beginning is known.
const MOST_RESERVED_BYTES: usize = 64 * 1024;

/// A message whose beginning, and what follows it without a gap, has arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) stream: u16,
    pub(super) mid: u32,
    pub(super) ppid: u32,
    pub(super) unordered: bool,
    pub(super) buffer: Vec<u8>,
}

/// What both ways to find pieces share: the limits, the counters, and the complete messages.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) limits: ReassemblyLimits,
    /// Whether the peer may abandon messages (RFC 3758).
    pub(super) may_abandon: bool,
    /// Payload bytes of incomplete messages.
    pub(super) incomplete_bytes: usize,
    /// The size of the latest message of several pieces: a guess at that of the next.
    pub(super) latest_bytes: usize,
    pub(super) delivery: Delivery,
}

impl Messages {
    pub(super) fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            may_abandon: false,
            incomplete_bytes: 0,
            latest_bytes: 0,
            delivery: Delivery::default(),
        }
    }

    /// Fails if nothing more may be put aside beside `aside` pieces. Messages ready to be read do not count
    /// here: that the application is slow must not fail an association.
    pub(super) fn admit_aside(&self, aside: usize) -> Result<(), ReassemblyError> {
        self.admit(aside + self.delivery.waiting_messages())
    }

    pub(super) fn admit(&self, held: usize) -> Result<(), ReassemblyError> {
        if held < self.limits.max_held_chunks {
            return Ok(());
        }
        Err(ReassemblyError::TooManyHeldChunks)
    }

    /// A message of one piece, beside `aside` pieces.
    pub(super) fn on_whole_message(
        &mut self,
        piece: &Piece<'_>,
        aside: usize,
    ) -> Result<(), ReassemblyError> {
        if self.must_wait(piece) {
            self.admit_aside(aside)?;
        }
        self.delivery.on_complete(Complete {
            stream: piece.stream,
            mid: piece.mid,
            ppid: piece.ppid,
            unordered: piece.unordered,
            payload: Bytes::copy_from_slice(piece.payload),
        })
    }

    /// The beginning of a message, beside that many others.
    pub(super) fn assemble(
        &mut self,
        piece: &Piece<'_>,
        assemblies: usize,
    ) -> Result<Assembly, ReassemblyError> {
        // Counted apart from what is put aside: the beginning that all of that waits for must never
        // find its place taken.
        self.admit(assemblies)?;
        // The guess is made for one message at a time, so that beginnings alone cannot claim memory.
        let first_bytes = piece.payload.len();
        let foreseen = self.latest_bytes.min(MOST_RESERVED_BYTES);
        let reserved = if assemblies == 0 { first_bytes.max(foreseen) } else { first_bytes };
        let mut assembly = Assembly {
            stream: piece.stream,
            mid: piece.mid,
            ppid: piece.ppid,
            unordered: piece.unordered,
            buffer: Vec::with_capacity(reserved),
        };
        assembly.buffer.extend_from_slice(piece.payload);
        self.incomplete_bytes += first_bytes;
        Ok(assembly)
    }

    pub(super) fn complete(&mut self, mut assembly: Assembly) -> Result<(), ReassemblyError> {
        let bytes = assembly.buffer.len();
        self.incomplete_bytes -= bytes;
        self.latest_bytes = bytes;
        // A message must not pin more than twice its size.
        if assembly.buffer.capacity() / 2 > bytes {
            assembly.buffer.shrink_to_fit();
        }
        self.delivery.on_complete(Complete {
            stream: assembly.stream,
            mid: assembly.mid,
            ppid: assembly.ppid,
            unordered: assembly.unordered,
            payload: Bytes::from(assembly.buffer),
        })
    }

    pub(super) fn fits(
        &self,
        assembly: &Assembly,
        more_bytes: usize,
    ) -> Result<(), ReassemblyError> {
        if assembly.buffer.len() + more_bytes > self.limits.max_message_bytes {
            return Err(ReassemblyError::MessageTooLarge);
        }
        Ok(())
    }

    /// Whether the message of `piece`, were it complete, would have to wait for another.
    pub(super) fn must_wait(&self, piece: &Piece<'_>) -> bool {
        !piece.unordered && !self.delivery.is_expected(piece.stream, piece.mid)
    }
}
