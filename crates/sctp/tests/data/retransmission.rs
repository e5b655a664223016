//! The retransmission timer from outside (RFC 9260 §6.3, §7.2.3, §8.1, §8.2).

use rexmit_sctp::{CloseReason, Event, FailReason, PathState};

use crate::kit::*;
use crate::{FULL, PMDCS};

fn without_heartbeats() -> Script {
    Script::established_client_with(|_, association| association.failure.heartbeat_interval = None)
}

/// RFC 9260 §6.3.3 E2, §8.1, §8.2: all transmissions of a message that is never acknowledged.
#[test]
fn an_unanswered_chunk_is_retransmitted_at_these_times_until_the_peer_is_unreachable() {
    let mut s = without_heartbeats();
    let id = s.send(b"hello?");
    assert_eq!(s.take_data(), [0]);
    for (errors, second) in [1, 3, 7, 15, 31, 63, 123, 183, 243, 303].into_iter().enumerate() {
        s.at(1_000 * second);
        assert_eq!(s.take_data(), [0]);
        let is_inactive = s
            .events()
            .iter()
            .any(|event| matches!(event, Event::PathStatus { state: PathState::Inactive, .. }));
        assert_eq!(is_inactive, errors + 1 == 6, "Path.Max.Retrans is 5");
    }
    s.expect_silence_until(363_000);
    expect_event!(s, Event::MessageFailed { id: failed, reason: FailReason::AssociationEnded,
        was_begun: true, message } if failed == id && message.payload == "hello?");
    expect_event!(s, Event::Closed(CloseReason::Unreachable));
}

/// RFC 9260 §8.1, §8.2: an acknowledgement clears the errors.
#[test]
fn an_acknowledgement_clears_the_errors() {
    let mut s = without_heartbeats();
    s.send(b"one");
    assert_eq!(s.take_data(), [0]);
    for second in [1, 3, 7, 15, 31, 63] {
        s.at(1_000 * second);
        assert_eq!(s.take_data(), [0]);
    }
    expect_event!(s, Event::PathStatus { state: PathState::Inactive, .. });
    s.at(64_000).peer_acknowledges(tsn(0));
    expect_event!(s, Event::PathStatus { state: PathState::Active, .. });
    s.send(b"two");
    assert_eq!(s.take_data(), [1]);
    // 10 more may go unanswered; the RTO is 60 s until a new chunk is answered.
    for n in 1..=10 {
        s.at(64_000 + n * 60_000);
        assert_eq!(s.take_data(), [1]);
    }
    s.peer_acknowledges(tsn(1));
}

/// RFC 9260 §6.3.1 C2, C3: the RTO is computed from the RTT samples.
#[test]
fn the_rto_follows_the_measured_round_trips() {
    // SRTT 900; RTTVAR 450, with the second sample 337.5: 900 + 4 · 337.5 = 2250.
    let mut s = Script::with_round_trip(900);
    s.send(b"one");
    assert_eq!(s.take_data(), [0]);
    s.expect_silence_until(4_049);
    s.at(4_050);
    assert_eq!(s.take_data(), [0]);
}

/// RFC 9260 §6.3.1 C5, §6.3.3: the doubled RTO stays until a new chunk is measured.
#[test]
fn the_backoff_stays_until_a_chunk_sent_once_is_acknowledged() {
    let mut s = Script::established_client();
    s.send(b"one");
    assert_eq!(s.take_data(), [0]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.at(1_050).peer_acknowledges(tsn(0));
    s.send(b"two");
    assert_eq!(s.take_data(), [1]);
    s.at(1_100).peer_acknowledges(tsn(1));
    s.at(2_000).send(b"three");
    assert_eq!(s.take_data(), [2]);
    s.expect_silence_until(2_999);
    s.at(3_000);
    assert_eq!(s.take_data(), [2]);
    s.at(4_000).peer_acknowledges(tsn(2));
    s.send(b"four");
    assert_eq!(s.take_data(), [3]);
    s.expect_silence_until(5_999);
    s.at(6_000);
    assert_eq!(s.take_data(), [3], "no new sample: still two seconds");
}

/// RFC 9260 §6.3.3 E1, E3, §7.2.3: one packet is sent, and further ones when it is acknowledged.
#[test]
fn after_a_timeout_one_packet_is_in_flight_until_it_is_acknowledged() {
    let mut s = Script::established_client();
    for n in 0..4 {
        s.send_len(FULL);
        assert_eq!(s.take_data(), [n]);
    }
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    assert_eq!(
        (s.statistics().paths[0].cwnd, s.statistics().paths[0].ssthresh),
        (PMDCS, 4 * PMDCS)
    );
    s.send_len(100);
    s.expect_silence_until(1_100);
    s.peer_acknowledges(tsn(0));
    assert_eq!((s.take_data(), s.take_data()), (vec![1], vec![2]), "cwnd is two packets");
    s.expect_silence_until(1_200);
    s.peer_acknowledges(tsn(2));
    assert_eq!((s.take_data(), s.take_data()), (vec![3], vec![4]));
}

/// RFC 9260 §6.3.3 E3: as many of the earliest chunks as fit are retransmitted in one packet.
#[test]
fn small_chunks_that_timed_out_share_a_packet() {
    let mut s = Script::established_client();
    for n in 0..4 {
        s.send_len(500);
        assert_eq!(s.take_data(), [n]);
    }
    s.at(1_000);
    assert_eq!(s.take_data(), [0, 1]);
    s.at(1_100).peer_acknowledges(tsn(1));
    assert_eq!(s.take_data(), [2, 3]);
}

/// Petlund 2009 §3: lksctp bundles outstanding chunks with a retransmission; the standard does not.
#[test]
fn the_profile_lksctp_bundles_outstanding_chunks() {
    for (profile, repeated) in [("lksctp", vec![0, 4]), ("rfc9260", vec![0])] {
        let mut s = Script::established_client_with(|_, association| {
            association.recovery =
                rexmit_sctp::recovery::RecoveryConfig::profile(profile).expect("a profile");
        });
        for n in 0..5 {
            s.at(u64::from(n)).send_len(100);
            assert_eq!(s.take_data(), [n]);
        }
        for (ms, end) in [(100, 2), (110, 3), (120, 4)] {
            s.at(ms).peer_sacks(crate::NONE, PEER_RWND, &[(2, end)]);
        }
        assert_eq!(s.take_data(), repeated, "{profile}");
        s.peer_acknowledges(tsn(4));
    }
}

/// pion/sctp#498: the timer runs whichever chunk was retransmitted.
#[test]
fn the_timer_runs_again_after_every_repetition() {
    let mut s = Script::established_client();
    s.send_len(FULL);
    s.send_len(FULL);
    assert_eq!((s.take_data(), s.take_data()), (vec![0], vec![1]));
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.at(1_100).peer_acknowledges(tsn(0));
    assert_eq!(s.take_data(), [1]);
    s.at(3_100);
    assert_eq!(s.take_data(), [1], "two seconds, for nothing new was measured");
}
