//! Resetting streams, both ways (RFC 6525).

mod kit;

use kit::*;
use rexmit_sctp::wire::DataFlags;
use rexmit_sctp::wire::ReConfigParam::{self, Response};
use rexmit_sctp::wire::ReConfigResult::{self, *};
use rexmit_sctp::{CloseReason, Event, OutboundMessage, OversizedMessages, ResetError};

/// The sequence number before the first one, of TSNs and of requests.
const BEFORE_FIRST: u32 = tsn(0).wrapping_sub(1);

/// The peer's answer to our `n`th request.
fn answer<'c>(n: u32, result: ReConfigResult) -> ReConfigParam<'c> {
    Response { response_sequence: tsn(n), result, next_tsns: None }
}

/// The peer's `n`th request: it resets `streams`; `last` is the last assigned TSN.
fn reset_by_peer(n: u32, last: u32, streams: &[u16]) -> ReConfigParam<'_> {
    ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: tsn(n),
        response_sequence: BEFORE_FIRST,
        last_assigned_tsn: last,
        streams: streams.into(),
    }
}

/// The peer's `n`th request: we are to reset `streams`.
fn asked_by_peer(n: u32, streams: &[u16]) -> ReConfigParam<'_> {
    ReConfigParam::IncomingSsnResetRequest { request_sequence: tsn(n), streams: streams.into() }
}

/// Our `n`th request: the peer is to reset `streams`.
fn asked_by_us(n: u32, streams: &[u16]) -> ReConfigParam<'_> {
    asked_by_peer(n, streams)
}

/// The peer's `n`th request, which answers our request `response_sequence`, or names it as the last received.
fn reset_in_answer(
    n: u32,
    response_sequence: u32,
    last: u32,
    streams: &[u16],
) -> ReConfigParam<'_> {
    ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: tsn(n),
        response_sequence,
        last_assigned_tsn: last,
        streams: streams.into(),
    }
}

/// Our `n`th request, which answers the request `response_sequence` of the peer.
fn our_request(n: u32, response_sequence: u32, last: u32, streams: &[u16]) -> ReConfigParam<'_> {
    ReConfigParam::OutgoingSsnResetRequest {
        request_sequence: tsn(n),
        response_sequence,
        last_assigned_tsn: last,
        streams: streams.into(),
    }
}

/// A RE-CONFIG of the peer arrives.
fn peer_asks<'p>(s: &mut Script, params: impl IntoIterator<Item = ReConfigParam<'p>>) {
    s.peer_writes(|p| p.re_config(params));
}

