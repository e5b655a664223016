//! Reads big-endian integers off the front of a byte slice.

/// The bytes not read yet.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next byte-pair as an integer; `None` (and nothing read) if fewer bytes are left.
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next four bytes as an integer; `None` (and nothing read) if fewer bytes are left.
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next `N` bytes; `None` (and nothing read) if fewer are left.
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    /// The next `len` bytes; `None` (and nothing read) if fewer are left.
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    /// `Some` if nothing is left, or no more than final padding that was counted (RFC 9260 §3.2).
    pub(super) fn end_of_chunk(self) -> Option<()> {
        (self.0.len() < 4).then_some(())
    }

    /// `Some` if nothing is left.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
