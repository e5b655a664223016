//! Negotiation of I-DATA, and its chunks (RFC 8260 §2.2.1, §2.2.2).

use rexmit_sctp::wire::{ReConfigParam, ReConfigResult, kind};
use rexmit_sctp::{OutboundMessage, SendError};

use crate::kit::*;
use crate::{FULL, client, client_of, client_with, listed, server_with};

/// RFC 8260 §2.2.1, §2.3.1: I-FORWARD-TSN is listed only if partial reliability is enabled.
#[test]
fn the_chunk_types_are_listed_if_they_are_offered() {
    for (interleaving, partial_reliability) in [(true, true), (true, false), (false, true)] {
        let mut s = Script::client_with(|_, association| {
            association.extensions.interleaving = interleaving;
            association.extensions.partial_reliability = partial_reliability;
        });
        let listed = expect_packet!(s, tag 0, [Init(init)] => listed(init.params));
        assert_eq!(listed.contains(&kind::I_DATA), interleaving);
        assert_eq!(listed.contains(&kind::I_FORWARD_TSN), interleaving && partial_reliability);
    }
}

/// RFC 8260 Figure 2: chunks of both messages in turn, each numbered in its message.
#[test]
fn large_messages_of_two_streams_are_interleaved() {
    let mut s = client();
    s.send_on(1, 3 * FULL);
    s.send_on(2, 2 * FULL + 1);
    let first = s.next_packet();
    let &[IData(data)] = &first.chunks()[..] else { panic!("{first:?}") };
    let flags = DataFlags { beginning: true, ..DataFlags::default() };
    assert_eq!((data.tsn, data.stream, data.mid, data.flags), (tsn(0), 1, 0, flags));
    assert_eq!((data.payload.len(), first.bytes.len()), (FULL, 1232));
    assert_eq!(s.take_packets(), [[(2, 0, 0)], [(1, 0, 1)], [(2, 0, 1)]]);
    s.peer_writes(|p| p.sack(tsn(3), 1 << 20, [], []));
    let rest = s.take_packets();
    assert_eq!(rest, [[(1, 0, 2)], [(2, 0, 2)]]);
    s.peer_acknowledges(tsn(5));
}

/// A large message delays a small one by one chunk.
#[test]
fn a_small_message_is_sent_between_the_chunks_of_a_large_one() {
    let mut s = client();
    s.send_on(1, 100 * FULL);
    assert_eq!(s.take_packets().concat(), [(1, 0, 0), (1, 0, 1), (1, 0, 2), (1, 0, 3)]);
    s.send_on(2, 60);
    s.peer_writes(|p| p.sack(tsn(1), 1 << 20, [], []));
    assert_eq!(s.take_packets().concat()[..2], [(1, 0, 4), (2, 0, 0)]);
    s.abort(b"");
    while s.poll_packet().is_some() {}
}

