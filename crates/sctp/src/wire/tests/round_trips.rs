//! Written values are read back unchanged, for random values.

use std::net::IpAddr;

use rexmit_core::{Rng, Seed};

use super::{decode_all, written_below};
use crate::wire::{
    Cause, Causes, Chunk, Data, DataFlags, IData, Init, Param, Params, ReConfigParam,
    ReConfigResult, SkippedMid, U16List,
};

/// Rounds of each test; each draws its own values.
const ROUNDS: u64 = 500;

fn bytes(rng: &mut Rng, most: u64) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(most + 1) as usize];
    rng.fill(&mut bytes);
    bytes
}

fn numbers(rng: &mut Rng) -> Vec<u16> {
    (0..rng.below(9)).map(|_| rng.u32() as u16).collect()
}

#[test]
fn data() {
    let mut rng = Seed::from_u64(1).rng();
    for _ in 0..ROUNDS {
        let mut payload = bytes(&mut rng, 600);
        payload.push(rng.u32() as u8);
        let data = Data {
            flags: DataFlags::from_bits(rng.u32() as u8),
            tsn: rng.u32(),
            stream: rng.u32() as u16,
            ssn: rng.u32() as u16,
            ppid: rng.u32(),
            payload: &payload,
        };
        let packet = written_below(1500, |writer| {
            assert!(writer.data(&data));
            assert!(writer.data(&data));
        });
        assert_eq!(decode_all(&packet), [Ok(Chunk::Data(data)); 2]);
    }
}

#[test]
fn i_data_and_i_forward_tsn() {
    let mut rng = Seed::from_u64(9).rng();
    for _ in 0..ROUNDS {
        let mut payload = bytes(&mut rng, 600);
        payload.push(rng.u32() as u8);
        let flags = DataFlags::from_bits(rng.u32() as u8);
        let data = IData {
            flags,
            tsn: rng.u32(),
            stream: rng.u32() as u16,
            mid: rng.u32(),
            ppid: if flags.beginning { rng.u32() } else { 0 },
            fsn: if flags.beginning { 0 } else { rng.u32() },
            payload: &payload,
        };
        let mut skipped = Vec::new();
        for stream in numbers(&mut rng) {
            skipped.push(SkippedMid { stream, unordered: rng.chance(0.5), mid: rng.u32() });
        }
        let packet = written_below(1500, |writer| {
            assert!(writer.i_forward_tsn(data.tsn, skipped.iter().copied()));
            assert!(writer.i_data(&data));
        });
        let chunks = decode_all(&packet);
        let [Ok(Chunk::IForwardTsn(forward)), Ok(Chunk::IData(read))] = chunks[..] else {
            panic!("{chunks:?}")
        };
        assert_eq!(read, data);
        assert!(forward.skipped().eq(skipped));
    }
}

#[test]
fn sack_and_forward_tsn() {
    let mut rng = Seed::from_u64(2).rng();
    for _ in 0..ROUNDS {
        let pairs: Vec<_> = numbers(&mut rng).iter().map(|&n| (n, rng.u32() as u16)).collect();
        let duplicates: Vec<_> = (0..rng.below(9)).map(|_| rng.u32()).collect();
        let (tsn, a_rwnd) = (rng.u32(), rng.u32());
        let packet = written_below(1500, |writer| {
            assert!(writer.sack(tsn, a_rwnd, pairs.iter().copied(), duplicates.iter().copied()));
            assert!(writer.forward_tsn(tsn, pairs.iter().copied()));
        });
        let chunks = decode_all(&packet);
        let [Ok(Chunk::Sack(sack)), Ok(Chunk::ForwardTsn(forward))] = chunks[..] else {
            panic!("{chunks:?}")
        };
        assert_eq!((sack.cumulative_tsn_ack, sack.a_rwnd), (tsn, a_rwnd));
        assert!(sack.gap_ack_blocks().eq(pairs.iter().copied()));
        assert!(sack.duplicate_tsns().eq(duplicates));
        assert_eq!(forward.new_cumulative_tsn, tsn);
        assert!(forward.skipped().eq(pairs));
    }
}

fn random_param<'a>(rng: &mut Rng, bytes: &'a [u8], numbers: &'a [u16]) -> Param<'a> {
    match rng.below(11) {
        0 => Param::HeartbeatInfo(bytes),
        1 => Param::Ipv4(rng.u32().into()),
        2 => Param::Ipv6((u128::from(rng.u64()) << 64 | u128::from(rng.u64())).into()),
        3 => Param::StateCookie(bytes),
        4 => Param::UnrecognizedParameter(bytes),
        5 => Param::CookiePreservative(rng.u32()),
        6 => Param::HostName(bytes),
        7 => Param::SupportedAddressTypes(U16List::from(numbers)),
        8 => Param::EcnCapable,
        9 => Param::SupportedExtensions(bytes),
        _ => Param::ForwardTsnSupported,
    }
}

#[test]
fn init_with_parameters() {
    let mut rng = Seed::from_u64(3).rng();
    for _ in 0..ROUNDS {
        let (bytes, numbers) = (bytes(&mut rng, 50), numbers(&mut rng));
        let params: Vec<_> =
            (0..rng.below(12)).map(|_| random_param(&mut rng, &bytes, &numbers)).collect();
        let init = Init {
            initiate_tag: rng.u32(),
            a_rwnd: rng.u32(),
            outbound_streams: rng.u32() as u16,
            inbound_streams: rng.u32() as u16,
            initial_tsn: rng.u32(),
            params: Params::default(),
        };
        let packet = written_below(1500, |writer| {
            assert!(writer.init(&init, |writer| {
                assert!(params.iter().all(|param| writer.push(param)));
            }));
        });
        let chunks = decode_all(&packet);
        let [Ok(Chunk::Init(read))] = chunks[..] else { panic!("{chunks:?}") };
        assert_eq!(Init { params: Params::default(), ..read }, init);
        assert!(read.params().map(|raw| raw.unwrap().decode().unwrap()).eq(params));
    }
}

