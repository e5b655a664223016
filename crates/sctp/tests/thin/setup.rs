//! A setup that goes by the round-trip time: what of it is lost costs no second.

use rexmit_sctp::{CloseReason, Event};

use super::*;

impl Script {
    fn knowing(rtt_ms: Option<u64>, setup_by_rtt: bool) -> Self {
        Self::client_with(|_, association| {
            association.heartbeat_interval = None;
            association.initial_rtt = rtt_ms.map(Duration::from_millis);
            association.recovery.setup_by_rtt = setup_by_rtt;
        })
    }
}

/// One and a half round trips, doubling, and RTO.Initial where that is less.
#[test]
fn init_is_repeated_after_one_and_a_half_of_a_known_round_trip() {
    let table = [
        (None, [0, 1000, 3000, 7000, 15_000, 31_000]),
        (Some(100), [0, 150, 450, 1050, 2250, 4650]),
        (Some(4), [0, 10, 22, 46, 94, 190]),
        (Some(1000), [0, 1000, 3000, 7000, 15_000, 31_000]),
    ];
    for (rtt, expected) in table {
        let mut s = Script::knowing(rtt, false);
        let sent: Vec<_> = (0..6).map(|_| s.wait_for_packet().at_ms()).collect();
        assert_eq!(sent, expected, "{rtt:?}");
    }
}

#[test]
fn cookie_echo_goes_by_the_round_trip_of_init_and_takes_data_along_again() {
    for (setup_by_rtt, repeated_at) in [(true, 250), (false, 1100)] {
        let mut s = Script::knowing(None, setup_by_rtt);
        s.send(b"first");
        s.take_init();
        s.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(s, [CookieEcho(_), Data(_)]);
        let again = s.wait_for_packet();
        assert!(matches!(again.chunks()[..], [CookieEcho(_), Data(_)]));
        assert_eq!(again.at_ms(), repeated_at);
    }
}

/// What was repeated measures nothing, but what was known before is the first sample.
#[test]
fn a_repeated_setup_leaves_no_backoff_behind() {
    let mut s = Script::knowing(Some(100), false);
    s.take_init();
    s.at(150);
    s.take_init();
    s.at(250).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.at(400);
    expect_packet!(s, [CookieEcho(_)]);
    s.at(500).peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
    assert_eq!(s.statistics().paths[0].srtt, Some(Duration::from_millis(100)));
    assert_eq!(s.statistics().paths[0].rto.as_millis(), 1000);
}

/// The second association with a peer begins with what the first one measured.
#[test]
fn the_endpoint_remembers_how_far_a_peer_is_away() {
    for setup_by_rtt in [true, false] {
        let mut s = Script::knowing(None, setup_by_rtt);
        s.take_init();
        s.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
        expect_packet!(s, [CookieEcho(_)]);
        s.at(200).peer_sends([CookieAck]);
        expect_event!(s, Event::Connected { .. });
        s.abort(b"");
        expect_packet!(s, [Abort { .. }]);
        expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
        s.at(1000).connect();
        assert_eq!(s.wait_for_packet().at_ms(), 1000);
        assert_eq!(s.wait_for_packet().at_ms(), if setup_by_rtt { 1150 } else { 2000 });
    }
}

/// The peer set it up, so that the first acknowledgement would be the first measurement.
#[test]
fn a_server_measures_with_a_heartbeat_beside_its_cookie_ack() {
    for (heartbeat_samples, chunks) in [(true, 2), (false, 1)] {
        let mut s = Script::with(|endpoint, association| {
            endpoint.accept = true;
            association.heartbeat_interval = None;
            association.recovery.thin.heartbeat_samples = heartbeat_samples;
        });
        let cookie = s.peer_begins();
        s.at(100).peer_sends([CookieEcho(&cookie)]);
        let answer = s.next_packet();
        assert!(matches!(answer.chunks()[0], CookieAck));
        assert_eq!(answer.chunks().len(), chunks);
    }
}
