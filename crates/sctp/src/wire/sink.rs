//! A writer into a buffer up to a fixed end; each write is complete or leaves no bytes.

use super::padded;

/// The tail of a buffer that starts on a four-byte boundary of the packet.
///
/// Once something did not fit, nothing more is written until a scope of [`Sink::whole`] has undone its
/// writes.
pub(super) struct Sink<'b> {
    buffer: &'b mut Vec<u8>,
    end: usize,
    overflowed: bool,
}

impl<'b> Sink<'b> {
    /// Appends to `buffer`, which never grows beyond `end` bytes.
    pub(super) const fn new(buffer: &'b mut Vec<u8>, end: usize) -> Self {
        Self { buffer, end, overflowed: false }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.overflowed |= bytes.len() > self.end.saturating_sub(self.buffer.len());
        if !self.overflowed {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Appends `len` zeros.
    pub(super) fn zeros(&mut self, len: usize) {
        self.overflowed |= len > self.end.saturating_sub(self.buffer.len());
        if !self.overflowed {
            self.buffer.resize(self.buffer.len() + len, 0);
        }
    }

    pub(super) fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(super) fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// Appends zeros up to the next multiple of four.
    pub(super) fn pad(&mut self) {
        let len = self.buffer.len();
        self.put(&[0; 3][..padded(len) - len]);
    }

    /// Replaces the two bytes at `at`, which were written before.
    pub(super) fn patch_u16(&mut self, at: usize, value: u16) {
        if let Some(place) = self.buffer.get_mut(at..at + 2) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Bytes written into the buffer so far.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Runs `write`, and undoes it if not all of it fitted. Returns whether it did.
    pub(super) fn whole(&mut self, write: impl FnOnce(&mut Self)) -> bool {
        if self.overflowed {
            return false;
        }
        let start = self.buffer.len();
        write(self);
        if self.overflowed {
            self.buffer.truncate(start);
        }
        !std::mem::take(&mut self.overflowed)
    }

    /// Undoes the writes of the scope of [`Sink::whole`].
    pub(super) const fn give_up(&mut self) {
        self.overflowed = true;
    }

    /// Appends one type-length-value field (a parameter or an error cause, RFC 9260 §3.2.1), after the padding of the
    /// previous one. Its own padding is written by the next write.
    pub(super) fn tlv(&mut self, kind: u16, value: impl FnOnce(&mut Self)) {
        self.pad();
        let start = self.len();
        self.put_u16(kind);
        self.put_u16(0);
        value(self);
        self.patch_length(start);
    }

    /// Appends one chunk (RFC 9260 §3.2) without its padding.
    pub(super) fn chunk(&mut self, kind: u8, flags: u8, value: impl FnOnce(&mut Self)) {
        let start = self.len();
        self.put(&[kind, flags, 0, 0]);
        value(self);
        self.patch_length(start);
    }

    /// Writes the length of the chunk or field that begins at `start` into its third and fourth byte.
    fn patch_length(&mut self, start: usize) {
        match u16::try_from(self.len().saturating_sub(start)) {
            Ok(len) if !self.overflowed => self.patch_u16(start + 2, len),
            _ => self.overflowed = true,
        }
    }
}
