//! The part that reassembly by TSN and by MID share: the limits, the counters, the message being assembled,
//! and complete messages.

use bytes::Bytes;

use super::delivery::{Complete, Delivery};
use super::piece::{DroppedMessage, Piece, ReassemblyError, ReassemblyLimits};

/// The largest buffer that is reserved for a message when its first piece arrives.
const MOST_RESERVED_BYTES: usize = 64 * 1024;

/// A message whose beginning, and possibly further pieces without a gap, has arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) stream: u16,
    pub(super) mid: u32,
    pub(super) ppid: u32,
    pub(super) unordered: bool,
    pub(super) buffer: Vec<u8>,
    /// Whether the message was too large: its chunks are discarded.
    is_dropped: bool,
}

/// The state that reassembly by TSN and by MID share: limits, counters and complete messages.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) limits: ReassemblyLimits,
    /// Whether the peer may abandon messages (RFC 3758).
    pub(super) may_abandon: bool,
    /// Payload bytes of incomplete messages.
    pub(super) incomplete_bytes: usize,
    /// The size of the latest message of several pieces: the estimate for the next.
    pub(super) latest_bytes: usize,
    pub(super) delivery: Delivery,
    /// The message that the last piece made too large.
    dropped: Option<DroppedMessage>,
}

impl Messages {
    pub(super) fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            may_abandon: false,
            incomplete_bytes: 0,
            latest_bytes: 0,
            delivery: Delivery::default(),
            dropped: None,
        }
    }

    /// Fails if `aside` pieces are put aside and no further one may be. Messages ready to be read do not count here:
    /// that the application is slow must not fail an association.
    pub(super) fn admit_aside(&self, aside: usize) -> Result<(), ReassemblyError> {
        self.admit(aside + self.delivery.waiting_messages())
    }

    pub(super) fn admit(&self, held: usize) -> Result<(), ReassemblyError> {
        if held < self.limits.max_held_chunks {
            return Ok(());
        }
        Err(ReassemblyError::TooManyHeldChunks)
    }

    /// Processes a message of one piece, while `aside` pieces are put aside.
    pub(super) fn on_whole_message(
        &mut self,
        piece: &Piece<'_>,
        aside: usize,
    ) -> Result<(), ReassemblyError> {
        if self.must_wait(piece) {
            self.admit_aside(aside)?;
        }
        let Piece { stream, mid, ppid, unordered, .. } = *piece;
        let is_taken = piece.payload.len() <= self.limits.max_message_bytes;
        if !is_taken {
            self.dropped = Some(DroppedMessage { stream, ppid, unordered });
        }
        let payload = is_taken.then(|| Bytes::copy_from_slice(piece.payload));
        self.delivery.on_complete(Complete { stream, mid, ppid, unordered, payload })
    }

    /// Begins a message; `assemblies` others have begun.
    pub(super) fn assemble(
        &mut self,
        piece: &Piece<'_>,
        assemblies: usize,
    ) -> Result<Assembly, ReassemblyError> {
        // Counted separately from pieces put aside, so that these cannot take the place of the beginning for which they
        // wait.
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
            is_dropped: false,
        };
        self.append(&mut assembly, piece.payload);
        Ok(assembly)
    }

    /// Appends to a message, or drops it if it gets too large.
    pub(super) fn append(&mut self, assembly: &mut Assembly, payload: &[u8]) {
        if assembly.buffer.len() + payload.len() > self.limits.max_message_bytes {
            self.dropped = self.drop_message(assembly).or(self.dropped);
        }
        if !assembly.is_dropped {
            assembly.buffer.extend_from_slice(payload);
            self.incomplete_bytes += payload.len();
        }
    }

    /// Drops the received and future pieces of a message; returns the message the first time.
    pub(super) fn drop_message(&mut self, assembly: &mut Assembly) -> Option<DroppedMessage> {
        self.incomplete_bytes -= assembly.buffer.len();
        assembly.buffer = Vec::new();
        let &mut Assembly { stream, ppid, unordered, .. } = assembly;
        let was_dropped = std::mem::replace(&mut assembly.is_dropped, true);
        (!was_dropped).then_some(DroppedMessage { stream, ppid, unordered })
    }

    /// The message that the last piece made too large.
    pub(super) const fn take_dropped(&mut self) -> Option<DroppedMessage> {
        self.dropped.take()
    }

    pub(super) fn complete(&mut self, mut assembly: Assembly) -> Result<(), ReassemblyError> {
        let bytes = assembly.buffer.len();
        self.incomplete_bytes -= bytes;
        if !assembly.is_dropped {
            self.latest_bytes = bytes;
        }
        // A message must not pin more than twice its size.
        if assembly.buffer.capacity() / 2 > bytes {
            assembly.buffer.shrink_to_fit();
        }
        self.delivery.on_complete(Complete {
            stream: assembly.stream,
            mid: assembly.mid,
            ppid: assembly.ppid,
            unordered: assembly.unordered,
            payload: (!assembly.is_dropped).then(|| Bytes::from(assembly.buffer)),
        })
    }

    /// Whether the message of `piece`, if it were complete, would have to wait for another.
    pub(super) fn must_wait(&self, piece: &Piece<'_>) -> bool {
        !piece.unordered && !self.delivery.is_expected(piece.stream, piece.mid)
    }
}
