//! Rules of the RFCs that an earlier version broke, as an independent conformance suite found; one script each.

mod kit;

use std::sync::Arc;

use kit::*;
use rexmit_sctp::wire::{Init, RawParam, ReConfigParam, ReConfigResult, param_kind};
use rexmit_sctp::{AssociationConfig, Event};

/// RFC 9260 §3.3.3: OS of INIT ACK MUST NOT be greater than MIS of the INIT.
#[test]
fn outbound_streams_of_init_ack_do_not_exceed_what_the_init_takes() {
    for (mis, expected) in [(1, 1), (10, 10), (16, 16), (17, 16), (65_535, 16)] {
        let mut s = Script::server();
        let init = Init { inbound_streams: mis, ..peer_init(PEER_TAG) };
        s.peer_writes_under(0, |p| p.init(&init, extensions));
        expect_packet!(s, [InitAck(ack)] => assert_eq!(ack.outbound_streams, expected, "of {mis}"));
    }
}

/// Connects with a configuration other than the endpoint's.
fn connecting_with_another_configuration() -> (Script, Vec<u8>) {
    let mut s = Script::server();
    let mut config = AssociationConfig::default();
    config.streams.outbound = 3;
    config.streams.max_inbound = 5;
    config.buffers.receive_bytes = 77_000;
    config.messages.max_bytes = 10_000;
    config.extensions.partial_reliability = false;
    s.endpoint
        .connect_with(rexmit_core::Instant::ZERO, s.peer.route, PEER_PORT, Arc::new(config))
        .expect("a new association");
    let init = s.take_init();
    (s, init)
}

/// The fields and parameter types that must be equal in an INIT and the INIT ACK that answers it, for a peer without
/// authentication.
fn said(init: &Init<'_>) -> (u32, u32, u16, u32, Vec<u16>) {
    const OTHERS: [u16; 5] = [
        param_kind::STATE_COOKIE,
        param_kind::UNRECOGNIZED_PARAMETER,
        param_kind::RANDOM,
        param_kind::CHUNKS,
        param_kind::HMAC_ALGO,
    ];
    let params = init.params().flatten().map(|param| param.kind);
    let params = params.filter(|kind| !OTHERS.contains(kind)).collect();
    (init.initiate_tag, init.a_rwnd, init.inbound_streams, init.initial_tsn, params)
}

/// RFC 9260 §5.2.1: an INIT in COOKIE-WAIT or COOKIE-ECHOED is answered "using the same parameters
/// it sent in its original INIT chunk".
#[test]
fn init_while_connecting_is_answered_with_the_parameters_of_our_own_init() {
    for is_echoed in [false, true] {
        let (mut s, init) = connecting_with_another_configuration();
        let sent = wire::Packet::parse(&init).unwrap();
        let first = sent.chunks().next().unwrap().unwrap();
        let Ok(Init(ours)) = first.decode() else { panic!("no INIT") };
        if is_echoed {
            s.peer_writes(|p| {
                p.init_ack(&peer_init(PEER_TAG), |params| {
                    params.push(&Param::StateCookie(COOKIE));
                })
            });
            expect_packet!(s, [CookieEcho(_)]);
        }
        s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
        expect_packet!(s, [InitAck(ack)] => {
            assert_eq!(said(&ack), said(&ours), "echoed: {is_echoed}");
            assert_eq!(ack.outbound_streams, ours.outbound_streams);
        });
    }
}

/// RFC 9260 §3.2: the length of a chunk, parameter or cause does not count the padding of the last
/// parameter in it.
#[test]
fn length_of_unrecognized_parameters_does_not_count_the_last_padding() {
    for (lens, expected) in [(&[5][..], 9), (&[5, 5], 17), (&[5, 8], 20), (&[7, 6, 5], 25)] {
        let mut s = Script::client();
        s.take_init();
        let unknown: Vec<Vec<u8>> = lens
            .iter()
            .map(|&len| {
                let mut bytes = vec![0xCF, 4, 0, len];
                bytes.resize(len.into(), 9);
                bytes
            })
            .collect();
        s.peer_writes(|p| {
            p.init_ack(&peer_init(PEER_TAG), |params| {
                params.push(&Param::StateCookie(COOKIE));
                for bytes in &unknown {
                    params.push_raw(&RawParam { kind: 0xCF04, value: &bytes[4..], bytes });
                }
            })
        });
        let sent = s.next_packet();
        let packet = wire::Packet::parse(&sent.bytes).unwrap();
        let error = packet.chunks().flatten().find(|raw| raw.kind == wire::kind::ERROR).unwrap();
        let length = |at: usize| u16::from_be_bytes([error.bytes[at], error.bytes[at + 1]]);
        assert_eq!((length(2), length(6)), (expected + 4, expected), "{lens:?}");
    }
}

