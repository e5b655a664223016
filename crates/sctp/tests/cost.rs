//! The processing cost of a packet of a malicious peer, compared with that of a benign packet of the same size: the
//! table of docs/security.md. `cargo test --release -p rexmit-sctp --test cost -- --ignored --nocapture`

mod kit;
#[path = "dynamic/peer.rs"]
#[expect(dead_code, reason = "most of it is for other scripts")]
mod peer;

use std::time::Duration;

use kit::*;
use peer::{Dynamic, Keys};
use rexmit_core::Machine as _;
use rexmit_sctp::wire::{
    AsconfChange, AsconfRequest, DataFlags, Init, RawParam, ReConfigParam, SkippedMid,
};
use rexmit_sctp::{AssociationConfig, Event};
use rexmit_testkit::cost::{PACKETS, Table, median, timed};

/// Packets that cost more, with their largest ratios: messages of one byte (docs/security.md).
const EXCEPTIONS: [(&str, f64); 2] =
    [("DATA, 3000 chunks of one byte", 40.0), ("I-DATA, 2500 chunks of one byte", 50.0)];
/// Nearly the largest UDP payload.
const LARGE: usize = 60_000;
const STREAMS: u16 = 15_000;

fn with_much_room(association: &mut AssociationConfig) {
    association.streams.max_inbound = 65_535;
    association.buffers.receive_bytes = 16 << 20;
    association.messages.max_bytes = 1 << 20;
}

/// An association with the largest number of streams.
fn established() -> Script {
    established_with(false, extensions)
}

/// An association with interleaved messages and the largest number of streams.
fn interleaved() -> Script {
    let kinds = [wire::kind::I_DATA, wire::kind::I_FORWARD_TSN];
    established_with(true, |params| {
        params.push(&Param::SupportedExtensions(&kinds));
    })
}

fn established_with(
    is_interleaved: bool,
    extensions: impl FnOnce(&mut ParamsWriter<'_, '_>),
) -> Script {
    let mut s = Script::with(|_, association| {
        with_much_room(association);
        association.extensions.interleaving = is_interleaved;
    });
    let init = Init { outbound_streams: 65_535, ..peer_init(PEER_TAG) };
    s.peer_writes_under(0, |p| p.init(&init, extensions));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s
}

/// The median processing time of a packet, including the packets and events that it causes, and its length in bytes.
fn cost(s: &mut Script, mut packet: impl FnMut(&mut Script, u32) -> Vec<u8>) -> (Duration, usize) {
    let mut times = Vec::new();
    let mut len = 0;
    for n in 0..PACKETS {
        let bytes = packet(s, n);
        len = len.max(bytes.len());
        let (time, ()) = timed(|| {
            s.deliver(&bytes);
            while s.poll_packet().is_some() {}
            while s.endpoint.poll_event().is_some() {}
        });
        times.push(time);
        while s.endpoint.association_count() > 0 && s.receive().is_some() {}
    }
    (median(times), len)
}

/// A packet of this many bytes from a correct peer: full-sized messages, in order.
fn of_size(bytes: usize) -> Duration {
    let mut s = established();
    let mut next = 0_u16;
    let payload = vec![7; bytes.min(1028) - 28];
    let (time, _) = cost(&mut s, |s, _| {
        s.peer_packet(s.peer.endpoint_tag, |p| {
            for _ in 0..bytes.div_ceil(1028) {
                p.chunk(&Data(data(next, &payload)));
                next = next.wrapping_add(1);
            }
        })
    });
    time
}

/// 10,000 outstanding chunks, all of which except the first are reported in a gap block.
fn with_outstanding_chunks(profile: &str) -> (Script, u16) {
    let recovery = rexmit_sctp::recovery::RecoveryConfig::profile(profile).expect("it exists");
    let mut s = Script::client_with(|_, association| {
        association.recovery = recovery.max_burst(None);
        association.failure.heartbeat_interval = None;
        association.buffers.send_bytes = 8 << 20;
    });
    s.take_init();
    let init_ack = Init { a_rwnd: u32::MAX, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init_ack, answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    let mut chunks = 0_u16;
    while chunks < 10_000 {
        (0..100).for_each(|_| _ = s.send(b"m"));
        while let Some(sent) = s.poll_packet() {
            for chunk in sent.chunks() {
                let Data(data) = chunk else { continue };
                chunks = chunks.max(data.tsn.wrapping_sub(FIRST_TSN) as u16 + 1);
            }
        }
        s.peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), u32::MAX, [(2, chunks)], []));
    }
    while s.poll_packet().is_some() {}
    (s, chunks)
}

