//! RTT samples in cases where Karn's rule forbids one.

use rexmit_sctp::PathState;

use super::*;

fn sampled() -> ThinConfig {
    m1().with_sctp(ThinSctpConfig::OFF.heartbeat_samples(true))
}

/// Chunk 1 is retransmitted at 450 ms; its acknowledgement at 600 ms may be for either transmission.
fn ambiguous(thin: ThinConfig) -> Script {
    let mut s = Script::thin(thin);
    s.at(200).send_alone(1);
    s.at(450);
    assert_eq!(s.take_data(), [1]);
    s.at(600).peer_acknowledges(tsn(1));
    s
}

#[test]
fn karns_rule_keeps_the_backoff_where_no_heartbeat_measures() {
    let mut s = ambiguous(m1());
    assert_eq!(s.statistics().paths[0].rto.as_millis(), 500);
    s.expect_silence_until(3_000);
}

#[test]
fn a_heartbeat_measures_the_round_trip_and_ends_the_backoff() {
    let mut s = ambiguous(sampled());
    let info = expect_packet!(s, [Heartbeat(info)] => info.to_vec());
    assert_eq!(s.statistics().paths[0].rto.as_millis(), 500);
    s.at(700).peer_writes(|p| p.plain(wire::kind::HEARTBEAT_ACK, 0, &info_parameter(&info)));
    // SRTT 100 ms; RTTVAR 3/4 · 37.5 = 28.125 ms.
    assert_eq!(s.statistics().paths[0].rto.as_micros(), 212_500);
    // A HEARTBEAT ACK counts once.
    s.at(900).peer_writes(|p| p.plain(wire::kind::HEARTBEAT_ACK, 0, &info_parameter(&info)));
    assert_eq!(s.statistics().paths[0].rto.as_micros(), 212_500);
}

impl Script {
    /// Sends a chunk; returns its number.
    fn send_next(&mut self) -> u32 {
        self.send(b"payload");
        self.take_data()[0]
    }
}

/// The Heartbeat Info parameter, header included.
fn info_parameter(info: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + info.len()).expect("it is short");
    [&[0, 1][..], &len.to_be_bytes(), info].concat()
}

#[test]
fn one_heartbeat_is_sent_per_timeout_and_an_unanswered_one_is_no_error() {
    let mut s = ambiguous(sampled());
    expect_packet!(s, [Heartbeat(_)]);
    // Each is repeated once, so the timeout doubles, and the heartbeat waits for as long.
    for (sent, repeated, acknowledged, rto, leaves) in [
        (610, 1_110, 1_111, 1_000, false),
        (1_300, 2_300, 2_400, 2_000, false),
        (2_700, 4_700, 4_800, 4_000, true),
    ] {
        let n = s.at(sent).send_next();
        s.at(repeated);
        assert_eq!(s.take_data(), [n]);
        s.at(acknowledged).peer_acknowledges(tsn(n));
        assert_eq!(s.statistics().paths[0].rto.as_millis(), rto);
        if leaves {
            expect_packet!(s, [Heartbeat(_)]);
        }
        s.expect_silence();
    }
    assert_eq!(s.statistics().paths[0].state, PathState::Active);
    s.expect_silence_until(60_000);
    assert_eq!(s.events(), [], "a lost reply has no effect");
}

/// A receiver that acknowledges 200 ms late: the timeout is spurious, and Karn's rule takes no sample.
/// The duplicate report shows that the SACK was for the first transmission, after 300 ms: SRTT 7/8 · 100 + 1/8 · 300 =
/// 125 ms, RTTVAR 3/4 · 37.5 + 1/4 · 200 = 78.125 ms.
#[test]
fn a_duplicate_report_measures_the_round_trip_of_the_first_copy() {
    for (ack_delay_samples, rto_us) in [(false, 500_000), (true, 437_500)] {
        let mut s = Script::thin(m1().ack_delay_samples(ack_delay_samples));
        s.at(200).send_alone(1);
        s.at(450);
        assert_eq!(s.take_data(), [1]);
        s.at(500).peer_acknowledges(tsn(1));
        assert_eq!(s.statistics().paths[0].rto.as_millis(), 500);
        s.at(550).peer_sacks(tsn(1), &[], &[tsn(1)]);
        assert_eq!(s.statistics().paths[0].rto.as_micros(), rto_us);
    }
}

/// The first SACK is lost: the one that reports the duplicate may be for the second transmission.
#[test]
fn a_chunk_acknowledged_with_its_duplicate_gives_no_sample() {
    let mut s = Script::thin(m1().ack_delay_samples(true));
    s.at(200).send_alone(1);
    s.at(450);
    assert_eq!(s.take_data(), [1]);
    s.at(550).peer_sacks(tsn(1), &[], &[tsn(1)]);
    assert_eq!(s.statistics().paths[0].rto.as_millis(), 500);
}

/// A chunk that is acknowledged together with a later one gives no sample either: its own SACK may have been lost.
#[test]
fn a_chunk_acknowledged_with_a_later_one_gives_no_sample() {
    let mut s = Script::thin(m1().ack_delay_samples(true));
    s.at(200).send_alone(1);
    s.at(440).send_alone(2);
    s.at(450);
    assert_eq!(s.take_data(), [1, 2]);
    s.at(540).peer_acknowledges(tsn(2));
    let rto = s.statistics().paths[0].rto;
    s.at(550).peer_sacks(tsn(2), &[], &[tsn(1)]);
    assert_eq!(s.statistics().paths[0].rto, rto);
}

fn srtt_ms(s: &Script) -> u128 {
    s.statistics().paths[0].srtt.expect("a sample").as_millis()
}

/// A receiver that delays SACKs acknowledges two chunks with one. The timeout of a thin stream runs from the first of
/// them, so its RTT of 250 ms is the sample, and not the 100 ms of the second, once most SACKs acknowledge two.
#[test]
fn the_ack_delay_of_a_receiver_is_in_the_timeout() {
    // The first SACKs are not enough to learn from: 250 − 150 · (7/8)³⁷ ms is the estimate after 37 samples.
    for (ack_delay_samples, srtt) in [(false, 100), (true, 248)] {
        let mut s = Script::thin(ThinConfig::OFF.ack_delay_samples(ack_delay_samples));
        for pair in 0..40 {
            let start = 1000 + 300 * pair;
            s.at(start).send_next();
            let last = s.at(start + 150).send_next();
            s.at(start + 250).peer_acknowledges(tsn(last));
        }
        assert_eq!(srtt_ms(&s), srtt);
    }
}

/// One SACK in four is lost: the next one acknowledges two chunks, but the receiver does not delay SACKs.
#[test]
fn a_lost_sack_is_not_mistaken_for_ack_delay() {
    let mut s = Script::thin(ThinConfig::OFF.ack_delay_samples(true));
    for round in 0..40 {
        let start = 1000 + 600 * round;
        let [a, b, c, d] = [0, 150, 300, 450].map(|ms| start + ms);
        for (sent, is_acknowledged) in [(a, true), (b, true), (c, false), (d, true)] {
            let last = s.at(sent).send_next();
            if is_acknowledged {
                s.at(sent + 100).peer_acknowledges(tsn(last));
            }
        }
    }
    assert_eq!(srtt_ms(&s), 100);
}
