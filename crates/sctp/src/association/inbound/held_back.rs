//! DATA that waits until a stream reset of the peer was performed (RFC 6525 §5.2.2 E2, E4).
//!
//! Its TSNs are acknowledged, and its bytes count against the receive buffer like those of every
//! other chunk.

use bytes::Bytes;

use crate::streams::Piece;

/// One chunk that is held back.
#[derive(Debug)]
pub(super) struct Held {
    tsn: u64,
    stream: u16,
    mid: u32,
    fsn: u32,
    ppid: u32,
    unordered: bool,
    beginning: bool,
    ending: bool,
    payload: Bytes,
}

impl Held {
    pub(super) fn piece(&self) -> Piece<'_> {
        Piece {
            tsn: self.tsn,
            stream: self.stream,
            mid: self.mid,
            fsn: self.fsn,
            ppid: self.ppid,
            unordered: self.unordered,
            beginning: self.beginning,
            ending: self.ending,
            payload: &self.payload,
        }
    }
}

/// The chunks that wait, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    chunks: Vec<Held>,
    bytes: usize,
}

impl HeldBack {
    pub(super) fn push(&mut self, piece: &Piece<'_>) {
        self.bytes += piece.payload.len();
        self.chunks.push(Held {
            tsn: piece.tsn,
            stream: piece.stream,
            mid: piece.mid,
            fsn: piece.fsn,
            ppid: piece.ppid,
            unordered: piece.unordered,
            beginning: piece.beginning,
            ending: piece.ending,
            payload: Bytes::copy_from_slice(piece.payload),
        });
    }

    pub(super) const fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The payload bytes of the chunks.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn chunks(&self) -> &[Held] {
        &self.chunks
    }

    /// Called when the peer abandoned the incomplete messages up to `cumulative` (RFC 3758 §3.6).
    pub(super) fn on_forward_tsn(&mut self, cumulative: u64) {
        self.chunks.retain(|held| held.tsn > cumulative || (held.beginning && held.ending));
        self.bytes = self.chunks.iter().map(|held| held.payload.len()).sum();
    }
}