type Packet = Box<dyn FnMut(&mut Script, u32) -> Vec<u8>>;

/// Packets that belong to no association.
fn of_unknown_senders() -> Vec<(&'static str, Packet)> {
    let unknown = |count: usize| {
        move |s: &mut Script, _| {
            s.peer_packet(0, |p| {
                p.init(&peer_init(PEER_TAG), |params| {
                    for _ in 0..count {
                        let bytes = [0xBF, 0, 0, 4];
                        params.push_raw(&RawParam { kind: 0xBF00, value: &[], bytes: &bytes });
                    }
                })
            })
        }
    };
    vec![
        ("INIT", Box::new(unknown(0))),
        ("INIT with 14,000 unknown parameters", Box::new(unknown(14_000))),
        (
            "COOKIE ECHO, forged",
            Box::new(|s, _| s.peer_packet(PEER_TAG, |p| p.cookie_echo(&[7; LARGE]))),
        ),
    ]
}

/// Packets of the peer of an association.
fn of_peers() -> Vec<(&'static str, Packet)> {
    let tagged = |s: &Script| s.peer.endpoint_tag;
    vec![
        (
            "FORWARD-TSN that names 15,000 streams",
            Box::new(move |s, n| {
                s.peer_packet(tagged(s), |p| {
                    p.forward_tsn(tsn(n), (0..STREAMS).map(|stream| (stream, n as u16)))
                })
            }),
        ),
        (
            "DATA, 3000 chunks of one byte",
            Box::new(move |s, n| {
                s.peer_packet(tagged(s), |p| {
                    (0..3000).for_each(|k| _ = p.chunk(&Data(data((n * 3000 + k) as u16, b"x"))));
                })
            }),
        ),
        (
            "DATA, 3000 chunks of one byte with a gap before each",
            Box::new(move |s, n| {
                let first = n % 10 * 6000;
                s.peer_packet(tagged(s), |p| {
                    (0..3000)
                        .for_each(|k| _ = p.chunk(&Data(data((first + 2 * k) as u16 + 1, b"x"))));
                })
            }),
        ),
        ("HEARTBEAT", Box::new(move |s, _| s.peer_packet(tagged(s), |p| p.heartbeat(&[7; LARGE])))),
        (
            "14,000 chunks of an unknown type",
            Box::new(move |s, _| {
                s.peer_packet(tagged(s), |p| (0..14_000).for_each(|_| _ = p.plain(0xC9, 0, &[])))
            }),
        ),
        (
            "RE-CONFIG that resets 29,000 streams",
            Box::new(move |s, n| {
                let streams: Vec<u16> = (0..29_000).collect();
                s.peer_packet(tagged(s), |p| {
                    p.re_config([ReConfigParam::OutgoingSsnResetRequest {
                        request_sequence: tsn(n),
                        response_sequence: 0,
                        last_assigned_tsn: tsn(0).wrapping_sub(1),
                        streams: streams.as_slice().into(),
                    }])
                })
            }),
        ),
    ]
}

/// Packets of the peer of an association whose messages are interleaved.
fn of_interleaving_peers() -> Vec<(&'static str, Packet)> {
    let chunk = |n: u32, mid, fsn| wire::IData {
        flags: DataFlags { beginning: fsn == 0, ending: fsn == 0, ..DataFlags::default() },
        tsn: tsn(n),
        stream: 0,
        mid,
        ppid: 0,
        fsn,
        payload: b"x",
    };
    vec![
        (
            "I-DATA, 2500 chunks of one byte",
            Box::new(move |s, n| {
                s.peer_packet(s.peer.endpoint_tag, |p| {
                    (0..2500).for_each(|k| {
                        _ = p.chunk(&IData(chunk(n * 2500 + k, n * 2500 + k, 0)));
                    });
                })
            }),
        ),
        (
            "I-DATA, 2500 fragments of as many messages without a beginning",
            Box::new(move |s, n| {
                s.peer_packet(s.peer.endpoint_tag, |p| {
                    // Of few packets, or the receiver has no room.
                    (0..2500).for_each(|k| {
                        _ = p.chunk(&IData(chunk(n % 4 * 2500 + k, 1 + n % 4 * 2500 + k, 7)));
                    });
                })
            }),
        ),
        (
            "I-FORWARD-TSN that names 7500 streams",
            Box::new(move |s, n| {
                s.peer_packet(s.peer.endpoint_tag, |p| {
                    let skipped = |stream| SkippedMid { stream, unordered: false, mid: n };
                    p.i_forward_tsn(tsn(n), (0..7500).map(skipped))
                })
            }),
        ),
    ]
}

