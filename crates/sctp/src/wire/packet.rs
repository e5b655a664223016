//! The common header, its checksum, and the chunks behind it (RFC 9260 §3, §3.1, §6.8).

use rexmit_core::checksum::{crc32c, crc32c_append};

use super::chunk::RawChunk;
use super::cursor::Cursor;
use super::frame::ChunkError;
use super::{CHUNK_HEADER_LEN, padded};

/// Bytes of the common header: ports, verification tag, checksum (RFC 9260 §3.1).
pub const COMMON_HEADER_LEN: usize = 12;

/// Position of the checksum in the common header.
const CHECKSUM_AT: usize = 8;

/// The value of the checksum field of a packet without a checksum (RFC 9653 §5.2).
const NO_CHECKSUM: [u8; 4] = [0; 4];

/// The common header without its checksum (RFC 9260 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// The sender's port; not zero in a packet that was parsed.
    pub source_port: u16,
    /// The receiver's port; not zero in a packet that was parsed.
    pub destination_port: u16,
    /// The Initiate Tag that the receiver chose; zero with INIT (RFC 9260 §8.5).
    pub verification_tag: u32,
}

/// Why bytes are not a valid SCTP packet. Such a packet is discarded silently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PacketError {
    /// The packet is too short for the common header and the header of one chunk.
    #[error("shorter than a common header and a chunk header")]
    TooShort,
    /// The checksum is wrong (RFC 9260 §6.8).
    #[error("wrong checksum")]
    Checksum,
    /// The source or destination port is zero, which must not be used (RFC 9260 §3.1).
    #[error("a port is zero")]
    PortZero,
}

/// A packet with a correct checksum, over the bytes it was received in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The common header.
    pub header: Header,
    body: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks length, checksum and ports. Chunks are read by [`Packet::chunks`].
    ///
    /// # Errors
    /// The first [`PacketError`] that applies, in the order of its variants.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        if bytes.len() < COMMON_HEADER_LEN + CHUNK_HEADER_LEN {
            return Err(PacketError::TooShort);
        }
        let (header, checksum, body) = split_header(bytes).ok_or(PacketError::TooShort)?;
        if checksum_of(bytes) != Some(checksum) {
            return Err(PacketError::Checksum);
        }
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(PacketError::PortZero);
        }
        Ok(Self { header, body })
    }

    /// Reads a packet that has no checksum, whose field is zero. `None` if it has one, or is invalid
    /// otherwise. The caller must know that the sender may omit it (RFC 9653 §5.3).
    #[must_use]
    pub fn parse_without_checksum(bytes: &'a [u8]) -> Option<Self> {
        let (header, checksum, body) = split_header(bytes)?;
        let is_whole = body.len() >= CHUNK_HEADER_LEN
            && header.source_port != 0
            && header.destination_port != 0;
        (checksum == NO_CHECKSUM && is_whole).then_some(Self { header, body })
    }

    /// The length of the packet in bytes, with its common header.
    pub(crate) const fn len(&self) -> usize {
        COMMON_HEADER_LEN + self.body.len()
    }

    /// The chunks, in order. The iterator ends after a framing error.
    #[must_use]
    pub const fn chunks(&self) -> Chunks<'a> {
        Chunks::new(self.body)
    }
}

fn split_header(bytes: &[u8]) -> Option<(Header, [u8; 4], &[u8])> {
    let mut cursor = Cursor(bytes);
    let header = Header {
        source_port: cursor.u16()?,
        destination_port: cursor.u16()?,
        verification_tag: cursor.u32()?,
    };
    Some((header, cursor.array()?, cursor.0))
}

/// The checksum that a received packet should have.
///
/// RFC 9260 Appendix A transmits the bits of the CRC so that its bytes come out least first.
fn checksum_of(packet: &[u8]) -> Option<[u8; 4]> {
    let (header, body) = packet.split_first_chunk::<COMMON_HEADER_LEN>()?;
    let mut header = *header;
    header[CHECKSUM_AT..].fill(0);
    Some(crc32c_append(crc32c(&header), body).to_le_bytes())
}

/// Writes the checksum of `packet` into its header (RFC 9260 §6.8). A packet shorter than the common header
/// is left as it is.
pub fn write_checksum(packet: &mut [u8]) {
    if packet.len() >= COMMON_HEADER_LEN {
        packet[CHECKSUM_AT..COMMON_HEADER_LEN].fill(0);
        let checksum = crc32c(packet).to_le_bytes();
        packet[CHECKSUM_AT..COMMON_HEADER_LEN].copy_from_slice(&checksum);
    }
}

/// The chunks of a packet, in order; see [`Packet::chunks`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Chunks<'a> {
    /// The chunks in `body`, the part of a packet after its common header.
    pub(crate) const fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The bytes after the last chunk that was returned. An AUTH chunk covers itself and these.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<RawChunk<'a>, ChunkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let whole = std::mem::take(&mut self.rest);
        if whole.is_empty() {
            return None;
        }
        let Some(chunk) = RawChunk::split(whole) else {
            return Some(Err(ChunkError::Framing));
        };
        self.rest = whole.get(padded(chunk.bytes.len())..).unwrap_or_default();
        Some(Ok(chunk))
    }
}

impl std::iter::FusedIterator for Chunks<'_> {}
