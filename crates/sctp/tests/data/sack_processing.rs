//! Processing of a SACK (RFC 9260 §6.2.1, §7.2.4).

use crate::kit::*;
use crate::{FULL, NONE, PMDCS};

/// Four full packets in flight at 0 ms, the first of which is lost.
fn four_in_flight() -> Script {
    let mut s = Script::established_client();
    for n in 0..4 {
        s.send_len(FULL);
        assert_eq!(s.take_data(), [n]);
    }
    s
}

/// RFC 9260 §7.2.4: the chunk is retransmitted at once with the third report, whatever the window.
#[test]
fn the_third_missing_report_repeats_a_chunk_at_once() {
    let mut s = four_in_flight();
    s.send_len(FULL);
    s.at(100).peer_sacks(NONE, PEER_RWND, &[(2, 2)]);
    assert_eq!(s.take_data(), [4], "the window has room for one");
    s.at(110).peer_sacks(NONE, PEER_RWND, &[(2, 3)]);
    s.expect_silence();
    s.at(120).peer_sacks(NONE, PEER_RWND, &[(2, 4)]);
    assert_eq!(s.take_data(), [0]);
    let recovery = s.statistics().recovery;
    assert_eq!((recovery.retransmitted.fast_retransmit, recovery.fast_recoveries), (1, 1));
    s.at(220).peer_acknowledges(tsn(4));
    s.expect_silence_until(5_000);
}

/// RFC 9260 §7.2.4 rule 4: the timer restarts with the retransmission, because the chunk was the earliest one outstanding.
#[test]
fn a_lost_fast_retransmit_is_repeated_one_rto_later() {
    let mut s = four_in_flight();
    for (ms, end) in [(100, 2), (110, 3), (120, 4)] {
        s.at(ms).peer_sacks(NONE, PEER_RWND, &[(2, end)]);
    }
    assert_eq!(s.take_data(), [0]);
    s.expect_silence_until(1_119);
    s.at(1_120);
    assert_eq!(s.take_data(), [0]);
}

/// RFC 9260 §6.3.3: a chunk acknowledged by a gap block is not retransmitted.
#[test]
fn a_timeout_repeats_only_what_is_missing() {
    let mut s = Script::established_client();
    for payload in [b"a", b"b", b"c"] {
        s.send(payload);
    }
    assert_eq!(s.take_data(), [0, 1, 2]);
    s.at(50).peer_sacks(NONE, PEER_RWND, &[(2, 2)]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0, 2]);
}

/// RFC 9260 §6.2.1 D i: a SACK below the cumulative TSN is dropped, including its gap blocks.
#[test]
fn a_stale_sack_is_dropped() {
    let mut s = four_in_flight();
    s.at(100).peer_acknowledges(tsn(1));
    s.peer_sacks(tsn(0), PEER_RWND, &[(2, 3)]);
    s.at(1_100);
    assert_eq!(s.take_data(), [2], "it was not acknowledged by the stale SACK");
}

/// RFC 9260 §6.2.1 D ii: the window is reduced by the data in flight, on both sides of the wrap.
#[test]
fn the_window_is_reduced_by_outstanding_data() {
    let mut s = four_in_flight();
    s.at(100).peer_sacks(tsn(1), 3_000, &[]);
    s.send_len(593);
    s.expect_silence(); // 3000 - 2 · 1204 = 592.
    s.at(110).peer_sacks(tsn(1), 3_001, &[]);
    assert_eq!(s.take_data(), [4]);
}

/// RFC 9260 §6.2.1 D iii, §6.3.2 R4: chunks that the receiver has reneged on are retransmitted.
#[test]
fn reneged_chunks_are_retransmitted() {
    let mut s = four_in_flight();
    s.at(100).peer_sacks(NONE, PEER_RWND, &[(2, 4)]);
    s.at(200).peer_acknowledges(tsn(0)); // without 1, 2 and 3
    assert_eq!(s.statistics().paths[0].bytes_in_flight, 3 * PMDCS);
    s.at(1_200);
    assert_eq!(s.take_data(), [1]);
    s.at(1_300).peer_acknowledges(tsn(3));
    s.expect_silence_until(5_000);
    assert_eq!(s.statistics().send_buffered_bytes, 0);
}

/// RFC 9260 §6.2: a chunk reported as a duplicate was retransmitted spuriously, and is counted.
#[test]
fn a_reported_duplicate_shows_a_spurious_retransmission() {
    let mut s = Script::established_client();
    s.send(b"slow");
    assert_eq!(s.take_data(), [0]);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
    s.at(1_050).peer_acknowledges(tsn(0));
    s.at(2_000).peer_writes(|p| p.sack(tsn(0), PEER_RWND, [], [tsn(0)]));
    let recovery = s.statistics().recovery;
    assert_eq!((recovery.spurious.timeout, recovery.spurious.total()), (1, 1));
}

/// SACKs of the largest size, with every kind of contradiction, cost no more than their size justifies.
#[test]
fn forged_sacks_change_nothing() {
    let mut s = four_in_flight();
    let lists: [Vec<(u16, u16)>; 4] = [
        (0..16_000).map(|n| (n, u16::MAX)).collect(),
        (0..16_000).map(|n| (u16::MAX - n, n)).collect(),
        vec![(1, 65_535); 16_000],
        vec![(0, 0); 16_000],
    ];
    for blocks in lists {
        s.peer_writes(|p| p.sack(NONE, PEER_RWND, blocks.iter().copied(), []));
        assert_eq!(s.statistics().paths[0].bytes_in_flight, 4 * PMDCS);
    }
    s.peer_writes(|p| p.sack(NONE, PEER_RWND, [], (0..16_000).map(tsn)));
    assert_eq!(s.statistics().recovery.spurious.total(), 0);
    s.at(1_000);
    assert_eq!(s.take_data(), [0]);
}
