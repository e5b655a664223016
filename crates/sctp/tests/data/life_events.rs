//! Events of messages: every accepted message ends with an event.

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::{Rng, Seed};
use rexmit_sctp::{
    AssociationConfig, CloseReason, Event, FailReason, MessageId, Reliability, SendError,
};

use crate::kit::*;
use crate::{FULL, NONE};

fn reporting(association: &mut AssociationConfig) {
    association.failure.heartbeat_interval = None;
    association.messages.report_sent = true;
    association.messages.report_acknowledged = true;
}

fn client() -> Script {
    Script::established_client_with(|_, association| reporting(association))
}

/// The failed messages in the events; all must have failed because the association ended.
fn failures(events: &[Event]) -> Vec<(MessageId, usize, bool)> {
    let failure = |event: &Event| match event {
        Event::MessageFailed { id, reason: FailReason::AssociationEnded, was_begun, message } => {
            Some((*id, message.payload.len(), *was_begun))
        }
        _ => None,
    };
    events.iter().filter_map(failure).collect()
}

/// A message is reported sent with its last chunk, and acknowledged when all its chunks are.
#[test]
fn a_message_is_reported_sent_and_then_acknowledged() {
    let mut s = client();
    let large = s.send_len(5 * FULL);
    let small = s.send(b"small");
    for n in 0..4 {
        assert_eq!(s.take_data(), [n]);
    }
    assert_eq!(s.events(), [], "its last chunk waits for the window");
    s.at(50).peer_acknowledges(tsn(1));
    assert_eq!(s.take_data(), [4]);
    expect_event!(s, Event::MessageSent(id) if id == large);
    assert_eq!(s.take_data(), [5]);
    expect_event!(s, Event::MessageSent(id) if id == small);
    s.at(100).peer_sacks(tsn(3), PEER_RWND, &[(2, 2)]);
    assert_eq!(s.events(), [], "a gap block may be taken back");
    s.at(150).peer_acknowledges(tsn(5));
    assert_eq!(s.events(), [Event::MessageAcknowledged(large), Event::MessageAcknowledged(small)]);
}

