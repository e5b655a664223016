//! Peers that break the rules of RFC 8260: the association ends, or memory stays bounded.

use rexmit_core::Machine as _;
use rexmit_sctp::wire::{Chunk, SkippedMid};
use rexmit_sctp::{CloseReason, Event};

use crate::kit::*;
use crate::{fragment, last, server, server_with, whole};

#[track_caller]
fn expect_violation(s: &mut Script, what: &str) {
    let sent = s.next_packet();
    let &[Abort { causes, .. }] = &sent.chunks()[..] else { panic!("no ABORT: {sent:?}") };
    let cause = causes.flatten().next().expect("a cause");
    assert_eq!(cause, Cause::ProtocolViolation(what.as_bytes()));
    loop {
        match s.endpoint.poll_event() {
            Some((_, Event::Closed(CloseReason::Aborted { .. }))) => return,
            Some(_) => {}
            None => panic!("it is not closed"),
        }
    }
}

/// RFC 8260 §2.2.3.
#[test]
fn data_where_i_data_was_negotiated_ends_the_association() {
    let mut s = server();
    s.peer_sends([Data(data(0, b"m"))]);
    expect_violation(&mut s, "DATA where I-DATA was negotiated");
}

/// RFC 8260 §2.2.3: whether we did not offer it, or the peer did not.
#[test]
fn i_data_that_was_not_negotiated_ends_the_association() {
    let not_offered = server_with(|association| association.extensions.interleaving = false);
    let unasked = Script::established_server_with(|_, association| {
        association.extensions.interleaving = true;
    });
    for mut s in [not_offered, unasked] {
        s.peer_sends([IData(whole(0, 0, b"m"))]);
        expect_violation(&mut s, "I-DATA that was not negotiated");
    }
}

/// RFC 8260 §2.3.1.
#[test]
fn the_wrong_kind_of_forward_tsn_ends_the_association() {
    let mut s = server();
    s.peer_writes(|p| p.forward_tsn(tsn(0), [(0, 0)]));
    expect_violation(&mut s, "FORWARD-TSN where I-FORWARD-TSN was negotiated");
    let not_offered = server_with(|association| association.extensions.interleaving = false);
    let without = server_with(|association| association.extensions.partial_reliability = false);
    for mut s in [not_offered, without] {
        let skipped = [SkippedMid { stream: 0, unordered: false, mid: 0 }];
        s.peer_writes(|p| p.i_forward_tsn(tsn(0), skipped));
        expect_violation(&mut s, "I-FORWARD-TSN that was not negotiated");
    }
}

#[test]
fn fragments_that_contradict_each_other_end_the_association() {
    let begun = fragment(0, 1, 0, b"b");
    let cases: [(&str, Vec<wire::IData<'_>>); 4] = [
        ("a message begins a second time", vec![begun, fragment(1, 1, 0, b"x")]),
        ("a fragment comes a second time", vec![fragment(0, 1, 2, b"x"), fragment(1, 1, 2, b"x")]),
        (
            "a fragment is beyond its message",
            vec![begun, fragment(1, 1, 2, b"x"), last(2, 1, 1, b"x")],
        ),
        ("a message comes a second time", vec![whole(0, 1, b"x"), whole(1, 1, b"x")]),
    ];
    for (what, chunks) in cases {
        let mut s = server();
        s.peer_sends(chunks.into_iter().map(IData));
        expect_violation(&mut s, what);
    }
}

/// An endless series of interleaved fragments: at most twice the buffer is held, and the association continues.
#[test]
fn fragments_without_end_are_bounded() {
    let mut s = server_with(|association| {
        association.buffers.receive_bytes = 8192;
        association.messages.max_bytes = 8192;
        association.buffers.max_held_chunks = 64;
    });
    for n in 0..5000 {
        let stream = (n % 10) as u16;
        let mid = n / 50 % 7;
        let chunk = if n % 3 == 0 {
            fragment(n, stream, 0, &[1; 300])
        } else {
            fragment(n, stream, 1 + n % 5, &[1; 300])
        };
        // Every message of its own, so that none is contradicted.
        s.peer_sends([IData(wire::IData { mid: mid + 7 * n, ..chunk })]);
        while s.poll_packet().is_some() {}
        assert!(s.statistics().receive_buffered_bytes <= 2 * 8192);
    }
    while s.endpoint.poll_event().is_some() {}
    assert!(s.statistics().traffic.chunks_dropped > 1000);
    s.peer_sends([Chunk::Heartbeat(b"alive?")]);
    expect_packet!(s, [HeartbeatAck(b"alive?")]);
}

/// MIDs far ahead and out of order are only held, as SSNs are.
#[test]
fn mids_out_of_order_wait_and_are_bounded() {
    let mut s = server_with(|association| association.buffers.max_held_chunks = 100);
    for n in 0..500u32 {
        let mid = 1 + (n * 7919) % 500;
        s.peer_sends([IData(wire::IData { mid, ..whole(n, 1, b"m") })]);
        while s.poll_packet().is_some() {}
    }
    assert_eq!(s.receive(), None);
    assert_eq!(s.statistics().receive_buffered_bytes, 100);
}

/// A stream that does not exist is reported, and the chunk acknowledged (RFC 9260 §6.5).
#[test]
fn i_data_on_a_stream_that_does_not_exist_is_reported() {
    let mut s = server();
    s.peer_sends([IData(whole(0, 99, b"m"))]);
    expect_packet!(s, [Error { .. }, Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
}
