//! Data uses the primary path, and others while that has failed (RFC 9260 §6.4, §6.4.1, §8).

use rexmit_sctp::{CloseReason, Event, PathState, PrimaryError};

use crate::kit::*;
use crate::{states, two_paths, two_paths_with};

/// RFC 9260 §6.4: timed-out data goes to the other address, new data to the primary one.
#[test]
fn timed_out_data_is_retransmitted_over_the_other_path() {
    let mut s = two_paths();
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(0));
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(0));
    s.at(1_100).from(3).peer_acknowledges(tsn(0));
    s.send(b"two");
    expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(1));
    // RFC 9260 §6.3.3 E2: each path has its own timeout.
    s.at(3_100);
    expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(1));
    s.at(4_100);
    expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(1));
    let errors: Vec<_> = s.statistics().paths.iter().map(|path| path.errors).collect();
    assert_eq!(errors, [2, 1]);
}

/// RFC 9260 §8.2: an acknowledgement of data sent over both paths does not show which one works:
/// the errors of the first stay.
#[test]
fn errors_of_the_first_path_stay_when_the_other_was_answered() {
    let mut s = two_paths();
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(_)]);
    s.at(1_100).from(3).peer_acknowledges(tsn(0));
    assert_eq!(s.statistics().paths[0].errors, 1);
    s.send(b"two");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_200).from(2).peer_acknowledges(tsn(1));
    assert_eq!(s.statistics().paths[0].errors, 0);
}

/// RFC 9260 §7.2.4, §6.4: a fast retransmission is sent over the path of the original transmission.
#[test]
fn fast_retransmission_uses_the_same_path() {
    let mut s = two_paths();
    for _ in 0..4 {
        s.send(&[0; 1_000]);
        expect_packet_to!(s, 2, [Data(_)]);
    }
    for end in 2..=4 {
        s.peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), PEER_RWND, [(2, end)], []));
    }
    expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(0));
    s.peer_acknowledges(tsn(3));
}

/// The alternative configuration: timed-out data is retransmitted over the same path until that is inactive.
#[test]
fn timed_out_data_may_stay_on_its_path() {
    let same = rexmit_sctp::recovery::RetransmissionDestination::Same;
    let mut s = two_paths_with(|association| {
        association.recovery.sctp.retransmission_destination = same;
        association.failure.path_max_retrans = 2;
    });
    s.send(b"one");
    for (ms, host) in [(0, 2), (1_000, 2), (3_000, 2), (7_000, 3)] {
        s.go_to(ms);
        expect_packet_to!(s, host, [Data(_)]);
    }
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::Inactive, .. });
}

/// RFC 9260 §8.2, §6.4.1: after more than Path.Max.Retrans (5) errors the path is inactive, and new data is sent over
/// the other one.
#[test]
fn new_data_is_not_sent_over_an_inactive_path() {
    let mut s = two_paths();
    let mut ms = 0;
    for n in 0..6 {
        assert_eq!(s.events(), [], "after {n} errors");
        s.send(b"data");
        expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(n));
        ms += 1_000 << n;
        s.at(ms);
        expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(n));
        s.from(3).peer_acknowledges(tsn(n));
    }
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::Inactive, .. });
    expect_event!(s, Event::DataPathChanged { path: 1, .. });
    assert_eq!(states(&s), [PathState::Inactive, PathState::Active]);
    s.send(b"data");
    expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(6));
    s.peer_acknowledges(tsn(6));
    assert_eq!(s.statistics().paths[0].errors, 6);
}

/// RFC 9260 §8.3, §6.4: data is sent over the primary path again when it answers a HEARTBEAT.
#[test]
fn data_return_to_the_primary_path_when_it_answers() {
    let mut s =
        Script::with_addresses(&[3], |_, association| association.failure.path_max_retrans = 0);
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(_)]);
    s.from(3).peer_acknowledges(tsn(0));
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::Inactive, .. });
    expect_event!(s, Event::DataPathChanged { path: 1, .. });
    let mut sent = s.wait_for_packet();
    while Script::host_of(&sent) != 2 {
        let [Heartbeat(info)] = sent.chunks()[..] else { panic!("{sent:?}") };
        s.from(3).peer_sends([HeartbeatAck(info)]);
        sent = s.wait_for_packet();
    }
    let [Heartbeat(info)] = sent.chunks()[..] else { panic!("{sent:?}") };
    s.from(2).peer_sends([HeartbeatAck(info)]);
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::Active, .. });
    expect_event!(s, Event::DataPathChanged { path: 0, .. });
    s.send(b"two");
    expect_packet_to!(s, 2, [Data(_)]);
}

/// RFC 9260 §8.3: every path is monitored separately, also while data uses another one.
#[test]
fn every_idle_path_gets_heartbeats() {
    let mut s = Script::with_addresses(&[3], |_, _| ());
    let (mut tsn_sent, mut asked) = (tsn(0).wrapping_sub(1), Vec::new());
    for n in 1..=12 {
        s.each_until(n * 7_000, |s, sent| match sent.chunks()[..] {
            [Data(data)] => tsn_sent = data.tsn,
            [Heartbeat(info)] => {
                asked.push(Script::host_of(&sent));
                s.from(3).peer_sends([HeartbeatAck(info)]);
            }
            _ => panic!("{sent:?}"),
        });
        s.from(2).peer_acknowledges(tsn_sent);
        s.send(b"over the first path");
    }
    s.each_until(84_000, |_, _| ());
    assert_eq!(asked, [3, 3], "and the first one is not idle");
}