/// A RE-CONFIG with these parameters is sent, alone or followed by a SACK.
#[track_caller]
fn expect_re_config(s: &mut Script, params: &[ReConfigParam<'_>]) {
    let sent = s.next_packet();
    let (re_config, has_sack) = match sent.chunks()[..] {
        [ReConfig(re_config)] => (re_config, false),
        [ReConfig(re_config), Sack(_)] => (re_config, true),
        _ => panic!("no RE-CONFIG: {sent:?}"),
    };
    assert_eq!(re_config.params().collect::<Result<Vec<_>, _>>().unwrap(), params, "{sent:?}");
    // A request to the peer follows DATA, a message of which was dropped.
    let has_reason =
        matches!(params[0], Response { .. } | ReConfigParam::IncomingSsnResetRequest { .. });
    assert!(has_reason || !has_sack, "a SACK without a reason: {sent:?}");
}

fn without_heartbeats() -> Script {
    Script::established_server_with(|_, association| association.failure.heartbeat_interval = None)
}

/// Sends on stream 0 and expects the SSN with which it is sent.
#[track_caller]
fn expect_ssn(s: &mut Script, n: u32, ssn: u16) {
    s.send(b"x");
    expect_packet!(s, [Data(d)] if (d.tsn, d.stream, d.ssn) == (tsn(n), 0, ssn));
    s.peer_acknowledges(tsn(n));
}

/// RFC 6525 §5.1.2, §5.2.7 H4: the streams send nothing until the response, then begin at SSN 0; others
/// continue.
#[test]
fn streams_begin_at_zero_after_a_reset() {
    let mut s = without_heartbeats();
    expect_ssn(&mut s, 0, 0);
    s.reset(&[0, 3]);
    expect_re_config(&mut s, &[our_request(0, BEFORE_FIRST, tsn(0), &[0, 3])]);
    s.send(b"waits");
    s.expect_silence();
    s.try_send(OutboundMessage::new(1, "goes on")).unwrap();
    expect_packet!(s, [Data(d)] if (d.tsn, d.stream) == (tsn(1), 1));
    peer_asks(&mut s, [answer(0, Performed)]);
    expect_event!(s, Event::StreamsReset { streams, performed: true } if streams == [0, 3]);
    s.peer_acknowledges(tsn(1));
    expect_packet!(s, [Data(d)] if (d.tsn, d.ssn) == (tsn(2), 0) && d.payload == b"waits");
    s.peer_acknowledges(tsn(2));
    s.expect_silence_until(100_000);
}

/// RFC 6525 §5.1.2 A4: a request to reset all streams lists none.
#[test]
fn all_streams_are_reset_without_naming_them() {
    let mut s = without_heartbeats();
    expect_ssn(&mut s, 0, 0);
    s.reset(&[]);
    expect_re_config(&mut s, &[our_request(0, BEFORE_FIRST, tsn(0), &[])]);
    peer_asks(&mut s, [answer(0, NothingToDo)]);
    expect_event!(s, Event::StreamsReset { streams, performed: true } if streams.is_empty());
    expect_ssn(&mut s, 1, 0);
}

/// RFC 6525 §5.2.7 H3: whatever the peer's reason, SSNs continue unchanged.
#[test]
fn denied_reset_changes_no_ssn() {
    for result in [Denied, WrongSsn, AlreadyInProgress, BadSequenceNumber, Other(77)] {
        let mut s = without_heartbeats();
        expect_ssn(&mut s, 0, 0);
        s.reset(&[0]);
        expect_re_config(&mut s, &[our_request(0, BEFORE_FIRST, tsn(0), &[0])]);
        peer_asks(&mut s, [answer(1, Performed)]);
        assert_eq!(s.events(), [], "that is no request of ours");
        peer_asks(&mut s, [answer(0, result)]);
        expect_event!(s, Event::StreamsReset { performed: false, .. });
        expect_ssn(&mut s, 1, 1);
        s.reset(&[0]);
        expect_re_config(&mut s, &[our_request(1, BEFORE_FIRST, tsn(1), &[0])]);
    }
}

/// RFC 6525 §5.1.1: the same request on each timeout, which counts as an error.
#[test]
fn unanswered_request_is_repeated_until_the_peer_is_unreachable() {
    let mut s = without_heartbeats();
    s.reset(&[0]);
    let request = [our_request(0, BEFORE_FIRST, BEFORE_FIRST, &[0])];
    expect_re_config(&mut s, &request);
    for ms in [1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000, 243_000, 303_000] {
        s.at(ms);
        expect_re_config(&mut s, &request);
    }
    s.expect_silence_until(363_000);
    assert_eq!(s.events().last(), Some(&Event::Closed(CloseReason::Unreachable)));
}

/// RFC 6525 §5.2.7 H2: while the peer answers "In progress", the request is retransmitted without counting errors.
#[test]
fn request_in_progress_is_repeated_without_counting_errors() {
    let mut s = without_heartbeats();
    s.reset(&[0]);
    let request = [our_request(0, BEFORE_FIRST, BEFORE_FIRST, &[0])];
    expect_re_config(&mut s, &request);
    s.at(500);
    peer_asks(&mut s, [answer(0, InProgress)]);
    s.at(1_500);
    expect_re_config(&mut s, &request);
    let mut ms = 1_500;
    for _ in 0..20 {
        s.at(ms + 100);
        peer_asks(&mut s, [answer(0, InProgress)]);
        ms = s.wait_for_packet().at_ms();
    }
    assert_eq!(s.events(), []);
    peer_asks(&mut s, [answer(0, Performed)]);
    expect_event!(s, Event::StreamsReset { performed: true, .. });
}

/// RFC 6525 §5.1.1: only one request at a time, and only for streams that can be reset.
#[test]
fn invalid_resets_are_refused() {
    let mut s = without_heartbeats();
    let id = s.id();
    let now = rexmit_core::Instant::ZERO;
    let reset = |s: &mut Script, streams: &[u16]| s.endpoint.reset_streams(now, id, streams);
    assert_eq!(reset(&mut s, &[10]), Err(ResetError::InvalidStream));
    assert_eq!(reset(&mut s, &[0]), Ok(()));
    assert_eq!(reset(&mut s, &[1]), Err(ResetError::InProgress));
    s.next_packet();
    s.shutdown();
    assert_eq!(reset(&mut s, &[1]), Err(ResetError::NotEstablished));
    s.next_packet();
    let mut s = Script::server();
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), |_| ()));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    let id = s.id();
    assert_eq!(s.endpoint.reset_streams(now, id, &[0]), Err(ResetError::NotSupported));
}

