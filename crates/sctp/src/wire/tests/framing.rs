//! The framing of a packet, and tolerated deviations.

use super::{HEADER, decode_all, hex, packet_around};
use crate::wire::{Chunk, ChunkError, Packet, PacketError, padded, write_checksum};

#[test]
fn the_common_header_has_the_layout_of_rfc_9260_3_1() {
    // The checksum was computed bit by bit from the polynomial of RFC 9260 Appendix A.
    let packet = hex("1388 1389 01020304 8B628395 0B 00 0004");
    let parsed = Packet::parse(&packet).unwrap();
    assert_eq!(parsed.header, HEADER);
    assert_eq!(parsed.chunks().count(), 1);
    assert_eq!(packet_around(&hex("0B 00 0004")), packet);
}

#[test]
fn packets_that_are_none_are_refused() {
    let good = packet_around(&hex("0B 00 0004"));
    assert_eq!(Packet::parse(&[]), Err(PacketError::TooShort));
    assert_eq!(Packet::parse(&good[..15]), Err(PacketError::TooShort));
    for index in 0..good.len() {
        let mut bad = good.clone();
        bad[index] ^= 0x10;
        assert_eq!(Packet::parse(&bad), Err(PacketError::Checksum), "byte {index}");
    }
    for port in [0, 2] {
        let mut bad = good.clone();
        bad[port..port + 2].fill(0);
        write_checksum(&mut bad);
        assert_eq!(Packet::parse(&bad), Err(PacketError::PortZero));
    }
}

#[test]
fn a_checksum_for_less_than_a_header_is_not_written() {
    let mut bytes = [7; 11];
    write_checksum(&mut bytes);
    assert_eq!(bytes, [7; 11]);
}

#[test]
fn chunk_lengths_that_do_not_fit_end_the_packet() {
    for text in ["0B 00 0000", "0B 00 0003", "0B 00 0005", "00 03 FFFF", "0B 00", "0B"] {
        let packet = packet_around(&hex(&format!("0B 00 0004 {text}")));
        let expected = [Ok(Chunk::CookieAck), Err(ChunkError::Framing)];
        assert_eq!(decode_all(&packet), expected, "{text}");
        let mut chunks = Packet::parse(&packet).unwrap().chunks();
        assert!(chunks.by_ref().nth(1).is_some_and(|chunk| chunk.is_err()));
        assert_eq!(chunks.next(), None);
    }
}

#[test]
fn a_chunk_ends_at_its_padding_and_the_last_may_have_none() {
    let padded_chunks = hex("0A 00 0005 AA FFFFFF  0A 00 0006 BBCC 0000  0A 00 0005 DD 000000");
    for missing in 0..=3 {
        let packet = packet_around(&padded_chunks[..padded_chunks.len() - missing]);
        let expected = [&[0xAA][..], &[0xBB, 0xCC], &[0xDD]].map(|c| Ok(Chunk::CookieEcho(c)));
        assert_eq!(decode_all(&packet), expected, "{missing} bytes of padding missing");
    }
}

#[test]
fn more_padding_than_three_bytes_is_taken_for_a_chunk() {
    let packet = packet_around(&hex("0A 00 0005 AA 000000 00000000"));
    assert_eq!(decode_all(&packet), [Ok(Chunk::CookieEcho(&[0xAA])), Err(ChunkError::Framing)]);
}

#[test]
fn fixed_layouts_tolerate_counted_padding_and_nothing_more() {
    // Whole chunks, of which each is exactly as long as its layout.
    let table = [
        "07 00 0008 00000001",
        "08 00 0004",
        "0B 00 0004",
        "0E 00 0004",
        "03 00 0010 00000001 00000002 0000 0000",
        "03 00 0018 00000001 00000002 0001 0001 00020003 00000009",
        "C0 00 0008 00000001",
        "C2 00 0010 00000001 0002 0000 00000003",
        "01 00 0014 00000001 00000002 0003 0004 00000005",
    ];
    for text in table {
        let exact = hex(text);
        for surplus in 0..=4 {
            let mut bytes = exact.clone();
            bytes.resize(exact.len() + surplus, 0);
            bytes[3] += surplus as u8;
            let packet = packet_around(&bytes);
            let decoded = decode_all(&packet)[0];
            // FORWARD-TSN and INIT take four more bytes for an entry of their list.
            let is_list = exact[0] == 0xC0 || exact[0] == 1;
            assert_eq!(decoded.is_ok(), surplus < 4 || is_list, "{text} and {surplus}");
        }
        if exact.len() > 4 {
            let mut bytes = exact[..exact.len() - 1].to_vec();
            bytes[3] -= 1;
            let packet = packet_around(&bytes);
            let error = ChunkError::Length { kind: exact[0] };
            assert_eq!(decode_all(&packet), [Err(error)], "{text} less one");
        }
    }
}

#[test]
fn a_sack_with_counts_beyond_its_length_is_an_error() {
    for counts in ["0002 0000", "0000 0002", "0001 0001", "FFFF FFFF"] {
        let packet =
            packet_around(&hex(&format!("03 00 0014 00000001 00000002 {counts} 00010002")));
        assert_eq!(decode_all(&packet), [Err(ChunkError::Length { kind: 3 })], "{counts}");
    }
}

#[test]
fn data_without_user_data_names_its_tsn() {
    let packet = packet_around(&hex("00 03 0010 00000063 0001 0002 00000003  0B 00 0004"));
    let expected = [Err(ChunkError::NoUserData { tsn: 99 }), Ok(Chunk::CookieAck)];
    assert_eq!(decode_all(&packet), expected);
    let packet = packet_around(&hex("00 03 000F 00000063 0001 0002 000000"));
    assert_eq!(decode_all(&packet), [Err(ChunkError::Length { kind: 0 })]);
}

#[test]
fn heartbeats_without_their_info_are_errors() {
    for text in ["04 00 0004", "05 00 0008 0002 0004", "04 00 0008 0001 0005", "05 00 0006 0001"] {
        let packet = packet_around(&hex(text));
        assert_eq!(decode_all(&packet)[0], Err(ChunkError::NoHeartbeatInfo), "{text}");
    }
}

#[test]
fn padding_rounds_up_to_four_without_overflow() {
    assert_eq!([0, 1, 3, 4, 5].map(padded), [0, 4, 4, 4, 8]);
    assert_eq!(padded(usize::MAX), usize::MAX - 3);
}
