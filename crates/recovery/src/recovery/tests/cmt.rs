//! Several paths at once (Iyengar, Amer and Stewart 2006).

use rexmit_core::trace::Tracer;

use super::{FULL, Sender};
use crate::{CmtConfig, PeerWindow};

/// A sender with `cmt` over two paths whose windows do not limit it.
fn sender(cmt: impl Into<Option<CmtConfig>>) -> Sender {
    let mut s = Sender::with(|config| {
        config.max_burst = None;
        config.sctp.cmt = cmt.into();
    });
    s.add_confirmed_path();
    s
}

fn cwnds(s: &Sender) -> [u64; 2] {
    [0, 1].map(|path| s.window(path).cwnd())
}

impl Sender {
    /// Whether `path` may send `bytes` into a peer's window of `a_rwnd`.
    fn has_share(&self, path: u8, bytes: u64, a_rwnd: u64) -> bool {
        self.recovery.may_take(path, bytes, PeerWindow { a_rwnd, buffer: u64::MAX })
    }

    /// Whether `bytes` over `path` would make faster paths wait for the peer's buffer.
    fn may_block(&self, path: u8, bytes: u64, buffer: u64) -> bool {
        !self.recovery.may_take(path, bytes, PeerWindow { a_rwnd: u64::MAX, buffer })
    }
}

fn may_send_new(s: &Sender) -> [bool; 2] {
    [0, 1].map(|path| s.recovery.may_send_new(path, 0))
}

#[test]
fn every_active_path_takes_new_data_as_its_window_allows() {
    let mut s = sender(CmtConfig::ON);
    assert_eq!(may_send_new(&s), [true, true]);
    (0..4).for_each(|_| s.push_over(0, &[FULL]));
    assert_eq!(may_send_new(&s), [false, true]);
    let limit = 5;
    (0..=limit).for_each(|_| _ = s.path_error(0, limit));
    assert_eq!(may_send_new(&s), [false, true]);
    s.recovery.open_path(None, FULL);
    assert!(!s.recovery.may_send_new(2, 0), "it is not confirmed");
    let s = sender(None);
    assert_eq!(may_send_new(&s), [true, false]);
}

/// RFC 9260 §6.1 C: retransmissions come first on their path, and hold no other path back.
#[test]
fn lost_data_holds_back_new_data_of_its_path_alone() {
    let mut s = sender(CmtConfig::ON);
    (0..4).for_each(|_| s.push_over(0, &[FULL]));
    for end in [2, 3, 4] {
        s.ack(0, &[(2, end)]);
    }
    assert_eq!((s.next_lost(0).is_some(), may_send_new(&s)), (true, [false, true]));
}

/// SFR: ACKs of the faster path do not report data of the slower one missing.
#[test]
fn the_other_path_reports_nothing_missing() {
    let split = |is_on| CmtConfig { split_fast_retransmit: is_on, ..CmtConfig::ON };
    for (is_on, lost) in [(true, false), (false, true)] {
        let mut s = sender(split(is_on));
        s.push_over(0, &[FULL]);
        (0..4).for_each(|_| s.push_over(1, &[FULL]));
        for end in 2..=5 {
            s.ack(0, &[(2, end)]);
        }
        assert_eq!(s.has_lost(), lost, "SFR {is_on}");
    }
}

/// SFR: three later ones of the same path do, whatever arrives between them.
#[test]
fn later_units_of_the_same_path_report_a_loss() {
    let mut s = sender(CmtConfig::ON);
    s.push_over(0, &[FULL]); // 1
    for _ in 0..3 {
        s.push_over(1, &[FULL]); // 2, 4, 6
        s.push_over(0, &[FULL]); // 3, 5, 7
    }
    for end in 2..=6 {
        s.ack(0, &[(2, end)]);
        assert!(!s.has_lost(), "up to {end}");
    }
    s.ack(0, &[(2, 7)]);
    assert_eq!(s.next_lost(0), Some(super::BASE + 1));
    assert_eq!(s.recovery.statistics().fast_recoveries, 1);
}

/// A mark is answered by the path of its packet, once per window of data, whatever the other path does.
#[test]
fn a_mark_begins_a_recovery_of_its_path_alone() {
    let mut s = sender(CmtConfig::ON);
    s.push_over(0, &[FULL]); // 1
    s.push_over(1, &[FULL]); // 2
    let mut recoveries = |unit| {
        let echo = crate::CongestionEcho { unit: super::BASE + unit };
        let reduced = echo.answer(&mut s.recovery, &mut Tracer::off());
        (reduced.is_some(), s.recovery.statistics().fast_recoveries)
    };
    let told = [2, 1, 2, 1, 3].map(&mut recoveries);
    assert_eq!(told, [(true, 1), (true, 2), (true, 2), (true, 2), (false, 2)]);
}

