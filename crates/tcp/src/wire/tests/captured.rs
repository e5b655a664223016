//! Segments of Linux, captured on its loopback.

use std::net::{IpAddr, Ipv4Addr};

use super::*;

const LOOPBACK: (IpAddr, IpAddr) =
    (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST));

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// The segment with a correct checksum, which the kernel had left to the device.
fn sealed(hex: &str) -> Vec<u8> {
    let mut bytes = bytes(hex);
    seal(LOOPBACK, &mut bytes);
    bytes
}

#[test]
fn a_syn_with_every_option() {
    let bytes =
        sealed("d048b115ee25e8af00000000a002ffd7fe3000000204ffd70402080ae5ecebd0000000000103030a");
    let segment = parsed(LOOPBACK, &bytes);
    let header = segment.header;
    assert_eq!((header.source_port, header.destination_port), (0xd048, 0xb115));
    assert_eq!((header.sequence, header.acknowledgment), (0xee25_e8af, 0));
    assert_eq!((header.flags, header.window), (Flags::SYN, 65_495));
    assert_eq!(header.options.mss, Some(65_495));
    assert_eq!(header.options.window_scale, Some(10));
    assert!(header.options.sack_permitted && header.options.sack.is_empty());
    let timestamps = Timestamps { value: 0xe5ec_ebd0, echo_reply: 0 };
    assert_eq!(header.options.timestamps, Some(timestamps));
    assert_eq!((segment.payload, segment.sequence_len()), (&b""[..], 1));
}

#[test]
fn data_with_timestamps() {
    let bytes =
        sealed("d048b115ee25e8b0417e846380180040fe2d00000101080ae5ecebd06fff06ae68656c6c6f");
    let segment = parsed(LOOPBACK, &bytes);
    assert_eq!(segment.payload, b"hello");
    assert_eq!(segment.header.flags, Flags::PSH.and(Flags::ACK));
    assert_eq!(segment.header.acknowledgment, 0x417e_8463);
    assert_eq!(segment.sequence_len(), 5);
    // Written again it is the same, byte by byte, since the order of options and the padding are the usual ones.
    assert_eq!(written(&segment.header, LOOPBACK, b"hello"), bytes);
}

#[test]
fn an_acknowledgement_with_a_checksum_computed_by_the_kernel() {
    let bytes = bytes("d048b115ee25e8b6417e846480100040112a00000101080ae5ecec346fff0712");
    let segment = parsed(LOOPBACK, &bytes);
    assert_eq!(segment.header.flags, Flags::ACK);
    assert_eq!(written(&segment.header, LOOPBACK, b""), bytes);
}

#[test]
fn a_fin_takes_a_sequence_number() {
    let bytes = sealed("d048b115ee25e8b5417e846380110040fe2800000101080ae5ecec026fff06ae");
    assert_eq!(parsed(LOOPBACK, &bytes).sequence_len(), 1);
}
