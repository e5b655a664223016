//! All of it for each path by itself (RR-SCTP §4): what one path shows is neither undone nor learned on
//! another.

use super::super::TimeoutKind;
use super::{FULL, Sender, wide};
use crate::RetransmissionDestination::{Alternate, Cwnd, Same};
use crate::{CmtConfig, RecoveryConfig, SctpConfig, SpuriousConfig, TcpConfig};

impl Sender {
    fn with_second_path(mut self) -> Self {
        self.add_confirmed_path();
        self
    }

    fn ssthreshes(&self) -> [u64; 2] {
        [0, 1].map(|path| self.window(path).ssthresh())
    }

    fn thresholds(&self) -> [u16; 2] {
        [0, 1].map(|path| self.recovery.path_figures(path).reordering.missing_reports)
    }

    fn is_recovering(&self) -> [bool; 2] {
        [0, 1].map(|path| self.recovery.state.fast_recovery.is_on_path(path))
    }
}

/// RFC 9260 §6.4: data that timed out is retransmitted over the other path. The episode belongs to the first
/// path, also for originals that arrive before they are retransmitted.
#[test]
fn a_timeout_whose_copies_are_sent_over_another_path_is_undone_on_its_own() {
    let mut s = Sender::detecting().with_second_path();
    s.push_full(10);
    s.expire();
    assert_eq!(s.resend_over(1), [2]);
    let before = s.ssthreshes()[1];
    s.ack(11, &[]);
    s.report(2);
    assert_eq!((s.events().timeouts, s.events().undone), (1, 1));
    assert_eq!(s.ssthreshes(), [20_000, before]);
    s.check();
}

/// The timer of the other path expires for the units moved there, which begins an episode of that path.
#[test]
fn each_path_has_its_own_events() {
    let mut s = Sender::detecting().with_second_path();
    s.push_full(1);
    s.expire();
    assert_eq!(s.resend_over(1), [2]);
    s.expire();
    assert_eq!(s.resend_over(0), [2]);
    s.ack(2, &[]);
    s.report(2);
    assert_eq!((s.events().timeouts, s.ssthreshes()[0]), (1, 20_000), "the older copy first");
    s.report(2);
    assert_eq!((s.events().timeouts, s.ssthreshes()[1]), (2, 4_000));
}

/// RFC 5682: over another path, the first retransmission may overtake the originals that it is compared with.
#[test]
fn f_rto_examines_a_timeout_only_on_its_own_path() {
    for (destination, is_examined) in [(Same, true), (Alternate, false), (Cwnd, false)] {
        let f_rto = RecoveryConfig::profile("f-rto").expect("a profile");
        let config = f_rto.with_sctp(SctpConfig::default().retransmission_destination(destination));
        let mut s = Sender::wide(config).with_second_path();
        s.push_full(10);
        s.expire();
        assert_eq!(s.examines_timeout(), is_examined, "{destination:?}");
        let over = if destination == Same { 0 } else { 1 };
        s.recovery.choose_destination(s.now, |_| 0);
        let packets = [s.resend_over(over), s.resend_over(over)];
        let second = if is_examined { vec![] } else { vec![3] };
        assert_eq!(packets, [vec![2], second], "{destination:?}");
    }
}

/// The path fails while F-RTO examines its timeout: the rest is retransmitted over the other path at once.
#[test]
fn a_path_that_fails_is_not_examined_any_more() {
    let f_rto = RecoveryConfig::profile("f-rto").expect("a profile");
    let config = f_rto.with_sctp(SctpConfig::default().retransmission_destination(Same));
    let mut s = Sender::wide(config).with_second_path();
    s.push_full(10);
    s.expire();
    assert_eq!(s.resend_over(0), [2]);
    (0..3).for_each(|_| _ = s.path_error(0, 2));
    assert!(!s.examines_timeout());
    assert_eq!((s.resend_over(1), s.resend_over(1)), (vec![3], vec![4]));
    s.check();
}

/// RFC 4015 §3.1 step 8: data queued for retransmission over another path is in flight on its own path again.
#[test]
fn data_that_waits_for_another_path_returns_to_its_own() {
    let tcp = TcpConfig::default().eifel(Some(crate::SpuriousResponse::Undo));
    let config = RecoveryConfig { tcp, ..RecoveryConfig::rfc9260() };
    let mut s = Sender::wide(config).with_second_path();
    s.push_full(10);
    let at = s.expire();
    assert_eq!(s.resend_over(1), [2]);
    s.at(at + 50).echo(100).ack(3, &[]);
    assert_eq!((s.events().by_timestamps, s.has_lost()), (1, false));
    assert_eq!([0, 1].map(|path| s.recovery.outstanding().flight(path).bytes), [8_000, 0]);
    s.check();
    s.check_timer();
    s.ack(11, &[]);
    s.check();
}

