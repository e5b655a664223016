//! The layout of each chunk, in both directions.

use super::{assert_layout, decode_all, decode_one, hex, packet_around};
use crate::wire::{
    COMMON_HEADER_LEN, Causes, Chunk, ChunkError, Data, DataFlags, Header, IData, Init,
    PacketWriter, Params, RawChunk, ReConfigParam, ReConfigResult, SkippedMid, U16List,
    UnknownAction, kind,
};

#[test]
fn data_has_the_layout_of_rfc_9260_3_3_1() {
    let bytes = hex("00 0B 0013  FFFFFFFE  0007 0102  00000033  61 62 63 00");
    let data = Data {
        flags: DataFlags { immediate: true, unordered: false, beginning: true, ending: true },
        tsn: 0xFFFF_FFFE,
        stream: 7,
        ssn: 0x0102,
        ppid: 51,
        payload: b"abc",
    };
    assert_layout(&bytes, &Chunk::Data(data), |writer| writer.data(&data));
}

#[test]
fn each_data_flag_has_its_bit_and_reserved_bits_are_ignored() {
    let none = DataFlags::default();
    let table = [
        (0x08, DataFlags { immediate: true, ..none }),
        (0x04, DataFlags { unordered: true, ..none }),
        (0x02, DataFlags { beginning: true, ..none }),
        (0x01, DataFlags { ending: true, ..none }),
        (0x00, none),
    ];
    for (bits, flags) in table {
        assert_eq!(flags.bits(), bits);
        assert_eq!(DataFlags::from_bits(bits | 0xF0), flags);
    }
}

#[test]
fn init_has_the_layout_of_rfc_9260_3_3_2() {
    let fixed = "DEADBEEF 0001D4C0 000A 0800 FFFFFFFF";
    let params = "0005 0008 C0000201  C000 0004";
    let param_bytes = hex(params);
    let init = Init {
        initiate_tag: 0xDEAD_BEEF,
        a_rwnd: 120_000,
        outbound_streams: 10,
        inbound_streams: 2048,
        initial_tsn: u32::MAX,
        params: Params::new(&param_bytes),
    };
    let bytes = hex(&format!("01 00 0020 {fixed} {params}"));
    assert_layout(&bytes, &Chunk::Init(init), |writer| writer.init(&init, |_| ()));
    let bytes = hex(&format!("02 00 0020 {fixed} {params}"));
    assert_layout(&bytes, &Chunk::InitAck(init), |writer| writer.init_ack(&init, |_| ()));

    let bytes = hex(&format!("01 00 0014 {fixed}"));
    let bare = Init { params: Params::default(), ..init };
    assert_layout(&bytes, &Chunk::Init(bare), |writer| writer.init(&bare, |_| ()));
}

#[test]
fn init_values_that_a_receiver_must_refuse_are_exposed() {
    let packet = packet_around(&hex("01 00 0014 00000000 00000000 0000 0000 00000000"));
    let Chunk::Init(init) = decode_one(&packet) else { panic!("no INIT") };
    assert_eq!((init.initiate_tag, init.a_rwnd), (0, 0));
    assert_eq!((init.outbound_streams, init.inbound_streams), (0, 0));
}

#[test]
fn sack_has_the_layout_of_rfc_9260_3_3_4() {
    // The RFC's example (TSN 13 and 16 are missing), with a duplicate in addition.
    let bytes = hex("03 00 001C  0000000C 00001234  0002 0001  0002 0003  0005 0005  00000013");
    let packet = packet_around(&bytes);
    let chunk = decode_one(&packet);
    let Chunk::Sack(sack) = chunk else { panic!("no SACK: {chunk:?}") };
    assert_eq!((sack.cumulative_tsn_ack, sack.a_rwnd), (12, 4660));
    assert_eq!((sack.gap_ack_block_count(), sack.duplicate_tsn_count()), (2, 1));
    assert!(sack.gap_ack_blocks().eq([(2, 3), (5, 5)]));
    assert!(sack.duplicate_tsns().eq([19]));
    assert_layout(&bytes, &chunk, |writer| writer.sack(12, 4660, [(2, 3), (5, 5)], [19]));
    assert_eq!(crate::wire::sack_len(2, 1), bytes.len());
}

