//! Redundant Data Bundling (Petlund 2008) on the wire: copies bundled with new data and with retransmissions, and the
//! meaning of their ACKs.

use std::num::{NonZeroU8, NonZeroU32};

use rexmit_recovery::{BundlingConfig, RecoveryStatistics, ThinConfig, ThinTcpConfig};

use super::script::*;
use super::thin::with;
use super::*;

const NO_SACK: &str = "S 0:0(0) <mss 1000>";
const RDB: ThinConfig = ThinConfig::OFF.bundling(Some(BundlingConfig::ONE));
const TWO: BundlingConfig = BundlingConfig::ONE.packets(NonZeroU8::new(2).unwrap());

fn recovery(s: &Script) -> RecoveryStatistics {
    s.end.connection.statistics().recovery
}

/// 100 bytes are sent at 0 ms, and 50 more at 20 ms with a copy of the former.
fn two(thin: ThinConfig) -> Script {
    let mut s = with(thin, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.at(20).send(50).expect("P. 1:151(150) ack 1");
    s
}

#[test]
fn new_data_bundles_the_previous_packet() {
    let mut s = two(RDB);
    s.at(40).send(30).expect("P. 101:181(80) ack 1");
    s.at(50).peer(". 1:1(0) ack 101");
    s.at(60).send(20).expect("P. 151:201(50) ack 1");
    s.at(90).peer(". 1:1(0) ack 201");
    let statistics = s.end.connection.statistics();
    assert_eq!(statistics.traffic.redundant_segments_sent, 3);
    assert_eq!(statistics.recovery.redundant_bytes, 100 + 50 + 30);
    assert_eq!(statistics.recovery.retransmitted.redundant, 3);
    assert_eq!(statistics.recovery.retransmitted.total(), 0);
}

#[test]
fn two_previous_packets_are_both_bundled() {
    let mut s = two(RDB.bundling(Some(TWO)));
    s.at(40).send(30).expect("P. 1:181(180) ack 1");
    s.at(50).send(20).expect("P. 101:201(100) ack 1");
    s.at(90).peer(". 1:1(0) ack 201");
}

#[test]
fn nothing_is_bundled_if_disabled_or_not_thin() {
    let mut s = with(ThinConfig::OFF, SYN);
    s.send(100).expect("P. 1:101(100) ack 1").send(50).expect("P. 101:151(50) ack 1");
    let mut s = two(RDB);
    s.send(10).expect("P. 101:161(60) ack 1");
    s.send(10).expect("P. 151:171(20) ack 1");
    s.send(10).expect("P. 161:181(20) ack 1");
    // Five are in flight.
    s.send(10).expect("P. 181:191(10) ack 1");
    s.at(50).peer(". 1:1(0) ack 181").send(10).expect("P. 181:201(20) ack 1");
    s.at(90).peer(". 1:1(0) ack 201");
}

/// Petlund 2008 §2: packets far smaller than the MSS make a stream thin.
#[test]
fn small_segments_are_bundled_with_any_number_in_flight() {
    let mut s = two(RDB.with_tcp(ThinTcpConfig::PETLUND_2008));
    s.send(10).expect("P. 101:161(60) ack 1");
    s.send(10).expect("P. 151:171(20) ack 1");
    s.send(10).expect("P. 161:181(20) ack 1");
    // Five are in flight.
    s.send(10).expect("P. 171:191(20) ack 1");
    s.send(10).expect("P. 181:201(20) ack 1");
    s.at(90).peer(". 1:1(0) ack 201");
}

#[test]
fn a_copy_that_does_not_fit_is_left_out() {
    let mut s = with(RDB, SYN);
    s.send(600).expect("P. 1:601(600) ack 1");
    s.send(401).expect("P. 601:1002(401) ack 1");
    s.send(599).expect("P. 601:1601(1000) ack 1");
    let mut s = with(RDB.bundling(Some(BundlingConfig::ONE.bytes(NonZeroU32::new(150)))), SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.send(50).expect("P. 1:151(150) ack 1");
    s.send(101).expect("P. 151:252(101) ack 1");
}

#[test]
fn a_full_segment_bundles_nothing() {
    let mut s = with(RDB, SYN);
    s.send(3000);
    for start in [1, 1001] {
        s.expect(&format!(". {start}:{}(1000) ack 1", start + 1000));
    }
    s.expect("P. 2001:3001(1000) ack 1");
    assert_eq!(recovery(&s).retransmitted.redundant, 0);
}

#[test]
fn the_end_of_the_stream_bundles_the_last_data() {
    let mut s = with(RDB, SYN);
    s.send(100).expect("P. 1:101(100) ack 1");
    s.at(20).finish().expect("FP. 1:101(100) ack 1");
    s.at(70).peer(". 1:1(0) ack 102");
    assert_eq!(s.state(), State::FinWait2);
    assert_eq!(recovery(&s).packets_repaired, 1);
}

#[test]
fn a_loss_that_a_copy_repaired_is_answered_as_any_other_loss() {
    let mut s = two(RDB);
    // The segment of 0 ms was lost: both arrive with the second, once.
    s.at(70).peer(". 1:1(0) ack 151");
    let reported = recovery(&s);
    assert_eq!((reported.packets_repaired, reported.packets_lost), (1, 1));
    assert_eq!((reported.fast_recoveries, reported.retransmitted.total()), (1, 0));
    assert_eq!(s.end.connection.statistics().ssthresh, 2000);
}

#[test]
fn the_ack_after_a_repaired_loss_causes_no_retransmission() {
    let mut s = two(RDB);
    s.at(40).send(30).expect("P. 101:181(80) ack 1");
    s.at(45).send(20).expect("P. 151:201(50) ack 1");
    s.at(70).peer(". 1:1(0) ack 151").expect_silence();
    s.at(90).peer(". 1:1(0) ack 181 <sack 101:151>").expect_silence();
    s.at(95).peer(". 1:1(0) ack 201 <sack 151:181>");
    let reported = recovery(&s);
    assert_eq!((reported.fast_recoveries, reported.retransmitted.total()), (1, 0));
}

#[test]
fn the_answer_is_switched_off_as_rdb_was_published() {
    let mut s = two(RDB.loss_hiding(true));
    s.at(70).peer(". 1:1(0) ack 151");
    let reported = recovery(&s);
    assert_eq!(
        (reported.packets_repaired, reported.packets_lost, reported.fast_recoveries),
        (1, 0, 0)
    );
    assert_eq!(s.end.connection.statistics().ssthresh, u64::from(u32::MAX));
}

#[test]
fn a_copy_that_was_not_needed_is_no_loss_and_no_spurious_retransmission() {
    // Both arrived, acknowledged by one ACK each, or by one for both.
    for first in [". 1:1(0) ack 101", ". 1:1(0) ack 1"] {
        let mut s = two(RDB);
        s.at(50).peer(first);
        s.at(70).peer(". 1:1(0) ack 151 <sack 1:101>");
        let reported = recovery(&s);
        assert_eq!(
            (reported.packets_repaired, reported.packets_lost, reported.fast_recoveries),
            (0, 0, 0)
        );
        assert_eq!(reported.spurious.total(), 0);
    }
}

#[test]
fn several_copies_of_one_packet_explain_as_many_reports_and_no_more() {
    let mut s = two(RDB.bundling(Some(TWO)).linear_timeouts(NonZeroU8::new(6)));
    s.at(40).send(30).expect("P. 1:181(180) ack 1");
    s.at(1000).expect("P. 1:181(180) ack 1");
    s.at(1050).peer(". 1:1(0) ack 151 <sack 1:101>");
    s.at(1060).peer(". 1:1(0) ack 181 <sack 1:151>");
    assert_eq!(recovery(&s).spurious.total(), 0);
    // The timeout was spurious.
    s.at(1070).peer(". 1:1(0) ack 181 <sack 1:181>");
    assert_eq!(recovery(&s).spurious.timeout, 3);
}

#[test]
fn only_the_unacknowledged_part_of_a_packet_is_bundled_or_retransmitted() {
    let mut s = two(RDB);
    s.at(50).peer(". 1:1(0) ack 121");
    s.at(60).send(30).expect("P. 121:181(60) ack 1");
    s.at(80).peer(". 1:1(0) ack 141").send(10).expect("P. 151:191(40) ack 1");
    s.at(1050).expect("P. 141:191(50) ack 1");
    s.at(1090).peer(". 1:1(0) ack 191");
    assert!(s.end.connection.out.is_empty());
}

#[test]
fn a_retransmission_bundles_the_segments_after_it() {
    let thin = RDB.first_indication(true);
    let three = |thin, syn| {
        let mut s = with(thin, syn);
        s.send(300).expect("P. 1:301(300) ack 1");
        s.send(400).expect("P. 1:701(700) ack 1");
        s.send(350).expect("P. 301:1051(750) ack 1");
        s
    };
    // The second as well, and then there is no room.
    let mut s = three(thin, NO_SACK);
    s.at(50).peer(". 1:1(0) ack 1").expect(". 1:701(700) ack 1").expect_silence();
    assert_eq!(recovery(&s).retransmitted.bundled, 1);
    s.at(100).peer(". 1:1(0) ack 1051");
    // Nothing is bundled beyond the limit, with bundling disabled, or if it has arrived.
    let limited = |bytes| {
        let limit = |bundling: BundlingConfig| bundling.bytes(NonZeroU32::new(bytes));
        thin.bundling(thin.bundling.map(limit))
    };
    let mut s = three(limited(750), NO_SACK);
    s.end.connection.set_thin(limited(699)).unwrap();
    s.at(50).peer(". 1:1(0) ack 1").expect(". 1:301(300) ack 1");
    let mut s = three(thin, NO_SACK);
    s.end.connection.set_thin(thin.bundling(None)).unwrap();
    s.at(50).peer(". 1:1(0) ack 1").expect(". 1:301(300) ack 1");
    let mut s = three(thin, SYN);
    s.at(50).peer(". 1:1(0) ack 1 <sack 301:701>").expect(". 1:301(300) ack 1");
}

#[test]
fn a_stream_that_is_not_thin_retransmits_only_lost_data() {
    let mut s = with(RDB, NO_SACK);
    for n in 0..6 {
        s.send(100).drain();
        assert_eq!(recovery(&s).packets, n + 1);
    }
    s.at(50).peer(". 1:1(0) ack 1").peer(". 1:1(0) ack 1").expect_silence();
    s.peer(". 1:1(0) ack 1").expect(". 1:101(100) ack 1").expect_silence();
}

/// Runs both connections until `end`.
pub(super) fn run_to(pair: &mut Pair, end: Instant, mut fate: impl FnMut(&mut Rng, &[u8]) -> Fate) {
    loop {
        let Pair { now, a, b, rng } = pair;
        a.drain(*now, |packet| fate(rng, packet));
        b.drain(*now, |packet| fate(rng, packet));
        let due = [
            a.outgoing.front().map(|(at, _)| *at),
            b.outgoing.front().map(|(at, _)| *at),
            a.connection.next_timeout(),
            b.connection.next_timeout(),
        ];
        let next = due.into_iter().flatten().min().filter(|&next| next <= end);
        *now = next.unwrap_or(end).max(*now);
        if next.is_none() {
            return;
        }
        deliver(*now, a, b);
        deliver(*now, b, a);
    }
}

#[test]
fn thin_streams_survive_loss_reordering_and_duplication_whatever_is_agreed_on() {
    for variant in 0..16 {
        let mut config = ConnectionConfig {
            recovery: RecoveryConfig::tcp_profile("tcp-thin-rdb").expect("it is listed"),
            ..ConnectionConfig::sack()
        };
        let bundling = if variant & 1 == 0 { BundlingConfig::ONE } else { TWO };
        let most = NonZeroU32::new(if variant & 2 == 0 { 0 } else { 400 });
        config.recovery.thin.bundling = Some(bundling.bytes(most));
        config.sack = variant & 4 == 0;
        config.timestamps = variant & 8 == 0;
        let mut pair = Pair::established(config.clone(), config);
        let mut sent = [Vec::new(), Vec::new()];
        for _ in 0..1000 {
            let Pair { now, a, b, rng } = &mut pair;
            for (end, sent) in [a, b].into_iter().zip(&mut sent) {
                let (from, len) = (sent.len() as u64, 1 + rng.below(300));
                let message = bytes(from, from + len);
                assert_eq!(end.send(*now, &message) as u64, len);
                sent.extend(message);
            }
            let next = *now + Duration::from_millis(1 + rng.below(20));
            run_to(&mut pair, next, |rng, _| match rng.below(100) {
                0..5 => Fate::Lose,
                5..8 => Fate::Duplicate,
                8..16 => Fate::Delay(Duration::from_millis(rng.below(30))),
                _ => Fate::Deliver,
            });
            pair.a.read(pair.now);
            pair.b.read(pair.now);
        }
        let end = pair.now + Duration::from_secs(120);
        run_to(&mut pair, end, |_, _| Fate::Deliver);
        pair.a.read(end);
        pair.b.read(end);
        assert!(pair.a.received == sent[1] && pair.b.received == sent[0], "{variant}");
        for end in [&pair.a, &pair.b] {
            let statistics = end.connection.statistics();
            assert!(statistics.recovery.packets_repaired > 0, "{variant}");
            assert!(statistics.traffic.redundant_segments_sent > 100, "{variant}");
            assert!(end.connection.out.is_empty());
        }
    }
}
