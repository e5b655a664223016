//! Unknown, malformed and bundled chunks, and their order (RFC 9260 §3.2, §6.10). Every script checks that our own
//! packets follow the rules of bundling; see `kit/sent.rs`.

mod kit;

use kit::*;
use rexmit_sctp::{CloseReason, Event};

/// RFC 9260 §3.2: by its two high bits an unknown chunk is reported or not, and ends the packet or
/// not.
#[test]
fn unknown_chunks_are_treated_by_their_two_high_bits() {
    for (kind, is_reported, goes_on) in
        [(0x3F, false, false), (0x7F, true, false), (0xBF, false, true), (0xFF, true, true)]
    {
        let mut s = Script::established_server();
        s.peer_writes(|p| {
            p.plain(kind, 0x5A, b"value");
            p.heartbeat(b"behind")
        });
        if goes_on {
            expect_packet!(s, [HeartbeatAck(b"behind")]);
        }
        if is_reported {
            let quoted = [&[kind, 0x5A, 0, 9], &b"value"[..]].concat();
            expect_packet!(s, [Error { causes }] if {
                causes.flatten().eq([Cause::UnrecognizedChunkType(&quoted)])
            });
        }
        s.expect_silence();
    }
}

/// RFC 9260 §3.2, Table 1: ECNE and CWR are reserved, and unknown to us.
#[test]
fn reserved_chunk_types_end_the_packet() {
    for kind in [wire::kind::ECNE, wire::kind::CWR] {
        let mut s = Script::established_server();
        s.peer_writes(|p| {
            p.plain(kind, 0, &[0; 4]);
            p.heartbeat(b"behind")
        });
        s.expect_silence();
    }
}

/// RFC 3758 §3.3, RFC 6525 §5.1.1: chunks of extensions that were not negotiated are unknown.
#[test]
fn chunks_of_disabled_extensions_are_unknown() {
    let mut s = Script::established_server_with(|_, association| {
        association.extensions.partial_reliability = false;
        association.extensions.stream_reset = false;
    });
    s.peer_writes(|p| p.forward_tsn(tsn(3), []));
    expect_packet!(s, [Error { causes }] if {
        matches!(causes.flatten().next(), Some(Cause::UnrecognizedChunkType(_)))
    });
    let request = wire::ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: tsn(0),
        response_sequence: 0,
        last_assigned_tsn: tsn(0).wrapping_sub(1),
        streams: wire::U16List::default(),
    };
    s.peer_writes(|p| p.re_config([request]));
    s.expect_silence();
}

/// The limits of pending errors (4) and of the bytes that they quote (1024).
#[test]
fn reports_of_unknown_chunks_are_limited() {
    let mut s = Script::established_server();
    for _ in 0..10 {
        s.peer_writes(|p| p.plain(0xFF, 0, b"?"));
    }
    expect_packet!(s, [Error { .. }, Error { .. }, Error { .. }, Error { .. }]);
    s.expect_silence();
    s.peer_writes(|p| p.plain(0xFF, 0, &[0; 1_020]));
    expect_packet!(s, [Error { .. }]);
    s.peer_writes(|p| p.plain(0xFF, 0, &[0; 1_021]));
    s.expect_silence();
}

/// RFC 9260 §6.10: chunks are processed in order; a partial one is dropped with all that follow it.
#[test]
fn partial_chunk_is_dropped_and_those_before_it_count() {
    let mut s = Script::established_server();
    let whole = s.peer_packet(s.peer.endpoint_tag, |p| {
        p.heartbeat(b"first");
        p.heartbeat(b"second")
    });
    let mut cut = whole[..whole.len() - 4].to_vec();
    wire::write_checksum(&mut cut);
    s.deliver(&cut);
    expect_packet!(s, [HeartbeatAck(b"first")]);
    s.expect_silence();
    s.deliver(&whole);
    expect_packet!(s, [HeartbeatAck(b"first")]);
    expect_packet!(s, [HeartbeatAck(b"second")]);
}

/// RFC 9260 §3.2: a chunk length below four is impossible: the rest of the packet is dropped.
#[test]
fn chunk_without_a_length_ends_the_packet() {
    for length in 0..4 {
        let mut s = Script::established_server();
        let mut bytes = s.peer_packet(s.peer.endpoint_tag, |p| {
            p.plain(0xBF, 0, &[]);
            p.heartbeat(b"behind")
        });
        bytes[wire::COMMON_HEADER_LEN + 3] = length;
        wire::write_checksum(&mut bytes);
        s.deliver(&bytes);
        s.expect_silence();
    }
}

