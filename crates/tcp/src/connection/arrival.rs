//! A received segment, with its sequence numbers unwrapped.

use crate::wire::{Flags, HEADER_LEN, Header, Segment};

/// Whether the rest of the segment is processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Continue,
    Stop,
}

/// A segment with its numbers unwrapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) header: &'a Header,
    pub(super) payload: &'a [u8],
    /// The sequence number of the first payload byte, or of the SYN before it.
    pub(super) seq: u64,
    /// SEG.ACK.
    pub(super) ack: u64,
}

impl<'a> Arrival<'a> {
    /// The part of a segment after its SYN, whose sequence number is `irs`; the segment acknowledges `ack`.
    pub(super) fn after_syn(syn: &'a Segment<'a>, irs: u64, ack: u64) -> Self {
        Self { header: &syn.header, payload: syn.payload, seq: irs + 1, ack }
    }

    pub(super) const fn has(&self, flags: Flags) -> bool {
        self.header.flags.has(flags)
    }

    /// SEG.LEN.
    pub(super) fn sequence_len(&self) -> u64 {
        let flag = |flag| u64::from(self.has(flag));
        self.payload.len() as u64 + flag(Flags::SYN) + flag(Flags::FIN)
    }
}

/// The length of the segment in bytes, without the padding of its options.
pub(super) fn wire_len(segment: &Segment<'_>) -> u64 {
    (HEADER_LEN + segment.header.options.wire_len() + segment.payload.len()) as u64
}
