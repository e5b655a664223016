//! A unit of loss recovery.

/// The range of the stream that was sent as one segment: a unit of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The sequence number of the first byte.
    pub(super) start: u64,
    pub(super) len: u32,
    /// Whether the FIN follows the last byte.
    pub(super) has_fin: bool,
}

impl Piece {
    /// The sequence number after the last.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.has_fin)
    }

    /// The piece made of this one and `next`, which follows it.
    pub(super) const fn joined(self, next: Self) -> Self {
        Self { start: self.start, len: self.len + next.len, has_fin: next.has_fin }
    }
}