/// RFC 6525 §5.1.2 A3, A5: a message that has begun is finished first, and the request covers its TSNs.
#[test]
fn request_waits_for_a_message_that_has_begun() {
    let mut s = without_heartbeats();
    s.try_send(OutboundMessage::new(0, vec![0; 6_000])).unwrap();
    for n in 0..4 {
        expect_packet!(s, [Data(d)] if d.tsn == tsn(n));
    }
    s.reset(&[0, 0, 0]);
    s.expect_silence();
    s.peer_acknowledges(tsn(3));
    expect_packet!(s, [Data(d)] if d.flags.ending && d.tsn == tsn(4));
    expect_re_config(&mut s, &[our_request(0, BEFORE_FIRST, tsn(4), &[0])]);
}

/// The limit of streams that one request names.
#[test]
fn request_names_no_more_streams_than_fit() {
    let mut s =
        Script::with(|_, a| (a.streams.outbound, a.failure.heartbeat_interval) = (2_000, None));
    let init = wire::Init { inbound_streams: 2_000, ..peer_init(PEER_TAG) };
    s.peer_writes_under(0, |p| p.init(&init, extensions));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    let streams: Vec<u16> = (0..595).collect();
    let (now, id) = (rexmit_core::Instant::ZERO, s.id());
    let refused = s.endpoint.reset_streams(now, id, &streams);
    assert_eq!(refused, Err(ResetError::TooManyStreams { limit: 594 }));
    s.reset(&streams[..594]);
    expect_re_config(&mut s, &[our_request(0, BEFORE_FIRST, BEFORE_FIRST, &streams[..594])]);
}

