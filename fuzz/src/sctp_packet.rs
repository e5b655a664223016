//! SCTP packets that are mostly well-formed, so that random ones pass the first checks.

use bolero::{TypeGenerator, produce};
use rexmit_sctp::wire::{Header, kind, write_checksum};

/// The chunk types that a draft prefers.
const KINDS: [u8; 22] = [
    kind::DATA,
    kind::I_DATA,
    kind::I_FORWARD_TSN,
    kind::INIT,
    kind::INIT_ACK,
    kind::SACK,
    kind::HEARTBEAT,
    kind::HEARTBEAT_ACK,
    kind::ABORT,
    kind::SHUTDOWN,
    kind::SHUTDOWN_ACK,
    kind::ERROR,
    kind::COOKIE_ECHO,
    kind::COOKIE_ACK,
    kind::ECNE,
    kind::CWR,
    kind::SHUTDOWN_COMPLETE,
    kind::RE_CONFIG,
    kind::FORWARD_TSN,
    kind::AUTH,
    kind::ASCONF,
    kind::ASCONF_ACK,
];

/// A packet to be written, with a correct checksum.
#[derive(Clone, Debug, TypeGenerator)]
pub struct PacketDraft {
    /// The chunks of the packet, in order.
    #[generator(produce::<Vec<ChunkDraft>>().with().len(0usize..6))]
    pub chunks: Vec<ChunkDraft>,
    /// Bytes after the last chunk.
    #[generator(produce::<Vec<u8>>().with().len(0usize..5))]
    pub surplus: Vec<u8>,
}

/// A chunk to be.
#[derive(Clone, Debug, TypeGenerator)]
pub struct ChunkDraft {
    /// Selects the chunk's type, usually a known one.
    pub kind: u8,
    /// The flags of the chunk.
    pub flags: u8,
    /// The bytes from which its fixed part is made.
    pub fixed: [u8; 16],
    /// Selectors of type and value of its parameters or error causes, if it has any.
    #[generator(produce::<Vec<FieldDraft>>().with().len(0usize..5))]
    pub fields: Vec<FieldDraft>,
    /// The rest of its value, if it has no such list.
    #[generator(produce::<Vec<u8>>().with().len(0usize..40))]
    pub tail: Vec<u8>,
    /// A small value falsifies the length.
    pub lie: u8,
}

/// A parameter or an error cause to be.
#[derive(Clone, Debug, TypeGenerator)]
pub struct FieldDraft {
    /// Selects its type.
    pub kind: u16,
    /// The value of the field.
    #[generator(produce::<Vec<u8>>().with().len(0usize..24))]
    pub value: Vec<u8>,
    /// A small value falsifies the length; an odd value shortens the value to a multiple of four bytes.
    pub lie: u8,
}

impl PacketDraft {
    /// The packet.
    #[must_use]
    pub fn bytes(&self, header: Header) -> Vec<u8> {
        let mut packet = Vec::new();
        packet.extend(header.source_port.to_be_bytes());
        packet.extend(header.destination_port.to_be_bytes());
        packet.extend(header.verification_tag.to_be_bytes());
        packet.extend([0; 4]);
        for chunk in &self.chunks {
            chunk.append_to(&mut packet);
        }
        packet.extend(&self.surplus);
        write_checksum(&mut packet);
        packet
    }
}