#[test]
fn gap_blocks_that_make_no_sense_are_left_to_the_caller() {
    let packet =
        packet_around(&hex("03 00 0018  00000000 00000000  0002 0000  0000 0001  0009 0002"));
    let Chunk::Sack(sack) = decode_one(&packet) else { panic!("no SACK") };
    assert!(sack.gap_ack_blocks().eq([(0, 1), (9, 2)]));
}

#[test]
fn heartbeats_have_the_layout_of_rfc_9260_3_3_5() {
    let bytes = hex("04 00 000D  0001 0009  0102030405 000000");
    assert_layout(&bytes, &Chunk::Heartbeat(&[1, 2, 3, 4, 5]), |writer| {
        writer.heartbeat(&[1, 2, 3, 4, 5])
    });
    let bytes = hex("05 00 0008  0001 0004");
    assert_layout(&bytes, &Chunk::HeartbeatAck(&[]), |writer| writer.heartbeat_ack(&[]));
}

#[test]
fn abort_and_error_have_the_layout_of_rfc_9260_3_3_7_and_3_3_10() {
    let none = Causes::default();
    let abort = |t_bit| Chunk::Abort { t_bit, causes: none };
    assert_layout(&hex("06 00 0004"), &abort(false), |writer| writer.abort(false, |_| ()));
    assert_layout(&hex("06 01 0004"), &abort(true), |writer| writer.abort(true, |_| ()));

    let causes = hex("0009 0008 00000063");
    let error = Chunk::Error { causes: Causes::new(&causes) };
    assert_layout(&hex("09 00 000C  0009 0008 00000063"), &error, |writer| {
        writer.error(|causes| {
            assert!(causes.push(&crate::wire::Cause::NoUserData { tsn: 99 }));
        })
    });
}

#[test]
fn chunks_without_a_list_have_their_layouts() {
    let shutdown = Chunk::Shutdown { cumulative_tsn_ack: 0x0A2D_5993 };
    assert_layout(&hex("07 00 0008 0A2D5993"), &shutdown, |w| w.shutdown(0x0A2D_5993));
    assert_layout(&hex("08 00 0004"), &Chunk::ShutdownAck, |w| w.chunk(&Chunk::ShutdownAck));
    assert_layout(&hex("0A 00 0006 CAFE 0000"), &Chunk::CookieEcho(&[0xCA, 0xFE]), |w| {
        w.cookie_echo(&[0xCA, 0xFE])
    });
    assert_layout(&hex("0B 00 0004"), &Chunk::CookieAck, |w| w.chunk(&Chunk::CookieAck));
    for (bytes, t_bit) in [("0E 00 0004", false), ("0E 01 0004", true)] {
        let chunk = Chunk::ShutdownComplete { t_bit };
        assert_layout(&hex(bytes), &chunk, |w| w.shutdown_complete(t_bit));
    }
}

#[test]
fn forward_tsn_has_the_layout_of_rfc_3758_3_2() {
    let bytes = hex("C0 00 0010  80000000  0001 FFFF  0300 0004");
    let packet = packet_around(&bytes);
    let chunk = decode_one(&packet);
    let Chunk::ForwardTsn(forward) = chunk else { panic!("no FORWARD-TSN: {chunk:?}") };
    assert_eq!(forward.new_cumulative_tsn, 0x8000_0000);
    assert!(forward.skipped().eq([(1, 65535), (768, 4)]));
    let skipped = [(1, 65535), (768, 4)];
    assert_layout(&bytes, &chunk, |writer| writer.forward_tsn(0x8000_0000, skipped));
    assert_eq!(crate::wire::forward_tsn_len(2), bytes.len());
}

