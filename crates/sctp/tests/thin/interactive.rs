//! The profiles `interactive` and `interactive-redundant`, packet by packet.

use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::{OutboundMessage, Reliability};

use super::*;

impl Script {
    /// An association whose handshake measured two RTTs of 100 ms, so that the first margin is 60 ms.
    fn with_profile(name: &str) -> Self {
        Self::measured(|association| {
            association.recovery = RecoveryConfig::profile(name).expect("it exists");
        })
    }
}

#[test]
fn a_lost_chunk_is_retransmitted_by_the_probe_timer_and_so_is_its_copy() {
    let mut s = Script::with_profile("interactive");
    s.at(300).send(b"payload");
    assert_eq!(s.take_flagged_data(), (vec![1], vec![true]), "with the I bit");
    for ms in [460, 620, 780] {
        let again = s.wait_for_packet();
        assert_eq!((again.at_ms(), again.chunks().len()), (ms, 1));
    }
    s.at(880).peer_acknowledges(tsn(1));
    s.expect_silence_until(3_000);
    let counted = s.statistics().recovery;
    assert_eq!((counted.retransmitted.probe, counted.retransmitted.total()), (3, 3));
    assert_eq!((counted.timeouts, counted.fast_recoveries), (0, 1));
}

/// Each retransmission is sent twice, a millisecond apart.
#[test]
fn a_redundant_retransmission_is_sent_twice() {
    let mut s = Script::with_profile("interactive-redundant");
    s.at(300).send_alone(1);
    let sent: Vec<_> = (0..4).map(|_| s.wait_for_packet().at_ms()).collect();
    assert_eq!(sent, [460, 461, 621, 622]);
    s.at(722).peer_acknowledges(tsn(1));
    s.expect_silence_until(3_000);
    let counted = s.statistics().recovery;
    assert_eq!((counted.retransmitted.probe, counted.delayed_copies), (2, 2));
    assert_eq!(counted.timeouts, 0);
}

/// RFC 7496 §3.1 limits retransmissions; redundant copies are not counted. A chunk that may not be retransmitted has no
/// copies either.
#[test]
fn copies_do_not_use_up_the_limit_of_retransmissions() {
    let data_and_end = |name, limit| {
        let mut s = Script::with_profile(name);
        let reliability = Reliability::MaxRetransmissions(limit);
        let message = OutboundMessage::new(0, &b"payload"[..]).reliability(reliability);
        s.at(300).try_send(message).expect("accepted");
        let mut at = Vec::new();
        loop {
            let sent = s.wait_for_packet();
            at.push(sent.at_ms());
            if matches!(sent.chunks()[..], [ForwardTsn(_)]) {
                return at;
            }
        }
    };
    let (reactive, redundant) = ("interactive", "interactive-redundant");
    assert_eq!(data_and_end(reactive, 0), [300, 460]);
    assert_eq!(data_and_end(redundant, 0), [300, 460]);
    assert_eq!(data_and_end(reactive, 1), [300, 460, 620]);
    assert_eq!(data_and_end(redundant, 1), [300, 460, 620]);
    assert_eq!(data_and_end(reactive, 2), [300, 460, 620, 780]);
    assert_eq!(data_and_end(redundant, 2), [300, 460, 461, 621, 781]);
}

/// Data in flight is bundled with new data, and retransmitted only when the probe timer of the latest packet that
/// contains it expires. Data that only one newer packet contains gets its second copy in a packet of its own.
#[test]
fn data_bundled_in_newer_packets_waits_for_their_timer() {
    let mut s = Script::with_profile("interactive-redundant");
    s.at(300).send_alone(1);
    s.at(350).send(b"2");
    assert_eq!(s.take_data(), [1, 2]);
    s.at(399).send(b"3");
    assert_eq!(s.take_data(), [1, 2, 3]);
    assert_eq!(s.wait_for_packet().at_ms(), 350 + 160);
    assert_eq!(s.wait_for_packet().at_ms(), 399 + 160);
}

