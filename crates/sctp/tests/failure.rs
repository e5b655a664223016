//! Reachability of the peer: failure of the endpoint and of a path, and HEARTBEAT (RFC 9260 §8.1–8.3).

mod kit;

use std::ops::RangeInclusive;
use std::time::Duration;

use kit::*;
use rexmit_core::Machine;
use rexmit_sctp::{CloseReason, Event, FailReason, PathState};

/// The times at which T3-rtx expires, with an RTO of 1 s that doubles up to 60 s.
const T3_EXPIRIES_MS: [u64; 11] =
    [1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000, 243_000, 303_000, 363_000];

fn without_heartbeats() -> Script {
    Script::established_server_with(|_, association| association.failure.heartbeat_interval = None)
}

/// Waits for the next HEARTBEAT; returns its time and its Heartbeat Info.
#[track_caller]
fn next_heartbeat(s: &mut Script) -> (u64, Vec<u8>) {
    let sent = s.wait_for_packet();
    let &[Heartbeat(info)] = &sent.chunks()[..] else { panic!("no HEARTBEAT: {sent:?}") };
    (sent.at_ms(), info.to_vec())
}

/// The range of times of the next HEARTBEAT: `from_ms` plus HB.interval plus RTO ± 50 %.
fn period_after(from_ms: u64, rto_ms: u64) -> RangeInclusive<u64> {
    from_ms + 30_000 + rto_ms / 2..=from_ms + 30_000 + rto_ms * 3 / 2
}

