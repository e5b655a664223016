//! Packet scripts of path MTU discovery (RFC 8899, RFC 4820): the sizes and times of probes, which answers and reports
//! are accepted, and the effect of a lost probe.

#[path = "kit/mod.rs"]
mod kit;

use kit::*;
use rexmit_core::Route;
use rexmit_sctp::{OutboundMessage, PathMtuConfig, PathMtuState, PathStatistics};

/// The sizes of an SCTP packet over IPv4 and UDP: the base, and those of Ethernet and of 9000 bytes.
const BASE: usize = 1232;
const ETHERNET: usize = 1472;
const JUMBO: usize = 8972;
const PROBE_TIMER: u64 = 1_000;

/// The size of a probe, and the Heartbeat Info that its answer returns.
type Probe = (usize, Vec<u8>);

impl Script {
    fn discovering() -> Self {
        Self::established_client_with(|_, a| a.path_mtu = Some(PathMtuConfig::default()))
    }

    fn path(&mut self) -> PathStatistics {
        let id = self.id();
        self.endpoint.paths(id).expect("it is there").remove(0)
    }

    fn refused(&self) -> u64 {
        self.endpoint.endpoint_statistics().too_big_refused
    }

    /// Reads the packets transmitted now. Returns the probes.
    fn take_probes(&mut self) -> Vec<Probe> {
        let mut probes = Vec::new();
        while let Some(sent) = self.poll_packet() {
            match sent.chunks()[..] {
                [Heartbeat(info), Pad(_)] => probes.push((sent.bytes.len(), info.to_vec())),
                _ => assert!(sent.chunks().iter().all(|chunk| !matches!(chunk, Pad(_)))),
            }
        }
        probes
    }

    /// Transfers a message of several packets, for which larger ones would be useful; the peer acknowledges all of it
    /// at once. Returns the probes.
    fn transfer(&mut self) -> Vec<Probe> {
        self.try_send(OutboundMessage::new(0, vec![b'x'; 20_000])).expect("it is accepted");
        let id = self.id();
        let mut probes = self.take_probes();
        let mut acknowledged = 0;
        loop {
            let statistics = self.endpoint.statistics(id).expect("it is there");
            let sent = statistics.recovery.new_units as u32;
            if sent == acknowledged {
                return probes;
            }
            self.peer_acknowledges(tsn(sent - 1));
            acknowledged = sent;
            probes.append(&mut self.take_probes());
        }
    }

    /// The one probe that a transfer causes.
    #[track_caller]
    fn probe_of_transfer(&mut self) -> Probe {
        let mut probes = self.transfer();
        assert_eq!(probes.len(), 1, "one probe at a time: {probes:?}");
        probes.remove(0)
    }

    /// Delivers an ICMP "packet too big" that quotes the packet.
    fn too_big(&mut self, mtu: usize, (source, destination, tag): (u16, u16, u32)) {
        let mut bytes = Vec::new();
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes.extend(tag.to_be_bytes());
        let (now, route) = (self.run().now, self.peer.route);
        self.endpoint.handle_packet_too_big(now, route, mtu, &bytes);
    }
}

/// The quote in a true report.
const QUOTE: (u16, u16, u32) = (PORT, PEER_PORT, PEER_TAG);

/// The size of Ethernet is confirmed; the probe of the largest size is in flight.
fn with_ethernet() -> Script {
    let mut s = Script::discovering();
    for expected in [BASE, ETHERNET] {
        let (size, info) = s.probe_of_transfer();
        assert_eq!(size, expected);
        s.peer_sends([HeartbeatAck(&info)]);
        assert_eq!(s.path().max_packet_bytes, expected);
    }
    assert_eq!(s.probe_of_transfer().0, JUMBO);
    s
}

#[test]
fn small_messages_cause_no_probe() {
    let mut s = Script::discovering();
    for n in 0..100 {
        s.try_send(OutboundMessage::new(0, "small")).expect("it is accepted");
        expect_packet!(s, [Data(_)]);
        s.peer_acknowledges(tsn(n));
    }
    assert_eq!(s.path().mtu_discovery, PathMtuState::Base);
}

#[test]
fn an_answer_with_another_nonce_confirms_nothing() {
    let mut s = Script::discovering();
    let (size, info) = s.probe_of_transfer();
    assert_eq!(size, BASE);
    for byte in 0..8 {
        let mut guessed = info.clone();
        guessed[byte] ^= 1;
        s.peer_sends([HeartbeatAck(&guessed)]);
    }
    s.peer_sends_under(PEER_TAG, [HeartbeatAck(&info)]);
    assert_eq!(s.path().mtu_discovery, PathMtuState::Base);
    s.peer_sends([HeartbeatAck(&info)]);
    assert_eq!(s.path().mtu_discovery, PathMtuState::Searching);
    s.peer_sends([HeartbeatAck(&info)]);
    assert_eq!(s.path().max_packet_bytes, BASE, "twice is as once");
}

/// RFC 8899 §3, item 7: a lost probe does not count as congestion, nor as an error of the path (RFC 9260 §8.3).
#[test]
fn lost_probes_cost_neither_window_nor_errors() {
    let mut s = with_ethernet();
    let (cwnd, rto) = (s.path().cwnd, s.path().rto);
    for lost in 1..=3 {
        assert!(s.transfer().is_empty(), "the next probe waits for the timer");
        s.at(lost * PROBE_TIMER);
        let probes = s.take_probes();
        assert_eq!(probes.first().map(|(size, _)| *size), (lost < 3).then_some(JUMBO));
    }
    let path = s.path();
    assert_eq!((path.errors, path.rto, path.max_packet_bytes), (0, rto, ETHERNET));
    assert!(path.cwnd >= cwnd);
    assert!(s.probe_of_transfer().0 < JUMBO, "a smaller one is tried");
}

