//! The layout of each error cause, in both directions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{decode_one, hex, written_below};
use crate::wire::{Cause, Causes, CausesWriter, Chunk, Params, TlvError, U16List};

fn error_with(write: impl FnOnce(&mut CausesWriter<'_, '_>)) -> Vec<u8> {
    written_below(1500, |writer| assert!(writer.error(write)))
}

/// The value of the only chunk of `packet`, padding included.
fn cause_bytes(packet: &[u8]) -> &[u8] {
    &packet[16..]
}

#[test]
fn causes_have_the_layouts_of_rfc_9260_3_3_10() {
    let table = [
        ("0001 0008 0102 0000", Cause::InvalidStreamIdentifier(0x0102)),
        ("0002 000A 00000001 0007 0000", Cause::MissingMandatoryParameter(U16List::from(&[7][..]))),
        ("0003 0008 00000064", Cause::StaleCookie { measure_of_staleness_us: 100 }),
        ("0004 0004", Cause::OutOfResource),
        ("0005 000B 000B 0007 616200 00", Cause::UnresolvableAddress(b"\0\x0B\0\x07ab\0")),
        ("0006 0009 C1 00 0005 77 000000", Cause::UnrecognizedChunkType(&[0xC1, 0, 0, 5, 0x77])),
        ("0007 0004", Cause::InvalidMandatoryParameter),
        ("0008 0008 C006 0004", Cause::UnrecognizedParameters(&[0xC0, 6, 0, 4])),
        ("0009 0008 FFFFFFFF", Cause::NoUserData { tsn: u32::MAX }),
        ("000A 0004", Cause::CookieReceivedWhileShuttingDown),
        (
            "000B 000C 0005 0008 C0000201",
            Cause::RestartWithNewAddresses(b"\0\x05\0\x08\xC0\0\x02\x01"),
        ),
        ("000C 0007 627965 00", Cause::UserInitiatedAbort(b"bye")),
        ("000D 0005 21 000000", Cause::ProtocolViolation(b"!")),
        ("00A5 0006 0102 0000", Cause::Unknown { code: 165, value: &[1, 2] }),
    ];
    for (text, cause) in table {
        let bytes = hex(text);
        assert_eq!(Causes::new(&bytes).collect::<Vec<_>>(), [Ok(cause)], "{text}");
        let packet = error_with(|causes| assert!(causes.push(&cause)));
        assert_eq!(cause_bytes(&packet), bytes, "{text}");
        assert_eq!(decode_one(&packet), Chunk::Error { causes: Causes::new(&bytes) });
        assert_eq!(cause.code(), u16::from_be_bytes([bytes[0], bytes[1]]));
    }
}

#[test]
fn causes_have_the_layouts_of_rfc_4895_4_and_rfc_5061_4_3() {
    let request = b"\xC0\x02\0\x10\x01\x02\x34\x76\0\x05\0\x08\xC0\0\x02\x01";
    let quoted = "0014 C002 0010 01023476 0005 0008 C0000201";
    let table = [
        (format!("00A0 {quoted}"), Cause::DeleteLastAddress(request)),
        (format!("00A1 {quoted}"), Cause::ResourceShortage(request)),
        (format!("00A2 {quoted}"), Cause::DeleteSourceAddress(request)),
        ("00A3 0004".to_owned(), Cause::IllegalAsconfAck),
        (format!("00A4 {quoted}"), Cause::NotAuthorized(request)),
        ("0105 0006 0004 0000".to_owned(), Cause::UnsupportedHmac(4)),
    ];
    for (text, cause) in table {
        let bytes = hex(&text);
        assert_eq!(Causes::new(&bytes).collect::<Vec<_>>(), [Ok(cause)], "{text}");
        let packet = error_with(|causes| assert!(causes.push(&cause)));
        assert_eq!(cause_bytes(&packet), bytes, "{text}");
    }
}

#[test]
fn causes_of_a_wrong_length_are_errors_of_their_own_alone() {
    let wrong = [
        "0001 0006 0102 0000",
        "0001 000C 0102 0000 00000000",
        "0002 0006 0001 0000",
        "0002 000A 00000002 0007 0000",
        "0002 000C 00000001 0007 0008",
        "0002 000A FFFFFFFF 0007 0000",
        "0003 0007 000064 00",
        "0004 0005 00 000000",
        "0007 0008 00000000",
        "0009 000C 00000001 00000002",
        "000A 0006 0000 0000",
        "00A3 0005 00 000000",
        "0105 0008 0004 0001",
        "0105 0005 04 000000",
    ];
    for text in wrong {
        let bytes = hex(&format!("{text} 0004 0004"));
        let causes: Vec<_> = Causes::new(&bytes).collect();
        assert_eq!(causes, [Err(TlvError::Value), Ok(Cause::OutOfResource)], "{text}");
    }
}

#[test]
fn a_cause_that_does_not_fit_its_chunk_ends_the_list() {
    for text in ["0004 0003", "0004 0000", "000C 0009 00000000"] {
        let bytes = hex(&format!("0007 0004 {text}"));
        let causes: Vec<_> = Causes::new(&bytes).collect();
        assert_eq!(causes, [Ok(Cause::InvalidMandatoryParameter), Err(TlvError::Framing)]);
    }
}

#[test]
fn unrecognized_parameters_are_quoted_with_padding_between_them() {
    let (first, second) = (hex("C006 0005 AA"), hex("D001 0006 BBCC"));
    let packet = error_with(|causes| {
        assert!(causes.push_unrecognized_parameters([&first[..], &second[..]]));
        assert!(causes.push(&Cause::OutOfResource));
    });
    let expected = hex("0008 0012 C006 0005 AA 000000 D001 0006 BBCC 0000 0004 0004");
    assert_eq!(cause_bytes(&packet), expected);
    let Some(Ok(Cause::UnrecognizedParameters(quoted))) = Causes::new(&expected).next() else {
        panic!("no such cause")
    };
    let quoted: Vec<_> = Params::new(quoted).map(|param| param.unwrap().bytes).collect();
    assert_eq!(quoted, [first, second]);
}

#[test]
fn new_addresses_of_a_restart_are_quoted_as_parameters() {
    let addresses = [
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1)),
    ];
    let packet = error_with(|causes| {
        assert!(causes.push_restart_with_new_addresses(addresses));
    });
    assert_eq!(
        cause_bytes(&packet),
        hex("000B 0020 0005 0008 C0000201 0006 0014 20010DB8 00000000 00000000 00000001"),
    );
}
