//! The SCTP packet parser: every packet is read to its end, and all parsed parts are the same after being written and
//! read again.

use rexmit_sctp::wire::{
    AsconfAnswer, AsconfChange, AsconfRequest, Chunk, Header, Init, Packet, PacketWriter, Param,
    Params, RawChunk, write_checksum,
};

use bolero::check;
use rexmit_fuzz::PacketDraft;

const HEADER: Header =
    Header { source_port: 5000, destination_port: 5001, verification_tag: 0xFEED_BEEF };

/// A limit above the size of any packet generated here.
const LIMIT: usize = 200_000;

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 20_000;

#[test]
fn arbitrary_bytes() {
    check!().with_iterations(ITERATIONS).for_each(|bytes| {
        let mut packet = bytes.to_vec();
        write_checksum(&mut packet);
        for bytes in [bytes, &packet] {
            if let Ok(packet) = Packet::parse(bytes) {
                read(&packet);
            }
        }
    });
}

#[test]
fn nearly_valid_packets() {
    check!().with_type::<PacketDraft>().with_iterations(ITERATIONS).for_each(|draft| {
        let packet = draft.bytes(HEADER);
        if let Ok(packet) = Packet::parse(&packet) {
            assert_eq!(packet.header, HEADER);
            read(&packet);
        } else {
            assert!(packet.len() < 16);
        }
    });
}

fn read(packet: &Packet<'_>) {
    let mut chunks = packet.chunks();
    for raw in chunks.by_ref().map_while(Result::ok) {
        assert_eq!(&raw.bytes[4..], raw.value);
        let _action = raw.unknown_action();
        if let Ok(chunk) = raw.decode() {
            assert_written_and_read_again(&raw, &chunk);
            read_params(&chunk);
        }
    }
    assert_eq!(chunks.next(), None);
}

fn written(write: impl FnOnce(&mut PacketWriter<'_>) -> bool) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    let mut writer = PacketWriter::new(&mut buffer, LIMIT, HEADER);
    let is_written = write(&mut writer);
    writer.finish();
    is_written.then_some(buffer)
}

fn assert_written_and_read_again(raw: &RawChunk<'_>, chunk: &Chunk<'_>) {
    let Some(bytes) = written(|writer| match chunk {
        Chunk::Unknown => writer.plain(raw.kind, raw.flags, raw.value),
        chunk => writer.chunk(chunk),
    }) else {
        let &Chunk::Error { mut causes } = chunk else { panic!("not written: {chunk:?}") };
        assert!(causes.all(|cause| cause.is_err()), "not written: {causes:?}");
        return;
    };
    let packet = Packet::parse(&bytes).expect("our own packet");
    let mut chunks = packet.chunks();
    let again = chunks.next().expect("a chunk").expect("our own framing");
    assert_eq!(again.kind, raw.kind);
    assert_same(chunk, &again.decode().expect("our own chunk"));
    assert_eq!(chunks.next(), None);
    if *chunk != Chunk::Unknown {
        let twice = written(|writer| writer.chunk(&again.decode().unwrap()));
        assert_eq!(twice, Some(bytes.clone()));
    }
}

/// Asserts that `again` equals `chunk`, apart from list members that could not be parsed.
fn assert_same(chunk: &Chunk<'_>, again: &Chunk<'_>) {
    match (chunk, again) {
        (Chunk::Init(a), Chunk::Init(b)) | (Chunk::InitAck(a), Chunk::InitAck(b)) => {
            let none = Params::default();
            assert_eq!(Init { params: none, ..*a }, Init { params: none, ..*b });
            let kept = a.params().flatten().map(|param| (param.kind, param.value));
            assert!(kept.eq(b.params().map(|p| p.map(|p| (p.kind, p.value)).unwrap())));
        }
        (Chunk::Abort { t_bit: t, causes: a }, Chunk::Abort { t_bit: u, causes: b }) => {
            assert_eq!(t, u);
            assert!(a.flatten().eq(b.map(Result::unwrap)));
        }
        (Chunk::Error { causes: a }, Chunk::Error { causes: b }) => {
            assert!(a.flatten().eq(b.map(Result::unwrap)));
        }
        (Chunk::ReConfig(a), Chunk::ReConfig(b)) => {
            // Padding stands in `bytes` of no parameter, so that unknown ones compare as well.
            assert!(a.params().flatten().eq(b.params().map(Result::unwrap)));
        }
        (Chunk::Asconf(a), Chunk::Asconf(b)) => {
            assert_eq!((a.serial, a.address), (b.serial, b.address));
            let known = |it: &AsconfRequest<'_>| !matches!(it.change, AsconfChange::Unknown(_));
            let kept = a.requests().flatten().filter(known);
            let of = |it: AsconfRequest<'_>| format!("{:?}", (it.correlation, it.change));
            assert!(kept.map(of).eq(b.requests().map(Result::unwrap).map(of)));
        }
        (Chunk::AsconfAck(a), Chunk::AsconfAck(b)) => {
            assert_eq!(a.serial, b.serial);
            // A refusal without a cause that can be read is left out, and so is one of another.
            let answer = |it: AsconfAnswer<'_>| match it {
                AsconfAnswer::Refused { correlation, causes } => {
                    let causes: Vec<_> = causes.flatten().collect();
                    (!causes.is_empty()).then(|| format!("{correlation}: {causes:?}"))
                }
                AsconfAnswer::Done { correlation } => Some(format!("{correlation}")),
                AsconfAnswer::Unknown(_) => None,
            };
            let again = b.answers().map(Result::unwrap).filter_map(answer);
            assert!(a.answers().flatten().filter_map(answer).eq(again));
        }
        (a, b) => assert_eq!(a, b),
    }
}

/// Parses the parameters of an INIT, writes the parsed ones, and parses them again.
fn read_params(chunk: &Chunk<'_>) {
    let (Chunk::Init(init) | Chunk::InitAck(init)) = chunk else { return };
    for raw in init.params().flatten() {
        let _action = raw.unknown_action();
        let Ok(param) = raw.decode() else { continue };
        if param == Param::Unknown {
            continue;
        }
        let bare = Init { params: Params::default(), ..*init };
        let bytes = written(|writer| writer.init(&bare, |params| assert!(params.push(&param))))
            .expect("room for one parameter");
        let packet = Packet::parse(&bytes).expect("our own packet");
        let Some(Ok(Ok(Chunk::Init(again)))) =
            packet.chunks().next().map(|c| c.map(|c| c.decode()))
        else {
            panic!("not our own INIT")
        };
        assert!(again.params().map(|raw| raw.unwrap().decode()).eq([Ok(param)]));
    }
}