/// A repeated chunk is not reported retransmitted.
#[test]
fn a_message_is_reported_sent_once() {
    let mut s = client();
    let id = s.send(b"m");
    assert_eq!(s.take_data(), [0]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.peer_acknowledges(tsn(0));
    assert_eq!(s.events(), [Event::MessageSent(id), Event::MessageAcknowledged(id)]);
}

/// By default neither sent nor acknowledged messages are reported.
#[test]
fn success_is_reported_only_if_configured() {
    let mut s = Script::established_client();
    s.send(b"m");
    assert_eq!(s.take_data(), [0]);
    s.peer_acknowledges(tsn(0));
    assert_eq!(s.events(), []);
}

/// Sends one message of each kind: partly acknowledged, partly sent, and unsent.
fn outstanding() -> (Script, Vec<(MessageId, usize, bool)>) {
    let mut s = client();
    let whole = s.send(b"whole");
    assert_eq!(s.take_data(), [0]);
    let done = s.send(b"done");
    assert_eq!(s.take_data(), [1]);
    s.peer_sacks(NONE, PEER_RWND, &[(2, 2)]);
    let begun = s.send_len(6 * FULL);
    for n in 2..6 {
        assert_eq!(s.take_data(), [n]);
    }
    let waiting = s.send_len(77);
    s.events();
    let lens = [(whole, 5, true), (done, 4, true), (begun, 6 * FULL, true), (waiting, 77, false)];
    (s, lens.to_vec())
}

/// RFC 9260 §9.1: an abort returns the unacknowledged messages, in order and unchanged.
#[test]
fn an_abort_fails_all_messages() {
    let (mut s, messages) = outstanding();
    s.abort(b"enough");
    expect_packet!(s, [Abort { .. }]);
    let events = s.events();
    assert_eq!(failures(&events), messages);
    assert!(matches!(events.last(), Some(Event::Closed(CloseReason::Aborted { .. }))));
    assert_eq!(events.len(), messages.len() + 1);
}

/// Failed messages are returned in the order in which they were accepted, fragmented or not.
#[test]
fn failed_messages_are_returned_in_their_order() {
    let mut s = client();
    let ids = [s.send_len(2 * FULL), s.send(b"small")];
    for n in 0..2 {
        assert_eq!(s.take_data(), [n]);
    }
    assert_eq!(s.take_data(), [2]);
    s.abort(b"enough");
    expect_packet!(s, [Abort { .. }]);
    let failed: Vec<_> = failures(&s.events()).iter().map(|&(id, ..)| id).collect();
    assert_eq!(failed, ids);
}

#[test]
fn an_abort_of_the_peer_fails_all_messages() {
    let (mut s, messages) = outstanding();
    s.peer_writes(|p| p.abort(false, |_| ()));
    let events = s.events();
    assert_eq!(failures(&events), messages);
    assert!(matches!(events.last(), Some(Event::Closed(CloseReason::AbortedByPeer { .. }))));
}

/// RFC 9260 §8.1.
#[test]
fn an_unreachable_peer_fails_all_messages() {
    let (mut s, messages) = outstanding();
    let mut events = Vec::new();
    while !matches!(events.last(), Some(Event::Closed(_))) {
        s.lose_until(s.now_ms() + 1_000);
        events.extend(s.events());
    }
    assert!(matches!(events.last(), Some(Event::Closed(CloseReason::Unreachable))));
    assert_eq!(failures(&events), messages);
}

/// RFC 9260 §5.2.4 A: the restarted peer has lost the data that it received.
#[test]
fn a_restart_of_the_peer_fails_all_messages() {
    let (mut s, messages) = outstanding();
    s.peer.tag = 0x0BAD_CAFE;
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    let events = s.events();
    assert_eq!(failures(&events), messages);
    assert!(events.contains(&Event::PeerRestarted));
    s.send(b"anew");
    expect_packet!(s, [Data(data)] if data.ssn == 0);
    s.peer_acknowledges(tsn(0));
}

/// Back-pressure: the buffer is full; room is reported when half of it was acknowledged.
#[test]
fn a_full_buffer_is_reported_and_so_is_room_again() {
    let mut s = Script::established_client_with(|_, association| {
        association.buffers.send_bytes = 4_000;
    });
    for _ in 0..4 {
        s.send_len(1_000);
        s.next_packet();
    }
    assert_eq!(s.try_send(crate::message(1)), Err(SendError::BufferFull));
    s.at(10).peer_acknowledges(tsn(0));
    assert_eq!(s.events(), []);
    s.at(20).peer_acknowledges(tsn(1));
    assert_eq!(s.events(), [Event::Writable]);
    s.at(30).peer_acknowledges(tsn(3));
    assert_eq!(s.events(), [], "told once");
}

/// Room made by an expiry is reported, too, because an acknowledgement may never arrive.
#[test]
fn room_made_by_expiry_is_reported() {
    let mut s = Script::established_client_with(|_, association| {
        association.buffers.send_bytes = 4_000;
    });
    s.send(b"taken");
    assert_eq!(s.take_data(), [0]);
    s.peer_sacks(tsn(0), 0, &[]);
    let reliability = Reliability::Timed(Duration::from_millis(500));
    s.try_send(crate::message(4_000).reliability(reliability)).expect("room");
    assert_eq!(s.try_send(crate::message(1)), Err(SendError::BufferFull));
    s.at(500);
    let events = s.events();
    assert!(matches!(events[..], [Event::MessageFailed { .. }, Event::Writable]), "{events:?}");
}

/// Room made by a restart is reported, too.
#[test]
fn room_made_by_a_restart_is_reported() {
    let mut s = Script::established_client_with(|_, association| {
        association.buffers.send_bytes = 4_000;
    });
    s.send_len(1_000);
    s.send_len(3_000);
    for _ in 0..4 {
        s.next_packet();
    }
    assert_eq!(s.try_send(crate::message(1)), Err(SendError::BufferFull));
    s.peer.tag = 0x0BAD_CAFE;
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    assert!(s.events().contains(&Event::Writable));
}

/// Each accepted message ends exactly once, whatever the network and the peer do.
#[test]
fn every_message_ends_exactly_once_whatever_happens() {
    for seed in 0..60 {
        run(seed);
    }
}

fn any_message(rng: &mut Rng) -> rexmit_sctp::OutboundMessage {
    let reliability = match rng.below(3) {
        0 => Reliability::Full,
        1 => Reliability::Timed(Duration::from_millis(rng.below(3_000))),
        _ => Reliability::MaxRetransmissions(rng.below(3) as u16),
    };
    let len = 1 + rng.below(4 * FULL as u64) as usize;
    let unordered = rng.chance(0.3);
    let stream = rng.below(4) as u16;
    crate::message(len).reliability(reliability).unordered(unordered).stream(stream)
}

fn run(seed: u64) {
    let mut rng = Seed::from_u64(seed).rng();
    let mut s = Script::established_client_with(|_, association| {
        reporting(association);
        association.buffers.send_bytes = 30_000;
    });
    let mut ends: BTreeMap<MessageId, u32> = BTreeMap::new();
    let note = |events: Vec<Event>, ends: &mut BTreeMap<MessageId, u32>| {
        for event in events {
            if let Event::MessageAcknowledged(id) | Event::MessageFailed { id, .. } = event {
                *ends.get_mut(&id).expect("it was accepted") += 1;
            }
        }
    };
    let (mut highest, mut cumulative, mut held) = (0, 0, std::collections::BTreeSet::new());
    for _ in 0..300 {
        for _ in 0..rng.below(3) {
            if let Ok(id) = s.try_send(any_message(&mut rng)) {
                ends.insert(id, 0);
            }
        }
        let mut has_sent = false;
        while let Some(sent) = s.poll_packet() {
            has_sent = true;
            if rng.chance(0.3) {
                continue; // lost
            }
            for chunk in sent.chunks() {
                match chunk {
                    Data(data) => {
                        let n = data.tsn.wrapping_sub(FIRST_TSN) + 1;
                        highest = highest.max(n);
                        if n > cumulative {
                            held.insert(n);
                        }
                    }
                    ForwardTsn(forward) => {
                        let n = forward.new_cumulative_tsn.wrapping_sub(FIRST_TSN) + 1;
                        cumulative = cumulative.max(n);
                        held.retain(|&held| held > cumulative);
                    }
                    other => panic!("{other:?}"),
                }
            }
            while held.remove(&(cumulative + 1)) {
                cumulative += 1;
            }
        }
        if has_sent && rng.chance(0.7) {
            let blocks: Vec<_> =
                held.iter().map(|n| ((n - cumulative) as u16, (n - cumulative) as u16)).collect();
            let a_rwnd = [0, 3_000, PEER_RWND][rng.below(3) as usize];
            s.peer_sacks(FIRST_TSN.wrapping_add(cumulative).wrapping_sub(1), a_rwnd, &blocks);
        }
        let step = rng.below(500);
        s.lose_until(s.now_ms() + step);
        note(s.events(), &mut ends);
        assert!(ends.values().all(|&count| count <= 1), "seed {seed}: {ends:?}");
    }
    s.abort(b"end");
    s.poll_packet();
    note(s.events(), &mut ends);
    assert!(ends.values().all(|&count| count == 1), "seed {seed}: {ends:?}");
    assert!(ends.len() > 10, "seed {seed}: {} messages", ends.len());
}
