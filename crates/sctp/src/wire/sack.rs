//! SACK (RFC 9260 §3.3.4).

use std::fmt;

use super::CHUNK_HEADER_LEN;
use super::cursor::Cursor;
use super::frame::kind;
use super::sink::Sink;

/// Position of the number of packets in the flags.
const PACKETS_SHIFT: u32 = 6;
/// The largest number that the two high bits of the flags can express.
const MAX_PACKETS: u8 = 3;

/// Bytes of a SACK in front of its lists, chunk header included.
const SACK_FIXED_LEN: usize = CHUNK_HEADER_LEN + 12;

/// The length in bytes of a SACK chunk with these numbers of gap ack blocks and duplicate TSNs.
#[must_use]
pub const fn sack_len(gap_ack_blocks: usize, duplicate_tsns: usize) -> usize {
    SACK_FIXED_LEN + 4 * (gap_ack_blocks + duplicate_tsns)
}

/// A selective acknowledgement (RFC 9260 §3.3.4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sack<'a> {
    /// All TSNs up to this one were received.
    pub cumulative_tsn_ack: u32,
    /// Advertised Receiver Window Credit: the free receive buffer, in bytes.
    pub a_rwnd: u32,
    /// The number of packets with DATA that the SACK acknowledges, up to 3, if the sender uses CMT-DAC (the
    /// two high bits of the flags); otherwise 0, because RFC 9260 defines no flags.
    pub packets: u8,
    gap_ack_blocks: &'a [[u8; 4]],
    duplicate_tsns: &'a [[u8; 4]],
}

impl<'a> Sack<'a> {
    /// The gap ack blocks, each as offsets of its first and last TSN from the cumulative TSN. They are not checked: a
    /// block may start at 0, end before it starts, overlap another or be out of order.
    pub fn gap_ack_blocks(&self) -> impl ExactSizeIterator<Item = (u16, u16)> + Clone + 'a {
        self.gap_ack_blocks
            .iter()
            .map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// TSNs received again since the last SACK, one entry for each time.
    pub fn duplicate_tsns(&self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        self.duplicate_tsns.iter().map(|&bytes| u32::from_be_bytes(bytes))
    }

    /// The number of gap ack blocks.
    #[must_use]
    pub const fn gap_ack_block_count(&self) -> usize {
        self.gap_ack_blocks.len()
    }

    /// The number of duplicate TSNs.
    #[must_use]
    pub const fn duplicate_tsn_count(&self) -> usize {
        self.duplicate_tsns.len()
    }

    pub(super) fn decode(flags: u8, value: &'a [u8]) -> Option<Self> {
        let packets = flags >> PACKETS_SHIFT;
        let mut cursor = Cursor(value);
        let cumulative_tsn_ack = cursor.u32()?;
        let a_rwnd = cursor.u32()?;
        let blocks = usize::from(cursor.u16()?);
        let duplicates = usize::from(cursor.u16()?);
        let (gap_ack_blocks, _) = cursor.bytes(4 * blocks)?.as_chunks();
        let (duplicate_tsns, _) = cursor.bytes(4 * duplicates)?.as_chunks();
        cursor.end_of_chunk()?;
        Some(Self { cumulative_tsn_ack, a_rwnd, packets, gap_ack_blocks, duplicate_tsns })
    }
}

impl fmt::Debug for Sack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sack")
            .field("cumulative_tsn_ack", &self.cumulative_tsn_ack)
            .field("a_rwnd", &self.a_rwnd)
            .field("packets", &self.packets)
            .field("gap_ack_blocks", &self.gap_ack_blocks().collect::<Vec<_>>())
            .field("duplicate_tsns", &self.duplicate_tsns().collect::<Vec<_>>())
            .finish()
    }
}

/// Appends a SACK chunk.
pub(super) fn encode_sack(
    sink: &mut Sink<'_>,
    packets: u8,
    cumulative_tsn_ack: u32,
    a_rwnd: u32,
    gap_ack_blocks: impl IntoIterator<Item = (u16, u16)>,
    duplicate_tsns: impl IntoIterator<Item = u32>,
) {
    sink.chunk(kind::SACK, packets.min(MAX_PACKETS) << PACKETS_SHIFT, |sink| {
        sink.put_u32(cumulative_tsn_ack);
        sink.put_u32(a_rwnd);
        let counts_at = sink.len();
        sink.put_u32(0);
        // No count can pass 65535: a chunk has room for fewer than 16384 entries.
        let mut blocks = 0u16;
        for (start, end) in gap_ack_blocks {
            sink.put_u16(start);
            sink.put_u16(end);
            blocks = blocks.saturating_add(1);
        }
        let mut duplicates = 0u16;
        for tsn in duplicate_tsns {
            sink.put_u32(tsn);
            duplicates = duplicates.saturating_add(1);
        }
        sink.patch_u16(counts_at, blocks);
        sink.patch_u16(counts_at + 2, duplicates);
    });
}
