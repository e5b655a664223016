//! The chunks of a captured SCTP packet that carry or acknowledge data (RFC 9260 §3.3).

/// The data and the acknowledgement in an SCTP packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SctpPacket {
    /// The initiate tag of its INIT.
    pub init: Option<u32>,
    /// Whether the packet has an INIT ACK.
    pub is_init_ack: bool,
    /// Whether the packet has a COOKIE ECHO.
    pub is_cookie_echo: bool,
    /// The DATA and I-DATA chunks of the packet.
    pub data: Vec<DataChunk>,
    /// The last of its SACKs.
    pub sack: Option<SackChunk>,
    /// The new cumulative TSN of a FORWARD TSN or I-FORWARD-TSN: the sender has abandoned data up to it.
    pub forward_tsn: Option<u32>,
}

/// A DATA or I-DATA chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DataChunk {
    /// The chunk's TSN.
    pub tsn: u32,
    /// The chunk's stream.
    pub stream: u16,
    /// Whether its message is delivered unordered.
    pub is_unordered: bool,
    /// Whether the chunk begins a message.
    pub is_first: bool,
    /// Whether the chunk ends a message.
    pub is_last: bool,
    /// User data in bytes.
    pub payload: u32,
}

/// A SACK, or the acknowledgement in a SHUTDOWN.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackChunk {
    /// The cumulative TSN ack.
    pub cumulative: u32,
    /// The receiver window in bytes; a SHUTDOWN has none.
    pub window: Option<u32>,
    /// The first and last TSN of each gap ack block.
    pub blocks: Vec<(u32, u32)>,
    /// TSNs received more than once.
    pub duplicates: Vec<u32>,
}

const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const SHUTDOWN: u8 = 7;
const COOKIE_ECHO: u8 = 10;
const I_DATA: u8 = 64; // RFC 8260 §2.1
const FORWARD_TSN: u8 = 192; // RFC 3758 §3.2
const I_FORWARD_TSN: u8 = 194; // RFC 8260 §2.3.1

/// Parses a packet of `declared_len` bytes, of which the capture has `bytes`: a common header, then chunks, each padded to
/// four bytes.
pub(super) fn parse(bytes: &[u8], declared_len: usize) -> SctpPacket {
    const COMMON_HEADER: usize = 12;
    let mut packet = SctpPacket::default();
    let mut at = COMMON_HEADER;
    while at < declared_len
        && let Some(header) = bytes.get(at..at + 4)
    {
        let len = u16::from_be_bytes([header[2], header[3]]);
        let chunk = Chunk { flags: header[1], len, bytes: &bytes[at..] };
        packet.add(header[0], &chunk);
        at += usize::from(len.max(4)).next_multiple_of(4);
    }
    packet
}

struct Chunk<'a> {
    flags: u8,
    len: u16,
    /// From its header to the end of the capture.
    bytes: &'a [u8],
}

impl Chunk<'_> {
    fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..)?.first_chunk::<2>()?;
        (at < usize::from(self.len)).then_some(u16::from_be_bytes(*bytes))
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..)?.first_chunk::<4>()?;
        (at < usize::from(self.len)).then_some(u32::from_be_bytes(*bytes))
    }

    fn data(&self, header_len: u16) -> Option<DataChunk> {
        let [is_last, is_first, is_unordered] = [1, 2, 4].map(|bit| self.flags & bit != 0);
        Some(DataChunk {
            tsn: self.word(4)?,
            // A capture that ends before it still has the TSN.
            stream: self.half(8).unwrap_or(0),
            is_unordered,
            is_first,
            is_last,
            payload: u32::from(self.len.checked_sub(header_len)?),
        })
    }

    fn sack(&self) -> Option<SackChunk> {
        const BLOCKS: usize = 16;
        let cumulative = self.word(4)?;
        let (blocks, duplicates) = (self.half(12).unwrap_or(0), self.half(14).unwrap_or(0));
        let blocks_end = BLOCKS + 4 * usize::from(blocks);
        let block = |n| {
            let at = BLOCKS + 4 * usize::from(n);
            let number = |offset: u16| cumulative.wrapping_add(u32::from(offset));
            Some((number(self.half(at)?), number(self.half(at + 2)?)))
        };
        let duplicate = |n| self.word(blocks_end + 4 * usize::from(n));
        Some(SackChunk {
            cumulative,
            window: self.word(8),
            blocks: (0..blocks).map_while(block).collect(),
            duplicates: (0..duplicates).map_while(duplicate).collect(),
        })
    }
}

impl SctpPacket {
    fn add(&mut self, kind: u8, chunk: &Chunk<'_>) {
        match kind {
            DATA => self.data.extend(chunk.data(16)),
            I_DATA => self.data.extend(chunk.data(20)),
            INIT => self.init = chunk.word(4),
            INIT_ACK => self.is_init_ack = true,
            COOKIE_ECHO => self.is_cookie_echo = true,
            SACK => self.sack = chunk.sack(),
            SHUTDOWN if self.sack.is_none() => {
                let cumulative = chunk.word(4);
                self.sack =
                    cumulative.map(|cumulative| SackChunk { cumulative, ..SackChunk::default() });
            }
            FORWARD_TSN | I_FORWARD_TSN => self.forward_tsn = chunk.word(4),
            _ => {}
        }
    }
}