/// The counters of ordered and unordered messages are independent (RFC 8260 §2.1).
#[test]
fn ordered_and_unordered_messages_are_numbered_apart() {
    let mut s = client();
    for unordered in [false, true, true, false] {
        s.try_send(OutboundMessage::new(3, "m").ppid(51).unordered(unordered)).expect("room");
    }
    let sent = s.next_packet();
    let mids: Vec<_> = sent
        .chunks()
        .iter()
        .map(|chunk| match chunk {
            IData(data) => (data.flags.unordered, data.mid, data.ppid),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(mids, [(false, 0, 51), (true, 0, 51), (true, 1, 51), (false, 1, 51)]);
    s.peer_acknowledges(tsn(3));
}

/// RFC 8260 §2.2.1: for a peer without support there is only DATA, and one message is sent after the other.
#[test]
fn a_peer_without_i_data_gets_one_message_after_the_other() {
    let mut s = Script::established_client_with(|_, association| {
        association.extensions.interleaving = true;
    });
    s.send_on(1, 3 * 1204);
    s.send_on(2, 60);
    let mut streams = Vec::new();
    while let Some(sent) = s.poll_packet() {
        for chunk in sent.chunks() {
            let Data(data) = chunk else { panic!("{chunk:?} is no DATA") };
            streams.push((data.stream, data.ssn));
        }
    }
    assert_eq!(streams, [(1, 0), (1, 0), (1, 0), (2, 0)]);
    s.peer_acknowledges(tsn(3));
}

/// RFC 8260 §2.3.2: both counters begin again, after a message that has begun is complete.
#[test]
fn a_stream_reset_begins_both_counters_again() {
    let mut s = client();
    s.send_on(1, 5 * FULL);
    s.try_send(OutboundMessage::new(1, "u").unordered(true)).expect("room");
    s.send_on(2, 10);
    s.next_packet();
    s.reset(&[1]);
    // Of stream 1 only the message that has begun is sent before the request.
    assert_eq!(s.take_packets().concat(), [(2, 0, 0), (1, 0, 1), (1, 0, 2), (1, 0, 3)]);
    s.peer_writes(|p| p.sack(tsn(4), 1 << 20, [], []));
    let request = loop {
        let sent = s.next_packet();
        let found = sent.chunks().into_iter().find_map(|chunk| match chunk {
            ReConfig(re_config) => re_config.params().next().and_then(Result::ok),
            _ => None,
        });
        let asked = found.map(|param| match param {
            ReConfigParam::OutgoingSsnResetRequest {
                request_sequence, last_assigned_tsn, ..
            } => (request_sequence, last_assigned_tsn),
            other => panic!("{other:?}"),
        });
        if let Some(asked) = asked {
            break asked;
        }
    };
    assert_eq!(request.1, tsn(5));
    let answer = ReConfigParam::Response {
        response_sequence: request.0,
        result: ReConfigResult::Performed,
        next_tsns: None,
    };
    s.peer_writes(|p| {
        p.sack(tsn(5), 1 << 20, [], []);
        p.re_config([answer])
    });
    s.send_on(1, 1);
    let after = s.next_packet();
    let numbers: Vec<_> = after
        .chunks()
        .iter()
        .map(|chunk| match chunk {
            IData(data) => (data.flags.unordered, data.mid),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, [(true, 0), (false, 0)]);
    s.peer_acknowledges(tsn(7));
}

/// If all messages could begin, the peer's buffer could be full before any of them is complete, and nothing could ever
/// be read.
#[test]
fn messages_that_have_begun_leave_room_in_the_peers_buffer() {
    let peer = 20 * FULL;
    let mut s = client_of(peer as u32, |_| ());
    for stream in 0..5 {
        s.send_on(stream, 6 * FULL);
    }
    s.send_on(9, 60);
    // Held by the peer until they are complete.
    let mut held = [0; 10];
    let mut most = 0;
    let mut next = 0;
    loop {
        let mut has_sent = false;
        while let Some(sent) = s.poll_packet() {
            for chunk in sent.chunks() {
                let IData(data) = chunk else { panic!("{chunk:?}") };
                held[usize::from(data.stream)] += data.payload.len();
                if data.flags.ending {
                    held[usize::from(data.stream)] = 0;
                }
                next += 1;
                has_sent = true;
            }
        }
        let used: usize = held.iter().sum();
        most = most.max(used);
        assert!(used < peer, "{held:?}");
        if !has_sent {
            break;
        }
        s.peer_writes(|p| p.sack(tsn(next - 1), (peer - used) as u32, [], []));
    }
    assert_eq!((next, held), (31, [0; 10]), "everything was sent");
    assert!(most > 6 * FULL, "interleaved");
}

/// The message is refused with an error before anything is sent.
#[test]
fn a_message_that_is_too_large_is_refused() {
    let mut s = client_with(|association| association.messages.max_bytes = 1000);
    let refused = s.try_send(OutboundMessage::new(0, vec![0; 1001]));
    assert_eq!(refused, Err(SendError::TooLarge { limit: 1000 }));
    s.expect_silence();
}

/// The cookie contains the offer of the INIT.
#[test]
fn a_server_uses_i_data_if_its_client_does() {
    let mut s = server_with(|_| ());
    s.send(b"hello");
    expect_packet!(s, [IData(data)] if data.payload == b"hello");
    s.peer_acknowledges(tsn(0));
    let mut s = server_with(|association| association.extensions.interleaving = false);
    s.send(b"hello");
    expect_packet!(s, [Data(data)] if data.payload == b"hello");
    s.peer_acknowledges(tsn(0));
}
