//! A potentially failed path gets no data while another works (RFC 7829).

use rexmit_sctp::{AssociationConfig, Event, PathState};

use crate::kit::*;
use crate::states;

fn two_paths(change: impl FnOnce(&mut AssociationConfig)) -> Script {
    Script::with_addresses(&[3], |_, association| {
        association.recovery.sctp.potentially_failed_max_retrans = Some(0);
        change(association);
    })
}

/// One timeout on the first path; its data was retransmitted over the other.
fn fail_once(s: &mut Script) {
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    let probe = s.take_probe();
    assert_eq!(probe.0, address(2, 9899), "rule 6: asked at once");
    expect_packet_to!(s, 3, [Data(_)]);
    s.from(3).peer_acknowledges(tsn(0));
}

/// RFC 7829 §3.2 rules 2, 3: with PFMR = 0 one timeout is enough.
#[test]
fn one_timeout_moves_new_data_to_the_other_path() {
    let mut s = two_paths(|_| ());
    fail_once(&mut s);
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::PotentiallyFailed, .. });
    expect_event!(s, Event::DataPathChanged { path: 1, .. });
    s.send(b"two");
    expect_packet_to!(s, 3, [Data(_)]);
    s.peer_acknowledges(tsn(1));
}

/// RFC 7829 §3.2 rule 12: the state is not reported, but the change of the data path is.
#[test]
fn reports_of_the_state_can_be_disabled() {
    let mut s = two_paths(|association| association.multihoming.report_potentially_failed = false);
    fail_once(&mut s);
    expect_event!(s, Event::DataPathChanged { path: 1, .. });
    assert_eq!(s.events(), []);
    assert_eq!(states(&s), [PathState::PotentiallyFailed, PathState::Active]);
}

/// RFC 7829 §3.2 rules 5, 6, 8: HEARTBEATs are sent once per timeout, which doubles each time, until the path is
/// inactive.
#[test]
fn the_path_is_probed_with_every_timeout_until_it_is_inactive() {
    let mut s = two_paths(|association| association.failure.path_max_retrans = 3);
    fail_once(&mut s);
    for ms in [3_000, 7_000] {
        s.at(ms);
        assert_eq!((s.take_probe().0, s.now_ms()), (address(2, 9899), ms));
    }
    assert_eq!(states(&s), [PathState::PotentiallyFailed, PathState::Active]);
    s.expect_silence_until(15_000);
    assert_eq!(states(&s), [PathState::Inactive, PathState::Active]);
}

/// RFC 7829 §3.2 rule 7: an answer to a HEARTBEAT makes the path active, and data uses it again.
#[test]
fn an_answer_makes_the_path_active() {
    let mut s = two_paths(|_| ());
    fail_once(&mut s);
    s.at(3_000);
    let probe = s.take_probe();
    s.events();
    s.at(3_050).answer_probe(&probe);
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::Active, .. });
    expect_event!(s, Event::DataPathChanged { path: 0, .. });
    s.send(b"two");
    expect_packet_to!(s, 2, [Data(_)]);
    s.from(2).peer_acknowledges(tsn(1));
}

/// RFC 7829 §3.2 rules 9, 10: an acknowledgement makes the path active only if its data was sent over this path alone.
#[test]
fn an_acknowledgement_makes_the_path_active_only_if_it_is_certain() {
    let mut s = two_paths(|_| ());
    s.send(&[0; 1_000]);
    expect_packet_to!(s, 2, [Data(_)]);
    s.send(&[0; 1_000]);
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    s.take_probe();
    expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(0));
    expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(1));
    s.at(1_100).peer_acknowledges(tsn(0));
    assert_eq!(states(&s), [PathState::PotentiallyFailed, PathState::Active]);
    s.peer_acknowledges(tsn(1));
    assert_eq!(states(&s), [PathState::PotentiallyFailed, PathState::Active]);

    let mut s = two_paths(|_| ());
    s.send(&[0; 1_000]);
    expect_packet_to!(s, 2, [Data(_)]);
    for _ in 0..3 {
        s.send(&[0; 1_180]);
        expect_packet_to!(s, 2, [Data(_)]);
    }
    s.set_primary(1).unwrap();
    for _ in 0..3 {
        s.send(&[0; 1_180]);
        expect_packet_to!(s, 3, [Data(_)]);
    }
    // The window of the second path has no room for all that timed out on the first.
    s.at(1_000);
    s.lose_until(1_000);
    s.peer_acknowledges(tsn(3));
    assert_eq!(states(&s)[0], PathState::Active, "one of them had not been retransmitted");
    s.lose_until(1_000);
}

/// RFC 7829 §3.2 rule 4: without an active path, data is sent over the path with the fewest errors; the states do not
/// change.
#[test]
fn without_an_active_path_the_fewest_errors_decide() {
    let mut s = two_paths(|association| association.failure.heartbeat_interval = None);
    s.send(b"one");
    for (ms, host) in [(0, 2), (1_000, 3), (2_000, 2), (4_000, 3), (6_000, 2)] {
        s.go_to(ms);
        expect_packet_to!(s, host, [Data(_)]);
    }
    assert_eq!(states(&s), [PathState::PotentiallyFailed; 2]);
}

/// RFC 7829 §3.2 rule 5: without heartbeats the path is not probed.
#[test]
fn without_heartbeats_the_path_is_not_probed() {
    let mut s = two_paths(|association| association.failure.heartbeat_interval = None);
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(_)]);
    s.from(3).peer_acknowledges(tsn(0));
    s.expect_silence_until(60_000);
}
