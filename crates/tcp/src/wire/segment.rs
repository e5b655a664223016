//! A segment (RFC 9293 §3.1).

use std::net::IpAddr;

use super::checksum::{Sum, between, pseudo_header};
use super::options::Options;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// The control bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);

    /// Whether every bit of `flags` is set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The union of both sets of flags.
    #[must_use]
    pub const fn and(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

/// The header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// SEG.SEQ.
    pub sequence: u32,
    /// SEG.ACK; zero without [`Flags::ACK`].
    pub acknowledgment: u32,
    /// The control bits.
    pub flags: Flags,
    /// SEG.WND as on the wire, not scaled.
    pub window: u16,
    /// SEG.UP; meaningful with [`Flags::URG`].
    pub urgent_pointer: u16,
    /// The options.
    pub options: Options,
}

/// A received segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// The header.
    pub header: Header,
    /// The data.
    pub payload: &'a [u8],
}

/// Why bytes are not a valid segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Shorter than its header.
    Truncated,
    /// The data offset points into the header.
    BadOffset,
    /// The checksum is wrong.
    BadChecksum,
    /// An option has an impossible length.
    BadOption,
}

impl<'a> Segment<'a> {
    /// Parses a segment from `source` to `destination`, whose addresses the checksum covers.
    ///
    /// # Errors
    /// See [`ParseError`].
    pub fn parse(source: IpAddr, destination: IpAddr, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let fixed: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(ParseError::BadOffset);
        }
        let payload = bytes.get(header_len..).ok_or(ParseError::Truncated)?;
        if pseudo_header(source, destination, bytes.len()).with(bytes).finish() != 0 {
            return Err(ParseError::BadChecksum);
        }
        let options = &bytes[HEADER_LEN..header_len];
        let word16 = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let word32 = |at: usize| u32::from(word16(at)) << 16 | u32::from(word16(at + 2));
        let header = Header {
            source_port: word16(0),
            destination_port: word16(2),
            sequence: word32(4),
            acknowledgment: word32(8),
            flags: Flags(fixed[13]),
            window: word16(14),
            urgent_pointer: word16(18),
            options: Options::parse(options).ok_or(ParseError::BadOption)?,
        };
        Ok(Self { header, payload })
    }

    /// SEG.LEN: payload bytes, and one each for SYN and FIN.
    #[must_use]
    pub fn sequence_len(&self) -> u32 {
        let flag = |flag| u32::from(self.header.flags.has(flag));
        self.payload.len() as u32 + flag(Flags::SYN) + flag(Flags::FIN)
    }
}

impl Header {
    /// Writes the segment with the payload in two parts (a ring buffer's) into `out`, which is
    /// cleared first, checksum included.
    pub fn write(
        &self,
        (source, destination): (IpAddr, IpAddr),
        payload: (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) {
        self.write_between(between(&source, &destination), payload, out);
    }

    /// As [`Self::write`], with the sum of the pseudo-header.
    pub(crate) fn write_between(&self, between: Sum, payload: (&[u8], &[u8]), out: &mut Vec<u8>) {
        out.clear();
        let header_len = HEADER_LEN + self.options.wire_len();
        let [sp, sq] = self.source_port.to_be_bytes();
        let [dp, dq] = self.destination_port.to_be_bytes();
        let [s, t, u, v] = self.sequence.to_be_bytes();
        let [a, b, c, d] = self.acknowledgment.to_be_bytes();
        let [w, x] = self.window.to_be_bytes();
        let [y, z] = self.urgent_pointer.to_be_bytes();
        let offset = (header_len as u8 / 4) << 4;
        out.extend_from_slice(&[
            sp,
            sq,
            dp,
            dq,
            s,
            t,
            u,
            v,
            a,
            b,
            c,
            d,
            offset,
            self.flags.0,
            w,
            x,
            0,
            0,
            y,
            z,
        ]);
        self.options.write(out);
        out.extend_from_slice(payload.0);
        out.extend_from_slice(payload.1);
        let checksum = between.with_len(out.len()).with(out).finish();
        out[16..18].copy_from_slice(&checksum.to_be_bytes());
    }
}
