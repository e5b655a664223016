//! Abandoned messages (RFC 3758, RFC 7496).

use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::wire::{ReConfigParam, ReConfigResult};
use rexmit_sctp::{
    AssociationConfig, Event, FailReason, MessageId, OutboundMessage, PathState, Reliability,
};
use std::time::Duration;

use crate::kit::*;
use crate::{FULL, NONE};

fn timed(ms: u64) -> Reliability {
    Reliability::Timed(Duration::from_millis(ms))
}

fn retransmissions(limit: u16) -> Reliability {
    Reliability::MaxRetransmissions(limit)
}

fn quiet(association: &mut AssociationConfig) {
    association.failure.heartbeat_interval = None;
    association.messages.report_acknowledged = true;
}

fn client() -> Script {
    Script::established_client_with(|_, association| quiet(association))
}

impl Script {
    #[track_caller]
    fn send_with(&mut self, reliability: Reliability, len: usize) -> MessageId {
        self.try_send(crate::message(len).reliability(reliability)).expect("room")
    }

    /// Reads a packet with only a FORWARD-TSN. Returns the new cumulative TSN as a number, and the skipped streams.
    #[track_caller]
    fn take_forward(&mut self) -> (u32, Vec<(u16, u16)>) {
        expect_packet!(self, [ForwardTsn(forward)] =>
            (forward.new_cumulative_tsn.wrapping_sub(FIRST_TSN), forward.skipped().collect()))
    }

    #[track_caller]
    fn take_failure(
        &mut self,
        id: MessageId,
        reason: FailReason,
        was_begun: bool,
    ) -> OutboundMessage {
        match self.next_event() {
            Some(Event::MessageFailed { id: i, reason: r, was_begun: b, message }) => {
                assert_eq!((i, r, b), (id, reason, was_begun));
                message
            }
            other => panic!("expected a failure, got {other:?}"),
        }
    }
}

/// RFC 3758 §4.1 TR3: a message that expires before it was sent gets no TSN.
#[test]
fn a_message_that_expires_before_it_is_sent_gets_no_tsn() {
    let mut s = client();
    s.send_len(FULL);
    assert_eq!(s.take_data(), [0]);
    s.peer_sacks(NONE, 0, &[]); // The window is closed.
    let id = s.send_with(timed(300), 10);
    s.at(299);
    assert_eq!(s.events(), []);
    s.at(300);
    let message = s.take_failure(id, FailReason::Expired, false);
    assert_eq!((message.payload.len(), message.reliability), (10, timed(300)));
    s.peer_acknowledges(tsn(0));
    expect_event!(s, Event::MessageAcknowledged(_));
    s.send(b"next");
    expect_packet!(s, [Data(data)] if data.tsn == tsn(1) && data.ssn == 1);
}

/// RFC 3758 §4.1 TR4, §3.5: FORWARD-TSN is sent at the time of the retransmission, not a
/// timeout later.
#[test]
fn a_message_that_expired_is_skipped_instead_of_repeated() {
    let mut s = client();
    let id = s.send_with(timed(500), 10);
    assert_eq!(s.take_data(), [0]);
    s.at(1_000);
    assert_eq!(s.take_forward(), (0, vec![(0, 0)]));
    assert_eq!(s.take_failure(id, FailReason::Expired, true).payload.len(), 10);
    s.at(1_050).peer_acknowledges(tsn(0));
    s.expect_silence_until(10_000);
    assert_eq!(s.events(), [], "it was not acknowledged");
}

