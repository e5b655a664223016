//! The TCP segment parser: every segment is read to its end, and all parsed parts are the same after being written and
//! read again.

use std::net::{IpAddr, Ipv4Addr};

use rexmit_tcp::wire::{HEADER_LEN, MAX_OPTIONS_LEN, Options, ParseError, Segment};

use bolero::check;
use rexmit_fuzz::tcp::SegmentDraft;

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const TO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 20_000;

#[test]
fn arbitrary_bytes() {
    check!().with_iterations(ITERATIONS).for_each(|bytes| {
        let _ = Options::parse(bytes);
        if let Ok(segment) = Segment::parse(FROM, TO, bytes) {
            assert_written_and_read_again(&segment);
        }
    });
}

#[test]
fn nearly_valid_segments() {
    check!().with_type::<SegmentDraft>().with_iterations(ITERATIONS).for_each(|draft| {
        let bytes = draft.bytes((FROM, 1), (TO, 2));
        match Segment::parse(FROM, TO, &bytes) {
            Ok(segment) => {
                assert_eq!((segment.header.source_port, segment.header.destination_port), (1, 2));
                assert_eq!(segment.header.sequence, draft.sequence);
                assert_written_and_read_again(&segment);
            }
            Err(error) => assert_ne!(error, ParseError::BadChecksum),
        }
    });
}

fn assert_written_and_read_again(segment: &Segment<'_>) {
    assert!(segment.header.options.wire_len() <= MAX_OPTIONS_LEN);
    let (head, tail) = segment.payload.split_at(segment.payload.len() / 3);
    let mut bytes = Vec::new();
    segment.header.write((FROM, TO), (head, tail), &mut bytes);
    assert_eq!(bytes.len(), HEADER_LEN + segment.header.options.wire_len() + segment.payload.len());
    let again = Segment::parse(FROM, TO, &bytes).expect("what we wrote");
    // Unpadded, more blocks may have come than find room beside the rest.
    let mut header = segment.header;
    header.options.sack.truncate(again.header.options.sack.as_slice().len());
    assert_eq!(again, Segment { header, payload: segment.payload });
}