/// RFC 6525 §5.2.2 E3, E5, §5.2.1: the peer's streams begin at 0; a SACK is bundled with the answer.
#[test]
fn streams_of_the_peer_begin_at_zero_after_its_reset() {
    let mut s = without_heartbeats();
    s.peer_sends([Data(data(0, b"before"))]);
    expect_packet!(s, [Sack(_)]);
    peer_asks(&mut s, [reset_by_peer(0, tsn(0), &[0])]);
    expect_packet!(s, [ReConfig(_), Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    expect_event!(s, Event::Readable);
    expect_event!(s, Event::PeerResetStreams(streams) if streams == [0]);
    s.peer_sends([Data(wire::Data { ssn: 0, ..data(1, b"after") })]);
    assert_eq!((s.receive().unwrap(), s.receive().unwrap()), ("before".into(), "after".into()));
    s.at(200);
    expect_packet!(s, [Sack(_)]);
}

/// RFC 6525 §5.2.2 E2–E5: the reset waits for data in flight ("In progress"), later data of the streams waits, too, and
/// the result is reported.
#[test]
fn reset_waits_for_data_in_flight() {
    let mut s = without_heartbeats();
    peer_asks(&mut s, [reset_by_peer(0, tsn(1), &[0])]);
    expect_re_config(&mut s, &[answer(0, InProgress)]);
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    s.peer_sends([Data(wire::Data { ssn: 0, ..data(2, b"after") })]);
    expect_packet!(s, [Sack(sack)]
        if (sack.cumulative_tsn_ack, sack.gap_ack_block_count()) == (tsn(0), 1));
    peer_asks(&mut s, [reset_by_peer(0, tsn(1), &[0])]);
    expect_re_config(&mut s, &[answer(0, InProgress)]);
    s.peer_sends([Data(data(1, b"second"))]);
    expect_re_config(&mut s, &[answer(0, Performed)]);
    let read: Vec<_> = std::iter::from_fn(|| s.receive()).collect();
    assert_eq!(read, ["first", "second", "after"]);
    let resets = |event: &Event| matches!(event, Event::PeerResetStreams(_));
    assert_eq!(s.events().iter().filter(|event| resets(event)).count(), 1);
    peer_asks(&mut s, [reset_by_peer(0, tsn(1), &[0])]);
    expect_re_config(&mut s, &[answer(0, Performed)]);
}

/// RFC 6525 §5.2.1: a repeated request gets the same answer and is not performed again.
#[test]
fn repeated_request_gets_the_same_answer() {
    let mut s = without_heartbeats();
    for n in 0..3 {
        for _ in 0..3 {
            peer_asks(&mut s, [reset_by_peer(n, BEFORE_FIRST, &[0])]);
            expect_re_config(&mut s, &[answer(n, Performed)]);
        }
    }
    assert_eq!(s.events().len(), 3);
}

/// RFC 6525 §4.4, §5.2.1: a request out of order is an error, and does not affect other answers.
#[test]
fn request_out_of_order_is_an_error() {
    let mut s = without_heartbeats();
    peer_asks(&mut s, [reset_by_peer(0, BEFORE_FIRST, &[0])]);
    expect_re_config(&mut s, &[answer(0, Performed)]);
    peer_asks(&mut s, [reset_by_peer(1, BEFORE_FIRST, &[1])]);
    expect_re_config(&mut s, &[answer(1, Performed)]);
    for n in [0, 2 + 257, 0x8000_0000] {
        peer_asks(&mut s, [reset_by_peer(n, BEFORE_FIRST, &[0])]);
        expect_re_config(&mut s, &[answer(n, BadSequenceNumber)]);
        peer_asks(&mut s, [asked_by_peer(n, &[0])]);
        expect_re_config(&mut s, &[answer(n, BadSequenceNumber)]);
    }
    peer_asks(&mut s, [reset_by_peer(1, BEFORE_FIRST, &[1])]);
    expect_re_config(&mut s, &[answer(1, Performed)]);
    assert_eq!(s.events().len(), 2);
}

/// RFC 6525 §5.1.1 allows one request at a time. If a peer sends several and one is lost, each is still performed, in
/// order.
#[test]
fn requests_behind_a_lost_one_are_in_progress() {
    let mut s = without_heartbeats();
    for n in [1, 256, 1] {
        peer_asks(&mut s, [reset_by_peer(n, BEFORE_FIRST, &[1])]);
        expect_re_config(&mut s, &[answer(n, InProgress)]);
    }
    assert_eq!(s.events(), []);
    for n in [0, 1] {
        peer_asks(&mut s, [reset_by_peer(n, BEFORE_FIRST, &[n as u16])]);
        expect_re_config(&mut s, &[answer(n, Performed)]);
        expect_event!(s, Event::PeerResetStreams(streams) if streams == [n as u16]);
    }
}

/// RFC 6525 §5.2.2 E2: a request after one that waits for DATA does not replace that.
#[test]
fn request_behind_a_deferred_one_is_in_progress() {
    let mut s = without_heartbeats();
    peer_asks(&mut s, [reset_by_peer(0, tsn(0), &[0])]);
    expect_re_config(&mut s, &[answer(0, InProgress)]);
    peer_asks(&mut s, [reset_by_peer(1, tsn(0), &[1])]);
    expect_re_config(&mut s, &[answer(1, InProgress)]);
    s.peer_sends([Data(data(0, b"first"))]);
    expect_re_config(&mut s, &[answer(0, Performed)]);
    peer_asks(&mut s, [reset_by_peer(1, tsn(0), &[1])]);
    expect_re_config(&mut s, &[answer(1, Performed)]);
    let resets = |event: &Event| matches!(event, Event::PeerResetStreams(_));
    assert_eq!(s.events().iter().filter(|event| resets(event)).count(), 2);
}

/// RFC 6525 §4.4: a request to reset streams that do not exist is an error.
#[test]
fn request_for_missing_streams_is_an_error() {
    let mut s = without_heartbeats();
    peer_asks(&mut s, [reset_by_peer(0, BEFORE_FIRST, &[9, 10])]);
    expect_re_config(&mut s, &[answer(0, WrongSsn)]);
    peer_asks(&mut s, [asked_by_peer(1, &[9, 10])]);
    expect_re_config(&mut s, &[answer(1, WrongSsn)]);
    assert_eq!(s.events(), []);
}

/// RFC 6525 §5.2.3 F1, §5.1.2 A4: if the peer asks us to reset our streams, our own request is the answer; if it
/// repeats its request, ours is sent again.
#[test]
fn reset_requested_by_the_peer_is_answered_by_our_request() {
    let mut s = without_heartbeats();
    let request = [our_request(0, tsn(0), BEFORE_FIRST, &[0, 2])];
    peer_asks(&mut s, [asked_by_peer(0, &[0, 2])]);
    expect_re_config(&mut s, &request);
    s.at(300);
    peer_asks(&mut s, [asked_by_peer(0, &[0, 2])]);
    expect_re_config(&mut s, &request);
    s.at(1_300);
    expect_re_config(&mut s, &request);
    peer_asks(&mut s, [answer(0, Performed)]);
    expect_event!(s, Event::StreamsReset { performed: true, .. });
    peer_asks(&mut s, [asked_by_peer(0, &[0, 2])]);
    expect_re_config(&mut s, &[answer(0, NothingToDo)]);
    s.expect_silence_until(100_000);
}

/// RFC 6525 §5.2.3: a request for streams that our own pending request already resets gets "Nothing to do"; any other
/// waits until ours is answered.
#[test]
fn request_to_reset_while_our_own_is_pending() {
    let mut s = without_heartbeats();
    s.reset(&[0, 1]);
    expect_re_config(&mut s, &[our_request(0, BEFORE_FIRST, BEFORE_FIRST, &[0, 1])]);
    peer_asks(&mut s, [asked_by_peer(0, &[1])]);
    expect_re_config(&mut s, &[answer(0, NothingToDo)]);
    peer_asks(&mut s, [asked_by_peer(1, &[1, 2])]);
    expect_re_config(&mut s, &[answer(1, InProgress)]);
    peer_asks(&mut s, [answer(0, Performed)]);
    peer_asks(&mut s, [asked_by_peer(1, &[1, 2])]);
    expect_re_config(&mut s, &[our_request(1, tsn(1), BEFORE_FIRST, &[1, 2])]);
}

/// RFC 6525 §3.1 (3), (9), §5.2.1: two requests in one chunk are both answered, in one chunk.
#[test]
fn two_requests_in_one_chunk_are_both_answered() {
    let mut s = without_heartbeats();
    let both = [reset_by_peer(0, BEFORE_FIRST, &[0]), asked_by_peer(1, &[0])];
    peer_asks(&mut s, both);
    let answers = [answer(0, Performed), our_request(0, tsn(1), BEFORE_FIRST, &[0])];
    expect_re_config(&mut s, &answers);
    s.at(500);
    peer_asks(&mut s, both);
    expect_re_config(&mut s, &answers);
    expect_event!(s, Event::PeerResetStreams(_));
    assert_eq!(s.events(), []);
}

/// RFC 6525 §5.2.4–5.2.6, §3.1 (7), (10): resets of TSNs and new streams are denied, each of two in
/// a chunk.
#[test]
fn other_requests_are_denied() {
    let mut s = without_heartbeats();
    peer_asks(&mut s, [ReConfigParam::SsnTsnResetRequest { request_sequence: tsn(0) }]);
    expect_re_config(&mut s, &[answer(0, Denied)]);
    let both = [
        ReConfigParam::AddOutgoingStreamsRequest { request_sequence: tsn(1), new_streams: 5 },
        ReConfigParam::AddIncomingStreamsRequest { request_sequence: tsn(2), new_streams: 5 },
    ];
    for _ in 0..2 {
        peer_asks(&mut s, both);
        expect_re_config(&mut s, &[answer(1, Denied), answer(2, Denied)]);
    }
}

/// RFC 6525 §5.2.1: once the peer has shut down, it cannot request a reset of our streams.
#[test]
fn request_to_reset_is_denied_during_a_shutdown() {
    let mut s = without_heartbeats();
    s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.peer_sends([Shutdown { cumulative_tsn_ack: BEFORE_FIRST }]);
    peer_asks(&mut s, [asked_by_peer(0, &[0])]);
    expect_re_config(&mut s, &[answer(0, Denied)]);
}

/// RFC 6525 §5.1.1: RE-CONFIG is ignored before the association is established.
#[test]
fn requests_during_the_setup_are_ignored() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    peer_asks(&mut s, [reset_by_peer(0, BEFORE_FIRST, &[0])]);
    s.peer_sends([CookieAck]);
    s.expect_silence();
}

/// The limit of answers that wait (4): only a part of a flood of requests is answered.
#[test]
fn answers_to_requests_are_limited() {
    let mut s = without_heartbeats();
    for n in 0..100 {
        peer_asks(&mut s, [reset_by_peer(n, BEFORE_FIRST, &[0])]);
    }
    expect_re_config(&mut s, &[answer(0, Performed), answer(1, Performed)]);
    expect_re_config(&mut s, &[answer(2, Performed), answer(3, Performed)]);
    s.expect_silence();
    peer_asks(&mut s, [reset_by_peer(99, BEFORE_FIRST, &[0])]);
    expect_re_config(&mut s, &[answer(99, Performed)]);
}

/// The script of an association that has the peer reset the streams of messages larger than 1,500 bytes.
fn resetting_oversized() -> Script {
    Script::established_server_with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.messages.max_bytes = 1_500;
        association.messages.oversized = OversizedMessages::ResetStream;
    })
}