/// RFC 9260 §8.1: only HEARTBEATs on the path of data count as errors of the association.
#[test]
fn unanswered_heartbeats_of_another_path_do_not_end_the_association() {
    let mut s = Script::with_addresses(&[3], |_, association| {
        association.failure.association_max_retrans = 2;
        association.failure.path_max_retrans = 1;
    });
    for _ in 0..12 {
        let sent = s.wait_for_packet();
        let [Heartbeat(info)] = sent.chunks()[..] else { panic!("{sent:?}") };
        if Script::host_of(&sent) == 2 {
            s.from(2).peer_sends([HeartbeatAck(info)]);
        }
    }
    expect_event!(s, Event::PathStatus { path: 1, state: PathState::Inactive, .. });
    assert_eq!(s.events(), []);
}

/// RFC 7829 §4.1: with every path inactive, data is sent over the one with the fewest errors; the association ends by
/// its own error counter (RFC 9260 §8.1).
#[test]
fn data_is_still_sent_while_every_path_is_inactive() {
    let mut s = two_paths_with(|association| association.failure.path_max_retrans = 0);
    s.send(b"anybody");
    // The timeout of each path doubles for itself.
    let expected = [(0, 2), (1_000, 3), (2_000, 2), (4_000, 3), (6_000, 2), (10_000, 3)];
    for (ms, host) in expected {
        s.go_to(ms);
        expect_packet_to!(s, host, [Data(d)] if d.tsn == tsn(0));
    }
    assert_eq!(states(&s), [PathState::Inactive; 2]);
    s.at(10_100).from(3).peer_acknowledges(tsn(0));
    assert_eq!(states(&s), [PathState::Inactive; 2], "it is unknown which one works");
    s.send(b"over one path alone");
    let sent = s.next_packet();
    let host = Script::host_of(&sent);
    s.from(host).peer_acknowledges(tsn(1));
    assert_eq!(s.statistics().paths[usize::from(host) - 2].state, PathState::Active);
}

/// RFC 9260 §8.1: Association.Max.Retrans counts the errors of all paths.
#[test]
fn errors_of_all_paths_end_the_association() {
    let mut s = two_paths_with(|association| association.failure.association_max_retrans = 3);
    s.send(b"anybody");
    for (ms, host) in [(0, 2), (1_000, 3), (2_000, 2), (4_000, 3)] {
        s.go_to(ms);
        expect_packet_to!(s, host, [Data(_)]);
    }
    s.expect_silence_until(5_999);
    s.expect_silence_until(6_000);
    let reported = s.events();
    assert_eq!(reported.last(), Some(&Event::Closed(CloseReason::Unreachable)), "{reported:?}");
}

/// RFC 9260 §11.1 SET PRIMARY.
#[test]
fn the_application_chooses_the_primary_path() {
    let mut s = two_paths();
    assert_eq!(s.set_primary(2), Err(PrimaryError::NoSuchPath));
    s.set_primary(1).unwrap();
    expect_event!(s, Event::DataPathChanged { path: 1, address: a } if a == address(3, 9899));
    s.send(b"one");
    expect_packet_to!(s, 3, [Data(_)]);
    let primary: Vec<_> = s.statistics().paths.iter().map(|path| path.is_primary).collect();
    assert_eq!(primary, [false, true]);
    s.from(3).peer_acknowledges(tsn(0));
    s.set_primary(1).unwrap();
    assert_eq!(s.events(), [], "no change");
}

/// Each path has its own window, timeout and data in flight (RFC 9260 §6.3, §7.2).
#[test]
fn each_path_has_a_window_of_its_own() {
    let mut s = two_paths();
    for _ in 0..8 {
        s.send(&[0; 1_180]);
    }
    for _ in 0..4 {
        expect_packet_to!(s, 2, [Data(_)]);
    }
    s.expect_silence();
    s.set_primary(1).unwrap();
    for _ in 0..4 {
        expect_packet_to!(s, 3, [Data(_)]);
    }
    let of =
        |s: &Script| s.statistics().paths.iter().map(|p| p.packets_in_flight).collect::<Vec<_>>();
    assert_eq!(of(&s), [4, 4]);
    s.at(100).from(3).peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), PEER_RWND, [(5, 8)], []));
    assert_eq!(of(&s), [4, 0]);
    let srtt: Vec<_> =
        s.statistics().paths.iter().map(|p| p.srtt.map(|srtt| srtt.as_millis())).collect();
    assert_eq!(srtt, [None, Some(12)], "an eighth of 100 ms");
}

/// RFC 9260 §9.2, §6.4.1: an unanswered SHUTDOWN is retransmitted over the other path.
#[test]
fn shutdown_is_repeated_over_the_other_path() {
    let mut s = two_paths();
    s.shutdown();
    for (ms, host) in [(0, 2), (1_000, 3), (2_000, 2), (4_000, 3)] {
        s.go_to(ms);
        expect_packet_to!(s, host, [Shutdown { .. }]);
    }
    s.from(3).peer_sends([ShutdownAck]);
    expect_packet_to!(s, 3, [ShutdownComplete { .. }]);
}

/// RFC 7829 §5: with Primary Path Switchover, data stays on the new path.
#[test]
fn with_switchover_data_do_not_return() {
    let mut s = two_paths_with(|association| {
        association.failure.path_max_retrans = 0;
        association.multihoming.primary_switchover_max_retrans = Some(0);
    });
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(_)]);
    s.from(3).peer_acknowledges(tsn(0));
    let primary: Vec<_> = s.statistics().paths.iter().map(|path| path.is_primary).collect();
    assert_eq!(primary, [false, true]);
}
