//! Segments that belong to no connection (RFC 9293 §3.10.7.1, §3.10.7.2), and segments that must not be answered.

mod kit;

use kit::*;

/// A segment of no connection is answered by the RST `expected`.
#[track_caller]
fn expect_reset(segment: &Draft, expected: &Draft) {
    for is_listening in [false, true] {
        let mut s = if is_listening { Script::server() } else { Script::silent_with(|_, _| ()) };
        let is_syn = segment.flags == Flags::SYN;
        s.arrives(segment.clone());
        if is_listening && is_syn {
            s.expect(syn_ack());
        } else {
            s.expect(expected.clone());
            assert_eq!(s.counted().resets_sent, 1);
        }
        assert_eq!(s.endpoint.connection_count(), usize::from(is_listening && is_syn));
    }
}

#[test]
fn a_segment_without_ack_is_reset_with_one() {
    // Numbers of our side count from ISS, and the answer's sequence number is 0 on the wire.
    let zero = 0u32.wrapping_sub(ISS);
    expect_reset(&syn(), &rst_ack(zero, 1));
}

#[test]
fn a_segment_with_ack_is_reset_at_its_acknowledgment() {
    expect_reset(&ack(100, 77), &rst(77));
    expect_reset(&data(100, 77, b"data"), &rst(77));
    expect_reset(&fin(100, 77), &rst(77));
    expect_reset(&syn_ack(), &rst(1));
    expect_reset(&syn_ack().and(Flags::FIN), &rst(1));
}

#[test]
fn a_rst_is_never_answered() {
    for mut s in [Script::server(), Script::silent_with(|_, _| ())] {
        s.arrives(rst(100));
        s.arrives(rst_ack(100, 1));
        s.arrives(rst(100).and(Flags::SYN));
        s.arrives(rst(100).and(Flags::FIN));
        s.expect_silence();
    }
}

/// RFC 9293 §3.10.7.2, fourth: a segment without SYN, ACK or RST is dropped; so is a SYN with FIN.
#[test]
fn a_listener_drops_invalid_segments() {
    let mut s = Script::server();
    for flags in [Flags::default(), Flags::FIN, Flags::PSH, Flags::SYN.and(Flags::FIN)] {
        s.arrives(Draft { flags, ..ack(0, 0) });
    }
    s.expect_silence();
    assert_eq!(s.endpoint.connection_count(), 0);
}

/// RFC 9293 §3.9.2.3 (MUST-57, MUST-63).
#[test]
fn nothing_is_sent_to_or_from_an_address_that_is_not_of_a_single_host() {
    for other in ["224.0.0.1:1", "255.255.255.255:1", "0.0.0.0:1", "192.0.2.2:0"] {
        let mut s = Script::server();
        s.arrives_from(other.parse().unwrap(), syn());
        s.arrives_from(other.parse().unwrap(), ack(1, 1));
        s.expect_silence();
        assert_eq!(s.counted().misdirected, 2);
    }
    let mut s = Script::server();
    s.peer.endpoint = "224.0.0.1:80".parse().unwrap();
    s.arrives(syn());
    s.expect_silence();
    assert_eq!(s.counted().misdirected, 1);
}

/// A SYN from our own address and port to itself, the "LAND" attack.
#[test]
fn an_endpoint_does_not_answer_its_own_address() {
    let mut s = Script::server();
    let own = s.peer.endpoint;
    s.arrives_from(own, syn());
    s.arrives_from(own, ack(1, 1));
    s.expect_silence();
    assert_eq!((s.counted().misdirected, s.endpoint.connection_count()), (2, 0));
}

#[test]
fn invalid_segments_are_counted_by_their_fault() {
    let mut s = Script::server();
    let good = s.peer_segment(&syn());
    s.deliver(&good[..19]);
    s.deliver(b"");
    let mut bad = good.clone();
    bad[20] ^= 1;
    s.deliver(&bad);
    let counted = s.counted();
    assert_eq!((counted.malformed_header, counted.bad_checksum, counted.malformed()), (2, 1, 3));
    s.expect_silence();
}

/// The endpoint cannot be used to flood another host: about `out_of_the_blue_responses_per_second`.
#[test]
fn responses_out_of_the_blue_are_limited_per_second() {
    let mut s = Script::silent_with(|config, _| config.out_of_the_blue_responses_per_second = 100);
    let mut answers = 0;
    for second in 0..2 {
        s.at(second * 1000);
        for port in 1..1000 {
            s.arrives_from(address(9, port), syn());
            answers += u64::from(s.poll_packet().is_some());
        }
    }
    assert!((100..=300).contains(&answers), "{answers}");
    assert_eq!(s.counted().resets_sent, answers);
    assert_eq!(s.counted().out_of_the_blue_responses_suppressed, 2 * 999 - answers);
}

#[test]
fn answers_that_are_not_polled_are_dropped_beyond_a_limit() {
    let mut s =
        Script::silent_with(|config, _| config.out_of_the_blue_responses_per_second = u32::MAX);
    for port in 1..10_000 {
        s.arrives_from(address(9, port), syn());
    }
    let answers = std::iter::from_fn(|| s.poll_packet()).count();
    assert_eq!(answers, 256);
}