/// Each path has a recovery of its own: a loss on the other one is another event, a second one on
/// the same path is not.
#[test]
fn each_path_recovers_for_itself() {
    let mut s = sender(CmtConfig::ON);
    for path in [0, 1] {
        s.recovery.state.paths[path].window = super::fast_recovery::wide(20);
    }
    for _ in 0..5 {
        s.push_over(0, &[FULL]); // 1, 3, 5, 7, 9
        s.push_over(1, &[FULL]); // 2, 4, 6, 8, 10
    }
    for blocks in [&[(5, 5)][..], &[(5, 5), (7, 7)], &[(5, 5), (7, 7), (9, 9)]] {
        assert_eq!(cwnds(&s), [20_000, 20_000]);
        s.ack(0, blocks);
    }
    // 1 and 3 are lost.
    assert_eq!((cwnds(&s), s.recovery.statistics().fast_recoveries), ([10_000, 20_000], 1));
    for blocks in [&[(5, 7), (9, 9)][..], &[(5, 9)]] {
        s.ack(0, blocks);
        assert_eq!(cwnds(&s), [10_000, 20_000]);
    }
    // 2 and 4 are.
    s.ack(0, &[(5, 10)]);
    assert_eq!((cwnds(&s), s.recovery.statistics().fast_recoveries), ([10_000, 10_000], 2));
    s.check();
}

/// CUC: an ACK of the earliest unit of a path makes its window grow, although the association's cumulative
/// point does not move; without CUC only the latter counts.
#[test]
fn a_window_grows_with_its_own_earliest_unit() {
    let update = |is_on| CmtConfig { cwnd_update: is_on, ..CmtConfig::ON };
    for (is_on, grown) in [(true, [4000, 5000]), (false, [4000, 4000])] {
        let mut s = sender(update(is_on));
        for path in [0, 1] {
            (0..4).for_each(|_| s.push_over(path, &[FULL]));
        }
        s.ack(0, &[(5, 5)]);
        assert_eq!(cwnds(&s), grown, "CUC {is_on}");
    }
    let mut s = sender(update(true));
    (0..4).for_each(|_| s.push_over(1, &[FULL]));
    s.ack(0, &[(2, 2)]);
    assert_eq!(cwnds(&s), [4000, 4000], "not the earliest");
    s.push_over(1, &[FULL]);
    s.ack(0, &[(2, 3)]);
    assert_eq!(cwnds(&s), [4000, 4000], "still not");
    s.push_over(1, &[FULL]);
    s.ack(3, &[]);
    assert_eq!(cwnds(&s), [4000, 5000]);
}

/// CUCv2: retransmitted units do not hold back the growth by others.
#[test]
fn retransmitted_units_are_tracked_separately() {
    let mut s = sender(CmtConfig::ON);
    s.push_over(0, &[FULL]);
    s.expire();
    assert_eq!(s.resend_over(1), [1]);
    (0..3).for_each(|_| s.push_over(1, &[FULL]));
    s.ack(0, &[(2, 2)]);
    assert_eq!(cwnds(&s)[1], 5000);
}

/// DAC: an ACK that covers two packets reports units twice that were sent before all newly acknowledged ones,
/// if those were sent over one path.
#[test]
fn an_acknowledgement_reports_as_often_as_it_acks_packets() {
    let lost_after = |packets, delayed_ack, over: [u8; 4]| {
        let mut s = sender(CmtConfig { delayed_ack, ..CmtConfig::ON });
        s.push_over(0, &[FULL]);
        over.iter().for_each(|&path| s.push_over(path, &[FULL]));
        s.packets_acked = packets;
        s.ack(0, &[(2, 3)]);
        assert!(!s.has_lost());
        s.packets_acked = packets;
        s.ack(0, &[(2, 5)]);
        s.has_lost()
    };
    assert!(lost_after(2, true, [0; 4]));
    assert!(!lost_after(1, true, [0; 4]));
    assert!(!lost_after(0, true, [0; 4]));
    assert!(!lost_after(2, false, [0; 4]));
    assert!(!lost_after(2, true, [0, 1, 0, 1]), "of two paths");
}