fn random_cause<'a>(rng: &mut Rng, bytes: &'a [u8], numbers: &'a [u16]) -> Cause<'a> {
    match rng.below(14) {
        0 => Cause::InvalidStreamIdentifier(rng.u32() as u16),
        1 => Cause::MissingMandatoryParameter(U16List::from(numbers)),
        2 => Cause::StaleCookie { measure_of_staleness_us: rng.u32() },
        3 => Cause::OutOfResource,
        4 => Cause::UnresolvableAddress(bytes),
        5 => Cause::UnrecognizedChunkType(bytes),
        6 => Cause::InvalidMandatoryParameter,
        7 => Cause::UnrecognizedParameters(bytes),
        8 => Cause::NoUserData { tsn: rng.u32() },
        9 => Cause::CookieReceivedWhileShuttingDown,
        10 => Cause::RestartWithNewAddresses(bytes),
        11 => Cause::UserInitiatedAbort(bytes),
        12 => Cause::ProtocolViolation(bytes),
        _ => Cause::Unknown { code: 14 + rng.below(60_000) as u16, value: bytes },
    }
}

#[test]
fn abort_and_error_with_causes() {
    let mut rng = Seed::from_u64(4).rng();
    for _ in 0..ROUNDS {
        let (bytes, numbers) = (bytes(&mut rng, 50), numbers(&mut rng));
        let list: Vec<_> =
            (0..1 + rng.below(8)).map(|_| random_cause(&mut rng, &bytes, &numbers)).collect();
        let t_bit = rng.chance(0.5);
        let packet = written_below(1500, |writer| {
            assert!(writer.error(|causes| assert!(list.iter().all(|cause| causes.push(cause)))));
            assert!(
                writer.abort(t_bit, |causes| assert!(list.iter().all(|cause| causes.push(cause))))
            );
        });
        let chunks = decode_all(&packet);
        let [Ok(Chunk::Error { causes }), Ok(Chunk::Abort { t_bit: read_t_bit, causes: again })] =
            chunks[..]
        else {
            panic!("{chunks:?}")
        };
        assert!(causes.map(Result::unwrap).eq(list));
        assert_eq!(again, causes);
        assert_eq!(read_t_bit, t_bit);
        assert_ne!(causes, Causes::default());
    }
}

fn random_re_config<'a>(rng: &mut Rng, numbers: &'a [u16]) -> ReConfigParam<'a> {
    let (request_sequence, streams) = (rng.u32(), U16List::from(numbers));
    let new_streams = rng.u32() as u16;
    match rng.below(6) {
        0 => ReConfigParam::OutgoingSsnResetRequest {
            request_sequence,
            response_sequence: rng.u32(),
            last_assigned_tsn: rng.u32(),
            streams,
        },
        1 => ReConfigParam::IncomingSsnResetRequest { request_sequence, streams },
        2 => ReConfigParam::SsnTsnResetRequest { request_sequence },
        3 => ReConfigParam::Response {
            response_sequence: request_sequence,
            result: ReConfigResult::from(rng.below(9) as u32),
            next_tsns: rng.chance(0.5).then(|| (rng.u32(), rng.u32())),
        },
        4 => ReConfigParam::AddOutgoingStreamsRequest { request_sequence, new_streams },
        _ => ReConfigParam::AddIncomingStreamsRequest { request_sequence, new_streams },
    }
}

#[test]
fn re_config() {
    let mut rng = Seed::from_u64(5).rng();
    for _ in 0..ROUNDS {
        let numbers = numbers(&mut rng);
        let params = [random_re_config(&mut rng, &numbers), random_re_config(&mut rng, &numbers)];
        let packet = written_below(1500, |writer| assert!(writer.re_config(params)));
        let chunks = decode_all(&packet);
        let [Ok(Chunk::ReConfig(read))] = chunks[..] else { panic!("{chunks:?}") };
        assert!(read.params().map(Result::unwrap).eq(params));
    }
}

#[test]
fn the_rest() {
    let mut rng = Seed::from_u64(6).rng();
    for _ in 0..ROUNDS {
        let content = bytes(&mut rng, 200);
        let t_bit = rng.chance(0.5);
        let expected = [
            Chunk::Heartbeat(&content),
            Chunk::HeartbeatAck(&content),
            Chunk::Shutdown { cumulative_tsn_ack: rng.u32() },
            Chunk::ShutdownAck,
            Chunk::ShutdownComplete { t_bit },
            Chunk::CookieEcho(&content),
            Chunk::CookieAck,
        ];
        let packet = written_below(1500, |writer| {
            assert!(expected.iter().all(|chunk| writer.chunk(chunk)));
        });
        assert_eq!(decode_all(&packet), expected.map(Ok));
    }
}

#[test]
fn addresses_become_parameters_of_their_family() {
    let (four, six): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "::1".parse().unwrap());
    assert!(matches!(Param::from(four), Param::Ipv4(address) if address == four));
    assert!(matches!(Param::from(six), Param::Ipv6(address) if address == six));
}