/// The peer sends an unordered message of 2,000 bytes on this stream, in two chunks from TSN `n`, which is dropped.
fn peer_sends_oversized(s: &mut Script, n: u16, stream: u16) {
    let payload = [0; 1_000];
    let chunk = |n, bits| {
        let flags = DataFlags::from_bits(bits);
        Data(wire::Data { flags, stream, ssn: 0, payload: &payload, ..data(n, b"") })
    };
    s.peer_sends([chunk(n, 6), chunk(n + 1, 5)]);
    expect_event!(s, Event::MessageDropped { stream: dropped, .. } if dropped == stream);
}

/// RFC 6525 §5.1.3: the receiver of a message that is too large has the peer reset the stream, until it does so.
#[test]
fn the_peer_is_asked_to_reset_the_stream_of_a_dropped_message() {
    let mut s = resetting_oversized();
    peer_sends_oversized(&mut s, 0, 3);
    expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
    for ms in [1_000, 3_000] {
        s.at(ms);
        expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
    }
    peer_asks(&mut s, [reset_in_answer(0, tsn(0), tsn(1), &[3])]);
    expect_re_config(&mut s, &[answer(0, Performed)]);
    expect_event!(s, Event::PeerResetStreams(streams) if streams == [3]);
    s.expect_silence_until(100_000);
    s.peer_sends([Data(wire::Data { stream: 3, ssn: 0, ..data(2, b"again") })]);
    assert_eq!(s.receive().as_deref(), Some(&b"again"[..]));
    assert_eq!(s.statistics().traffic.messages_dropped, 1);
}

