//! Reception of interleaved messages (RFC 8260 §2.2.3).

use rexmit_sctp::Event;
use rexmit_sctp::wire::ReConfigParam;

use crate::kit::*;
use crate::{fragment, last, server, server_with, whole};

/// Fragments are assembled by MID and FSN, whatever the TSNs.
#[test]
fn fragments_of_two_messages_are_put_together_in_any_order() {
    let mut s = server();
    s.peer_sends([IData(last(5, 2, 2, b"6")), IData(fragment(1, 2, 0, b"4"))]);
    s.peer_sends([IData(last(4, 1, 2, b"3")), IData(fragment(2, 1, 1, b"2"))]);
    s.peer_sends([IData(fragment(3, 2, 1, b"5"))]);
    assert_eq!(s.receive().as_deref(), Some(&b"456"[..]));
    s.peer_sends([IData(fragment(0, 1, 0, b"1"))]);
    assert_eq!(s.receive().as_deref(), Some(&b"123"[..]));
    while s.poll_packet().is_some() {}
    assert_eq!(s.statistics().receive_buffered_bytes, 0);
}

#[test]
fn a_message_passes_one_of_another_stream_that_is_not_complete() {
    let mut s = server();
    s.peer_sends([IData(fragment(0, 1, 0, b"begun")), IData(whole(1, 2, b"small"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
    assert_eq!(s.receive().as_deref(), Some(&b"small"[..]));
    assert_eq!(s.receive(), None);
}

/// RFC 8260 §2.3.2, with RFC 6525 §5.2.2: after the peer's reset, the next MID is 0.
#[test]
fn a_stream_reset_of_the_peer_begins_its_mids_again() {
    let mut s = server();
    s.peer_sends([IData(whole(0, 1, b"a")), IData(wire::IData { mid: 1, ..whole(1, 1, b"b") })]);
    expect_packet!(s, [Sack(_)]);
    let request = ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: FIRST_TSN,
        response_sequence: 0,
        last_assigned_tsn: tsn(1),
        streams: [1u16].as_slice().into(),
    };
    s.peer_writes(|p| p.re_config([request]));
    expect_packet!(s, [ReConfig(_), Sack(_)]);
    s.peer_sends([IData(whole(2, 1, b"c"))]);
    expect_packet!(s, [Sack(_)]);
    for payload in [b"a", b"b", b"c"] {
        assert_eq!(s.receive().as_deref(), Some(&payload[..]));
    }
}

/// Ten messages, each larger than a tenth of the buffer: twice the buffer is used, so that the peer can complete them.
#[test]
fn incomplete_messages_may_take_twice_the_buffer() {
    const LEN: usize = 1000;
    let mut s = server_with(|association| {
        association.buffers.receive_bytes = 8 * LEN;
        association.messages.max_bytes = 8 * LEN;
    });
    for stream in 0..10 {
        s.peer_sends([IData(fragment(u32::from(stream), stream, 0, &[1; LEN]))]);
        expect_packet!(s, [Sack(sack)] if sack.a_rwnd > 0);
    }
    s.peer_sends([IData(last(10, 0, 1, b"end"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(10));
    assert_eq!(s.receive().expect("the first message").len(), LEN + 3);
}

/// Beyond twice the buffer no message could be completed, so the largest is dropped, and the application is informed.
#[test]
fn of_messages_that_fill_twice_the_buffer_the_largest_is_dropped() {
    const LEN: usize = 1000;
    let mut s = server_with(|association| {
        association.buffers.receive_bytes = 8 * LEN;
        association.messages.max_bytes = 8 * LEN;
    });
    let mut n = 0;
    let mut deliver = |s: &mut Script, chunk: wire::IData<'_>| {
        s.peer_sends([IData(wire::IData { tsn: tsn(n), ..chunk })]);
        n += 1;
        expect_packet!(s, [Sack(_)]);
    };
    deliver(&mut s, fragment(0, 9, 0, &[1; LEN]));
    for fsn in 1..8 {
        deliver(&mut s, fragment(0, 9, fsn, &[1; LEN]));
    }
    for stream in 0..7 {
        deliver(&mut s, fragment(0, stream, 0, &[1; LEN]));
    }
    // There is no room for another packet.
    assert_eq!(s.statistics().receive_buffered_bytes, 15 * LEN);
    deliver(&mut s, fragment(0, 0, 1, &[1; LEN]));
    expect_event!(s, Event::MessageDropped { stream: 9, .. });
    assert_eq!(s.statistics().receive_buffered_bytes, 8 * LEN);
    deliver(&mut s, last(0, 9, 8, &[1; LEN])); // The rest of it is discarded.
    assert_eq!(s.statistics().receive_buffered_bytes, 8 * LEN);
    deliver(&mut s, last(0, 1, 1, b"end"));
    assert_eq!(s.receive().expect("another message").len(), LEN + 3);
    assert_eq!(s.receive(), None);
}

/// If a window beyond the buffer were advertised while a TSN is missing, there could be no room for the chunk that
/// closes the gap (random plan 677).
#[test]
fn while_a_tsn_is_missing_the_second_half_of_the_buffer_is_reserved_for_it() {
    const LEN: usize = 1000;
    let mut s = server_with(|association| {
        association.buffers.receive_bytes = 8 * LEN;
        association.messages.max_bytes = 8 * LEN;
    });
    for stream in 1..9 {
        s.peer_sends([IData(fragment(u32::from(stream), stream, 0, &[1; LEN]))]);
        let is_full = stream == 8;
        expect_packet!(s, [Sack(sack)] if (sack.a_rwnd == 0) == is_full);
    }
    s.peer_sends([IData(fragment(9, 9, 0, &[1; LEN]))]);
    expect_packet!(s, [Sack(sack)] if sack.gap_ack_blocks().last() == Some((2, 9)));
    assert_eq!(s.statistics().traffic.chunks_dropped, 1);
    s.peer_sends([IData(whole(0, 0, &[1; LEN]))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(8));
    assert_eq!(s.receive().expect("what closed the gap").len(), LEN);
}
