//! Packets that usrsctp 0.9.5 sent to itself: one association in which one DATA chunk was lost and abandoned,
//! a stream was reset, and streams were added. (The COOKIE ECHO is left out for its size.)

use super::{Chunk, decode_one, hex};
use crate::wire::{Packet, PacketWriter, Param, ReConfigParam, ReConfigResult, U16List};

const CAPTURE: [&str; 19] = [
    // INIT
    "13881389000000000cdde252010000561f86832500020000000a0800b9a24efdc000000480080009c00f\
     c18082000000800200240f7a356f7500d8813baa90c85ca7869f777d363a307e46c8d425ca2422c86bfa\
     80040006000100008003000680c10000",
    // INIT ACK
    "138913881f8683259cb6223302000190b2954ea500020000000a08000a2d5994c000000480080009c00f\
     c1808200000080020024fd7ac8d5c86bbb8c88673b6a098d3089935d0acbad4e243f25c4cffbe36bee0a\
     80040006000100008003000680c10000000701384b414d452d42534420312e3100000000aad7006b0000\
     0000785b02000000000060ea000000000000000000002583861fb2954ea5000000000000000000000000\
     000000000400000000000000000000000000000000000000040000000000000013881389000001000000\
     000000000000010000561f86832500020000000a0800b9a24efdc000000480080009c00fc18082000000\
     800200240f7a356f7500d8813baa90c85ca7869f777d363a307e46c8d425ca2422c86bfa800400060001\
     00008003000680c1000002000190b2954ea500020000000a08000a2d5994c000000480080009c00fc180\
     8200000080020024fd7ac8d5c86bbb8c88673b6a098d3089935d0acbad4e243f25c4cffbe36bee0a8004\
     0006000100008003000680c1000054ad7e8556a50f0b9a7d1cbc79c600bdc8d57fb5",
    // COOKIE ACK
    "138913881f868325b3fec4270b000004",
    // DATA
    "13881389b2954ea51fd1d58100030017b9a24efd000000000000003368656c6c6f203000",
    // SACK
    "138913881f868325d29005a403000010b9a24efd0001fef900000000",
    // DATA
    "13881389b2954ea5634eb05e00030018b9a24efe000100000000003368656c6c6f203100",
    // DATA
    "13881389b2954ea56592b0e700030019b9a24eff000200000000003368656c6c6f20320000000000",
    // SACK
    "138913881f86832506496d8c03000014b9a24efd0001fdf00001000000020002",
    // DATA
    "13881389b2954ea517ac6f750003001ab9a24f00000300000000003368656c6c6f20330000000000",
    // SACK
    "138913881f8683252d3a05f303000014b9a24efd0001fce60001000000020003",
    // FORWARD-TSN
    "13881389b2954ea5d57cef82c000000cb9a24efe00010000",
    // SACK
    "138913881f8683255941d82c03000010b9a24f000001fce600000000",
    // RE-CONFIG
    "13881389b2954ea5cd03e33f82000016000d0012b9a24efd0a2d5993b9a24f0000020000",
    // RE-CONFIG
    "138913881f868325c60812ca820000100010000cb9a24efd00000001",
    // RE-CONFIG
    "13881389b2954ea593e1cd96820000100011000cb9a24efe00030000",
    // RE-CONFIG
    "138913881f86832532b82182820000100010000cb9a24efe00000001",
    // SHUTDOWN
    "13881389b2954ea5ebc7de81070000080a2d5993",
    // SHUTDOWN ACK
    "138913881f8683258a77e64508000004",
    // SHUTDOWN COMPLETE
    "13881389b2954ea5096e41f90e000004",
];

fn captured(index: usize) -> Vec<u8> {
    hex(CAPTURE[index])
}

/// Every packet of the capture.
pub(super) fn all() -> impl Iterator<Item = Vec<u8>> {
    CAPTURE.into_iter().map(hex)
}

#[test]
fn each_packet_parses_and_is_written_again_byte_for_byte() {
    for index in 0..CAPTURE.len() {
        let bytes = captured(index);
        let packet = Packet::parse(&bytes).expect("a checksum as usrsctp computes it");
        let mut again = Vec::new();
        let mut writer = PacketWriter::new(&mut again, 1500, packet.header);
        for raw in packet.chunks() {
            assert!(writer.chunk(&raw.unwrap().decode().unwrap()));
        }
        writer.finish();
        assert_eq!(again, bytes, "packet {index}");
    }
}

#[test]
fn the_init_says_what_usrsctp_supports() {
    let bytes = captured(0);
    let Chunk::Init(init) = decode_one(&bytes) else { panic!("no INIT") };
    assert_eq!(init.initiate_tag, 0x1F86_8325);
    assert_eq!((init.outbound_streams, init.inbound_streams), (10, 2048));
    let params: Vec<_> = init.params().map(|param| param.unwrap().decode().unwrap()).collect();
    let extensions = [0xC0, 0x0F, 0xC1, 0x80, 0x82];
    assert_eq!(params[0], Param::ForwardTsnSupported);
    assert_eq!(params[1], Param::SupportedExtensions(&extensions));
    let [Param::Random(random), Param::HmacAlgo(hmacs), Param::Chunks(chunks)] = params[2..] else {
        panic!("RFC 4895 in another order: {params:?}")
    };
    assert_eq!((random.len(), random[0], random[31]), (32, 0x0F, 0xFA));
    assert_eq!((hmacs.iter().collect::<Vec<_>>(), chunks), (vec![1], &[0x80, 0xC1][..]));
    // A receiver without support skips them silently.
    assert!(init.params().skip(2).all(|param| {
        let action = param.unwrap().unknown_action();
        !action.stop && !action.report
    }));
}

#[test]
fn the_init_ack_brings_a_cookie() {
    let bytes = captured(1);
    let Chunk::InitAck(init_ack) = decode_one(&bytes) else { panic!("no INIT ACK") };
    let cookie = init_ack.params().find_map(|param| match param.unwrap().decode() {
        Ok(Param::StateCookie(cookie)) => Some(cookie),
        _ => None,
    });
    assert!(cookie.is_some_and(|cookie| cookie.starts_with(b"KAME-BSD 1.1")));
}

#[test]
fn the_lost_message_shows_as_a_gap_and_is_given_up() {
    let (gap, forward) = (captured(7), captured(10));
    let Chunk::Sack(sack) = decode_one(&gap) else { panic!("no SACK") };
    assert_eq!(sack.cumulative_tsn_ack, 0xB9A2_4EFD);
    assert!(sack.gap_ack_blocks().eq([(2, 2)]));
    let Chunk::ForwardTsn(forward) = decode_one(&forward) else { panic!("no FORWARD-TSN") };
    assert_eq!(forward.new_cumulative_tsn, 0xB9A2_4EFD + 1);
    assert!(forward.skipped().eq([(1, 0)]));
}

#[test]
fn stream_two_is_reset() {
    let (request, response) = (captured(12), captured(13));
    let Chunk::ReConfig(request) = decode_one(&request) else { panic!("no RE-CONFIG") };
    let streams = U16List::from(&[2][..]);
    assert!(matches!(
        request.params().next(),
        Some(Ok(ReConfigParam::OutgoingSsnResetRequest { request_sequence: 0xB9A2_4EFD, streams: s, .. }))
            if s == streams
    ));
    let Chunk::ReConfig(response) = decode_one(&response) else { panic!("no RE-CONFIG") };
    let expected = ReConfigParam::Response {
        response_sequence: 0xB9A2_4EFD,
        result: ReConfigResult::Performed,
        next_tsns: None,
    };
    assert!(response.params().eq([Ok(expected)]));
}