/// A refusal ends the request; the next message is asked for again. Streams dropped meanwhile share the next request.
#[test]
fn one_request_for_dropped_messages_is_in_progress() {
    for result in [Denied, NothingToDo, WrongSsn, Other(77)] {
        let mut s = resetting_oversized();
        peer_sends_oversized(&mut s, 0, 3);
        expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
        for (n, stream) in [(2, 7), (4, 5), (6, 3)] {
            peer_sends_oversized(&mut s, n, stream);
        }
        expect_packet!(s, [Sack(_)]);
        peer_asks(&mut s, [answer(0, result)]);
        expect_re_config(&mut s, &[asked_by_us(1, &[5, 7])]);
        peer_asks(&mut s, [answer(1, result)]);
        s.expect_silence_until(100_000);
    }
}

/// A reset that the peer performs on its own, with the number of our last request as the one that it has received, is no
/// answer.
#[test]
fn a_reset_of_other_streams_does_not_answer_our_request() {
    let mut s = resetting_oversized();
    peer_sends_oversized(&mut s, 0, 3);
    expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
    s.at(500);
    peer_asks(&mut s, [answer(0, InProgress)]);
    peer_asks(&mut s, [reset_in_answer(0, tsn(0), tsn(1), &[1])]);
    expect_re_config(&mut s, &[answer(0, Performed)]);
    s.at(1_500);
    expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
}