/// RFC 9260 §8.1, §8.2, §6.3.3: the path is inactive after more than Path.Max.Retrans (5) timeouts,
/// the peer unreachable after more than Association.Max.Retrans (10); outstanding data fails.
#[test]
fn peer_is_unreachable_after_ten_retransmissions() {
    let mut s = without_heartbeats();
    let lost = s.send(b"lost");
    expect_packet!(s, [Data(_)]);
    let (last, others) = T3_EXPIRIES_MS.split_last().unwrap();
    for (n, &ms) in (1..).zip(others) {
        s.at(ms);
        expect_packet!(s, [Data(d)] if d.tsn == tsn(0));
        match n {
            6 => expect_event!(s, Event::PathStatus { state: PathState::Inactive, .. }),
            _ => assert_eq!(s.events(), []),
        }
    }
    s.expect_silence_until(last - 1);
    assert_eq!(s.events(), []);
    s.expect_silence_until(*last);
    expect_event!(s, Event::MessageFailed { id, reason: FailReason::AssociationEnded, .. } if id == lost);
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §8.1, §8.2: an acknowledgement resets both counters, and the path is active again.
#[test]
fn acknowledgement_resets_the_error_counters() {
    let mut s = without_heartbeats();
    s.send(b"lost ten times");
    expect_packet!(s, [Data(_)]);
    for ms in &T3_EXPIRIES_MS[..10] {
        s.at(*ms);
        expect_packet!(s, [Data(_)]);
    }
    expect_event!(s, Event::PathStatus { state: PathState::Inactive, .. });
    s.at(303_500).peer_acknowledges(tsn(0));
    expect_event!(s, Event::PathStatus { state: PathState::Active, .. });
    s.send(b"lost once");
    expect_packet!(s, [Data(_)]);
    s.at(363_500);
    expect_packet!(s, [Data(_)]);
    assert_eq!(s.events(), []);
}

/// RFC 9260 §8.3: an idle path gets a HEARTBEAT once per HB.interval and RTO, with jitter.
#[test]
fn idle_path_gets_a_heartbeat_now_and_then() {
    let mut s = Script::established_server();
    let mut before_ms = 0;
    let gaps: Vec<u64> = (0..30)
        .map(|_| {
            let (at_ms, info) = next_heartbeat(&mut s);
            s.peer_sends([HeartbeatAck(&info)]);
            assert!(period_after(before_ms, 1_000).contains(&at_ms), "{before_ms}, then {at_ms}");
            at_ms - std::mem::replace(&mut before_ms, at_ms)
        })
        .collect();
    let (min, max) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
    assert!(max - min > 500, "all of the jitter is used: {min} to {max}");
}

/// RFC 9260 §8.3, §11.1.9: heartbeats can be switched off.
#[test]
fn without_an_interval_there_is_no_heartbeat() {
    let s = without_heartbeats();
    assert_eq!(s.endpoint.poll_timeout(), None);
}

/// RFC 9260 §8.3: a path is not idle while data that measures it is sent.
#[test]
fn path_in_use_gets_no_heartbeat() {
    let mut s = Script::established_server();
    for n in 1..=10 {
        let ms = n * 20_000;
        s.at(ms).send(b"busy");
        expect_packet!(s, [Data(_)]);
        s.peer_acknowledges(tsn(n as u32 - 1));
    }
    let (at_ms, _) = next_heartbeat(&mut s);
    assert!(period_after(200_000, 1_000).contains(&at_ms), "{at_ms}");
}

/// RFC 9260 §8.3: HEARTBEAT ACK gives an RTT sample, by the time that it contains.
#[test]
fn heartbeat_ack_measures_the_path() {
    let mut s = Script::established_server();
    assert_eq!(s.statistics().paths[0].srtt, None);
    let (at_ms, info) = next_heartbeat(&mut s);
    s.at(at_ms + 400).peer_sends([HeartbeatAck(&info)]);
    let path = s.statistics().paths[0].clone();
    let srtt_ms = path.srtt.unwrap().as_secs_f64() * 1e3;
    assert!((399.0..=400.0).contains(&srtt_ms), "{srtt_ms}");
    assert!(path.rto > Duration::from_millis(1_190), "SRTT and four times half of it");
}

/// RFC 9260 §5.4, §8.3: a HEARTBEAT ACK counts only if it answers a HEARTBEAT that was sent, and only once.
#[test]
fn forged_and_repeated_heartbeat_acks_do_not_count() {
    let mut s = Script::established_server();
    let (at_ms, info) = next_heartbeat(&mut s);
    assert!(info.len() >= 8, "a nonce of 64 bits");
    for byte in 0..8 {
        let mut forged = info.clone();
        forged[byte] ^= 1;
        s.at(at_ms + 200).peer_sends([HeartbeatAck(&forged)]);
    }
    s.peer_sends([HeartbeatAck(b"")]);
    assert_eq!(s.statistics().paths[0].srtt, None);
    s.peer_sends([HeartbeatAck(&info)]);
    let measured = s.statistics().paths[0].srtt;
    s.at(at_ms + 10_000).peer_sends([HeartbeatAck(&info)]);
    assert_eq!(s.statistics().paths[0].srtt, measured);
}

/// RFC 9260 §8.3: a HEARTBEAT ACK later than an RTO still counts.
#[test]
fn late_heartbeat_ack_counts() {
    let mut s = Script::established_server();
    let (at_ms, info) = next_heartbeat(&mut s);
    s.at(at_ms + 1_600).peer_sends([HeartbeatAck(&info)]);
    let srtt = s.statistics().paths[0].srtt.expect("a measurement");
    assert!(srtt > Duration::from_millis(1_598), "{srtt:?}");
}

/// RFC 9260 §8.1, §8.2, §8.3: unanswered HEARTBEATs double RTO, and count against the path and
/// the association.
#[test]
fn unanswered_heartbeats_end_an_idle_association() {
    let mut s = Script::established_server();
    let address = s.peer.route.remote;
    let (mut from_ms, mut rto_ms) = (0, 1_000);
    for n in 1..=11 {
        let (at_ms, _) = next_heartbeat(&mut s);
        assert!(period_after(from_ms, rto_ms).contains(&at_ms), "number {n} at {at_ms}");
        match n {
            7 => {
                expect_event!(s, Event::PathStatus { address: a, state: PathState::Inactive, .. } if a == address);
            }
            _ => assert_eq!(s.events(), [], "before number {n}"),
        }
        (from_ms, rto_ms) = (at_ms + rto_ms, (2 * rto_ms).min(60_000));
    }
    s.expect_silence_until(from_ms);
    assert_eq!(s.events(), []);
    s.expect_silence_until(from_ms + 1);
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
}

/// RFC 9260 §8.3: HEARTBEAT ACK makes the path active again, and resets the error counters of path and association.
#[test]
fn heartbeat_ack_revives_an_inactive_path() {
    let mut s = Script::established_server();
    for _ in 0..9 {
        next_heartbeat(&mut s);
    }
    expect_event!(s, Event::PathStatus { state: PathState::Inactive, .. });
    let (at_ms, info) = next_heartbeat(&mut s);
    s.at(at_ms + 10).peer_sends([HeartbeatAck(&info)]);
    expect_event!(s, Event::PathStatus { state: PathState::Active, .. });
    assert_eq!(s.statistics().paths[0].state, PathState::Active);
    for _ in 0..10 {
        next_heartbeat(&mut s);
    }
    expect_event!(s, Event::PathStatus { state: PathState::Inactive, .. });
    assert_eq!(s.events(), [], "ten errors are not too many");
}

/// RFC 9260 §8.3: a HEARTBEAT is answered at once, to its source and with its complete content.
#[test]
fn heartbeat_is_answered_unchanged_to_its_source() {
    let mut s = Script::server();
    let other = address(3, 777);
    s.peer_begins_at(&[3]);
    s.take_probe();
    // Heartbeat Info of 5 bytes, then a parameter that is not known.
    let value = [0, 1, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0, 0x8F, 3, 0, 8, 9, 9, 9, 9];
    s.peer.route.remote = other;
    s.peer_writes(|p| p.plain(wire::kind::HEARTBEAT, 0, &value));
    let sent = s.next_packet();
    assert_eq!(sent.route.remote, other);
    assert_eq!(sent.chunks(), [HeartbeatAck(&[1, 2, 3, 4, 5])]);
    assert_eq!(sent.bytes[wire::COMMON_HEADER_LEN + 4..], value);
    assert_eq!(s.take_probe().0, other, "is the peer there now?");
}

/// The limits of waiting replies (4), and of their size (1024 bytes).
#[test]
fn heartbeat_answers_are_limited() {
    let mut s = Script::established_server();
    for n in 0..10 {
        s.peer_sends([Heartbeat(&[n])]);
    }
    for n in 0..4 {
        expect_packet!(s, [HeartbeatAck(info)] if info == [n]);
    }
    s.expect_silence();
    s.peer_sends([Heartbeat(&[0; 1_020])]);
    expect_packet!(s, [HeartbeatAck(_)]);
    s.peer_sends([Heartbeat(&[0; 1_021])]);
    s.expect_silence();
}

/// A HEARTBEAT whose answer would not fit a packet of ours is not answered, not even by an empty packet.
#[test]
fn heartbeat_beyond_the_packet_limit_is_not_answered() {
    let mut s = Script::established_server_with(|_, a| a.max_packet_bytes = 512);
    s.peer_sends([Heartbeat(&[0; 600])]);
    s.expect_silence();
    s.peer_sends([Heartbeat(&[0; 400])]);
    expect_packet!(s, [HeartbeatAck(_)]);
}

/// RFC 9260 §8.3: no HEARTBEAT after SHUTDOWN or SHUTDOWN ACK was sent.
#[test]
fn heartbeats_end_with_the_shutdown() {
    let mut s = Script::established_server();
    s.at(30_400).shutdown();
    expect_packet!(s, [Shutdown { .. }]);
    for ms in [31_400, 33_400] {
        s.at(ms);
        expect_packet!(s, [Shutdown { .. }]);
    }
    let mut s = Script::established_server();
    s.at(30_400).peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
    expect_packet!(s, [ShutdownAck]);
    for ms in [31_400, 33_400] {
        s.at(ms);
        expect_packet!(s, [ShutdownAck]);
    }
}

/// Sends an input every 50 ms to a peer that is killed after 1 s. Returns when it is reported
/// unreachable.
fn killed_peer_is_reported_at(dead_after: Option<Duration>) -> u64 {
    let mut s = Script::established_server_with(|_, association| {
        association.failure.dead_after = dead_after;
    });
    for n in 0.. {
        s.lose_until(n * 50);
        if s.events().contains(&Event::Closed(CloseReason::Unreachable)) {
            break;
        }
        s.send(b"input");
        while s.poll_packet().is_some() {}
        if n <= 20 {
            s.peer_acknowledges(tsn(n as u32));
        }
    }
    s.now_ms()
}

#[test]
fn a_killed_peer_is_reported_within_the_configured_time() {
    let after_15_s = killed_peer_is_reported_at(Some(Duration::from_secs(15)));
    // From the first input after the last answer.
    assert!((16_000..=16_100).contains(&after_15_s), "{after_15_s} ms");
    // RFC 9260 §8.1 alone needs minutes.
    let as_the_rfc = killed_peer_is_reported_at(None);
    assert!(as_the_rfc > 120_000, "{as_the_rfc} ms");
}

/// A peer may vanish while nothing is outstanding: then SHUTDOWN is the first chunk that it does not answer, or SHUTDOWN ACK.
#[test]
fn a_peer_that_does_not_answer_the_shutdown_is_reported_within_the_configured_time() {
    for is_first in [true, false] {
        let mut s = Script::established_server_with(|_, association| {
            association.failure.dead_after = Some(Duration::from_secs(15));
        });
        s.at(5_000);
        if is_first {
            s.shutdown();
        } else {
            s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
        }
        s.lose_until(19_900);
        assert_eq!(s.endpoint.association_count(), 1);
        s.lose_until(20_100);
        assert!(s.events().contains(&Event::Closed(CloseReason::Unreachable)), "{is_first}");
    }
}

/// Any packet of the peer, with or without a SACK, proves that it is alive.
#[test]
fn any_packet_of_the_peer_shows_that_it_is_alive() {
    let mut s = Script::established_server_with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.failure.dead_after = Some(Duration::from_secs(10));
    });
    s.send(b"lost again and again");
    for second in 1..=40 {
        s.lose_until(second * 1000);
        if second % 9 == 0 {
            s.peer_sends([Heartbeat(b"are you there")]);
        }
    }
    assert_eq!(s.endpoint.association_count(), 1);
}

