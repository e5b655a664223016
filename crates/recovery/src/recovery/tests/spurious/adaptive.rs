//! The threshold that follows reordering (RR-SCTP §4.3).

use super::{FULL, Sender};
use crate::{RecoveryConfig, ThinConfig};

impl Sender {
    /// Lets the oldest unit be overtaken by `positions` and arrive, and its retransmission, if any, arrive
    /// after it. Returns whether there was one.
    fn delay(&mut self, positions: u64) -> bool {
        let first = self.recovery.outstanding().next_unit() - super::BASE;
        self.push_full(20);
        self.overtake(first, first + positions);
        let is_repeated = !self.resend().is_empty();
        self.ack(first + positions, &[]);
        if is_repeated {
            self.report(first);
        }
        self.ack(first + 19, &[]);
        is_repeated
    }
}

fn adaptive() -> [Sender; 2] {
    let tcp = RecoveryConfig::tcp_profile("tcp-rr").expect("a profile");
    [Sender::measured_with("rr"), Sender::wide(tcp)]
}

/// Four reports came before the unit: from then on, five are waited for. A unit that is overtaken by exactly
/// the standard number needs no more.
#[test]
fn data_that_was_reordered_once_is_waited_for() {
    for mut s in adaptive() {
        for positions in [4, 3, 9] {
            let needed = u16::try_from(positions + 1).expect("small").max(s.threshold());
            let is_news = needed > s.threshold();
            assert_eq!(s.delay(positions), is_news, "{positions} positions");
            assert_eq!(s.threshold(), needed);
            assert!(!s.delay(positions));
        }
    }
}

/// Unit 2 is lost: its copy is not reported, and the ten reports of it were no reordering.
#[test]
fn a_loss_teaches_nothing() {
    for mut s in adaptive() {
        s.push_full(20);
        s.overtake(2, 12);
        assert_eq!(s.resend(), [2]);
        s.ack(21, &[]);
        assert_eq!((s.threshold(), s.recovery.path_figures(0).reordering.extent), (3, 0));
    }
}

/// A duplicate report for an older episode may be caused by any of its copies.
#[test]
fn only_the_latest_event_teaches() {
    for mut s in adaptive() {
        s.push_full(20);
        s.overtake(2, 12);
        s.resend();
        s.ack(21, &[]);
        s.push_full(10);
        s.overtake(22, 25);
        s.resend();
        s.ack(31, &[]);
        s.report(2);
        assert_eq!(s.threshold(), 3);
        s.report(22);
        assert_eq!(s.threshold(), 4);
    }
}

/// Unit 2 was retransmitted in both events. The first report is about the older copy, and may be the only one.
#[test]
fn the_report_of_an_older_copy_does_not_teach() {
    let mut s = Sender::measured_with("rr");
    s.push_full(20);
    s.overtake(2, 12);
    s.resend();
    s.expire();
    assert_eq!(s.resend(), [2]);
    s.report(2);
    s.ack(21, &[]);
    assert_eq!(s.threshold(), 3);
    s.report(2);
    assert_eq!(s.threshold(), 11);
}

/// The SACK that acknowledges it also reports it: both came before the receiver answered.
#[test]
fn a_report_in_the_same_acknowledgement_teaches_as_well() {
    for mut s in adaptive() {
        s.push_full(20);
        s.overtake(2, 8);
        s.resend();
        s.report(2);
        s.ack(8, &[]);
        assert_eq!((s.threshold(), s.events().total()), (7, 1));
    }
}

/// SACK blocks before the cumulative point: unit 3 arrives late while 2 is missing.
#[test]
fn data_that_fills_a_gap_above_another_is_measured_by_what_was_there_before() {
    for mut s in adaptive() {
        s.push_full(12);
        s.ack(1, &[(4, 4)]);
        s.ack(1, &[(4, 5)]);
        // 3, and two that are newer, in one acknowledgement.
        s.ack(1, &[(3, 7)]);
        assert_eq!(s.recovery.path_figures(0).reordering.extent, 3, "two reports, or units above");
    }
}