/// RFC 3758 §4.1 TR2: before its lifetime is over, it is retransmitted like any other.
#[test]
fn a_message_that_has_not_expired_is_repeated() {
    let mut s = client();
    let id = s.send_with(timed(1_500), 10);
    assert_eq!(s.take_data(), [0]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.at(3_000);
    assert_eq!(s.take_forward(), (0, vec![(0, 0)]));
    s.take_failure(id, FailReason::Expired, true);
    s.peer_acknowledges(tsn(0));
}

/// RFC 7496 §3.1.
#[test]
fn a_message_is_repeated_as_often_as_it_may_be() {
    for limit in [0u16, 1, 3] {
        let mut s = client();
        let id = s.send_with(retransmissions(limit), 10);
        assert_eq!(s.take_data(), [0]);
        let times = [1_000, 3_000, 7_000, 15_000];
        for &ms in &times[..limit.into()] {
            s.at(ms);
            assert_eq!(s.take_data(), [0]);
        }
        s.at(times[usize::from(limit)]);
        assert_eq!(s.take_forward(), (0, vec![(0, 0)]));
        s.take_failure(id, FailReason::RetransmissionLimit, true);
        s.peer_acknowledges(tsn(0));
    }
}

/// RFC 7496 §3.1 in a fast retransmit; RFC 3758 §3.5 F2: FORWARD-TSN and new DATA share a packet.
#[test]
fn a_message_declared_lost_by_reports_is_skipped_in_a_packet_with_new_data() {
    let mut s = client();
    let id = s.send_with(retransmissions(0), 10);
    assert_eq!(s.take_data(), [0]);
    for n in 1..=3 {
        s.send(b"m");
        assert_eq!(s.take_data(), [n]);
    }
    for end in [2, 3] {
        s.peer_sacks(NONE, PEER_RWND, &[(2, end)]);
    }
    s.send(b"new");
    s.peer_sacks(NONE, PEER_RWND, &[(2, 4)]);
    expect_packet!(s, [ForwardTsn(forward), Data(data)]
        if forward.new_cumulative_tsn == tsn(0) && data.tsn == tsn(4));
    s.take_failure(id, FailReason::RetransmissionLimit, true);
    s.peer_acknowledges(tsn(4));
}

/// RFC 3758 §3.5 C4: each stream is listed once, with its highest SSN; unordered messages are not listed.
#[test]
fn a_forward_tsn_lists_the_highest_ssn_of_each_ordered_stream() {
    let mut s = client();
    for (stream, unordered) in [(0, false), (5, false), (0, false), (7, true), (5, false)] {
        let message =
            OutboundMessage::new(stream, "m").unordered(unordered).reliability(retransmissions(0));
        s.try_send(message).expect("room");
        s.next_packet();
    }
    s.at(1_000);
    let (cumulative, mut skipped) = s.take_forward();
    skipped.sort_unstable();
    assert_eq!((cumulative, skipped), (4, vec![(0, 1), (5, 1)]));
    assert_eq!(s.events().len(), 5);
    s.peer_acknowledges(tsn(4));
}

/// RFC 3758 §3.5 C5, A5: FORWARD-TSN is retransmitted by T3-rtx until it is acknowledged.
#[test]
fn a_lost_forward_tsn_is_repeated() {
    let mut s = client();
    s.send_with(retransmissions(0), 10);
    assert_eq!(s.take_data(), [0]);
    for ms in [1_000, 3_000, 7_000, 15_000] {
        s.expect_silence_until(ms - 1);
        s.at(ms);
        assert_eq!(s.take_forward(), (0, vec![(0, 0)]));
    }
    s.at(15_100).peer_acknowledges(tsn(0));
    s.expect_silence_until(100_000);
    assert!(s.endpoint.is_idle());
}

/// RFC 3758 §3.5 C5: the timer keeps running although a SACK that acknowledges nothing new has arrived and nothing is
/// in flight.
#[test]
fn a_sack_that_acknowledges_nothing_new_does_not_stop_the_timer_of_a_forward_tsn() {
    let mut s = Script::with_round_trip(100);
    s.send_with(retransmissions(0), 10);
    assert_eq!(s.take_data(), [0]);
    s.at(1_200);
    s.take_forward();
    s.at(1_201).peer_sacks(NONE, PEER_RWND, &[]);
    s.expect_silence_until(3_200);
    s.at(3_201); // The RTO was doubled.
    assert_eq!(s.take_forward(), (0, vec![(0, 0)]));
    s.peer_acknowledges(tsn(0));
}

/// pion/sctp#505: SACK and FORWARD-TSN must not answer each other without end. RFC 3758 §3.5 F2.
#[test]
fn sacks_that_do_not_advance_are_not_each_answered_by_a_forward_tsn() {
    let mut s = Script::with_round_trip(100);
    s.send_with(retransmissions(0), 10);
    assert_eq!(s.take_data(), [0]);
    s.at(1_200);
    s.take_forward();
    let mut answers = 0;
    for ms in 1_201..1_400 {
        s.at(ms).peer_sacks(NONE, PEER_RWND, &[]);
        if ms == 1_300 {
            s.take_forward();
            answers += 1;
        }
    }
    assert_eq!(answers, 1, "once per round trip");
    s.peer_acknowledges(tsn(0));
    s.expect_silence_until(5_000);
}

/// The receiver's side: a FORWARD-TSN that skips nothing new is acknowledged once, at once.
#[test]
fn a_forward_tsn_that_is_behind_is_acknowledged_and_changes_nothing() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"m"))]);
    expect_packet!(s, [Sack(_)]);
    for stale in [NONE, tsn(0), NONE.wrapping_sub(1_000)] {
        s.peer_writes(|p| p.forward_tsn(stale, [(0, 500)]));
        expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    }
    s.peer_sends([Data(data(1, b"m"))]);
    s.at(200);
    expect_packet!(s, [Sack(_)]);
    assert_eq!(std::iter::from_fn(|| s.receive()).count(), 2, "SSN 1 was not skipped");
}