/// A reset of the application's waits until the peer has answered; it has the later sequence number.
#[test]
fn our_reset_waits_for_the_request_to_the_peer() {
    let mut s = resetting_oversized();
    peer_sends_oversized(&mut s, 0, 3);
    expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
    s.reset(&[1]);
    s.expect_silence();
    peer_asks(&mut s, [answer(0, Denied)]);
    expect_re_config(&mut s, &[our_request(1, BEFORE_FIRST, BEFORE_FIRST, &[1])]);
    peer_sends_oversized(&mut s, 2, 3);
    s.expect_silence();
    peer_asks(&mut s, [answer(1, Performed)]);
    expect_re_config(&mut s, &[asked_by_us(2, &[3])]);
}

/// If each side waits for the other's reset, ours is given up, and then the peer's is performed.
#[test]
fn requests_that_wait_for_each_other_end() {
    let mut s = resetting_oversized();
    peer_sends_oversized(&mut s, 0, 3);
    expect_re_config(&mut s, &[asked_by_us(0, &[3])]);
    peer_asks(&mut s, [asked_by_peer(0, &[2])]);
    expect_re_config(&mut s, &[answer(0, InProgress)]);
    peer_asks(&mut s, [answer(0, InProgress)]);
    s.expect_silence_until(50_000);
    peer_asks(&mut s, [asked_by_peer(0, &[2])]);
    expect_re_config(&mut s, &[our_request(1, tsn(0), BEFORE_FIRST, &[2])]);
}

/// Without stream resets the message is dropped, and nothing else happens.
#[test]
fn a_peer_without_stream_resets_is_not_asked() {
    let mut s = Script::with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.messages.max_bytes = 1_500;
        association.messages.oversized = OversizedMessages::ResetStream;
    });
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), |_| ()));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    peer_sends_oversized(&mut s, 0, 3);
    expect_packet!(s, [Sack(_)]);
    s.expect_silence_until(100_000);
}