/// Receive buffer splitting: with a window of 8000 bytes each of two paths may have 4000 outstanding.
#[test]
fn a_path_takes_its_part_of_the_peers_window() {
    let user = u64::from(FULL - 16);
    let mut s = sender(CmtConfig { split_buffer: true, ..CmtConfig::ON });
    assert!(s.has_share(0, user, 0), "the first is for the window alone to refuse");
    (0..3).for_each(|_| s.push_over(0, &[FULL])); // 1 to 3
    let shares = |s: &Sender, bytes| [0, 1].map(|path| s.has_share(path, bytes, 8_000));
    assert_eq!(shares(&s, 4_000 - 3 * user), [true, true], "to the byte");
    assert_eq!(shares(&s, 4_001 - 3 * user), [false, true]);
    // The peer holds 2 and 3, which are of no path any more.
    s.ack(0, &[(2, 3)]);
    assert_eq!(shares(&s, 4_000 - user), [true, true]);
    assert_eq!(shares(&s, 4_001 - user), [false, true]);
    // 1 is repeated over the other path, and counts there.
    s.expire();
    assert_eq!(shares(&s, 4_001 - user), [false, true], "it was sent there last");
    assert_eq!(s.resend_over(1), [1]);
    assert_eq!(shares(&s, 4_001 - user), [true, false]);
    s.ack(3, &[]);
    assert_eq!(shares(&s, 9_000), [true, true]);
}

/// The share of an inactive path goes to the others; without the setting there are no shares.
#[test]
fn paths_that_fail_have_no_part() {
    let mut s = sender(CmtConfig { split_buffer: true, ..CmtConfig::ON });
    (0..4).for_each(|_| s.push_over(0, &[FULL]));
    assert!(!s.has_share(0, 984, 5_000));
    (0..=2).for_each(|_| _ = s.path_error(1, 2));
    assert!(s.has_share(0, 984, 5_000));
    let mut s = sender(CmtConfig::ON);
    (0..4).for_each(|_| s.push_over(0, &[FULL]));
    assert!(s.has_share(0, 984, 0));
}

/// Abandoned units count for no path; units that the peer has dropped count for their own again.
#[test]
fn abandoned_or_returned_units_change_the_shares_of_paths() {
    let mut s = sender(CmtConfig { split_buffer: true, ..CmtConfig::ON });
    (0..4).for_each(|_| s.push_over(0, &[FULL]));
    let under_way =
        |s: &Sender| 8_000 - (0..).take_while(|&bytes| s.has_share(0, bytes, 16_000)).count() + 1;
    assert_eq!(under_way(&s), 4 * 984);
    s.abandon(1);
    assert_eq!(under_way(&s), 3 * 984);
    s.ack(1, &[(3, 4)]);
    assert_eq!(under_way(&s), 984);
    // 2 has arrived, and what was above it is gone.
    s.ack(2, &[]);
    assert_eq!(under_way(&s), 2 * 984);
    s.check();
}

/// Round trips of 100 and 300 ms: while data sent over the second path is in flight, the first sends three
/// windows.
#[test]
fn a_slower_path_takes_nothing_that_keeps_faster_ones_waiting() {
    let measured = |avoid_blocking| {
        let mut s = sender(CmtConfig { avoid_blocking, ..CmtConfig::ON });
        s.push_over(0, &[FULL]); // 1
        s.push_over(1, &[FULL]); // 2
        s.at(100).ack(1, &[]);
        s.at(300).ack(2, &[]);
        s
    };
    let mut s = measured(true);
    let meanwhile = 3 * cwnds(&s)[0];
    assert!(!s.may_block(1, 984, 0), "nothing is on it");
    s.push_over(1, &[FULL]); // 3
    let may_block = |s: &Sender, path, buffer| s.may_block(path, 984, buffer);
    assert!(!may_block(&s, 1, meanwhile + 2 * 984), "to the byte");
    assert!(may_block(&s, 1, meanwhile + 2 * 984 - 1));
    s.push_over(0, &[FULL]); // 4
    assert!(!may_block(&s, 0, 0), "there is no faster one");
    (0..=5).for_each(|_| _ = s.path_error(0, 5));
    assert!(!may_block(&s, 1, 0), "the faster one has failed");
    let mut s = measured(false);
    s.push_over(1, &[FULL]);
    assert!(!may_block(&s, 1, 0));
}
