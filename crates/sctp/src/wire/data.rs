//! DATA (RFC 9260 §3.3.1).

use super::cursor::Cursor;
use super::frame::{ChunkError, kind};
use super::sink::Sink;

/// Bytes of a DATA chunk in front of its user data, chunk header included (RFC 9260 §3.3.1).
pub const DATA_HEADER_LEN: usize = 16;

/// The I, U, B and E bits of a DATA chunk (RFC 9260 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct DataFlags {
    /// I: the receiver should acknowledge without delay.
    pub immediate: bool,
    /// U: the message is delivered as soon as it is complete; it has no SSN.
    pub unordered: bool,
    /// B: the first fragment of its message.
    pub beginning: bool,
    /// E: the last fragment of its message.
    pub ending: bool,
}

impl DataFlags {
    /// The flags in a chunk's flags byte; reserved bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self {
            immediate: bits & 8 != 0,
            unordered: bits & 4 != 0,
            beginning: bits & 2 != 0,
            ending: bits & 1 != 0,
        }
    }

    /// The chunk's flags byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        (self.immediate as u8) << 3
            | (self.unordered as u8) << 2
            | (self.beginning as u8) << 1
            | self.ending as u8
    }
}

/// A fragment of a user message, or a whole one (RFC 9260 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// The I, U, B and E bits.
    pub flags: DataFlags,
    /// Transmission Sequence Number.
    pub tsn: u32,
    /// Stream Identifier.
    pub stream: u16,
    /// Stream Sequence Number; without meaning if the message is unordered.
    pub ssn: u16,
    /// Payload Protocol Identifier of the application; 0 is unspecified.
    pub ppid: u32,
    /// User data, never empty: decoding refuses an empty chunk, and none may be encoded.
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// `None` if the value is shorter than the fixed part.
    pub(super) fn decode(flags: u8, value: &'a [u8]) -> Option<Result<Self, ChunkError>> {
        let mut cursor = Cursor(value);
        let data = Self {
            flags: DataFlags::from_bits(flags),
            tsn: cursor.u32()?,
            stream: cursor.u16()?,
            ssn: cursor.u16()?,
            ppid: cursor.u32()?,
            payload: cursor.0,
        };
        if data.payload.is_empty() {
            return Some(Err(ChunkError::NoUserData { tsn: data.tsn }));
        }
        Some(Ok(data))
    }

    pub(super) fn encode(&self, sink: &mut Sink<'_>) {
        sink.chunk(kind::DATA, self.flags.bits(), |sink| {
            // At once: nothing is written more often.
            let [t0, t1, t2, t3] = self.tsn.to_be_bytes();
            let [i0, i1] = self.stream.to_be_bytes();
            let [n0, n1] = self.ssn.to_be_bytes();
            let [p0, p1, p2, p3] = self.ppid.to_be_bytes();
            sink.put(&[t0, t1, t2, t3, i0, i1, n0, n1, p0, p1, p2, p3]);
            sink.put(self.payload);
        });
    }
}
