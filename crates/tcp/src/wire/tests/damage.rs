//! Bytes that are no segment.

use super::*;
use crate::wire::ParseError;

fn read(bytes: &[u8]) -> Result<Segment<'_>, ParseError> {
    Segment::parse(V4.0, V4.1, bytes)
}

#[test]
fn every_truncation_is_refused() {
    let mut rng = rng(1);
    for _ in 0..50 {
        let bytes = written(&random_header(&mut rng), V4, &random_bytes(&mut rng, 40));
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err());
            // A truncated header is refused even with a correct checksum.
            let mut cut = bytes[..len].to_vec();
            if len >= 20 {
                seal(V4, &mut cut);
            }
            let header_len = usize::from(bytes[12] >> 4) * 4;
            assert_eq!(read(&cut).is_ok(), len >= header_len);
        }
    }
}

#[test]
fn every_change_of_one_bit_is_noticed() {
    let mut rng = rng(2);
    let bytes = written(&random_header(&mut rng), V4, b"payload");
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&changed).is_err(), "bit {bit}");
    }
    assert_eq!(Segment::parse(V4.0, V4.0, &bytes), Err(ParseError::BadChecksum));
    assert_eq!(Segment::parse(V4.0, V6.1, &bytes), Err(ParseError::BadChecksum));
}

#[test]
fn a_data_offset_into_the_header_or_beyond_the_end_is_refused() {
    let bytes = written(&Header::default(), V4, b"12345678");
    for words in 0..16 {
        let mut changed = bytes.clone();
        changed[12] = words << 4;
        seal(V4, &mut changed);
        let expected = match words {
            0..5 => Some(ParseError::BadOffset),
            8.. => Some(ParseError::Truncated),
            _ => None,
        };
        assert_eq!(read(&changed).err().filter(|e| *e != ParseError::BadOption), expected);
    }
}

#[test]
fn an_impossible_option_is_refused_with_the_segment() {
    let mut bytes = written(&Header::default(), V4, b"");
    bytes.extend_from_slice(&[8, 10, 0, 0]);
    bytes[12] = 6 << 4;
    seal(V4, &mut bytes);
    assert_eq!(read(&bytes), Err(ParseError::BadOption));
}

#[test]
fn reserved_and_congestion_bits_are_passed_on_and_passed_over() {
    let mut bytes = written(&Header { flags: Flags(0xC2), ..Header::default() }, V4, b"");
    bytes[12] |= 0x0F;
    seal(V4, &mut bytes);
    let segment = read(&bytes).expect("a segment");
    assert!(segment.header.flags.has(Flags::SYN));
    assert_eq!((segment.header.flags, segment.sequence_len()), (Flags(0xC2), 1));
}
