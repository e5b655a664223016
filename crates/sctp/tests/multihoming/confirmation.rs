//! Path verification: no data is sent to unconfirmed addresses (RFC 9260 §5.4).

use rexmit_sctp::{Event, PathState};

use crate::kit::*;
use crate::states;

/// Unconfirmed addresses are probed in turn, one per RTO (HB.Max.Burst = 1).
#[test]
fn addresses_are_probed_one_at_a_time_in_turn() {
    let mut s = Script::server();
    s.peer_begins_at(&[3, 4]);
    // The timeout of each doubles with each probe that is not answered.
    for (ms, host) in [(0, 3), (1_000, 4), (2_000, 3), (4_000, 4), (6_000, 3), (10_000, 4)] {
        s.go_to(ms);
        assert_eq!((s.take_probe().0, ms), (address(host, 9899), ms));
    }
}

/// The number of concurrent probes is the configured HB.Max.Burst.
#[test]
fn as_many_are_probed_at_a_time_as_configured() {
    let mut s = Script::with(|_, association| association.multihoming.heartbeat_max_burst = 2);
    s.peer_begins_at(&[3, 4, 5]);
    let first = s.take_probe();
    assert_eq!((first.0, s.take_probe().0), (address(3, 9899), address(4, 9899)));
    s.at(500).answer_probe(&first);
    assert_eq!(s.take_probe().0, address(5, 9899));
    expect_event!(s, Event::PathStatus { path: 1, state: PathState::Active, .. });
}

/// RFC 9260 §5.4: the answer confirms the path whose nonce it contains, and is an RTT sample of it.
#[test]
fn an_answer_confirms_the_address() {
    let mut s = Script::server();
    s.peer_begins_at(&[3]);
    assert_eq!(states(&s), [PathState::Active, PathState::Unconfirmed]);
    let probe = s.take_probe();
    s.at(300).answer_probe(&probe);
    let at = address(3, 9899);
    expect_event!(s, Event::PathStatus { path: 1, address, state: PathState::Active } if address == at);
    assert_eq!(states(&s), [PathState::Active, PathState::Active]);
    assert_eq!(s.statistics().paths[1].srtt.map(|srtt| srtt.as_millis()), Some(300));
    assert_eq!(s.events(), [], "data stay where they are");
}

/// RFC 9260 §5.4: only the right nonce confirms an address.
#[test]
fn nothing_but_the_nonce_confirms_an_address() {
    let mut s = Script::server();
    s.peer_begins_at(&[3]);
    let (_, info) = s.take_probe();
    for byte in 0..9 {
        let mut forged = info.clone();
        forged[byte] ^= 1;
        s.peer_sends([HeartbeatAck(&forged)]);
    }
    // A packet with the right tag from there, and data that are acknowledged.
    s.from(3).peer_sends([Data(data(0, b"from there"))]);
    expect_packet_to!(s, 2, [Sack(_)]);
    s.send(b"to the peer");
    expect_packet_to!(s, 2, [Data(_)]);
    s.from(3).peer_acknowledges(tsn(0));
    assert_eq!(states(&s), [PathState::Active, PathState::Unconfirmed]);
}

/// RFC 9260 §5.4: no DATA is sent to an unconfirmed address, even if the other path fails.
#[test]
fn unconfirmed_address_gets_no_data() {
    let mut s = Script::with(|_, association| {
        association.failure.heartbeat_interval = None;
        association.failure.path_max_retrans = 1;
    });
    s.peer_begins_at(&[3]);
    s.take_probe();
    s.at(100).send(b"nowhere else to go");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Heartbeat(_)]);
    for ms in [1_100, 3_100] {
        s.at(ms);
        expect_packet_to!(s, 2, [Data(_)]);
    }
    expect_event!(s, Event::PathStatus { path: 0, state: PathState::Inactive, .. });
    assert_eq!(s.events(), []);
    assert!(s.set_primary(1).is_err());
}

/// RFC 9260 §5.4: unanswered probes do not count as errors of the association, and after Path.Max.Retrans they are sent
/// no more often than heartbeats.
#[test]
fn address_that_never_answers_is_probed_more_rarely_and_does_no_harm() {
    let mut s = Script::with(|_, association| association.failure.association_max_retrans = 2);
    s.peer_begins_at(&[3]);
    let mut at_ms = 0;
    for timeout_ms in [1_000, 2_000, 4_000, 8_000, 16_000] {
        let sent = s.wait_for_packet();
        assert_eq!((Script::host_of(&sent), sent.at_ms()), (3, at_ms));
        at_ms += timeout_ms;
    }
    let (mut to_the_other, mut probes) = (0, Vec::new());
    while probes.len() < 3 {
        let sent = s.wait_for_packet();
        match Script::host_of(&sent) {
            2 => {
                to_the_other += 1;
                let [Heartbeat(info)] = sent.chunks()[..] else { panic!("{sent:?}") };
                s.peer_sends([HeartbeatAck(info)]);
            }
            _ => probes.push(sent.at_ms()),
        }
    }
    // The sixth is sent at once, the seventh and eighth after about HB.interval and a timeout each.
    assert_eq!(probes[0], 31_000);
    assert!((63_000 + 60_000..63_000 + 120_000).contains(&probes[1]), "{probes:?}");
    assert!((60_000 + 60_000..60_000 + 120_000).contains(&(probes[2] - probes[1])), "{probes:?}");
    assert!(to_the_other >= 4);
    assert_eq!(s.events(), []);
    assert_eq!(s.statistics().paths[0].errors, 0);
}