/// RFC 3758 §3.6: the receiver advances its cumulative TSN, and delivers the messages that waited.
#[test]
fn a_forward_tsn_advances_the_receiver() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(1, b"one")), Data(data(3, b"three"))]);
    expect_packet!(s, [Sack(_)]);
    s.peer_writes(|p| p.forward_tsn(tsn(0), [(0, 0)]));
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1)
        && sack.gap_ack_blocks().eq([(2, 2)]));
    assert_eq!(s.receive().expect("it waited"), "one");
    assert_eq!(s.receive(), None);
    s.peer_writes(|p| p.forward_tsn(tsn(2), [(0, 2)]));
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(3));
    assert_eq!(s.receive().expect("it waited"), "three");
}

/// RFC 3758 §3.5: Linux numbers no further fragment of a message that it abandons, and its FORWARD-TSN may be lost or
/// late; the next message also shows that the previous one ended.
#[test]
fn a_message_cut_short_is_skipped_though_its_forward_tsn_is_lost() {
    let mut s = Script::established_server();
    let beginning = wire::Data { flags: DataFlags::from_bits(2), ..data(0, b"cut") };
    s.peer_sends([Data(beginning), Data(data(1, b"next"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
    assert_eq!(s.receive().expect("nothing is before it"), "next");
    s.peer_writes(|p| p.forward_tsn(tsn(0), [(0, 0)]));
    s.peer_sends([Data(data(2, b"last"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(2));
    assert_eq!(s.receive().expect("in order"), "last");
}

/// RFC 3758 §3.5 A3: all fragments are abandoned, including the unsent rest, and the FORWARD-TSN covers the TSN used up
/// for that.
#[test]
fn a_message_of_several_chunks_is_abandoned_as_a_whole() {
    let mut s = client();
    let id = s.send_with(retransmissions(0), 8 * FULL);
    for n in 0..4 {
        assert_eq!(s.take_data(), [n]); // The rest waits for the window.
    }
    s.at(1_000);
    assert_eq!(s.take_forward(), (4, vec![(0, 0)]), "one number stands for the rest");
    let message = s.take_failure(id, FailReason::RetransmissionLimit, true);
    assert_eq!(message.payload.len(), 8 * FULL, "as the application gave it");
    s.send(b"next");
    expect_packet!(s, [Data(data)] if data.tsn == tsn(5) && data.ssn == 1 && data.flags.beginning);
    s.at(1_100).peer_acknowledges(tsn(5));
    expect_event!(s, Event::MessageAcknowledged(_));
    assert_eq!((s.events(), s.statistics().send_buffered_bytes), (vec![], 0));
}

/// RFC 3758 §4.1 TR4: the rest of an expired message is not sent.
#[test]
fn the_rest_of_an_expired_message_is_not_sent() {
    let mut s = client();
    let id = s.send_with(timed(500), 8 * FULL);
    for n in 0..4 {
        assert_eq!(s.take_data(), [n]);
    }
    s.expect_silence_until(499);
    s.at(500);
    assert_eq!(s.take_forward(), (4, vec![(0, 0)]));
    s.take_failure(id, FailReason::Expired, true);
    s.at(550).peer_acknowledges(tsn(4));
    s.expect_silence_until(5_000);
}

/// The same if all sent chunks of the message have been acknowledged.
#[test]
fn the_rest_of_an_expired_message_is_skipped_though_nothing_is_outstanding() {
    let mut s = client();
    let id = s.send_with(timed(500), 5 * FULL);
    for n in 0..4 {
        assert_eq!(s.take_data(), [n]);
    }
    s.at(100).peer_sacks(tsn(3), 0, &[]);
    s.at(500);
    assert_eq!(s.take_forward(), (4, vec![(0, 0)]));
    assert_eq!(s.take_failure(id, FailReason::Expired, true).payload.len(), 5 * FULL);
    s.at(550).peer_acknowledges(tsn(4));
    assert_eq!(s.events(), []);
    s.send(b"next");
    expect_packet!(s, [Data(data)] if data.tsn == tsn(5) && data.ssn == 1);
    s.peer_acknowledges(tsn(5));
}

/// A failed message is not reported as acknowledged afterwards, even if parts of it had arrived.
#[test]
fn an_abandoned_message_is_not_reported_as_acknowledged() {
    let mut s = client();
    let id = s.send_with(retransmissions(0), 3 * FULL);
    for n in 0..3 {
        assert_eq!(s.take_data(), [n]);
    }
    s.at(100).peer_sacks(NONE, PEER_RWND, &[(2, 3)]);
    s.at(1_000);
    assert_eq!(s.take_forward(), (2, vec![(0, 0)]), "what arrived of it is skipped, too");
    s.take_failure(id, FailReason::RetransmissionLimit, true);
    s.at(1_100).peer_acknowledges(tsn(2));
    assert_eq!(s.events(), []);
}

/// RFC 3758 §3.3: to a peer that does not support FORWARD-TSN, everything is retransmitted.
#[test]
fn without_the_peers_support_no_sent_message_is_abandoned() {
    let mut s = Script::client_with(|_, association| quiet(association));
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            params.push(&Param::StateCookie(COOKIE));
        })
    });
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s.send_with(retransmissions(0), 10);
    s.send_with(timed(10), 10);
    assert_eq!(s.take_data(), [0, 1]);
    for ms in [1_000, 3_000] {
        s.at(ms);
        assert_eq!(s.take_data(), [0, 1]);
    }
    s.peer_acknowledges(tsn(1));
    assert!(matches!(
        s.events()[..],
        [Event::MessageAcknowledged(_), Event::MessageAcknowledged(_)]
    ));
}

/// If disabled, partial reliability is not offered, and FORWARD-TSN is an unknown chunk (RFC 9260 §3.2).
#[test]
fn switched_off_a_forward_tsn_is_an_unknown_chunk() {
    let mut s = Script::established_server_with(|_, association| {
        association.extensions.partial_reliability = false;
    });
    s.peer_writes(|p| p.forward_tsn(tsn(5), []));
    let code = expect_packet!(s, [Error { causes }] => causes.flatten().next().map(|c| c.code()));
    assert_eq!(code, Some(6), "Unrecognized Chunk Type");
    s.peer_sends([Data(data(0, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
}

/// RFC 9260 §8.1: a peer that acknowledges FORWARD-TSNs is alive, even if it acknowledges no data.
#[test]
fn a_peer_that_acknowledges_forward_tsns_is_alive() {
    let mut s = client();
    for n in 0..30 {
        s.send_with(retransmissions(0), 10);
        assert_eq!(s.take_data(), [n]);
        let ms = s.now_ms() + 61_000;
        while s.now_ms() < ms {
            let sent = s.wait_for_packet();
            assert!(matches!(sent.chunks()[..], [ForwardTsn(_)]), "{sent:?}");
            s.peer_acknowledges(tsn(n));
            s.expect_silence_until(ms.max(s.now_ms()));
        }
    }
    assert_eq!(s.statistics().paths[0].state, PathState::Active);
}

/// The limit also applies to data bundled with a retransmission.
#[test]
fn a_message_at_its_limit_is_not_bundled() {
    let mut s = Script::established_client_with(|_, association| {
        quiet(association);
        association.recovery = RecoveryConfig::profile("lksctp").expect("a profile");
    });
    for n in 0..4 {
        s.send(b"m");
        assert_eq!(s.take_data(), [n]);
    }
    s.send_with(retransmissions(0), 10);
    assert_eq!(s.take_data(), [4]);
    for end in [2, 3, 4] {
        s.peer_sacks(NONE, PEER_RWND, &[(2, end)]);
    }
    assert_eq!(s.take_data(), [0]);
    s.peer_acknowledges(tsn(4));
}

/// RFC 3758 §3.5 C4: if not all streams fit, the FORWARD-TSN skips as many TSNs as it can.
#[test]
fn a_forward_tsn_that_does_not_fit_skips_as_much_as_it_can() {
    let mut s = Script::client_with(|_, association| {
        quiet(association);
        association.streams.outbound = 200;
        association.max_packet_bytes = 512;
    });
    s.take_init();
    let init_ack = wire::Init { inbound_streams: 200, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init_ack, answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    // The window of 2000 bytes takes 4 packets of 25 chunks of 20 bytes, and then 2 more.
    for stream in 0..150 {
        let reliability = retransmissions(0);
        let message = OutboundMessage::new(stream, "m").reliability(reliability);
        s.try_send(message).expect("room");
    }
    for packet in 0..4u32 {
        assert_eq!(s.take_data(), (25 * packet..25 * packet + 25).collect::<Vec<_>>());
    }
    s.peer_sacks(NONE, PEER_RWND, &[(76, 100)]);
    for packet in 4..6u32 {
        assert_eq!(s.take_data(), (25 * packet..25 * packet + 25).collect::<Vec<_>>());
    }
    s.at(1_000);
    // 500 bytes hold 8 and 4 for each of 123 streams; the first 75 were lost.
    let (cumulative, skipped) = s.take_forward();
    assert_eq!((cumulative, skipped.len()), (74, 75));
    s.peer_sacks(tsn(99), PEER_RWND, &[]);
    let (cumulative, skipped) = s.take_forward();
    assert_eq!((cumulative, skipped.len()), (149, 50));
    s.peer_acknowledges(tsn(149));
}

/// All FORWARD-TSNs that are sent now: the new cumulative TSN of each as a number, and the skipped streams.
fn forwards(s: &mut Script) -> Vec<(u32, Vec<(u16, u16)>)> {
    let mut forwards = Vec::new();
    while let Some(sent) = s.poll_packet() {
        forwards.extend(sent.chunks().iter().filter_map(|chunk| match chunk {
            ForwardTsn(forward) => Some((
                forward.new_cumulative_tsn.wrapping_sub(FIRST_TSN),
                forward.skipped().collect(),
            )),
            _ => None,
        }));
    }
    forwards
}

/// RFC 6525 §5.1.2: a FORWARD-TSN beyond the last TSN of a reset waits for the answer to the reset. The peer may have
/// performed the reset already, and would mistake an earlier SSN for a later one.
#[test]
fn nothing_behind_a_reset_is_skipped_before_its_answer() {
    let mut s = client();
    s.send_with(retransmissions(0), 100);
    expect_packet!(s, [Data(_)]);
    s.reset(&[0]);
    expect_packet!(s, [ReConfig(_)]);
    let message = crate::message(100);
    let other = message.stream(1).reliability(retransmissions(0));
    s.try_send(other).expect("room");
    expect_packet!(s, [Data(d)] if (d.tsn, d.stream) == (tsn(1), 1));
    s.at(1000);
    assert_eq!(forwards(&mut s), [(0, vec![(0, 0)])], "both are given up");
    // The reset is performed, even if its answer comes without a SACK.
    s.peer_writes(|p| {
        p.re_config([ReConfigParam::Response {
            response_sequence: tsn(0),
            result: ReConfigResult::Performed,
            next_tsns: None,
        }])
    });
    s.at(5000);
    assert_eq!(forwards(&mut s).last(), Some(&(1, vec![(1, 0)])));
}
