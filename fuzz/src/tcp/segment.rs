//! TCP segments that are mostly well-formed, so that random ones pass the first checks.

use std::net::IpAddr;

use bolero::{TypeGenerator, produce};
use rexmit_tcp::wire::pseudo_header;

/// A segment to be written, with a correct checksum.
#[derive(Clone, Debug, TypeGenerator)]
pub struct SegmentDraft {
    /// The control bits.
    pub flags: u8,
    /// The window field.
    pub window: u16,
    /// The urgent pointer.
    pub urgent_pointer: u16,
    /// The sequence number, or the distance from the right one.
    pub sequence: u32,
    /// The acknowledgment number, or the distance from the right one.
    pub acknowledgment: u32,
    /// The options, in order; those that do not fit are left out.
    #[generator(produce::<Vec<OptionDraft>>().with().len(0usize..4))]
    pub options: Vec<OptionDraft>,
    /// The payload.
    #[generator(produce::<Vec<u8>>().with().len(0usize..48))]
    pub payload: Vec<u8>,
    /// A small value falsifies the data offset.
    pub lie: u8,
}

/// An option to be.
#[derive(Clone, Debug, TypeGenerator)]
pub struct OptionDraft {
    /// Selects the option's kind, usually a known one.
    pub kind: u8,
    /// The bytes from which its value is made.
    pub value: [u8; 16],
    /// A small value falsifies the length.
    pub lie: u8,
}

impl SegmentDraft {
    /// The segment between these addresses and ports.
    #[must_use]
    pub fn bytes(&self, from: (IpAddr, u16), to: (IpAddr, u16)) -> Vec<u8> {
        let mut options = Vec::new();
        for option in &self.options {
            option.append_to(&mut options);
        }
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let mut bytes = Vec::new();
        bytes.extend(from.1.to_be_bytes());
        bytes.extend(to.1.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgment.to_be_bytes());
        let words = 5 + options.len() as u8 / 4;
        bytes.push(if self.lie < 8 { self.lie << 5 } else { words << 4 });
        bytes.push(self.flags);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urgent_pointer.to_be_bytes());
        bytes.extend(&options);
        bytes.extend(&self.payload);
        seal((from.0, to.0), &mut bytes);
        bytes
    }
}

impl OptionDraft {
    fn append_to(&self, options: &mut Vec<u8>) {
        // END, NOP, MSS, window scale, SACK permitted, SACK, timestamps, and any other.
        let (kind, len) = match self.kind % 12 {
            0 => (0, 0),
            1 => (1, 0),
            2 | 3 => (2, 2),
            4 => (3, 1),
            5 => (4, 0),
            6 => (5, 8),
            7 => (5, 16),
            8..=10 => (8, 8),
            _ => (self.kind, usize::from(self.value[0] % 8)),
        };
        options.push(kind);
        if kind < 2 {
            return;
        }
        let off_by = if self.lie < 16 { self.lie.wrapping_sub(8) } else { 0 };
        options.push((len as u8 + 2).wrapping_add(off_by));
        options.extend(&self.value[..len]);
    }
}

/// Writes a correct checksum into a segment, if it has room for one.
pub(super) fn seal((from, to): (IpAddr, IpAddr), bytes: &mut [u8]) {
    if bytes.len() >= 20 {
        bytes[16..18].fill(0);
        let checksum = pseudo_header(from, to, bytes.len()).with(bytes).finish();
        bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    }
}
