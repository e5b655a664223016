//! I-DATA (RFC 8260 §2.1).

use super::DataFlags;
use super::cursor::Cursor;
use super::frame::{ChunkError, kind};
use super::sink::Sink;

/// Bytes of an I-DATA chunk in front of its user data, chunk header included (RFC 8260 §2.1).
pub const I_DATA_HEADER_LEN: usize = 20;

/// A fragment of a user message, or a whole one, in the form that allows messages of several streams to be
/// interleaved (RFC 8260 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IData<'a> {
    /// The I, U, B and E bits.
    pub flags: DataFlags,
    /// Transmission Sequence Number.
    pub tsn: u32,
    /// Stream Identifier.
    pub stream: u16,
    /// Message Identifier (RFC 8260 §2.1). Ordered and unordered messages of a stream are numbered
    /// separately, each from 0.
    pub mid: u32,
    /// Payload Protocol Identifier of the first fragment; 0 in others, which do not carry it.
    pub ppid: u32,
    /// Fragment Sequence Number; 0 in the first fragment, which does not carry it.
    pub fsn: u32,
    /// User data, never empty: decoding refuses an empty chunk, and none may be encoded.
    pub payload: &'a [u8],
}

impl<'a> IData<'a> {
    /// `None` if the value is shorter than the fixed part.
    pub(super) fn decode(flags: u8, value: &'a [u8]) -> Option<Result<Self, ChunkError>> {
        let mut cursor = Cursor(value);
        let flags = DataFlags::from_bits(flags);
        let (tsn, stream, _reserved) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
        let (mid, shared) = (cursor.u32()?, cursor.u32()?);
        let (ppid, fsn) = if flags.beginning { (shared, 0) } else { (0, shared) };
        let payload = cursor.0;
        if payload.is_empty() {
            return Some(Err(ChunkError::NoUserData { tsn }));
        }
        Some(Ok(Self { flags, tsn, stream, mid, ppid, fsn, payload }))
    }

    pub(super) fn encode(&self, sink: &mut Sink<'_>) {
        let shared = if self.flags.beginning { self.ppid } else { self.fsn };
        sink.chunk(kind::I_DATA, self.flags.bits(), |sink| {
            let mut fixed = [0; I_DATA_HEADER_LEN - super::CHUNK_HEADER_LEN];
            fixed[..4].copy_from_slice(&self.tsn.to_be_bytes());
            fixed[4..6].copy_from_slice(&self.stream.to_be_bytes());
            fixed[8..12].copy_from_slice(&self.mid.to_be_bytes());
            fixed[12..].copy_from_slice(&shared.to_be_bytes());
            sink.put(&fixed);
            sink.put(self.payload);
        });
    }
}
