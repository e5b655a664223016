//! Setup with a known round-trip time: a lost packet delays it by less than a second.

use rexmit_core::Machine;
use rexmit_sctp::{CloseReason, Event};

use super::*;

impl Script {
    fn knowing(rtt_ms: Option<u64>, setup_by_rtt: bool) -> Self {
        Self::client_with(|_, association| {
            association.failure.heartbeat_interval = None;
            association.handshake.initial_rtt = rtt_ms.map(Duration::from_millis);
            association.recovery.sctp.setup_by_rtt = setup_by_rtt;
        })
    }
}

/// The INIT is retransmitted after one and a half round trips, which doubles while it is less than RTO.Initial; then
/// after RTO.Initial.
#[test]
fn init_is_retransmitted_after_one_and_a_half_of_a_known_round_trip() {
    let table = [
        (None, [0, 1000, 3000, 7000, 15_000, 31_000]),
        (Some(100), [0, 150, 450, 1050, 2050, 4050]),
        (Some(4), [0, 10, 30, 70, 150, 310]),
        (Some(1000), [0, 1000, 3000, 7000, 15_000, 31_000]),
    ];
    for (rtt, expected) in table {
        let mut s = Script::knowing(rtt, false);
        let sent: Vec<_> = (0..6).map(|_| s.wait_for_packet().at_ms()).collect();
        assert_eq!(sent, expected, "{rtt:?}");
    }
}

impl Script {
    /// Counts the packets until the handshake is given up without any response, and measures the time.
    fn give_up(&mut self) -> (usize, u64) {
        let (begin, mut packets) = (self.now_ms(), 0);
        loop {
            while self.poll_packet().is_some() {
                packets += 1;
            }
            if self.events().contains(&Event::Closed(CloseReason::ConnectTimedOut)) {
                return (packets, self.now_ms() - begin);
            }
            let due = self.endpoint.poll_timeout().expect("T1 runs");
            self.lose_until(due.as_nanos().div_ceil(1_000_000));
        }
    }
}

/// A setup with a known round-trip time waits for a restarting server as long as one without: nine transmissions are
/// timed by the RTO, after the few earlier ones.
#[test]
fn a_known_round_trip_does_not_end_the_setup_sooner() {
    let (packets, ms) = (9, 1000 * (1 + 2 + 4 + 8 + 16 + 32 + 3 * 60));
    let table = [(None, 0, 0), (Some(1), 7, 1270), (Some(20), 6, 1890), (Some(100), 3, 1050)];
    for (rtt, early, early_ms) in table {
        let mut s = Script::knowing(rtt, false);
        assert_eq!(s.give_up(), (packets + early, ms + early_ms), "{rtt:?}");
    }
    // The timeout of COOKIE ECHO follows from the round trip of INIT.
    for (rtt, early, early_ms) in [(None, 0, 0), (Some(200), 3, 1050)] {
        for data in [false, true] {
            let mut s = Script::knowing(rtt, false);
            if data {
                s.send(b"first");
            }
            s.take_init();
            s.at(100).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
            assert_eq!(s.give_up(), (packets + early, ms + early_ms), "{rtt:?}, {data}");
        }
    }
}

#[test]
fn cookie_echo_is_timed_by_the_round_trip_of_init_and_bundles_data_again() {
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

/// A retransmitted INIT gives no sample; the known round-trip time is used as the first one.
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

/// The setup of the second association with a peer uses the RTT measured by the first one.
#[test]
fn the_endpoint_remembers_the_round_trip_time_of_a_peer() {
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

/// The peer has set up the association, so that without the HEARTBEAT the first ACK of data would be the first sample.
#[test]
fn a_server_measures_with_a_heartbeat_after_its_cookie_ack() {
    for (heartbeat_samples, chunks) in [(true, 2), (false, 1)] {
        let mut s = Script::with(|endpoint, association| {
            endpoint.accept = true;
            association.failure.heartbeat_interval = None;
            association.recovery.thin.sctp.heartbeat_samples = heartbeat_samples;
        });
        let cookie = s.peer_begins();
        s.at(100).peer_sends([CookieEcho(&cookie)]);
        let answer = s.next_packet();
        assert!(matches!(answer.chunks()[0], CookieAck));
        assert_eq!(answer.chunks().len(), chunks);
    }
}
