//! ABORT, ours and the peer's (RFC 9260 §9.1, §3.3.7).

mod kit;

use kit::*;
use rexmit_sctp::{CloseReason, Event, FailReason, SendError};

/// RFC 9260 §9.1, §3.3.10.12: the application's ABORT is sent at once, alone, with the peer's tag and the application's
/// reason. Queued messages are not sent, and fail.
#[test]
fn abort_of_the_application_drops_everything() {
    let mut s = Script::established_server();
    let outstanding = s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    let queued = s.send(b"queued");
    s.abort(b"enough");
    expect_packet!(s, [Abort { t_bit: false, causes }] if {
        causes.flatten().eq([Cause::UserInitiatedAbort(b"enough")])
    });
    for message in [outstanding, queued] {
        expect_event!(s, Event::MessageFailed { id, reason: FailReason::AssociationEnded, .. }
            if id == message);
    }
    expect_event!(s, Event::Closed(CloseReason::Aborted { reason }) if reason == "enough");
    s.expect_silence_until(1_000_000);
    assert_eq!(s.endpoint.association_count(), 0);
    let message = rexmit_sctp::OutboundMessage::new(0, "late");
    assert_eq!(s.try_send(message), Err(SendError::UnknownAssociation));
}

/// The limit of an abort reason (400 bytes).
#[test]
fn the_reason_of_an_abort_is_limited() {
    let mut s = Script::established_server();
    s.abort(&[b'x'; 5_000]);
    expect_packet!(s, [Abort { causes, .. }] if {
        causes.flatten().eq([Cause::UserInitiatedAbort(&[b'x'; 400])])
    });
}

/// RFC 9260 §9.1: the peer's ABORT removes the association; its reason is reported to the application, and nothing is
/// answered.
#[test]
fn abort_of_the_peer_ends_the_association_without_an_answer() {
    let mut s = Script::established_server();
    let outstanding = s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.peer_writes(|p| {
        p.abort(false, |causes| {
            causes.push(&Cause::UserInitiatedAbort(b"enough"));
        })
    });
    expect_event!(s, Event::MessageFailed { id, .. } if id == outstanding);
    expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { cause: 12, reason })
        if reason == "enough");
    s.expect_silence_until(1_000_000);
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §3.3.7: an ABORT may have no cause, or a malformed one.
#[test]
fn abort_of_the_peer_needs_no_cause() {
    for value in [&[][..], &[0, 12, 0, 99, 1], &[0, 12], &[0xFF, 0xFF, 0, 4]] {
        let mut s = Script::established_server();
        s.peer_writes(|p| p.plain(wire::kind::ABORT, 0, value));
        expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { .. }));
        s.expect_silence();
    }
}

/// RFC 9260 §9.1: messages received before an ABORT can still be read; then the association is removed.
#[test]
fn messages_received_before_an_abort_can_be_read() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"before"))]);
    expect_packet!(s, [Sack(_)]);
    s.peer_writes(|p| p.abort(false, |_| ()));
    expect_event!(s, Event::Readable);
    expect_event!(s, Event::Closed(_));
    assert_eq!(s.endpoint.association_count(), 1);
    assert_eq!(s.receive().unwrap(), "before");
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §3.3.7, §6.10: chunks after an ABORT are not processed.
#[test]
fn chunks_after_an_abort_are_not_processed() {
    let mut s = Script::established_server();
    s.peer_writes(|p| {
        p.abort(false, |_| ());
        p.heartbeat(b"?");
        p.data(&data(0, b"late"))
    });
    s.expect_silence();
    expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { cause: 0, .. }));
    assert_eq!(s.receive(), None);
}

/// RFC 9260 §6.2, §3.3.10.9: DATA without user data ends the association.
#[test]
fn data_without_user_data_are_answered_with_abort() {
    let mut s = Script::established_server();
    s.peer_writes(|p| p.data(&data(0, b"")));
    expect_packet!(s, [Abort { t_bit: false, causes }] if {
        causes.flatten().eq([Cause::NoUserData { tsn: tsn(0) }])
    });
    expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
}

/// RFC 9260 §9.1: in every state of a shutdown an abort ends it.
#[test]
fn abort_ends_a_shutdown() {
    let mut sent = Script::established_server();
    sent.shutdown();
    expect_packet!(sent, [Shutdown { .. }]);
    let mut ack_sent = Script::established_server();
    ack_sent.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    expect_packet!(ack_sent, [ShutdownAck]);
    for mut s in [sent, ack_sent] {
        s.abort(b"");
        expect_packet!(s, [Abort { .. }]);
        s.expect_silence_until(1_000_000);
    }
}

/// RFC 9260 §5.3.1, §8.4: after an abort the peer is unknown, and may set up a new association.
#[test]
fn association_can_be_set_up_again_after_an_abort() {
    let mut s = Script::established_server();
    let old = s.peer.endpoint_tag;
    s.abort(b"");
    expect_packet!(s, [Abort { .. }]);
    s.peer_sends([Heartbeat(b"late")]);
    expect_packet!(s, tag old, [Abort { t_bit: true, .. }]);
    let cookie = s.peer_begins();
    assert_ne!(s.peer.endpoint_tag, old);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
}