/// RFC 9260 §3.2: the content of padding is ignored, whether the chunk's length includes the padding or not.
#[test]
fn padding_is_ignored() {
    let mut s = Script::established_server();
    let mut bytes = s.peer_packet(s.peer.endpoint_tag, |p| {
        p.data(&data(0, b"12345"));
        p.data(&data(1, b"6"))
    });
    let first = wire::COMMON_HEADER_LEN;
    bytes[first + wire::DATA_HEADER_LEN + 5..][..3].fill(0xEE);
    wire::write_checksum(&mut bytes);
    s.deliver(&bytes);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
    assert_eq!((s.receive().unwrap(), s.receive().unwrap()), ("12345".into(), "6".into()));
    let mut bytes =
        s.peer_packet(s.peer.endpoint_tag, |p| p.plain(wire::kind::SHUTDOWN, 0, &[0; 7]));
    bytes[first + 4..first + 8].copy_from_slice(&tsn(0).wrapping_sub(1).to_be_bytes());
    wire::write_checksum(&mut bytes);
    s.deliver(&bytes);
    expect_packet!(s, [ShutdownAck]);
}

/// RFC 9260 §3.2: undefined flags are ignored.
#[test]
fn reserved_flags_are_ignored() {
    let mut s = Script::established_server();
    s.peer_writes(|p| p.plain(wire::kind::HEARTBEAT, 0xFF, &[0, 1, 0, 4]));
    expect_packet!(s, [HeartbeatAck(b"")]);
    s.peer_writes(|p| p.plain(wire::kind::SHUTDOWN, 0xFF, &tsn(0).wrapping_sub(1).to_be_bytes()));
    expect_packet!(s, [ShutdownAck]);
    s.peer_writes(|p| p.plain(wire::kind::SHUTDOWN_COMPLETE, 0xFE, &[]));
    s.events();
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §3.2: a chunk that is too short or too long for its type is dropped, but not the chunks after it.
#[test]
fn chunk_of_a_wrong_length_is_dropped_alone() {
    for (kind, value) in [
        (wire::kind::SHUTDOWN, &[0; 3][..]),
        (wire::kind::SHUTDOWN, &[0; 8]),
        (wire::kind::SACK, &[0; 11]),
        (wire::kind::SACK, &[0xFF; 12]),
        (wire::kind::HEARTBEAT, &[]),
        (wire::kind::DATA, &[0; 11]),
        (wire::kind::INIT_ACK, &[0; 15]),
        (wire::kind::COOKIE_ACK, &[0; 4]),
        (wire::kind::SHUTDOWN_ACK, &[0; 4]),
        (wire::kind::SHUTDOWN_COMPLETE, &[0; 4]),
        (wire::kind::FORWARD_TSN, &[0; 3]),
    ] {
        let mut s = Script::established_server();
        s.peer_writes(|p| {
            p.plain(kind, 0, value);
            p.heartbeat(b"behind")
        });
        expect_packet!(s, [HeartbeatAck(b"behind")]);
        s.expect_silence();
        assert_eq!(s.events(), [], "type {kind}, {} bytes", value.len());
    }
}

/// RFC 9260 §6.10: INIT ACK is alone in its packet; chunks bundled with it are not processed.
#[test]
fn chunks_after_init_ack_are_not_processed() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), answer_params);
        p.cookie_ack()
    });
    expect_packet!(s, [CookieEcho(_)]);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §3.3.10, §11.2.6: causes of an ERROR reach the application by their codes.
#[test]
fn errors_of_the_peer_are_reported_to_the_application() {
    let mut s = Script::established_server();
    s.peer_writes(|p| {
        p.error(|causes| {
            causes.push(&Cause::InvalidStreamIdentifier(7));
            causes.push(&Cause::UnrecognizedChunkType(b"chunk"));
        })
    });
    s.expect_silence();
    assert_eq!(s.events(), [Event::PeerError(1), Event::PeerError(6)]);
}

/// RFC 9260 §6.10: the chunks of a packet are processed in order: DATA before SHUTDOWN is received.
#[test]
fn data_before_shutdown_is_received() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"last")), Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    assert_eq!(s.receive().unwrap(), "last");
    expect_packet!(s, [ShutdownAck]);
    s.peer_sends([ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Readable | Event::PeerShutdown);
    let closed = Event::Closed(CloseReason::Shutdown);
    assert_eq!(s.events().last(), Some(&closed));
}

/// Fourteen thousand unknown chunks fit into a packet; chunks after the limit of 1024 are dropped.
#[test]
fn chunks_of_unknown_types_are_skipped_up_to_a_limit() {
    for (count, is_answered) in [(1024, true), (1025, false)] {
        let mut s = Script::established_server();
        s.peer_writes(|p| {
            (0..count).for_each(|_| assert!(p.plain(0xBF, 0, &[])));
            p.heartbeat(b"behind them")
        });
        assert_eq!(s.poll_packet().is_some(), is_answered, "{count} chunks");
    }
}
