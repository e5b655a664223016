//! FORWARD-TSN (RFC 3758 §3.2).

use std::fmt;

use super::CHUNK_HEADER_LEN;
use super::cursor::Cursor;
use super::frame::kind;
use super::sink::Sink;

/// The length in bytes of a FORWARD-TSN chunk that lists `skipped` streams.
#[must_use]
pub const fn forward_tsn_len(skipped: usize) -> usize {
    CHUNK_HEADER_LEN + 4 + 4 * skipped
}

/// The sender gave up on all TSNs up to a new cumulative TSN (RFC 3758 §3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ForwardTsn<'a> {
    /// The receiver treats everything up to this TSN as received.
    pub new_cumulative_tsn: u32,
    skipped: &'a [[u8; 4]],
}

impl<'a> ForwardTsn<'a> {
    /// The ordered streams of which messages were skipped, each with the largest SSN skipped. The content is
    /// not checked: a stream may not exist, or be listed twice.
    pub fn skipped(&self) -> impl ExactSizeIterator<Item = (u16, u16)> + Clone + 'a {
        self.skipped
            .iter()
            .map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    pub(super) fn decode(value: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(value);
        let new_cumulative_tsn = cursor.u32()?;
        // The rest is too short for one more stream: padding that was counted.
        let (skipped, _) = cursor.0.as_chunks();
        Some(Self { new_cumulative_tsn, skipped })
    }
}

impl fmt::Debug for ForwardTsn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardTsn")
            .field("new_cumulative_tsn", &self.new_cumulative_tsn)
            .field("skipped", &self.skipped().collect::<Vec<_>>())
            .finish()
    }
}

/// Appends a FORWARD-TSN chunk.
pub(super) fn encode_forward_tsn(
    sink: &mut Sink<'_>,
    new_cumulative_tsn: u32,
    skipped: impl IntoIterator<Item = (u16, u16)>,
) {
    sink.chunk(kind::FORWARD_TSN, 0, |sink| {
        sink.put_u32(new_cumulative_tsn);
        for (stream, ssn) in skipped {
            sink.put_u16(stream);
            sink.put_u16(ssn);
        }
    });
}