/// RFC 9260 §5.1: an INIT that is refused because of an invalid parameter SHOULD be answered with ABORT.
#[test]
fn init_with_a_parameter_of_wrong_length_is_aborted() {
    let wrong: [(u16, &[u8]); 3] = [
        (param_kind::IPV4, &[1, 2, 3]),
        (param_kind::IPV6, &[0; 12]),
        (param_kind::COOKIE_PRESERVATIVE, &[0; 6]),
    ];
    for (kind, value) in wrong {
        let mut s = Script::server();
        s.peer_writes_under(0, |p| {
            p.init(&peer_init(PEER_TAG), |params| {
                params.push_raw(&RawParam { kind, value, bytes: &[] });
            })
        });
        expect_packet!(s, [Abort { t_bit: false, causes }] if {
            matches!(causes.flatten().next(), Some(Cause::ProtocolViolation(_)))
        });
        assert_eq!(s.endpoint.association_count(), 0);
    }
}

/// RFC 9260 §3.3.2: an INIT without a tag is never answered, whatever other errors it has.
#[test]
fn init_without_a_tag_is_not_aborted_for_a_parameter() {
    let mut s = Script::server();
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(0), |params| {
            params.push_raw(&RawParam { kind: param_kind::IPV4, value: &[1, 2, 3], bytes: &[] });
        })
    });
    s.expect_silence();
}

/// RFC 9260 §3.2.1, RFC 3758 §3.3.2: to an endpoint without partial reliability,
/// Forward-TSN-Supported is an unknown parameter, to be skipped and reported.
#[test]
fn forward_tsn_supported_is_reported_without_partial_reliability() {
    const REPORT: [u8; 4] = [0xC0, 0, 0, 4];
    let mut s = Script::with(|_, association| association.extensions.partial_reliability = false);
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    expect_packet!(s, [InitAck(ack)] if {
        ack.params().flatten().any(|param| {
            param.decode() == Ok(Param::UnrecognizedParameter(&REPORT))
        })
    });
    let mut s =
        Script::client_with(|_, association| association.extensions.partial_reliability = false);
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_), Error { causes }] if {
        causes.flatten().eq([Cause::UnrecognizedParameters(&REPORT)])
    });
    // The association that connects decides, not its endpoint.
    let (mut s, _) = connecting_with_another_configuration();
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    expect_packet!(s, [InitAck(ack)] if {
        ack.params().flatten().any(|param| {
            param.decode() == Ok(Param::UnrecognizedParameter(&REPORT))
        })
    });
    let mut with = Script::server();
    with.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    expect_packet!(with, [InitAck(ack)] if {
        !ack.params().flatten().any(|param| param.kind == param_kind::UNRECOGNIZED_PARAMETER)
    });
}

