//! Tests of the wire format as a whole. Expected bytes are written from the RFCs' diagrams or
//! captured from another implementation, never taken from our own encoder.

mod address_changes;
mod captured;
mod causes;
mod chunks;
mod damage;
mod framing;
mod params;
mod room;
mod round_trips;

use super::{Chunk, ChunkError, Header, Packet, PacketWriter, write_checksum};

const HEADER: Header =
    Header { source_port: 0x1388, destination_port: 0x1389, verification_tag: 0x0102_0304 };

/// The bytes that `text` spells in hexadecimal; white space is ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A packet with [`HEADER`] and `chunks`, which are copied unchanged.
fn packet_around(chunks: &[u8]) -> Vec<u8> {
    let mut packet = hex("1388 1389 01020304 00000000");
    packet.extend_from_slice(chunks);
    write_checksum(&mut packet);
    packet
}

/// The decoded chunks of a packet.
fn decode_all(packet: &[u8]) -> Vec<Result<Chunk<'_>, ChunkError>> {
    let packet = Packet::parse(packet).expect("a packet");
    packet.chunks().map(|raw| raw?.decode()).collect()
}

/// The only chunk of a packet.
fn decode_one(packet: &[u8]) -> Chunk<'_> {
    let chunks = decode_all(packet);
    assert_eq!(chunks.len(), 1, "{chunks:?}");
    chunks[0].expect("a chunk")
}

/// The packet that `write` writes below `limit`.
fn written_below(limit: usize, write: impl FnOnce(&mut PacketWriter<'_>)) -> Vec<u8> {
    let mut buffer = vec![0xEE; 40]; // The former content must not matter.
    let mut writer = PacketWriter::new(&mut buffer, limit, HEADER);
    write(&mut writer);
    let len = writer.finish();
    assert_eq!(len, buffer.len());
    buffer
}

/// Both ways: `chunk_bytes` decodes to `chunk`, and `write` writes exactly `chunk_bytes`.
fn assert_layout(
    chunk_bytes: &[u8],
    chunk: &Chunk<'_>,
    write: impl FnOnce(&mut PacketWriter<'_>) -> bool,
) {
    let packet = packet_around(chunk_bytes);
    assert_eq!(decode_one(&packet), *chunk);
    let written = written_below(1500, |writer| assert!(write(writer)));
    assert_eq!(written, packet);
}
