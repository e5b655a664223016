//! The layout of each parameter, in both directions, and tolerated deviations of parameter lists.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{hex, written_below};
use crate::wire::{
    Chunk, Init, Packet, Param, Params, RawParam, SCTP_OVER_DTLS, TlvError, U16List, UnknownAction,
};

fn init_with(write: impl FnOnce(&mut crate::wire::ParamsWriter<'_, '_>)) -> Vec<u8> {
    let init = Init {
        initiate_tag: 1,
        a_rwnd: 2,
        outbound_streams: 3,
        inbound_streams: 4,
        initial_tsn: 5,
        params: Params::default(),
    };
    written_below(1500, |writer| assert!(writer.init(&init, write)))
}

/// The parameters of the only chunk of `packet`, without final padding.
fn param_bytes(packet: &[u8]) -> &[u8] {
    &Packet::parse(packet).unwrap().chunks().next().unwrap().unwrap().value[16..]
}

#[test]
fn parameters_have_their_layouts() {
    let table = [
        ("0001 0007 010203", Param::HeartbeatInfo(&[1, 2, 3])),
        ("0005 0008 C0000201", Param::Ipv4(Ipv4Addr::new(192, 0, 2, 1))),
        (
            "0006 0014 20010DB8 00000000 00000000 00000001",
            Param::Ipv6(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1)),
        ),
        ("0007 0006 BEEF", Param::StateCookie(&[0xBE, 0xEF])),
        ("0008 0009 8123 0005 77", Param::UnrecognizedParameter(&[0x81, 0x23, 0, 5, 0x77])),
        ("0009 0008 000003E8", Param::CookiePreservative(1000)),
        ("000B 0007 61 62 00", Param::HostName(b"ab\0")),
        ("000C 0008 0005 0006", Param::SupportedAddressTypes(U16List::from(&[5, 6][..]))),
        ("8000 0004", Param::EcnCapable),
        ("8001 0008 00000001", Param::ZeroChecksumAcceptable(SCTP_OVER_DTLS)),
        ("8008 0006 C0 82", Param::SupportedExtensions(&[0xC0, 0x82])),
        ("C000 0004", Param::ForwardTsnSupported),
    ];
    for (text, param) in table {
        let bytes = hex(text);
        let raw = Params::new(&bytes).next().unwrap().unwrap();
        assert_eq!(raw.bytes, bytes);
        assert_eq!(raw.decode(), Ok(param));
        let packet = init_with(|params| assert!(params.push(&param)));
        assert_eq!(param_bytes(&packet), bytes);
    }
}

#[test]
fn parameters_are_padded_but_for_the_last_one() {
    let packet = init_with(|params| {
        assert!(params.push(&Param::SupportedExtensions(&[0xC0])));
        assert!(params.push(&Param::SupportedExtensions(&[0x82])));
    });
    assert_eq!(param_bytes(&packet), hex("8008 0005 C0 000000  8008 0005 82"));
    assert_eq!(packet[14..16], [0, 33]);
    assert_eq!(packet.len(), 12 + 36);
}

#[test]
fn values_of_a_wrong_length_are_errors_of_their_parameter_alone() {
    let wrong = [
        "0005 0007 C00002 00",
        "0005 0009 C000020100 000000",
        "0006 0010 20010DB8 00000000 00000000",
        "0009 0006 03E8 0000",
        "000C 0007 000500 00",
        "8000 0005 00 000000",
        "C000 0008 00000000",
    ];
    for text in wrong {
        let bytes = hex(&format!("{text} 0005 0008 C0000201"));
        let params: Vec<_> = Params::new(&bytes).map(|raw| raw.unwrap().decode()).collect();
        let address = Param::Ipv4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(params, [Err(TlvError::Value), Ok(address)], "{text}");
    }
}

#[test]
fn a_length_that_does_not_fit_ends_the_list() {
    for text in ["0005 0003 C0000201", "0005 0000 C0000201", "0005 0009 C0000201", "8008 FFFF"] {
        let bytes = hex(&format!("C000 0004 {text}"));
        let mut params = Params::new(&bytes);
        assert!(params.next().unwrap().is_ok());
        assert_eq!(params.next(), Some(Err(TlvError::Framing)), "{text}");
        assert_eq!(params.next(), None);
    }
}

#[test]
fn final_padding_may_be_missing_or_counted_but_is_at_most_three_bytes() {
    for text in ["8008 0005 C0", "8008 0005 C0 FF", "8008 0005 C0 000000"] {
        let bytes = hex(text);
        let params: Vec<_> = Params::new(&bytes).collect();
        assert_eq!(params.len(), 1);
        assert_eq!(params[0].unwrap().value, [0xC0], "{text}");
    }
    let bytes = hex("8008 0005 C0 000000 00000000");
    assert_eq!(Params::new(&bytes).nth(1), Some(Err(TlvError::Framing)));
}

#[test]
fn lists_are_equal_whatever_their_padding_holds() {
    let (zeros, ones) =
        (hex("8008 0005 C0 000000 C000 0004"), hex("8008 0005 C0 FFFFFF C000 0004"));
    assert_eq!(Params::new(&zeros), Params::new(&ones));
    assert_ne!(Params::new(&zeros), Params::new(&zeros[..8]));
}

#[test]
fn unknown_parameters_say_what_to_do_with_them_and_can_be_quoted() {
    let table = [
        (0x3FFF, UnknownAction { stop: true, report: false }),
        (0x4000, UnknownAction { stop: true, report: true }),
        (0x8005, UnknownAction { stop: false, report: false }),
        (0xC006, UnknownAction { stop: false, report: true }),
    ];
    for (kind, action) in table {
        let bytes = hex(&format!("{kind:04X} 0006 0102"));
        let raw = RawParam { kind, value: &[1, 2], bytes: &bytes };
        assert_eq!(Params::new(&bytes).next(), Some(Ok(raw)));
        assert_eq!(raw.decode(), Ok(Param::Unknown));
        assert_eq!(raw.unknown_action(), action);
        let packet = init_with(|params| {
            assert!(params.push(&Param::UnrecognizedParameter(raw.bytes)));
            assert!(params.push(&Param::Unknown));
            assert!(params.push_raw(&raw));
        });
        let quoted = hex(&format!("0008 000A {kind:04X} 0006 0102 0000 {kind:04X} 0006 0102"));
        assert_eq!(param_bytes(&packet), quoted);
    }
}

#[test]
fn parameters_of_re_config_mean_nothing_in_init() {
    for kind in 13..=18 {
        let raw = RawParam { kind, value: &[0; 8], bytes: &[] };
        assert_eq!(raw.decode(), Ok(Param::Unknown));
    }
}

#[test]
fn parameters_of_the_struct_come_before_those_of_the_closure() {
    let own = hex("C000 0004 1234 0005 FF AAAAAA");
    let init = Init {
        initiate_tag: 1,
        a_rwnd: 2,
        outbound_streams: 3,
        inbound_streams: 4,
        initial_tsn: 5,
        params: Params::new(&own),
    };
    let packet = written_below(100, |writer| {
        assert!(writer.init_ack(&init, |params| {
            assert!(params.push(&Param::EcnCapable));
        }));
    });
    assert_eq!(param_bytes(&packet), hex("C000 0004 1234 0005 FF 000000 8000 0004"));
    assert!(matches!(super::decode_one(&packet), Chunk::InitAck(_)));
}