/// RFC 9260 §6.2: while the advertised window is 0, new DATA above the highest TSN MUST be dropped, even if the
/// application has freed some room that was not advertised yet.
#[test]
fn data_beyond_an_advertised_window_of_zero_are_dropped() {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.receive_bytes = 8_192;
        association.messages.max_bytes = 4_096;
        association.sack.delay = std::time::Duration::ZERO;
    });
    let payload = [0; 1_000];
    let mut windows = Vec::new();
    for n in 0..9 {
        s.peer_sends([Data(data(n, &payload))]);
        windows.push(expect_packet!(s, [Sack(sack)] => sack.a_rwnd));
    }
    assert_eq!(windows, [7_192, 6_192, 5_192, 4_192, 3_192, 2_192, 1_192, 192, 0]);
    s.receive().expect("a message, after which there is room for 192 bytes");
    for size in [100, 1_000] {
        s.peer_sends([Data(data(9, &payload[..size]))]);
        expect_packet!(s, [Sack(sack)] if
            (sack.cumulative_tsn_ack, sack.a_rwnd) == (tsn(8), 0));
    }
    s.receive().expect("a message, after which there is room for more than a packet");
    s.receive().expect("a message");
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 2_192);
    s.peer_sends([Data(data(9, &payload))]);
    expect_packet!(s, [Sack(sack)] if (sack.cumulative_tsn_ack, sack.a_rwnd) == (tsn(9), 1_192));
}

/// RFC 6525 §5.2.2 E2, E4: in deferred reset processing, data of the affected streams beyond the Sender's Last Assigned
/// TSN MUST be queued, and processed once the reset was performed: complete messages and fragments, in any order.
#[test]
fn data_beyond_a_deferred_reset_are_queued() {
    let mut s = Script::established_server_with(|_, association| {
        association.failure.heartbeat_interval = None;
    });
    let request = || ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: tsn(0),
        response_sequence: tsn(0).wrapping_sub(1),
        last_assigned_tsn: tsn(1),
        streams: [0].as_slice().into(),
    };
    let answer =
        |result| ReConfigParam::Response { response_sequence: tsn(0), result, next_tsns: None };
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    s.peer_writes(|p| p.re_config([request()]));
    expect_packet!(s, [ReConfig(chunk), Sack(_)] if {
        chunk.params().flatten().eq([answer(ReConfigResult::InProgress)])
    });
    let whole = wire::DataFlags { beginning: true, ending: true, ..Default::default() };
    let piece = |n: u16, ssn, (beginning, ending), payload| wire::Data {
        ssn,
        flags: DataFlags { beginning, ending, ..whole },
        ..data(n, payload)
    };
    for chunk in [
        piece(4, 1, (false, true), b"rd"),
        piece(3, 1, (true, false), b"thi"),
        piece(2, 0, (true, true), b"anew"),
    ] {
        s.peer_sends([Data(chunk)]);
        s.poll_packet();
    }
    assert_eq!(s.statistics().receive_buffered_bytes, 5 + 4 + 5, "it counts as buffered");
    assert_eq!(s.statistics().traffic.chunks_dropped, 0);
    s.peer_sends([Data(data(1, b"second"))]);
    expect_packet!(s, [ReConfig(chunk), Sack(sack)] if {
        chunk.params().flatten().eq([answer(ReConfigResult::Performed)])
            && sack.cumulative_tsn_ack == tsn(4)
    });
    let read: Vec<_> = std::iter::from_fn(|| s.receive()).collect();
    assert_eq!(read, ["first", "second", "anew", "third"]);
    let resets = s.events().into_iter().filter(|e| matches!(e, Event::PeerResetStreams(_)));
    assert_eq!(resets.count(), 1);
}

/// The limits of the receive buffer and of held chunks also apply to queued data.
#[test]
fn queue_of_a_deferred_reset_is_bounded() {
    let mut s = Script::established_server_with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.buffers.max_held_chunks = 50;
    });
    s.peer_writes(|p| {
        p.re_config([ReConfigParam::OutgoingSsnResetRequest {
            request_sequence: tsn(0),
            response_sequence: tsn(0).wrapping_sub(1),
            last_assigned_tsn: tsn(0),
            streams: [].as_slice().into(),
        }])
    });
    s.poll_packet();
    for n in 1..200 {
        s.peer_sends([Data(wire::Data { ssn: n - 1, ..data(n, b"x") })]);
        s.poll_packet();
    }
    let (held, dropped) =
        (s.statistics().receive_buffered_bytes, s.statistics().traffic.chunks_dropped);
    assert_eq!((held, dropped), (50, 149));
    s.peer_sends([Data(data(0, b"the last before the reset"))]);
    s.poll_packet();
    assert_eq!(std::iter::from_fn(|| s.receive()).count(), 51);
    while s.poll_packet().is_some() {}
}