/// Neither a single lost packet, however long its RTO, nor silence without data in flight ends an association.
#[test]
fn silence_alone_does_not_end_an_association() {
    let mut s = Script::established_server_with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.failure.dead_after = Some(Duration::from_millis(500));
    });
    s.send(b"lost once");
    expect_packet!(s, [Data(_)]);
    s.at(1_000);
    expect_packet!(s, [Data(_)]);
    s.at(1_100).peer_acknowledges(tsn(0));
    s.expect_silence_until(100_000);
    assert_eq!(s.endpoint.association_count(), 1);
}

/// Runs the timers of an endpoint with data in flight, each `late` after its deadline, for 60 s, and on time for 60 s more.
/// Returns whether the peer is unreachable after the first and the second minute; no answer arrives.
fn ends_of_a_late_host(dead_after: Option<Duration>, late: Duration) -> [bool; 2] {
    let mut s = Script::established_server_with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.failure.dead_after = dead_after;
        association.recovery.rto.max = Duration::from_secs(2);
    });
    s.send(b"is not answered");
    while s.now_ms() < 60_000 {
        while s.poll_packet().is_some() {}
        let Some(due) = s.endpoint.poll_timeout() else { break };
        s.fire(due + late);
    }
    let is_end = |event: &Event| *event == Event::Closed(CloseReason::Unreachable);
    let has_ended = s.events().iter().any(is_end);
    s.lose_until(s.now_ms().max(60_000) + 60_000);
    [has_ended, has_ended || s.events().iter().any(is_end)]
}

/// The peer may be on the same busy machine, and answers may wait to be read: neither the error counter nor `dead_after`
/// counts time in which this host did not run.
#[test]
fn timers_that_are_handled_late_are_no_errors_of_the_peer() {
    for (dead_after, late) in [(None, 1000), (Some(Duration::from_secs(15)), 10_000)] {
        let after = |late| ends_of_a_late_host(dead_after, Duration::from_millis(late));
        assert_eq!(after(0), [true; 2], "{dead_after:?}");
        assert_eq!(after(20), [true; 2], "{dead_after:?}: a little late");
        assert_eq!(after(late), [false, true], "{dead_after:?}: it ends once the host runs");
    }
}
