//! Pieces of messages as they arrive, and the reasons to refuse them.

/// The content of a received DATA or I-DATA chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) tsn: u64,
    pub(crate) stream: u16,
    /// Stream sequence number, unused if `unordered`; if messages are interleaved, message identifier.
    pub(crate) mid: u32,
    /// Fragment sequence number, if messages are interleaved.
    pub(crate) fsn: u32,
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) ending: bool,
    pub(crate) payload: &'a [u8],
}

/// The limits of what [`Reassembly`](super::Reassembly) holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReassemblyLimits {
    /// The largest message, in payload bytes; a larger one is dropped. A message must fit into the receive buffer, since
    /// there is no partial delivery. Default 256 KiB.
    pub(crate) max_message_bytes: usize,
    /// The limit of pieces that do not continue a message yet plus messages that wait for their order, and also the
    /// limit of messages whose beginning has arrived. Bounds the memory for tiny chunks, of which a receive buffer
    /// holds very many. Default 16,384.
    pub(crate) max_held_chunks: usize,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self { max_message_bytes: 256 * 1024, max_held_chunks: 16 * 1024 }
    }
}

/// A message of the peer that is not delivered, because it is too large or because too many are incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DroppedMessage {
    pub(crate) stream: u16,
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
}

/// Why a piece was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ReassemblyError {
    /// The piece would have to be held, but [`ReassemblyLimits::max_held_chunks`] are held already. Nothing has
    /// changed: the association may discard the chunk as if it had not arrived.
    #[error("too many chunks held")]
    TooManyHeldChunks,
    /// The peer's chunks contradict each other.
    #[error("protocol violation: {0}")]
    ProtocolViolation(&'static str),
}