impl ChunkDraft {
    fn append_to(&self, packet: &mut Vec<u8>) {
        let kind = *KINDS.get(usize::from(self.kind % 26)).unwrap_or(&self.kind);
        let mut value = Vec::new();
        match kind {
            kind::INIT | kind::INIT_ACK => {
                value.extend(self.fixed);
                self.append_fields_to(&mut value);
            }
            kind::ABORT | kind::ERROR | kind::RE_CONFIG => self.append_fields_to(&mut value),
            kind::HEARTBEAT | kind::HEARTBEAT_ACK => {
                value.extend([0, 1]);
                append_length_and_value(&mut value, &self.tail, self.fixed[0]);
            }
            kind::SACK => {
                let words = (self.tail.len() / 4) as u8;
                let blocks = self.fixed[8] % (words + 1);
                value.extend(&self.fixed[..8]);
                value.extend([0, blocks, 0, words - blocks]);
                value.extend(&self.tail[..usize::from(words) * 4]);
            }
            kind::DATA => {
                value.extend(&self.fixed[..12]);
                value.extend(&self.tail);
            }
            kind::I_DATA => {
                // Few streams, messages and fragments, so that pieces meet.
                let [a, b, c, d, stream, mid, fsn, ..] = self.fixed;
                value.extend([a, b, c, d, 0, stream % 4, 0, 0, 0, 0, 0, mid % 4, 0, 0, 0, fsn % 8]);
                value.extend(&self.tail);
            }
            kind::I_FORWARD_TSN => {
                value.extend(&self.fixed[..4]);
                for &[stream, mid] in self.tail.as_chunks().0 {
                    value.extend([0, stream % 4, 0, stream >> 7, 0, 0, 0, mid % 8]);
                }
            }
            kind::ASCONF => {
                value.extend(&self.fixed[..4]);
                value.extend([0, 5, 0, 8]);
                value.extend(&self.fixed[4..8]);
                self.append_fields_to(&mut value);
            }
            kind::ASCONF_ACK => {
                value.extend(&self.fixed[..4]);
                self.append_fields_to(&mut value);
            }
            kind::AUTH => {
                value.extend([0, self.fixed[0] & 1, 0, 3 - (self.fixed[1] & 2)]);
                value.extend([0; 32]);
                value.truncate(if self.fixed[1] & 2 == 0 { 36 } else { 24 });
            }
            kind::SHUTDOWN | kind::FORWARD_TSN => {
                value.extend(&self.fixed[..4]);
                if kind == kind::FORWARD_TSN {
                    value.extend(&self.tail);
                }
            }
            kind::SHUTDOWN_ACK | kind::COOKIE_ACK | kind::SHUTDOWN_COMPLETE => {}
            _ => value.extend(&self.tail),
        }
        packet.extend([kind, self.flags]);
        append_length_and_value(packet, &value, self.lie);
    }

    fn append_fields_to(&self, value: &mut Vec<u8>) {
        for field in &self.fields {
            // Types up to 18, those with high bits that are known, and any other.
            let kind = match field.kind % 32 {
                19 => 0x8000,
                20 => 0x8008,
                21 => 0xC000,
                22 => field.kind,
                23..26 => 0x8002 + (field.kind % 32 - 23),
                26.. => {
                    self.append_change_to(value, field);
                    continue;
                }
                known => known,
            };
            value.extend(kind.to_be_bytes());
            // Every value of fixed length is a multiple of four bytes long.
            let len = field.value.len();
            let len = if field.lie % 2 == 0 { len } else { len - len % 4 };
            append_length_and_value(value, &field.value[..len], field.lie);
        }
    }
}

impl ChunkDraft {
    /// Appends a request or an answer about addresses, close to the existing ones.
    fn append_change_to(&self, value: &mut Vec<u8>, field: &FieldDraft) {
        let host = field.value.first().map_or(0, |byte| byte % 16);
        let address = match field.lie % 4 {
            0 => [0; 4],
            _ => [10, 0, 0, host],
        };
        let body = [&[0, 0, 0, host, 0, 5, 0, 8][..], &address].concat();
        value.extend((0xC001 + field.kind % 5).to_be_bytes());
        append_length_and_value(value, &body, field.lie.saturating_add(12));
    }
}

/// Completes a header with the length, which may be wrong by a few bytes, and appends the padded value.
fn append_length_and_value(bytes: &mut Vec<u8>, value: &[u8], lie: u8) {
    let off_by = if lie < 16 { u16::from(lie).wrapping_sub(8) } else { 0 };
    let length = (value.len() as u16 + 4).wrapping_add(off_by);
    bytes.extend(length.to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
