//! Truncated packets and flipped bits: no panic, no endless loop, and all parsed parts are within the packet.

use rexmit_core::Seed;

use super::{captured, written_below};
use crate::wire::{
    AsconfChange, AsconfRequest, Cause, Chunk, Data, DataFlags, IData, Init, Packet, PacketWriter,
    Param, Params, ReConfigParam, ReConfigResult, SkippedMid, U16List, write_checksum,
};

/// Packets that together hold every chunk, parameter and error cause.
fn one_of_everything() -> Vec<Vec<u8>> {
    let params = [
        Param::HeartbeatInfo(&[1; 9]),
        Param::Ipv4([192, 0, 2, 1].into()),
        Param::Ipv6([7; 16].into()),
        Param::StateCookie(&[2; 33]),
        Param::UnrecognizedParameter(&[0xC0, 0xFE, 0, 4]),
        Param::CookiePreservative(9),
        Param::HostName(b"a\0"),
        Param::SupportedAddressTypes(U16List::from(&[5, 6, 11][..])),
        Param::EcnCapable,
        Param::Random(&[3; 32]),
        Param::Chunks(&[0xC1, 0x80, 0]),
        Param::HmacAlgo(U16List::from(&[3, 1][..])),
        Param::SupportedExtensions(&[0xC0, 0x82, 1]),
        Param::ForwardTsnSupported,
    ];
    let causes = every_cause();
    let init = Init {
        initiate_tag: 1,
        a_rwnd: 2,
        outbound_streams: 3,
        inbound_streams: 4,
        initial_tsn: 5,
        params: Params::default(),
    };
    let mut packets = vec![
        written_below(1500, |writer| {
            assert!(writer.init(&init, |w| assert!(params.iter().all(|p| w.push(p)))));
            assert!(writer.init_ack(&init, |w| assert!(params.iter().all(|p| w.push(p)))));
        }),
        written_below(1500, |writer| {
            assert!(writer.error(|w| assert!(causes.iter().all(|cause| w.push(cause)))));
            assert!(writer.abort(true, |w| assert!(causes.iter().all(|cause| w.push(cause)))));
        }),
        written_below(1500, |writer| assert!(small_chunks(writer))),
    ];
    for request_sequence in [1, 2] {
        packets.push(written_below(1500, |writer| {
            assert!(writer.re_config(every_request(request_sequence)));
        }));
    }
    packets.extend(captured::all());
    packets
}

fn every_cause() -> [Cause<'static>; 20] {
    [
        Cause::InvalidStreamIdentifier(1),
        Cause::MissingMandatoryParameter(U16List::from(&[7][..])),
        Cause::StaleCookie { measure_of_staleness_us: 4 },
        Cause::OutOfResource,
        Cause::UnresolvableAddress(&[0, 11, 0, 5, 0]),
        Cause::UnrecognizedChunkType(&[0xFE, 0, 0, 4]),
        Cause::InvalidMandatoryParameter,
        Cause::UnrecognizedParameters(&[0xC0, 0xFE, 0, 4]),
        Cause::NoUserData { tsn: 1 },
        Cause::CookieReceivedWhileShuttingDown,
        Cause::RestartWithNewAddresses(&[0, 5, 0, 8, 1, 2, 3, 4]),
        Cause::UserInitiatedAbort(b"bye"),
        Cause::ProtocolViolation(b"no"),
        Cause::DeleteLastAddress(&[0xC0, 2, 0, 4]),
        Cause::ResourceShortage(&[0xC0, 1, 0, 4]),
        Cause::DeleteSourceAddress(&[0xC0, 2, 0, 4]),
        Cause::IllegalAsconfAck,
        Cause::NotAuthorized(&[0xC0, 4, 0, 4]),
        Cause::UnsupportedHmac(4),
        Cause::Unknown { code: 99, value: &[1] },
    ]
}

fn every_request(request_sequence: u32) -> [ReConfigParam<'static>; 6] {
    let streams = U16List::from(&[1, 2, 3][..]);
    [
        ReConfigParam::OutgoingSsnResetRequest {
            request_sequence,
            response_sequence: 2,
            last_assigned_tsn: 3,
            streams,
        },
        ReConfigParam::IncomingSsnResetRequest { request_sequence, streams },
        ReConfigParam::SsnTsnResetRequest { request_sequence },
        ReConfigParam::Response {
            response_sequence: 1,
            result: ReConfigResult::Denied,
            next_tsns: Some((1, 2)),
        },
        ReConfigParam::AddOutgoingStreamsRequest { request_sequence, new_streams: 1 },
        ReConfigParam::AddIncomingStreamsRequest { request_sequence, new_streams: 2 },
    ]
}