/// New data that is sent when a copy is due shares the packet with the copy.
#[test]
fn new_data_is_bundled_with_a_copy_that_is_due() {
    let mut s = Script::with_profile("interactive-redundant");
    s.at(300).send_alone(1);
    s.at(460);
    assert_eq!(s.take_data(), [1]);
    s.send(b"2");
    assert_eq!(s.take_data(), [1, 2], "as data in flight");
    s.at(461);
    assert_eq!(s.take_data(), [1], "and as a copy of what was repeated");
}

/// A silent peer over a path without a recent RTT sample is probed at intervals that double up to a second; T3-rtx
/// doubles independently, and ends the association in time.
#[test]
fn a_dead_peer_is_reported_unreachable() {
    let mut s = Script::with_profile("interactive");
    s.at(300).send_alone(1);
    let mut repeats = Vec::new();
    while !s.events().iter().any(|event| matches!(event, rexmit_sctp::Event::Closed(_))) {
        match s.poll_packet() {
            Some(sent) => repeats.push(sent.at_ms()),
            None => _ = s.at(s.now_ms() + 1),
        }
    }
    let in_ten_seconds = repeats.iter().filter(|at| **at < 10_300).count();
    assert!((12..=24).contains(&in_ten_seconds), "{repeats:?}");
    let later = repeats.len() - in_ten_seconds;
    assert!(later as u64 <= s.now_ms() / 1000 - 10 + 10, "{later} in {} ms", s.now_ms());
    assert!((200_000..300_000).contains(&s.now_ms()), "{}", s.now_ms());
}

/// A chunk that probes a closed window is retransmitted only by T3-rtx, which backs off.
#[test]
fn a_closed_window_is_probed_with_backoff() {
    let mut s = Script::with_profile("interactive");
    s.at(300).send_alone(1);
    s.at(400).peer_writes(|p| {
        p.sack(tsn(1), 0, std::iter::empty::<(u16, u16)>(), std::iter::empty::<u32>())
    });
    s.send(b"2");
    let sent: Vec<_> = (0..6).map(|_| s.wait_for_packet().at_ms()).collect();
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let is_doubled = |pair: &[u64]| pair[1] >= 2 * pair[0] - 1;
    assert!(gaps[0] >= 200 && gaps[1..].windows(2).all(is_doubled), "{gaps:?}");
}

/// A receiver that is starved of processor time acknowledges after 100 to 900 ms, and each message is abandoned after
/// 50 ms. Round trips of abandoned messages are measured, too, so that few messages are abandoned that had arrived.
#[test]
fn round_trips_are_measured_although_messages_are_abandoned_before_their_ack() {
    let mut s = Script::with_profile("interactive");
    let mut acks: Vec<(u64, u32)> = Vec::new();
    let mut arrived = 0;
    for ms in 300..60_300_u64 {
        if ms.is_multiple_of(50) {
            let lifetime = Reliability::Timed(Duration::from_millis(50));
            let message = OutboundMessage::new(0, vec![0; 400]).unordered(true);
            s.try_send(message.reliability(lifetime)).expect("accepted");
        }
        while let Some(due) = acks.iter().position(|(at, _)| *at <= ms) {
            let (_, ack) = acks.remove(due);
            s.peer_acknowledges(tsn(ack));
        }
        s.each_until(ms + 1, |_, packet| {
            for chunk in packet.chunks() {
                arrived = match chunk {
                    Data(data) => arrived.max(data.tsn.wrapping_sub(tsn(0))),
                    ForwardTsn(forward) => {
                        arrived.max(forward.new_cumulative_tsn.wrapping_sub(tsn(0)))
                    }
                    _ => continue,
                };
            }
            acks.push((ms + 100 + ((ms * 2_654_435_761) >> 7) % 800, arrived));
        });
        s.events();
    }
    let counted = s.statistics();
    assert!(arrived >= 1190, "{arrived} of 1200 were sent");
    assert!(counted.traffic.messages_failed < 60, "{}", counted.traffic.messages_failed);
}