/// SFR: 1 and 3 of one path, 2 and 4 of the other are retransmitted, and only those of one had arrived.
#[test]
fn the_recovery_of_one_path_ends_when_nothing_was_lost_on_it() {
    let spurious = SpuriousConfig::DUPLICATES;
    let mut s = Sender::with(|config| {
        (config.max_burst, config.sctp.cmt) = (None, Some(CmtConfig::ON));
        config.spurious = spurious;
    })
    .with_second_path();
    s.recovery.state.paths.iter_mut().for_each(|path| path.window = wide(20));
    for _ in 0..6 {
        s.push_over(0, &[FULL]); // 1, 3, … 11
        s.push_over(1, &[FULL]); // 2, 4, … 12
    }
    for end in 5..=10 {
        s.ack(0, &[(5, end)]);
    }
    assert_eq!(s.is_recovering(), [true, true]);
    assert_eq!([s.resend_over(0), s.resend_over(0)], [[1], [3]]);
    assert_eq!([s.resend_over(1), s.resend_over(1)], [[2], [4]]);
    s.report(1);
    s.ack(1, &[(3, 3), (5, 10)]);
    assert_eq!((s.events().total(), s.is_recovering()), (0, [true, true]));
    s.report(3);
    assert_eq!((s.events().fast_retransmits, s.events().undone), (1, 1));
    assert_eq!(s.is_recovering(), [false, true]);
    assert_eq!(s.ssthreshes(), [20_000, 10_000]);
    s.check();
}

/// A sender of profile `name` over two paths at once, with wide windows.
fn concurrent(name: &str) -> Sender {
    let config = RecoveryConfig::profile(name).expect("a profile");
    let mut s = Sender::wide(config.with_sctp(SctpConfig::default().cmt(Some(CmtConfig::ON))))
        .with_second_path();
    s.recovery.state.paths[1].window = wide(20);
    s
}

/// Reordering on a path raises its own threshold, by reports of its own.
#[test]
fn each_path_learns_its_own_threshold() {
    let mut s = concurrent("rr");
    s.push_over(0, &[FULL]); // 2
    (0..9).for_each(|_| s.push_over(1, &[FULL])); // 3 to 11
    s.overtake(2, 11);
    s.ack(11, &[]);
    assert_eq!(s.recovery.path_figures(0).reordering.extent, 0, "the other path is no evidence");
    s.push_full(10); // 12 to 21
    s.overtake(12, 18);
    assert_eq!(s.resend_over(0), [12]);
    s.ack(18, &[]);
    s.report(12);
    s.ack(21, &[]);
    assert_eq!(s.thresholds(), [7, 3]);
    for path in [0, 1] {
        let first = s.recovery.outstanding().next_unit() - super::BASE;
        (0..9).for_each(|_| s.push_over(path, &[FULL]));
        s.overtake(first, first + 3);
        assert_eq!(s.has_lost(), path == 1);
        s.ack(first + 8, &[]);
    }
}

/// With nothing more to come over its path, the standard threshold applies, whatever is in flight on the
/// other.
#[test]
fn the_last_report_over_its_path_is_the_last() {
    let mut s = concurrent("rr");
    s.push_full(10); // 2 to 11
    s.overtake(2, 8);
    s.resend_over(0);
    s.ack(8, &[]);
    s.report(2);
    s.ack(11, &[]);
    assert_eq!(s.thresholds(), [7, 3]);
    s.push_full(5); // 12 to 16
    (0..3).for_each(|_| s.push_over(1, &[FULL]));
    s.overtake(12, 15);
    assert!(!s.has_lost(), "16 is still to come");
    s.ack(11, &[(13, 16)]);
    assert_eq!(s.resend_over(0), [12]);
}

/// Data that arrives sooner over the other path is no reordering, and no evidence of loss here.
#[test]
fn rack_looks_at_each_path_alone() {
    let mut s = concurrent("rack");
    s.push_over(0, &[FULL]); // 2
    (0..4).for_each(|_| s.push_over(1, &[FULL])); // 3 to 6
    s.at(110).ack(1, &[(3, 6)]);
    assert!(!s.has_lost(), "four above, over the other path");
    s.at(200).ack(6, &[]);
    (0..4).for_each(|_| s.push_over(0, &[FULL])); // 7 to 10
    (0..2).for_each(|_| s.push_over(1, &[FULL])); // 11 and 12
    s.at(300).ack(6, &[(8, 9)]);
    assert!(!s.has_lost());
    s.ack(6, &[(8, 10)]);
    assert_eq!(s.resend_over(0), [7], "three above, and no reordering was seen");
    assert_eq!(s.is_recovering(), [true, false]);
    s.check();
}