/// Packets that are made before they are measured.
type Ready = (&'static str, Vec<Vec<u8>>);

/// An association with authentication, and packets of its peer, or of one without the key.
fn with_authentication() -> (Dynamic, Vec<Ready>) {
    let keys = Keys { chunks: vec![wire::kind::DATA, wire::kind::ASCONF], ..Keys::default() };
    let peer = Dynamic::server_with(keys, |_, association| {
        with_much_room(association);
        association.authentication.chunks = vec![wire::kind::DATA, wire::kind::ASCONF];
    });
    let payload = [7; 1000];
    let full = |n: u32, count: u32| {
        peer.signed(|p| {
            (0..count).for_each(|k| _ = p.chunk(&Data(data((n * count + k) as u16, &payload))));
        })
    };
    let forged = |n| {
        let mut bytes = full(n, 58);
        let last = bytes.len() - 1;
        bytes[last] ^= 1; // The checksum is right, the MAC is not.
        wire::write_checksum(&mut bytes);
        bytes
    };
    let asconf = |n| {
        let add = AsconfChange::Add(address(9, 0).ip());
        peer.signed(|p| {
            let request = |correlation| AsconfRequest { correlation, change: add, bytes: &[] };
            p.asconf(tsn(n), address(2, 0).ip(), (0..2900).map(request))
        })
    };
    let packets = vec![
        ("AUTH with a wrong MAC, of 60,000 bytes", (0..PACKETS).map(forged).collect()),
        ("AUTH and DATA, of 60,000 bytes", (0..PACKETS).map(|n| full(n, 58)).collect()),
        ("ASCONF with 2900 requests", (0..PACKETS).map(asconf).collect()),
    ];
    (peer, packets)
}

/// SACKs to a sender with 10,000 outstanding chunks, compared with a SACK for the next chunk.
fn of_receivers() -> Vec<(&'static str, Packet)> {
    let sack = |s: &mut Script, cumulative: u32, blocks: &[(u16, u16)]| {
        let cumulative = tsn(cumulative).wrapping_sub(1);
        s.peer_packet(s.peer.endpoint_tag, |p| p.sack(cumulative, u32::MAX, blocks.to_vec(), []))
    };
    vec![
        ("SACK, the same gap block again", Box::new(move |s, _| sack(s, 0, &[(2, 10_000)]))),
        (
            "SACK, gap reports back and forth",
            Box::new(move |s, n| {
                let blocks = [(2, 9_900)];
                sack(s, n.div_ceil(2), if n % 2 == 0 { &blocks } else { &[] })
            }),
        ),
        ("SACK, a block without a gap", Box::new(move |s, _| sack(s, 0, &[(1, 10_000)]))),
        (
            "SACK, 5000 gap blocks",
            Box::new(move |s, _| {
                let blocks: Vec<_> = (1..5001).map(|n| (2 * n, 2 * n)).collect();
                sack(s, 0, &blocks)
            }),
        ),
    ]
}

#[test]
#[ignore = "measures"]
fn packets_cost_at_most_twenty_times_a_benign_one() {
    let mut table = Table::new("packet", &EXCEPTIONS);
    for (name, packet) in of_unknown_senders() {
        let measured = cost(&mut Script::server(), packet);
        table.row(name, measured, of_size(measured.1));
    }
    for (name, packet) in of_peers() {
        let measured = cost(&mut established(), packet);
        table.row(name, measured, of_size(measured.1));
    }
    for (name, packet) in of_interleaving_peers() {
        let measured = cost(&mut interleaved(), packet);
        table.row(name, measured, of_size(measured.1));
    }
    for index in 0..3 {
        let (mut peer, mut packets) = with_authentication();
        let (name, mut packets) = packets.swap_remove(index);
        let measured = cost(&mut peer.s, |_, n| std::mem::take(&mut packets[n as usize]));
        table.row(name, measured, of_size(measured.1));
    }
    for profile in ["rfc9260", "rr", "interactive"] {
        let (mut s, _) = with_outstanding_chunks(profile);
        let (benign, _) = cost(&mut s, |s, n| {
            let cumulative = tsn(n).wrapping_sub(1);
            let blocks = [(2, 9_900 - n as u16)];
            s.peer_packet(s.peer.endpoint_tag, |p| p.sack(cumulative, u32::MAX, blocks, []))
        });
        for (name, packet) in of_receivers() {
            let (mut s, _) = with_outstanding_chunks(profile);
            let measured = cost(&mut s, packet);
            // No benign SACK is as long as 20 KB.
            let benign = if measured.1 > 1000 { of_size(measured.1) } else { benign };
            table.row(&format!("{name}, `{profile}`"), measured, benign);
        }
    }
    table.end();
}
