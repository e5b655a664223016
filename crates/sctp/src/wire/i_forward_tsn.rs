//! I-FORWARD-TSN (RFC 8260 §2.3.1).

use std::fmt;

use super::CHUNK_HEADER_LEN;
use super::cursor::Cursor;
use super::frame::kind;
use super::sink::Sink;

/// The bit of an entry that marks its MID as that of an unordered message.
const U_BIT: u16 = 1;

/// The length in bytes of an I-FORWARD-TSN chunk that lists `skipped` messages.
#[must_use]
pub const fn i_forward_tsn_len(skipped: usize) -> usize {
    CHUNK_HEADER_LEN + 4 + 8 * skipped
}

/// The largest Message Identifier skipped on a stream, of its ordered or its unordered messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SkippedMid {
    /// Stream Identifier.
    pub stream: u16,
    /// Whether the message is unordered.
    pub unordered: bool,
    /// Message Identifier.
    pub mid: u32,
}

/// The sender gave up on all TSNs up to a new cumulative TSN (RFC 8260 §2.3.1).
#[derive(Clone, Copy)]
pub struct IForwardTsn<'a> {
    /// The receiver treats everything up to this TSN as received.
    pub new_cumulative_tsn: u32,
    skipped: &'a [[u8; 8]],
}

impl<'a> IForwardTsn<'a> {
    /// The skipped messages. The content is not checked: a stream may not exist, or be listed twice.
    pub fn skipped(&self) -> impl ExactSizeIterator<Item = SkippedMid> + Clone + 'a {
        self.skipped.iter().map(|&[a, b, c, d, m0, m1, m2, m3]| SkippedMid {
            stream: u16::from_be_bytes([a, b]),
            unordered: u16::from_be_bytes([c, d]) & U_BIT != 0,
            mid: u32::from_be_bytes([m0, m1, m2, m3]),
        })
    }

    pub(super) fn decode(value: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(value);
        let new_cumulative_tsn = cursor.u32()?;
        let (skipped, rest) = cursor.0.as_chunks();
        // Up to three bytes may be padding that was counted.
        (rest.len() < 4).then_some(Self { new_cumulative_tsn, skipped })
    }
}

/// Reserved bits do not count.
impl PartialEq for IForwardTsn<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.new_cumulative_tsn == other.new_cumulative_tsn && self.skipped().eq(other.skipped())
    }
}

impl Eq for IForwardTsn<'_> {}

impl fmt::Debug for IForwardTsn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IForwardTsn")
            .field("new_cumulative_tsn", &self.new_cumulative_tsn)
            .field("skipped", &self.skipped().collect::<Vec<_>>())
            .finish()
    }
}

/// Appends an I-FORWARD-TSN chunk.
pub(super) fn encode_i_forward_tsn(
    sink: &mut Sink<'_>,
    new_cumulative_tsn: u32,
    skipped: impl IntoIterator<Item = SkippedMid>,
) {
    sink.chunk(kind::I_FORWARD_TSN, 0, |sink| {
        sink.put_u32(new_cumulative_tsn);
        for SkippedMid { stream, unordered, mid } in skipped {
            sink.put_u16(stream);
            sink.put_u16(if unordered { U_BIT } else { 0 });
            sink.put_u32(mid);
        }
    });
}