/// With a threshold of 10, but only five packets after the missing one: when the last of them is
/// acknowledged, or the standard number after reports were lost, it is lost.
#[test]
fn the_standard_threshold_applies_when_no_further_report_can_come() {
    for mut s in adaptive() {
        s.delay(9);
        assert_eq!(s.threshold(), 10);
        let first = s.recovery.outstanding().next_unit() - super::BASE;
        s.push_full(6);
        assert_eq!(s.threshold(), 5, "no more can come");
        for end in first + 1..first + 5 {
            s.ack(first - 1, &[(first + 1, end)]);
            assert!(s.resend().is_empty(), "{} more may come", first + 5 - end);
        }
        s.ack(first - 1, &[(first + 1, first + 5)]);
        assert_eq!(s.resend(), [first]);
    }
}

/// Waiting for the threshold was useless: three reports, then silence until the timer expired.
#[test]
fn an_avoidable_timeout_lowers_the_percentile_and_another_does_not() {
    for (reports, falls) in [(3, true), (2, false)] {
        for mut s in adaptive() {
            s.delay(9);
            let before = s.recovery.path_figures(0).reordering.percentile;
            let first = s.recovery.outstanding().next_unit() - super::BASE;
            s.push_full(20);
            s.overtake(first, first + reports);
            s.expire();
            let after = s.recovery.path_figures(0).reordering.percentile;
            assert_eq!(after < before, falls, "{reports} reports: {before} to {after}");
        }
    }
}

#[test]
fn a_spurious_fast_retransmit_raises_the_percentile() {
    for mut s in adaptive() {
        s.delay(4);
        assert_eq!(s.recovery.path_figures(0).reordering.percentile, 0.91);
        s.delay(4);
        assert_eq!(s.recovery.path_figures(0).reordering.percentile, 0.91, "there was none");
    }
}

/// Evidence is kept per path, in bounded memory.
#[test]
fn evidence_is_of_one_path() {
    let mut s = Sender::measured_with("rr");
    s.recovery.open_path(None, FULL);
    s.delay(9);
    assert_eq!(
        [0, 1].map(|path| s.recovery.path_figures(path).reordering.missing_reports),
        [10, 3]
    );
}

/// M4: the first report makes a loss while thin, as long as reordering does not often need more.
#[test]
fn a_thin_stream_on_a_reordering_path_learns_to_wait() {
    let rr = RecoveryConfig::profile("rr").expect("a profile");
    let thin = ThinConfig { first_indication: true, ..ThinConfig::OFF };
    let mut s = Sender::wide(RecoveryConfig { thin, ..rr });
    // Three packets, the first of which the second overtakes; it is retransmitted at once.
    let overtaken_by = |s: &mut Sender, positions: u64| {
        let first = s.recovery.outstanding().next_unit() - super::BASE;
        s.push_full(3);
        s.overtake(first, first + positions);
        let is_repeated = !s.resend().is_empty();
        s.ack(first + 2, &[]);
        if is_repeated {
            s.report(first);
        }
        is_repeated
    };
    assert!(overtaken_by(&mut s, 1));
    assert!(!overtaken_by(&mut s, 1), "one report is not enough any more");
    assert!(overtaken_by(&mut s, 2), "two are");
    assert!(!overtaken_by(&mut s, 2));
    // Losses, each detected by three reports: few of the gaps are reordering.
    for _ in 0..80 {
        let first = s.recovery.outstanding().next_unit() - super::BASE;
        s.push_full(4);
        s.overtake(first, first + 3);
        assert_eq!(s.resend(), [first]);
        s.ack(first + 3, &[]);
    }
    assert!(overtaken_by(&mut s, 1), "the first report is good enough again");
}
