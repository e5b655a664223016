//! Partial reliability of interleaved messages (RFC 8260 §2.3.1).

use std::time::Duration;

use rexmit_sctp::wire::SkippedMid;
use rexmit_sctp::{Event, FailReason, OutboundMessage, Reliability};

use crate::kit::*;
use crate::{FULL, client_with, fragment, last, server, whole};

/// All chunks of the message are skipped, wherever they are among those of another message, ordered or not.
#[test]
fn an_abandoned_message_is_skipped_by_its_mid() {
    for unordered in [false, true] {
        let mut s = client_with(|_| ());
        let timed = Reliability::Timed(Duration::from_millis(500));
        let message = OutboundMessage::new(1, vec![1; 2 * FULL]).unordered(unordered);
        s.try_send(message.reliability(timed)).expect("room");
        s.send_on(2, 2 * FULL);
        let sent = s.take_packets();
        assert_eq!(sent, [[(1, 0, 0)], [(2, 0, 0)], [(1, 0, 1)], [(2, 0, 1)]]);
        // The message that must not be abandoned has arrived, and so has TSN 2.
        s.peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), 1 << 20, [(2, 4)], []));
        s.at(1000);
        let skipped = expect_packet!(s, [IForwardTsn(forward)] => {
            assert_eq!(forward.new_cumulative_tsn, tsn(0));
            forward.skipped().collect::<Vec<_>>()
        });
        expect_event!(s, Event::MessageFailed { reason: FailReason::Expired, .. });
        assert_eq!(skipped, [SkippedMid { stream: 1, unordered, mid: 0 }]);
        s.peer_writes(|p| p.sack(tsn(3), 1 << 20, [], []));
        s.send_on(1, 10);
        assert_eq!(s.take_packets(), [[(1, u32::from(!unordered), 0)]]);
        s.peer_acknowledges(tsn(4));
    }
}

/// The rest of a message that has begun expires, although other messages are queued behind it.
#[test]
fn messages_that_have_begun_expire_each_at_its_time() {
    let mut s = client_with(|_| ());
    for stream in 1..=3u16 {
        let lifetime = Duration::from_millis(100 * u64::from(4 - stream));
        let message = OutboundMessage::new(stream, vec![1; 40 * FULL]);
        s.try_send(message.reliability(Reliability::Timed(lifetime))).expect("room");
    }
    let begun = s.take_packets().concat();
    assert_eq!(begun, [(1, 0, 0), (2, 0, 0), (3, 0, 0), (1, 0, 1)]);
    for at in [100, 200, 300] {
        s.lose_until(at);
        s.endpoint_expires();
        expect_event!(s, Event::MessageFailed { reason: FailReason::Expired, was_begun: true, .. });
    }
    s.lose_until(301);
    assert!(s.statistics().send_buffered_bytes > 0, "until it is acknowledged");
    s.abort(b"");
    while s.poll_packet().is_some() {}
}

impl Script {
    /// Drops all packets that are sent now.
    fn endpoint_expires(&mut self) {
        while self.poll_packet().is_some() {}
    }
}

/// The stream continues after the skipped messages; fragments of these that arrive later are discarded.
#[test]
fn a_stream_continues_after_skipped_messages() {
    let mut s = server();
    let second = wire::IData { mid: 1, ..whole(4, 1, b"second") };
    s.peer_sends([IData(fragment(0, 1, 0, b"begun")), IData(second)]);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.receive(), None);
    let skipped = [SkippedMid { stream: 1, unordered: false, mid: 0 }];
    s.peer_writes(|p| p.i_forward_tsn(tsn(1), skipped));
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
    assert_eq!(s.receive().as_deref(), Some(&b"second"[..]));
    s.peer_sends([IData(fragment(2, 1, 1, b"late")), IData(last(3, 1, 2, b"late"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(4));
    assert_eq!(s.statistics().receive_buffered_bytes, 0);
}

#[test]
fn unordered_messages_are_skipped_by_their_mids_too() {
    let mut s = server();
    let unordered = |chunk: wire::IData<'static>| {
        let flags = DataFlags { unordered: true, ..chunk.flags };
        wire::IData { flags, ..chunk }
    };
    s.peer_sends([IData(unordered(fragment(0, 1, 0, b"begun")))]);
    s.peer_sends([IData(unordered(fragment(2, 1, 2, b"aside")))]);
    while s.poll_packet().is_some() {}
    assert_eq!(s.statistics().receive_buffered_bytes, 10);
    let skipped = [SkippedMid { stream: 1, unordered: true, mid: 0 }];
    s.peer_writes(|p| p.i_forward_tsn(tsn(1), skipped));
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(2));
    assert_eq!(s.statistics().receive_buffered_bytes, 0);
    s.peer_sends([IData(whole(3, 1, b"ordered"))]);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(s.receive().as_deref(), Some(&b"ordered"[..]));
}
