//! The layouts of AUTH (RFC 4895 §3, §4.1), ASCONF and ASCONF-ACK (RFC 5061 §4.1, §4.2), in both
//! directions.

use std::net::IpAddr;

use super::{assert_layout, decode_all, decode_one, hex, packet_around, written_below};
use crate::wire::{
    AUTH_HEADER_LEN, AsconfAnswer, AsconfChange, AsconfRequest, Auth, Cause, Causes, Chunk,
    ChunkError, Packet, Param, Params, TlvError, U16List, kind,
};

fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

fn request(correlation: u32, change: AsconfChange<'static>) -> AsconfRequest<'static> {
    AsconfRequest { correlation, change, bytes: &[] }
}

#[test]
fn auth_has_the_layout_of_rfc_4895_4_1() {
    let bytes = hex("0F 00 000C 0007 0003 DEADBEEF");
    let auth = Auth { key_id: 7, hmac_id: 3, mac: &[0xDE, 0xAD, 0xBE, 0xEF] };
    assert_layout(&bytes, &Chunk::Auth(auth), |writer| writer.chunk(&Chunk::Auth(auth)));
    let short = packet_around(&hex("0F 00 0007 000700 00"));
    assert_eq!(decode_all(&short), [Err(ChunkError::Length { kind: kind::AUTH })]);
}

/// RFC 4895 §6.2: the MAC is over AUTH with zeros in place of the MAC, and all that follows with its
/// padding.
#[test]
fn the_mac_is_over_all_that_follows_and_stands_in_auth() {
    let mut buffer = Vec::new();
    let mut writer = crate::wire::PacketWriter::new(&mut buffer, 1500, super::HEADER);
    assert!(writer.auth(7, 1, 20));
    assert!(writer.is_only_auth());
    assert!(writer.plain(0x3F, 0, &[0x55]));
    assert!(!writer.is_only_auth());
    let covered = hex(&format!("0F 00 001C 0007 0001 {} 3F 00 0005 55 000000", "00".repeat(20)));
    writer.finish_authenticated(|bytes| {
        assert_eq!(bytes, covered);
        [0xAB; 32]
    });
    let packet = Packet::parse(&buffer).expect("a right checksum");
    let mut chunks = packet.chunks();
    let auth = chunks.next().unwrap().unwrap();
    assert_eq!(auth.decode(), Ok(Chunk::Auth(Auth { key_id: 7, hmac_id: 1, mac: &[0xAB; 20] })));
    assert_eq!(chunks.rest(), &covered[AUTH_HEADER_LEN + 20..]);
}

#[test]
fn parameters_have_the_layouts_of_rfc_4895_3() {
    let random = [9; 32];
    let table = [
        (format!("8002 0024 {}", "09".repeat(32)), Param::Random(&random)),
        ("8003 0006 C1 80 0000".to_owned(), Param::Chunks(&[0xC1, 0x80])),
        ("8004 0008 0003 0001".to_owned(), Param::HmacAlgo(U16List::from(&[3, 1][..]))),
    ];
    for (text, param) in table {
        let bytes = hex(&text);
        let found = Params::new(&bytes).next().unwrap().unwrap();
        assert_eq!(found.decode(), Ok(param), "{text}");
    }
    let odd = hex("8004 0007 0003 00 00");
    assert_eq!(Params::new(&odd).next().unwrap().unwrap().decode(), Err(TlvError::Value));
}

#[test]
fn asconf_has_the_layout_of_rfc_5061_4_1_1() {
    let bytes = hex("C1 00 004C FFFFFFFF 0005 0008 C0000207
         C001 0010 01023474 0005 0008 C0000201
         C002 001C 01023476 0006 0014 20010DB8 00000000 00000000 00000001
         C004 0010 00000003 0005 0008 00000000");
    let packet = packet_around(&bytes);
    let Chunk::Asconf(asconf) = decode_one(&packet) else { panic!("no ASCONF") };
    assert_eq!((asconf.serial, asconf.address), (u32::MAX, ip("192.0.2.7")));
    let requests = [
        request(0x0102_3474, AsconfChange::Add(ip("192.0.2.1"))),
        request(0x0102_3476, AsconfChange::Delete(ip("2001:db8::1"))),
        request(3, AsconfChange::SetPrimary(ip("0.0.0.0"))),
    ];
    let found: Vec<_> = asconf.requests().map(Result::unwrap).collect();
    let changes = |requests: &[AsconfRequest<'static>]| {
        requests.iter().map(|it| (it.correlation, it.change)).collect::<Vec<_>>()
    };
    let found_changes: Vec<_> = found.iter().map(|it| (it.correlation, it.change)).collect();
    assert_eq!(found_changes, changes(&requests));
    assert_eq!(found[0].bytes, &bytes[16..32], "the whole parameter, to be quoted");
    let written = written_below(1500, |writer| {
        assert!(writer.asconf(asconf.serial, asconf.address, requests));
    });
    assert_eq!(written, packet);
    assert_eq!(written_below(1500, |w| assert!(w.chunk(&Chunk::Asconf(asconf)))), packet);
}

#[test]
fn asconf_without_an_address_or_with_odd_requests_is_told() {
    for bytes in [
        "C1 00 0008 00000001",
        "C1 00 000C 00000001 0005 0004",
        "C1 00 0010 00000001 000B 0008 61620000",
        "C1 00 000C 00000001 0005 0008",
    ] {
        let packet = packet_around(&hex(bytes));
        assert_eq!(decode_all(&packet), [Err(ChunkError::NoAddress)], "{bytes}");
    }
    let packet = packet_around(&hex("C1 00 0007 000000 00"));
    assert_eq!(decode_all(&packet), [Err(ChunkError::Length { kind: kind::ASCONF })]);
    for wrong in [
        "C001 0008 00000001",
        "C001 000C 00000001 0005 0004",
        "C002 0014 00000001 0005 0008 C0000201 00000000",
        "C004 0010 00000001 0007 0008 C0000201",
        "C001 0006 0000 0000",
    ] {
        let request = hex(wrong);
        let len = 16 + request.len();
        let mut chunk = hex(&format!("C1 00 {len:04X} 00000001 0005 0008 00000000"));
        chunk.extend(&request);
        let packet = packet_around(&chunk);
        let Chunk::Asconf(asconf) = decode_one(&packet) else { panic!("no ASCONF") };
        let found: Vec<_> = asconf.requests().collect();
        assert_eq!(found, [Err(TlvError::Value)], "{wrong}");
    }
    // The Correlation ID of an unknown type is read at the place where the known types have it.
    let packet = packet_around(&hex("C1 00 0018 00000001 0005 0008 00000000 C0FE 0008 00000042"));
    let Chunk::Asconf(asconf) = decode_one(&packet) else { panic!("no ASCONF") };
    let unknown = asconf.requests().next().unwrap().unwrap();
    assert!(matches!(unknown.change, AsconfChange::Unknown(raw) if raw.kind == 0xC0FE));
    assert_eq!(unknown.correlation, 0x42);
}

#[test]
fn asconf_ack_has_the_layout_of_rfc_5061_4_1_2() {
    let quoted = "C002 0010 01023476 0005 0008 C0000201";
    let bytes = hex(&format!(
        "80 00 002C 00000009 C003 001C 01023476 00A0 0014 {quoted} C005 0008 00000007"
    ));
    let quoted = hex(quoted);
    let packet = packet_around(&bytes);
    let Chunk::AsconfAck(ack) = decode_one(&packet) else { panic!("no ASCONF-ACK") };
    assert_eq!(ack.serial, 9);
    let cause = Cause::DeleteLastAddress(&quoted);
    let causes = Causes::new(&bytes[16..36]);
    assert_eq!(causes.collect::<Vec<_>>(), [Ok(cause)]);
    let answers = [
        Ok(AsconfAnswer::Refused { correlation: 0x0102_3476, causes }),
        Ok(AsconfAnswer::Done { correlation: 7 }),
    ];
    assert_eq!(ack.answers().collect::<Vec<_>>(), answers);
    let written = written_below(1500, |writer| {
        assert!(writer.asconf_ack(9, |answers| {
            assert!(answers.refused(0x0102_3476, &cause));
            assert!(answers.done(7));
        }));
    });
    assert_eq!(written, packet);
    assert_eq!(written_below(1500, |w| assert!(w.chunk(&Chunk::AsconfAck(ack)))), packet);
    let empty = packet_around(&hex("80 00 0008 00000009"));
    assert_eq!(written_below(1500, |w| assert!(w.asconf_ack(9, |_| ()))), empty);
}

#[test]
fn answers_of_a_wrong_length_are_errors_of_their_own_alone() {
    for wrong in ["C003 0006 0000 0000", "C005 0004", "C005 000C 00000001 00000002"] {
        let mut chunk = hex(&format!("80 00 0000 00000009 {wrong} C005 0008 00000007"));
        chunk[3] = chunk.len() as u8;
        let packet = packet_around(&chunk);
        let Chunk::AsconfAck(ack) = decode_one(&packet) else { panic!("no ASCONF-ACK") };
        let found: Vec<_> = ack.answers().collect();
        assert_eq!(found, [Err(TlvError::Value), Ok(AsconfAnswer::Done { correlation: 7 })]);
    }
}

/// An answer that does not fit is left out entirely.
#[test]
fn answers_beyond_the_limit_are_left_out() {
    let packet = written_below(40, |writer| {
        assert!(writer.asconf_ack(9, |answers| {
            assert!(!answers.refused(1, &Cause::ResourceShortage(&[0; 16])));
            assert!(answers.done(2));
            assert!(answers.done(3));
            assert!(!answers.done(4));
        }));
    });
    let Chunk::AsconfAck(ack) = decode_one(&packet) else { panic!("no ASCONF-ACK") };
    let done = |correlation| Ok(AsconfAnswer::Done { correlation });
    assert_eq!(ack.answers().collect::<Vec<_>>(), [done(2), done(3)]);
}
