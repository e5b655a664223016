//! The limits of the memory that a peer can make an endpoint use, each with its name.

use rexmit_sctp::{Event, OversizedMessages};

use crate::NONE;
use crate::kit::*;

fn blocks(sack: &wire::Sack<'_>) -> Vec<(u16, u16)> {
    sack.gap_ack_blocks().collect()
}

/// A chunk of an unordered message that is never completed: it begins a message and does not end one.
fn beginning(n: u32, payload: &[u8]) -> wire::Data<'_> {
    wire::Data { flags: DataFlags::from_bits(6), tsn: tsn(n), ..data(0, payload) }
}

/// A complete message that can be delivered at once.
fn lone(n: u32) -> wire::Data<'static> {
    wire::Data { flags: DataFlags::from_bits(7), tsn: tsn(n), ..data(0, b"m") }
}

/// `receive_buffer_bytes`: at most twice as many bytes are held, and beyond the limit only data that closes a gap.
#[test]
fn the_receive_buffer_bounds_what_is_held() {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.receive_bytes = 8_192;
        association.messages.max_bytes = 8_192;
    });
    let payload = [0; 1_200];
    // From the back: each closes a part of the gap, so the first rule does not stop it.
    for n in (1..100).rev() {
        s.peer_sends([Data(data(n, &payload))]);
        s.next_packet();
        assert!(s.statistics().receive_buffered_bytes <= 2 * 8_192, "after {n}");
    }
    assert!(s.statistics().traffic.chunks_dropped > 80);
    s.peer_sends([Data(data(0, &payload))]);
    s.next_packet();
    assert!(s.statistics().receive_buffered_bytes <= 2 * 8_192);
}

/// `max_gap_ranges`: a chunk that would open one more gap is dropped and not acknowledged; existing gaps can be closed.
#[test]
fn the_number_of_gaps_is_bounded() {
    let mut s =
        Script::established_server_with(|_, association| association.buffers.max_gap_ranges = 3);
    for (n, count) in [(1, 1), (3, 2), (5, 3), (7, 3), (9, 3)] {
        s.peer_sends([Data(lone(n))]);
        expect_packet!(s, [Sack(sack)] if blocks(&sack).len() == count);
    }
    assert_eq!(s.statistics().traffic.chunks_dropped, 2);
    s.peer_sends([Data(lone(6))]);
    expect_packet!(s, [Sack(sack)] if blocks(&sack) == [(2, 2), (4, 4), (6, 7)]);
}

/// The largest distance of a TSN: half the range of a gap ack block.
#[test]
fn a_tsn_too_far_ahead_is_dropped() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"m"))]);
    expect_packet!(s, [Sack(_)]);
    s.peer_sends([Data(lone(32_767))]);
    expect_packet!(s, [Sack(sack)] if blocks(&sack) == [(32_767, 32_767)]);
    for ahead in [32_768, 65_535, 65_536, 0x7FFF_FFFF] {
        s.peer_sends([Data(lone(ahead))]);
        expect_packet!(s, [Sack(sack)] if blocks(&sack) == [(32_767, 32_767)]);
    }
    assert_eq!(s.statistics().traffic.chunks_dropped, 4);
}

/// The limit prevents an SSN far ahead from being mistaken for a delivered one.
#[test]
fn messages_as_far_ahead_as_may_be_wait_for_their_order() {
    let mut s = Script::established_server_with(|_, association| {
        association.buffers.max_held_chunks = 1 << 20;
    });
    for n in (1..32_767u32).step_by(64) {
        s.peer_writes(|p| {
            for n in n..(n + 64).min(32_767) {
                p.data(&wire::Data { tsn: tsn(n), ..data(n as u16, b"m") });
            }
        });
        expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == NONE);
    }
    s.peer_sends([Data(data(0, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(32_766));
    assert_eq!(std::iter::from_fn(|| s.receive()).count(), 32_767);
}

/// `max_held_chunks`: a chunk that would have to wait beyond the limit is dropped; the next one in order is accepted.
#[test]
fn the_number_of_waiting_chunks_is_bounded() {
    let mut s =
        Script::established_server_with(|_, association| association.buffers.max_held_chunks = 16);
    for n in 1..=20 {
        s.peer_sends([Data(data(n, b"m"))]);
        expect_packet!(s, [Sack(sack)] if blocks(&sack) == [(2, n.min(16) + 1)]);
    }
    assert_eq!(s.statistics().traffic.chunks_dropped, 4);
    s.peer_sends([Data(data(0, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(16));
    assert_eq!(std::iter::from_fn(|| s.receive()).count(), 17);
    expect_packet!(s, [Sack(sack)] if sack.a_rwnd == 1 << 20); // It was closed meanwhile.
}

/// `max_message_bytes`, incoming: the message is dropped, and those after it are delivered.
#[test]
fn a_message_beyond_the_limit_is_dropped_and_reported() {
    let mut s = Script::established_server_with(|_, association| {
        association.messages.max_bytes = 1_500;
    });
    let payload = [0; 1_000];
    let end = wire::Data { flags: DataFlags::from_bits(5), ..beginning(1, &payload) };
    s.peer_sends([Data(beginning(0, &payload)), Data(end)]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
    expect_event!(s, Event::MessageDropped { stream: 0, unordered: true, .. });
    assert_eq!(s.statistics().receive_buffered_bytes, 0);
    assert_eq!(s.statistics().traffic.messages_dropped, 1);
    s.peer_sends([Data(wire::Data { ssn: 0, ..data(2, b"next") })]);
    s.at(200);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.receive().as_deref(), Some(&b"next"[..]));
}

/// With the other setting, the association ends.
#[test]
fn a_message_beyond_the_limit_ends_the_association_if_it_is_not_to_be_dropped() {
    let mut s = Script::established_server_with(|_, association| {
        association.messages.max_bytes = 1_500;
        association.messages.oversized = OversizedMessages::Abort;
    });
    let payload = [0; 1_000];
    let end = wire::Data { flags: DataFlags::from_bits(5), ..beginning(1, &payload) };
    s.peer_sends([Data(beginning(0, &payload)), Data(end)]);
    expect_packet!(s, [Abort { .. }]);
}

/// Outstanding chunks are limited to the number that the peer can distinguish, even if the windows allow more.
#[test]
fn the_number_of_outstanding_chunks_is_bounded() {
    let mut s = Script::client_with(|_, association| {
        association.recovery.max_burst = None;
        association.failure.heartbeat_interval = None;
        association.buffers.send_bytes = 8 << 20;
    });
    s.take_init();
    let init_ack = wire::Init { a_rwnd: u32::MAX, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init_ack, answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    let mut highest = 0;
    for _ in 0..800 {
        for _ in 0..100 {
            s.send(b"m");
        }
        while let Some(sent) = s.poll_packet() {
            for chunk in sent.chunks() {
                let Data(data) = chunk else { continue };
                highest = highest.max(data.tsn.wrapping_sub(FIRST_TSN));
            }
        }
        // All but the first arrive.
        let end = u16::try_from(highest + 1).expect("a gap block can say it");
        s.peer_sacks(NONE, u32::MAX, &[(2, end)]);
    }
    assert_eq!(highest + 1, 32_767);
    s.peer_acknowledges(tsn(highest));
    assert!(!s.take_data().is_empty(), "then it goes on");
    while s.poll_packet().is_some() {}
}