fn assert_re_config(bytes: &str, params: &[ReConfigParam<'_>]) {
    let packet = packet_around(&hex(bytes));
    let chunk = decode_one(&packet);
    let Chunk::ReConfig(re_config) = chunk else { panic!("no RE-CONFIG: {chunk:?}") };
    assert!(re_config.params().eq(params.iter().copied().map(Ok)), "{:?}", re_config.params());
    assert_layout(&hex(bytes), &chunk, |writer| writer.re_config(params.iter().copied()));
}

#[test]
fn re_config_requests_have_the_layouts_of_rfc_6525_4() {
    let outgoing = ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: 1,
        response_sequence: 2,
        last_assigned_tsn: 3,
        streams: U16List::from(&[5, 6, 0x0708][..]),
    };
    let incoming =
        ReConfigParam::IncomingSsnResetRequest { request_sequence: 9, streams: U16List::default() };
    // The first parameter is padded, and its padding counts in the chunk's length.
    assert_re_config(
        "82 00 0024  000D 0016 00000001 00000002 00000003 0005 0006 0708 0000  000E 0008 00000009",
        &[outgoing, incoming],
    );
    let streams = U16List::from(&[0xABCD][..]);
    assert_re_config(
        "82 00 000E  000E 000A 00000009 ABCD 0000",
        &[ReConfigParam::IncomingSsnResetRequest { request_sequence: 9, streams }],
    );
    assert_re_config(
        "82 00 000C  000F 0008 0000000A",
        &[ReConfigParam::SsnTsnResetRequest { request_sequence: 10 }],
    );
    let request_sequence = 0x0102_0304;
    assert_re_config(
        "82 00 001C  0011 000C 01020304 0003 0000  0012 000C 01020304 0100 0000",
        &[
            ReConfigParam::AddOutgoingStreamsRequest { request_sequence, new_streams: 3 },
            ReConfigParam::AddIncomingStreamsRequest { request_sequence, new_streams: 256 },
        ],
    );
}

#[test]
fn re_config_responses_have_the_layout_of_rfc_6525_4_4() {
    let performed = ReConfigParam::Response {
        response_sequence: 7,
        result: ReConfigResult::Performed,
        next_tsns: Some((0x10, 0x20)),
    };
    let in_progress = ReConfigParam::Response {
        response_sequence: 8,
        result: ReConfigResult::InProgress,
        next_tsns: None,
    };
    assert_re_config(
        "82 00 0024  0010 0014 00000007 00000001 00000010 00000020  0010 000C 00000008 00000006",
        &[performed, in_progress],
    );
    for code in 0..=7 {
        assert_eq!(u32::from(ReConfigResult::from(code)), code);
    }
    assert_eq!(ReConfigResult::from(3), ReConfigResult::WrongSsn);
    assert_eq!(ReConfigResult::from(5), ReConfigResult::BadSequenceNumber);
}

#[test]
fn pad_has_the_layout_of_rfc_4820_3_and_fills_its_packet() {
    let written = |writer: &mut PacketWriter<'_>| {
        writer.set_limit(COMMON_HEADER_LEN + 13);
        writer.pad()
    };
    assert_layout(&hex("84 00 000C 00000000 00000000"), &Chunk::Pad(&[0; 8]), written);
    let mut buffer = Vec::new();
    let header = Header { source_port: 1, destination_port: 2, verification_tag: 3 };
    let mut writer = PacketWriter::new(&mut buffer, COMMON_HEADER_LEN + 3, header);
    assert!(!writer.pad(), "there is no room for a chunk");
    writer.set_limit(100_000);
    assert!(writer.pad(), "the longest chunk");
    assert_eq!(writer.finish(), COMMON_HEADER_LEN + 65_532);
}

#[test]
fn unknown_chunks_say_what_to_do_with_them() {
    let table = [
        (0x3F, UnknownAction { stop: true, report: false }),
        (0x7F, UnknownAction { stop: true, report: true }),
        (0xBF, UnknownAction { stop: false, report: false }),
        (0xC7, UnknownAction { stop: false, report: true }),
    ];
    for (kind, action) in table {
        let bytes = [kind, 0x55, 0, 6, 1, 2];
        let raw = RawChunk { kind, flags: 0x55, value: &bytes[4..], bytes: &bytes };
        let packet = packet_around(&bytes);
        let found = crate::wire::Packet::parse(&packet).unwrap().chunks().next().unwrap().unwrap();
        assert_eq!(found, raw);
        assert_eq!(found.decode(), Ok(Chunk::Unknown));
        assert_eq!(found.unknown_action(), action);
        assert_layout(&hex(&format!("{kind:02X} 55 0006 0102 0000")), &Chunk::Unknown, |writer| {
            writer.plain(kind, 0x55, &[1, 2])
        });
    }
}