/// A probe of a closed window begins no episode, whichever path it takes next.
#[test]
fn an_unacknowledged_window_probe_is_no_episode() {
    let mut s = Sender::detecting().with_second_path();
    s.push_full(1);
    s.expire_as(TimeoutKind::WindowProbe);
    assert_eq!(s.resend_over(1), [2]);
    s.ack(2, &[]);
    s.report(2);
    assert_eq!(s.events().total(), 0);
}

/// Unit 2 waits for the first path again when it is acknowledged: it is unknown whether it arrived over
/// the second, whose event stays open. The first one's is proven by the report.
#[test]
fn data_acknowledged_while_it_waits_counts_for_the_path_it_was_sent_over() {
    let mut s = Sender::detecting().with_second_path();
    s.push_full(1);
    s.expire();
    assert_eq!(s.resend_over(1), [2]);
    s.expire();
    s.ack(2, &[]);
    assert_eq!(s.events().timeouts, 0);
    s.report(2);
    assert_eq!((s.events().timeouts, s.ssthreshes()), (1, [20_000, 4_000]));
}

/// Units 2 to 4 time out, and 2 is retransmitted, before the path is renewed by `renew`; after it the timer
/// expires once more, over these retransmissions.
fn renewed(name: &str, renew: fn(&mut Sender)) -> Sender {
    let config = RecoveryConfig::profile(name).expect("a profile");
    let spurious = config.spurious.duplicates(Some(crate::SpuriousResponse::Undo));
    let mut s = Sender::wide(RecoveryConfig { spurious, ..config });
    s.push_full(3);
    s.at(200).expire_path(0, TimeoutKind::Loss);
    assert_eq!(s.resend()[0], 2);
    renew(&mut s);
    s.at(300);
    while !s.resend().is_empty() {}
    s.at(10_000).expire_path(0, TimeoutKind::Loss);
    assert_eq!(s.resend()[0], 2, "{name}");
    s
}

/// A regression: episode numbers began again at 0 with the renewed path. A report of data sent before was
/// counted for a later episode, which seemed proven, and its count fell below zero.
#[test]
fn a_report_of_before_the_path_was_renewed_is_of_no_event_after_it() {
    let redirect: fn(&mut Sender) = |s| {
        s.recovery.change_path(
            s.now,
            0,
            crate::PathChange::Redirected { packet: FULL },
            &mut rexmit_core::trace::Tracer::off(),
        );
    };
    let redirect_twice: fn(&mut Sender) = |s| {
        for _ in 0..2 {
            s.recovery.change_path(
                s.now,
                0,
                crate::PathChange::Redirected { packet: FULL },
                &mut rexmit_core::trace::Tracer::off(),
            );
        }
    };
    for name in ["rr", "rack", "f-rto", "interactive"] {
        for renew in [redirect, redirect_twice] {
            let mut s = renewed(name, renew);
            // The copy of before, and the one that no event was begun for.
            s.report(2);
            s.report(2);
            assert_eq!(s.events().total(), 0, "{name}");
            s.at(10_010).ack(4, &[]);
            assert_eq!(s.events().total(), 0, "{name}: the last copy is not reported");
            (0..4).for_each(|_| s.report(2));
            s.check();
        }
    }
}

/// A report of data from before the path was replaced concerns no episode of the new path.
#[test]
fn a_report_of_before_the_path_was_replaced_is_of_no_event_after_it() {
    let mut s = Sender::detecting().with_second_path();
    s.push_full(1);
    s.expire();
    assert_eq!(s.resend_over(1), [2]);
    s.recovery.change_path(
        s.now,
        0,
        crate::PathChange::Removed,
        &mut rexmit_core::trace::Tracer::off(),
    );
    s.recovery.open_path(Some((s.now, 0)), FULL);
    s.path_probed(0);
    s.make_primary(0);
    s.at(3000).push_over(0, &[FULL]);
    s.expire_path(0, TimeoutKind::Loss);
    assert_eq!(s.resend_over(1), [3]);
    s.report(2);
    assert_eq!(s.events().total(), 0, "3 is not reported");
    s.ack(3, &[]);
    s.report(2);
    assert_eq!(s.events().total(), 0);
    s.check();
}