/// The error state ends when the base size is confirmed later (RFC 8899 §5.2).
#[test]
fn without_an_answer_to_base_probes_no_larger_size_is_probed() {
    let mut s = Script::discovering();
    assert_eq!(s.probe_of_transfer().0, BASE);
    for lost in 1..=3 {
        s.at(lost * PROBE_TIMER);
        let probes = s.take_probes();
        assert_eq!(probes.first().map(|(size, _)| *size), (lost < 3).then_some(BASE));
    }
    for ms in [3_000, 33_000, 62_999] {
        s.lose_until(ms);
        assert!(s.transfer().is_empty(), "not for a minute");
        let path = s.path();
        assert_eq!((path.mtu_discovery, path.max_packet_bytes), (PathMtuState::Error, BASE));
    }
    s.at(63_000);
    let (size, info) = s.probe_of_transfer();
    assert_eq!(size, BASE);
    s.peer_sends([HeartbeatAck(&info)]);
    assert_eq!(s.path().mtu_discovery, PathMtuState::Searching);
}

/// After ten minutes, larger packets are probed again (RFC 8899 §5.1.1, PMTU_RAISE_TIMER).
#[test]
fn a_search_begins_again_when_the_raise_timer_has_ended() {
    let mut s = with_ethernet();
    s.too_big(1501, QUOTE); // Nothing between: the search is over.
    assert_eq!(s.path().mtu_discovery, PathMtuState::SearchComplete);
    for ms in [1, 300_000, 599_999] {
        s.lose_until(ms);
        assert!(s.transfer().is_empty(), "{ms}");
    }
    s.lose_until(600_000);
    assert_eq!(s.probe_of_transfer().0, JUMBO);
}

/// RFC 9260 §10, rules 6 and 7; RFC 8899 §4.6.2.
#[test]
fn reports_that_cannot_be_true_are_refused() {
    let mut s = with_ethernet();
    let forged = [
        (PORT, PEER_PORT, PEER_TAG ^ 1),
        (PORT + 1, PEER_PORT, PEER_TAG),
        (PORT, PEER_PORT + 1, PEER_TAG),
        (PORT, PEER_PORT, 0),
    ];
    for (refused, quote) in (1..).zip(forged) {
        s.too_big(1400, quote);
        assert_eq!(s.refused(), refused, "{quote:?}");
    }
    // MTUs below the base size, not below the size that was sent, and zero.
    for (refused, mtu) in (5..).zip([0, 68, 576, BASE + 24, JUMBO + 28, 65_535, usize::MAX]) {
        s.too_big(mtu, QUOTE);
        assert_eq!(s.refused(), refused, "{mtu}");
    }
    let (now, route) = (s.run().now, s.peer.route);
    s.endpoint.handle_packet_too_big(now, route, 1400, &[0x13, 0x88]);
    let elsewhere = Route { remote: address(3, 9899), ..route };
    s.endpoint.handle_packet_too_big(now, elsewhere, 1400, &[0; 8]);
    assert_eq!(s.refused(), 13);
    assert_eq!(s.path().max_packet_bytes, ETHERNET);
}

#[test]
fn without_discovery_reports_are_refused() {
    let mut s = Script::established_client();
    s.too_big(1400, QUOTE);
    assert_eq!((s.refused(), s.path().max_packet_bytes), (1, BASE));
    assert_eq!(s.path().mtu_discovery, PathMtuState::Off);
}

/// A report above the confirmed size is probed next; one below it restarts the search from the base size.
#[test]
fn a_report_is_probed_before_it_is_used() {
    let mut s = with_ethernet();
    s.too_big(4352, QUOTE);
    assert_eq!((s.refused(), s.path().max_packet_bytes), (0, ETHERNET));
    let (size, info) = s.probe_of_transfer();
    assert_eq!(size, 4352 - 28);
    s.peer_sends([HeartbeatAck(&info)]);
    let path = s.path();
    assert_eq!((path.max_packet_bytes, path.mtu_discovery), (size, PathMtuState::SearchComplete));
    s.too_big(1400, QUOTE);
    assert_eq!((s.refused(), s.path().max_packet_bytes), (0, BASE));
    for expected in [BASE, 1372] {
        let (size, info) = s.probe_of_transfer();
        assert_eq!(size, expected);
        s.peer_sends([HeartbeatAck(&info)]);
    }
    let path = s.path();
    assert_eq!((path.max_packet_bytes, path.mtu_discovery), (1372, PathMtuState::SearchComplete));
}

/// RFC 4820 §3: PAD is dropped, and the answer to a probe is as short as to any HEARTBEAT.
#[test]
fn pad_is_ignored() {
    let mut s = Script::established_client();
    s.peer_sends([Pad(&[0xAA; 60_000])]);
    s.expect_silence();
    s.peer_sends([Pad(&[]), Heartbeat(b"probe"), Pad(&[1; 999])]);
    let answer = s.next_packet();
    assert!(matches!(answer.chunks()[..], [HeartbeatAck(b"probe")]), "{answer:?}");
    s.peer_sends([Data(data(0, b"hello")), Pad(&[1])]);
    expect_packet!(s, [Sack(_)]);
}

/// PAD counts as an unknown chunk: chunks after the limit of these are dropped.
#[test]
fn a_packet_may_have_few_pad_chunks() {
    let mut s = Script::established_client();
    let pads = |count| std::iter::repeat_n(Pad(&[]), count);
    s.peer_sends(pads(1024).chain([Heartbeat(b"probe")]));
    expect_packet!(s, [HeartbeatAck(_)]);
    s.peer_sends(pads(1025).chain([Heartbeat(b"probe")]));
    s.expect_silence();
}