fn asconf_requests() -> [AsconfRequest<'static>; 3] {
    let address = [7; 16].into();
    [AsconfChange::Add(address), AsconfChange::Delete(address), AsconfChange::SetPrimary(address)]
        .map(|change| AsconfRequest { correlation: 1, change, bytes: &[] })
}

fn small_chunks(writer: &mut PacketWriter<'_>) -> bool {
    let flags = DataFlags::from_bits(3);
    writer.cookie_echo(&[1; 7])
        && writer.data(&Data { flags, tsn: 1, stream: 2, ssn: 3, ppid: 51, payload: b"hello" })
        && writer.i_data(&IData {
            flags,
            tsn: 2,
            stream: 2,
            mid: 3,
            ppid: 51,
            fsn: 0,
            payload: b"hello",
        })
        && writer.i_forward_tsn(5, [SkippedMid { stream: 1, unordered: true, mid: 2 }])
        && writer.sack(1, 2, [(2, 3), (5, 5)], [7, 8])
        && writer.heartbeat(&[1; 10])
        && writer.heartbeat_ack(&[2; 11])
        && writer.forward_tsn(5, [(1, 2), (3, 4)])
        && writer.shutdown(9)
        && writer.shutdown_ack()
        && writer.cookie_ack()
        && writer.shutdown_complete(true)
        && writer.auth(1, 3, 32)
        && writer.asconf(1, [192, 0, 2, 1].into(), asconf_requests())
        && writer.asconf_ack(1, |answers| {
            assert!(answers.refused(1, &Cause::DeleteLastAddress(&[0xC0, 2, 0, 4])));
            assert!(answers.done(2));
        })
        && writer.plain(0xC7, 7, &[1, 2, 3])
}

/// Corrects the checksum of `packet`, reads all of it, and returns the number of parts.
fn read_everything(packet: &mut [u8]) -> usize {
    write_checksum(packet);
    let Ok(packet) = Packet::parse(packet) else { return 0 };
    let mut seen = 0;
    for raw in packet.chunks().flatten() {
        seen += 1;
        assert_eq!(raw.bytes.len(), raw.value.len() + 4);
        seen += match raw.decode() {
            Ok(Chunk::Init(init) | Chunk::InitAck(init)) => {
                init.params().flatten().filter(|param| param.decode().is_ok()).count()
            }
            Ok(Chunk::Abort { causes, .. } | Chunk::Error { causes }) => causes.flatten().count(),
            Ok(Chunk::Sack(sack)) => sack.gap_ack_blocks().count() + sack.duplicate_tsns().count(),
            Ok(Chunk::ForwardTsn(forward)) => forward.skipped().count(),
            Ok(Chunk::IForwardTsn(forward)) => forward.skipped().count(),
            Ok(Chunk::Asconf(asconf)) => asconf.requests().flatten().count(),
            Ok(Chunk::AsconfAck(ack)) => ack.answers().flatten().count(),
            Ok(Chunk::ReConfig(re_config)) => re_config.params().flatten().count(),
            Ok(_) => 1,
            Err(_) => 0,
        };
    }
    seen
}

#[test]
fn packets_cut_at_any_length_are_read_as_far_as_they_go() {
    for packet in one_of_everything() {
        let whole = read_everything(&mut packet.clone());
        assert!(whole > 0);
        for len in 0..packet.len() {
            assert!(read_everything(&mut packet[..len].to_vec()) <= whole);
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    for mut packet in one_of_everything() {
        for bit in 0..packet.len() * 8 {
            packet[bit / 8] ^= 1 << (bit % 8);
            // No part is shorter than four bytes, which bounds their number.
            assert!(read_everything(&mut packet) <= packet.len());
            packet[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn noise_in_place_of_any_bytes_never_panics() {
    let mut rng = Seed::from_u64(7).rng();
    for packet in one_of_everything() {
        for _ in 0..200 {
            let mut noisy = packet.clone();
            for _ in 0..1 + rng.below(20) {
                let at = rng.below(noisy.len() as u64) as usize;
                noisy[at] = rng.u32() as u8;
            }
            assert!(read_everything(&mut noisy) <= noisy.len());
        }
    }
}