#[test]
fn ecne_and_cwr_have_the_layout_of_rfc_4960_appendix_a() {
    let lowest_tsn = 0xFFFF_FFFE;
    let ecne = Chunk::Ecne { lowest_tsn };
    assert_layout(&hex("0C 00 0008 FFFFFFFE"), &ecne, |writer| writer.ecne(lowest_tsn));
    let cwr = Chunk::Cwr { lowest_tsn };
    assert_layout(&hex("0D 00 0008 FFFFFFFE"), &cwr, |writer| writer.cwr(lowest_tsn));
    let decoded = |kind, value| RawChunk { kind, flags: 0, value, bytes: &[] }.decode();
    // With the number of marked packets, as some implementations send it.
    assert_eq!(decoded(kind::ECNE, &[0xFF, 0xFF, 0xFF, 0xFE, 0, 0, 0, 7]), Ok(ecne));
    for kind in [kind::ECNE, kind::CWR] {
        for len in [0, 3, 12] {
            assert_eq!(decoded(kind, &[0; 12][..len]), Err(ChunkError::Length { kind }), "{len}");
        }
    }
}

/// PPID and FSN share four bytes: the B bit shows which of them is present.
#[test]
fn i_data_has_the_layout_of_rfc_8260_2_1() {
    let first = hex("40 0A 0017  FFFFFFFE  0007 0000  01020304  00000033  61 62 63 00");
    let data = IData {
        flags: DataFlags { immediate: true, unordered: false, beginning: true, ending: false },
        tsn: 0xFFFF_FFFE,
        stream: 7,
        mid: 0x0102_0304,
        ppid: 51,
        fsn: 0,
        payload: b"abc",
    };
    assert_layout(&first, &Chunk::IData(data), |writer| writer.i_data(&data));
    let next = hex("40 05 0017  FFFFFFFF  0007 0000  01020304  00000033  61 62 63 00");
    let flags = DataFlags { unordered: true, ending: true, ..DataFlags::default() };
    let data = IData { flags, tsn: 0xFFFF_FFFF, ppid: 0, fsn: 51, ..data };
    assert_layout(&next, &Chunk::IData(data), |writer| writer.i_data(&data));
}

#[test]
fn reserved_bits_of_i_data_are_ignored_and_it_has_user_data() {
    let packet =
        packet_around(&hex("40 F3 0015  00000009  0007 FFFF  00000001  00000002  61 000000"));
    let Chunk::IData(data) = decode_one(&packet) else { panic!("no I-DATA") };
    assert_eq!((data.stream, data.mid, data.ppid, data.payload), (7, 1, 2, &b"a"[..]));
    let empty = packet_around(&hex("40 03 0014  00000009  0007 0000  00000001  00000002"));
    assert_eq!(decode_all(&empty), [Err(ChunkError::NoUserData { tsn: 9 })]);
    let short = packet_around(&hex("40 03 0010  00000009  0007 0000  00000001"));
    assert_eq!(decode_all(&short), [Err(ChunkError::Length { kind: kind::I_DATA })]);
}

#[test]
fn i_forward_tsn_has_the_layout_of_rfc_8260_2_3_1() {
    let bytes = hex("C2 00 0018  00000102  0003 0000 FFFFFFFF  0004 0001 00000005");
    let skipped = [
        SkippedMid { stream: 3, unordered: false, mid: u32::MAX },
        SkippedMid { stream: 4, unordered: true, mid: 5 },
    ];
    let packet = packet_around(&bytes);
    let Chunk::IForwardTsn(forward) = decode_one(&packet) else { panic!("no I-FORWARD-TSN") };
    assert_eq!(forward.new_cumulative_tsn, 0x102);
    assert!(forward.skipped().eq(skipped));
    let chunk = Chunk::IForwardTsn(forward);
    assert_layout(&bytes, &chunk, |writer| writer.i_forward_tsn(0x102, skipped));
    assert_layout(&bytes, &chunk, |writer| writer.chunk(&chunk));
    // Half an entry, and reserved bits beside U.
    let cut = packet_around(&hex("C2 00 000C  00000102  0003 0000"));
    assert_eq!(decode_all(&cut), [Err(ChunkError::Length { kind: kind::I_FORWARD_TSN })]);
    let reserved = packet_around(&hex("C2 FF 0010  00000102  0003 FFFE 00000001"));
    let Chunk::IForwardTsn(forward) = decode_one(&reserved) else { panic!("no I-FORWARD-TSN") };
    assert!(forward.skipped().all(|skipped| !skipped.unordered));
    let zeros = packet_around(&hex("C2 FF 0010  00000102  0003 0000 00000001"));
    assert_eq!(decode_one(&zeros), Chunk::IForwardTsn(forward), "reserved bits do not count");
}
