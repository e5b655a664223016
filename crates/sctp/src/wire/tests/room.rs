//! A packet never exceeds its limit, and a chunk that does not fit leaves no trace.

use super::{HEADER, decode_all, packet_around, written_below};
use crate::wire::{
    Cause, Chunk, Data, DataFlags, Init, Packet, PacketWriter, Param, Params, ReConfigParam,
    U16List, sack_len,
};

fn data(payload: &[u8]) -> Data<'_> {
    Data { flags: DataFlags::default(), tsn: 1, stream: 2, ssn: 3, ppid: 4, payload }
}

const INIT: Init<'_> = Init {
    initiate_tag: 1,
    a_rwnd: 2,
    outbound_streams: 3,
    inbound_streams: 4,
    initial_tsn: 5,
    params: Params::new(&[]),
};

#[test]
fn room_counts_padding_and_shrinks_to_zero() {
    let mut buffer = Vec::new();
    let mut writer = PacketWriter::new(&mut buffer, 51, HEADER); // 48 bytes are a multiple of four.
    assert_eq!((writer.room(), writer.len(), writer.is_empty()), (36, 12, true));
    assert!(writer.data(&data(b"x")));
    assert_eq!((writer.room(), writer.len(), writer.is_empty()), (16, 32, false));
    assert!(!writer.data(&data(b"x")));
    assert!(writer.sack(0, 0, [], []));
    assert_eq!(writer.room(), 0);
    assert!(!writer.cookie_ack());
    assert_eq!(writer.finish(), 48);
    assert_eq!(decode_all(&buffer).len(), 2);
}

/// Each kind of chunk, and the bytes it takes with its padding.
type Write = fn(&mut PacketWriter<'_>) -> bool;
const EVERY_KIND: [(usize, Write); 16] = [
    (20, |w| w.data(&data(b"abcd"))),
    (24, |w| w.data(&data(b"abcde"))),
    (20, |w| w.init(&INIT, |_| ())),
    (20, |w| w.init_ack(&INIT, |_| ())),
    (28, |w| w.sack(1, 2, [(1, 2), (3, 4)], [5])),
    (16, |w| w.heartbeat(&[1; 6])),
    (16, |w| w.heartbeat_ack(&[1; 7])),
    (4, |w| w.abort(true, |_| ())),
    (8, |w| {
        w.error(|causes| {
            causes.push(&Cause::OutOfResource);
        })
    }),
    (8, |w| w.shutdown(1)),
    (4, |w| w.shutdown_ack()),
    (4, |w| w.shutdown_complete(false)),
    (12, |w| w.cookie_echo(&[1; 5])),
    (4, |w| w.cookie_ack()),
    (16, |w| w.forward_tsn(1, [(2, 3), (4, 5)])),
    (20, |w| {
        let streams = U16List::from(&[1, 2, 3][..]);
        w.re_config([ReConfigParam::IncomingSsnResetRequest { request_sequence: 1, streams }])
    }),
];

#[test]
fn a_chunk_is_written_exactly_if_it_fits() {
    for (index, (len, write)) in EVERY_KIND.iter().enumerate() {
        for limit in 0..64 {
            let mut written = false;
            let packet = written_below(limit, |writer| written = write(writer));
            let fits = 12 + len <= limit;
            assert_eq!(written, fits, "chunk {index} below {limit}");
            assert_eq!(packet.len(), if fits { 12 + len } else { 12 }, "chunk {index}");
        }
    }
}

#[test]
fn what_does_not_fit_leaves_what_was_written_untouched() {
    let expected = packet_around(&[11, 0, 0, 4]);
    for (_, write) in EVERY_KIND.iter().filter(|(len, _)| *len > 4) {
        let packet = written_below(16 + 4, |writer| {
            assert!(writer.cookie_ack());
            assert!(!write(writer));
        });
        assert_eq!(packet, expected);
    }
}

#[test]
fn a_parameter_without_room_is_left_out_and_a_smaller_one_still_fits() {
    let packet = written_below(12 + 20 + 4 + 8, |writer| {
        assert!(writer.init_ack(&INIT, |params| {
            assert!(params.push(&Param::SupportedExtensions(&[0xC0])));
            assert!(!params.push(&Param::StateCookie(&[1; 5])));
            assert!(params.push(&Param::ForwardTsnSupported));
            assert!(!params.push(&Param::EcnCapable));
        }));
    });
    let chunks = decode_all(&packet);
    let Ok(Chunk::InitAck(init_ack)) = chunks[0] else { panic!("{chunks:?}") };
    let params: Vec<_> = init_ack.params().map(|p| p.unwrap().decode().unwrap()).collect();
    assert_eq!(params, [Param::SupportedExtensions(&[0xC0]), Param::ForwardTsnSupported]);
    assert_eq!(packet.len(), 44);
}

#[test]
fn an_error_without_a_cause_is_not_written_and_an_abort_is() {
    let too_big = [0; 100];
    let packet = written_below(60, |writer| {
        assert!(!writer.error(|_| ()));
        assert!(!writer.error(|causes| {
            assert!(!causes.push(&Cause::UnrecognizedChunkType(&too_big)));
            assert!(!causes.push_unrecognized_parameters([&too_big[..]]));
        }));
        assert!(writer.abort(false, |causes| {
            assert!(!causes.push(&Cause::ProtocolViolation(&too_big)));
        }));
    });
    assert_eq!(packet, packet_around(&[6, 0, 0, 4]));
}

#[test]
fn a_chunk_beyond_a_16_bit_length_is_not_written() {
    let payload = vec![7; 70_000];
    let packet = written_below(200_000, |writer| {
        assert!(!writer.data(&data(&payload[..65_535 - 16 + 1])));
        assert!(!writer.cookie_echo(&payload));
        assert!(!writer.sack(0, 0, std::iter::repeat_n((1, 1), 16_384), []));
        assert!(writer.data(&data(&payload[..65_535 - 16])));
        assert!(writer.cookie_ack());
        assert!(writer.init(&INIT, |params| {
            assert!(!params.push(&Param::StateCookie(&payload[..65_535])));
            assert!(params.push(&Param::StateCookie(&payload[..65_535 - 20 - 4])));
            assert!(!params.push(&Param::EcnCapable));
        }));
    });
    let chunks = decode_all(&packet);
    assert_eq!(chunks.len(), 3);
    assert_eq!(chunks[0], Ok(Chunk::Data(data(&payload[..65_519]))));
    assert_eq!(packet.len(), 12 + 65_536 + 4 + 65_536);
}

#[test]
fn the_largest_sack_of_a_packet_fits_by_sack_len() {
    let entries = (1452 - 12 - sack_len(0, 0)) / 4;
    assert_eq!(sack_len(entries, 0), 1440);
    let packet = written_below(1452, |writer| {
        let blocks = (0..entries as u16).map(|n| (2 * n + 2, 2 * n + 2));
        assert!(writer.sack(7, 8, blocks, []));
        assert_eq!(writer.room(), 0);
    });
    assert!(Packet::parse(&packet).is_ok());
}
