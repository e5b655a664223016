//! Each way of detection, over outstanding data and without a sender.

mod duplicate_acks;
mod early;
mod missing_reports;

use rexmit_core::trace::SendCause;

use super::*;
use crate::Reordering;
use crate::outstanding::Runs;
use crate::state::tests::{AT, FULL, MS};
use crate::{ProbeConfig, RecoveryConfig, ThinConfig};

/// A detector, with the state that it reads.
struct Detecting {
    state: State<()>,
    loss: LossDetector,
    probe: ProbeTimer,
    now: Instant,
    /// The number of packets that each ACK acknowledges.
    reports: u16,
}

impl Detecting {
    fn with(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let state = State::with(change);
        let mut loss = LossDetector::new(state.config.loss_detection, state.config.missing_reports);
        loss.add_path(1);
        let mut probe = ProbeTimer::default();
        probe.enable(0);
        Self { state, loss, probe, now: AT(0), reports: 1 }
    }

    fn tcp(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        Self::with(|config| {
            *config = RecoveryConfig::tcp_profile("tcp-sack").expect("a profile");
            change(config);
        })
    }

    fn over_two(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut d = Self::with(change);
        d.state.add_active_path();
        d.loss.add_path(2);
        d.probe.enable(1);
        d
    }

    fn send(&mut self, count: usize) {
        self.send_over(&vec![0; count]);
    }

    fn send_over(&mut self, paths: &[u8]) {
        paths.iter().for_each(|&path| _ = self.state.send(self.now, path, FULL));
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = AT(ms);
        self
    }

    /// The units that an acknowledgement declares lost; they stay in flight.
    fn ack(&mut self, cumulative: u64, blocks: &[(u64, u64)]) -> Verdict {
        let outstanding = &self.state.outstanding;
        let known = outstanding.cumulative();
        let mut range = AckRange {
            cumulative,
            has_advanced: cumulative > known,
            highest_before: outstanding.acknowledged().max().unwrap_or(known),
            highest_in_blocks: blocks.iter().map(|&(_, end)| end).max().unwrap_or(cumulative),
            highest_newly_acked: None,
            lowest_newly_acked: None,
            reports: self.reports,
        };
        self.loss.begin_ack();
        let mut late = Vec::new();
        while self.state.outstanding.cumulative() < cumulative {
            self.take(self.state.outstanding.cumulative() + 1, &mut range, &mut late);
            self.state.outstanding.deliver_first();
        }
        self.state.outstanding.forget_passed();
        self.loss.on_advanced(cumulative);
        let mut new = Runs::new();
        for &block in blocks {
            self.state.outstanding.add_acknowledged(block.0, block.1, &mut new);
        }
        let units: Vec<u64> = new.iter().flat_map(|&(from, to)| from..=to).collect();
        units.iter().for_each(|&unit| self.take(unit, &mut range, &mut late));
        self.loss.on_late_units(&late, units.len() as u64, &mut self.state);
        let reneged = self.state.outstanding.check_reneging(blocks.iter().copied());
        self.loss.detect(&range, &reneged, &self.state, &self.probe)
    }

    fn take(&mut self, unit: u64, range: &mut AckRange, late: &mut Vec<LateUnit>) {
        let Some(acked) = self.state.outstanding.acknowledge(unit) else { return };
        late.extend(self.loss.on_acked(self.now, &acked, range, &mut self.state));
        range.highest_newly_acked = range.highest_newly_acked.max(Some(unit));
        range.lowest_newly_acked.get_or_insert(unit);
    }

    /// The same, and lost units are retransmitted at once.
    fn ack_and_resend(&mut self, cumulative: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        let Verdict { lost, begins_recovery } = self.ack(cumulative, blocks);
        for &unit in &lost {
            self.state.outstanding.lose(unit, SendCause::FastRetransmit);
            self.loss.on_declared_lost(unit);
        }
        if begins_recovery {
            self.state.begin_recovery();
        }
        for &unit in &lost {
            self.loss.on_retransmitted(unit);
            self.state.resend(self.now, 0, unit, SendCause::FastRetransmit);
        }
        lost
    }

    /// The packets that RACK declares lost at this time.
    fn expired(&mut self) -> Vec<u64> {
        let due = self.loss.expired_by_time(self.now, 0, &self.state, &self.probe);
        due.into_iter().map(|packet| packet.0).collect()
    }
}

/// RFC 9260 §7.2.4.
#[test]
fn three_reports_make_a_loss() {
    let mut d = Detecting::with(|_| ());
    d.send(6);
    assert_eq!(d.ack(0, &[(3, 3)]).lost, []);
    assert_eq!(d.ack(0, &[(3, 4)]).lost, []);
    assert_eq!(d.ack(0, &[(3, 4)]).lost, [], "it says nothing new");
    let verdict = d.ack(1, &[(3, 5)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[2][..], false));
    assert_eq!(d.ack(1, &[(3, 6)]).lost, [], "once");
}

#[test]
fn one_report_is_enough_where_the_first_indication_counts() {
    for (packets, is_lost) in [(4, true), (9, false)] {
        let mut d = Detecting::with(|config| {
            config.thin = ThinConfig { first_indication: true, ..ThinConfig::OFF };
        });
        d.send(packets);
        let lost = d.ack(0, &[(2, 2)]).lost;
        assert_eq!(!lost.is_empty(), is_lost, "{packets} packets");
    }
}

/// The SACK that shows reneging counts as the first missing report, whatever else it acknowledges (RFC 9260 §6.2.1 D iii).
#[test]
fn data_that_the_receiver_drops_has_one_report() {
    let mut d = Detecting::with(|_| ());
    d.send(8);
    d.ack(0, &[(2, 5)]);
    assert_eq!(d.ack(1, &[(6, 6)]).lost, []);
    assert_eq!(d.ack(1, &[(6, 7)]).lost, []);
    assert_eq!(d.ack(1, &[(6, 8)]).lost, [2, 3, 4, 5]);
}

#[test]
fn data_that_the_probe_timer_watches_is_left_to_it_unless_acks_are_delayed() {
    let thin = ThinConfig {
        probe_timer: Some(ProbeConfig::DEFAULT),
        test: crate::ThinTest::Packets(16),
        ..ThinConfig::OFF
    };
    for detection in [LossDetection::RFC_9260, LossDetection::Rack] {
        for has_samples in [false, true] {
            let mut d =
                Detecting::with(|config| (config.thin, config.loss_detection) = (thin, detection));
            d.state.paths[0].window = crate::state::tests::wide(20);
            d.state.sample(AT(0), 0, MS(100));
            if has_samples {
                d.probe.on_rtt(0, MS(100));
            }
            d.send(6);
            let mut lost: Vec<u64> = Vec::new();
            for end in 2..=6 {
                lost.extend(d.at(100 + end).ack(0, &[(2, end)]).lost);
                lost.extend(d.expired());
            }
            assert_eq!(lost.is_empty(), has_samples, "{detection:?}: {lost:?}");
        }
    }
}

/// SFR: units are reported missing only by ACKs of units sent over the same path.
#[test]
fn each_path_reports_its_own_where_they_are_split() {
    for is_split in [false, true] {
        let mut d = Detecting::over_two(|config| {
            config.sctp.cmt = Some(crate::CmtConfig::ON.split_fast_retransmit(is_split));
        });
        d.send_over(&[0, 1, 1, 1, 0, 0, 0]);
        for end in 2..=4 {
            let lost = d.ack(0, &[(2, end)]).lost;
            assert_eq!(lost.is_empty(), is_split || end < 4, "{end}");
        }
        if is_split {
            assert_eq!(d.ack(0, &[(2, 5)]).lost, []);
            assert_eq!(d.ack(0, &[(2, 6)]).lost, []);
            assert_eq!(d.ack(0, &[(2, 7)]).lost, [1]);
        }
    }
}

/// DAC: the ACK covers two packets, so that units sent before both are reported twice.
#[test]
fn an_acknowledgement_of_two_packets_reports_twice() {
    for (reports, lost) in [(1, vec![]), (2, vec![1])] {
        let mut d = Detecting::over_two(|config| config.sctp.cmt = Some(crate::CmtConfig::ON));
        d.reports = reports;
        d.send(5);
        d.ack(0, &[(2, 3)]);
        assert_eq!(d.ack(0, &[(2, 5)]).lost, lost, "{reports}");
    }
}

/// RFC 6675 §4 `IsLost`, §5: every hole with three above, and one recovery.
#[test]
fn a_scoreboard_declares_every_hole_lost_and_begins_one_recovery() {
    let mut d = Detecting::tcp(|_| ());
    d.send(12);
    let verdict = d.ack(0, &[(2, 3)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[][..], false));
    let verdict = d.ack(0, &[(2, 3), (5, 5)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[1][..], true));
    d.state.outstanding.lose(1, SendCause::FastRetransmit);
    d.state.begin_recovery();
    let verdict = d.ack(0, &[(2, 3), (5, 7)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[4][..], false));
}

/// RFC 6675 §5.1.
#[test]
fn after_a_timeout_a_scoreboard_waits_for_what_had_been_sent() {
    let mut d = Detecting::tcp(|_| ());
    d.send(6);
    d.state.fast_recovery.on_timeout(3);
    assert_eq!(d.ack(0, &[(2, 5)]).lost, []);
    let verdict = d.ack(3, &[(5, 6)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[][..], false), "two above");
    d.send(1);
    let verdict = d.ack(3, &[(5, 7)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[4][..], true));
}

#[test]
fn reneged_or_returned_data_is_declared_lost_again_by_a_scoreboard() {
    let mut d = Detecting::tcp(|_| ());
    d.send(9);
    assert_eq!(d.ack_and_resend(0, &[(2, 5)]), [1]);
    assert_eq!(d.ack(1, &[(6, 6)]).lost, [], "2 to 5 are dropped");
    assert_eq!(d.ack(1, &[(6, 8)]).lost, [2, 3, 4, 5]);
    d.loss.on_returned(3);
    assert_eq!(d.ack(1, &[(6, 9)]).lost, [3, 4, 5]);
}

/// RFC 6675 §4 `NextSeg` rules 3 and 4.
#[test]
fn a_scoreboard_names_a_hole_first_and_then_the_highest_once() {
    let mut d = Detecting::tcp(|_| ());
    d.send(8);
    assert_eq!(d.ack_and_resend(0, &[(2, 4), (6, 7)]), [1]);
    assert_eq!(d.loss.rescue_unit(&d.state.outstanding), Some(5));
    d.loss.on_rescued(&d.state.outstanding, 5, 8);
    assert_eq!(d.loss.rescue_unit(&d.state.outstanding), None);
    d.ack(4, &[(6, 7)]);
    assert_eq!(d.loss.rescue_unit(&d.state.outstanding), Some(8));
    d.loss.on_rescued(&d.state.outstanding, 8, 8);
    assert_eq!(d.loss.rescue_unit(&d.state.outstanding), None);
    let d = Detecting::with(|_| ());
    assert_eq!(d.loss.rescue_unit(&d.state.outstanding), None, "no scoreboard");
}

#[test]
fn blocks_say_nothing_where_duplicates_are_counted() {
    let mut d = Detecting::with(|config| {
        *config = RecoveryConfig::tcp_profile("tcp-newreno").expect("a profile");
    });
    d.send(9);
    let verdict = d.ack(0, &[(2, 9)]);
    assert_eq!((&verdict.lost[..], verdict.begins_recovery), (&[][..], false));
    assert!(!d.loss.is_by_time() && !d.loss.is_by_scoreboard());
}

/// SRTT and the least round trip are 100 ms; packets were sent at 0, 2, 4, … ms.
fn by_time() -> Detecting {
    let mut d = Detecting::with(|config| config.loss_detection = LossDetection::Rack);
    d.state.sample(AT(0), 0, MS(100));
    for n in 0..6 {
        d.at(2 * n).send(1);
    }
    d
}

/// RFC 8985 §6.2: the round trip and a quarter of it.
#[test]
fn time_shows_a_loss_a_quarter_of_a_round_trip_late() {
    let mut d = by_time();
    assert!(d.loss.is_by_time());
    assert_eq!(d.at(102).ack(0, &[(2, 2)]).lost, [], "not by reports");
    assert_eq!((d.expired(), d.loss.deadline(0)), (vec![], AT(125)));
    assert_eq!(d.at(124).expired(), []);
    assert_eq!((d.at(125).expired(), d.loss.deadline(0)), (vec![0], Instant::FAR_FUTURE));
    d.loss.stop_timer(0);
}

#[test]
fn three_above_are_enough_until_reordering_was_seen() {
    let mut d = by_time();
    for end in 2..=3 {
        d.at(98 + 2 * end).ack(0, &[(2, end)]);
        assert_eq!(d.expired(), []);
    }
    d.at(106).ack(0, &[(2, 4)]);
    assert_eq!(d.expired(), [0]);
    let mut d = by_time();
    d.at(102).ack(0, &[(2, 2)]);
    d.at(103).ack(2, &[]); // 1 is late.
    d.at(110).ack(2, &[(4, 6)]);
    assert_eq!((d.expired(), d.loss.deadline(0)), (vec![], AT(4 + 100 + 25)));
}

#[test]
fn each_duplicate_of_an_episode_widens_the_window_once_per_round_trip() {
    let mut d = by_time();
    d.at(102).ack(0, &[(2, 2)]);
    d.loss.widen_window(0, 0, 6);
    d.loss.widen_window(0, 0, 6);
    assert_eq!((d.expired(), d.loss.deadline(0)), (vec![], AT(150)), "half a round trip");
    d.loss.widen_window(0, 6, 12);
    assert_eq!((d.expired(), d.loss.deadline(0)), (vec![], AT(175)));
    (0..16).for_each(|_| d.loss.on_recovery_left(None));
    assert_eq!((d.expired(), d.loss.deadline(0)), (vec![], AT(125)), "16 recoveries later");
}

fn adaptive() -> Detecting {
    Detecting::with(|config| config.loss_detection = config.loss_detection.adaptive(90))
}

/// RR-SCTP §4.3: 1 arrives after five reports of it, of which the third made it a loss.
#[test]
fn the_threshold_follows_what_came_late() {
    let mut d = adaptive();
    d.send(20);
    for end in 2..=6 {
        assert_eq!(d.ack(0, &[(2, end)]).lost.len(), usize::from(end == 4), "{end}");
    }
    assert_eq!(d.loss.reordering(0, &d.state).missing_reports, 3);
    d.ack(6, &[]);
    let known = d.loss.reordering(0, &d.state);
    assert_eq!((known.missing_reports, known.extent), (6, 6));
    assert_eq!(
        d.loss
            .tolerance
            .as_mut()
            .expect("it is adaptive")
            .take_change(0)
            .map(|(threshold, _)| threshold),
        Some(6)
    );
    assert_eq!(
        d.loss.tolerance.as_mut().expect("it is adaptive").take_change(0),
        None,
        "told once"
    );
    for end in 8..=12 {
        assert_eq!(d.ack(6, &[(8, end)]).lost, [], "{end}");
    }
    assert_eq!(d.ack(6, &[(8, 13)]).lost, [7]);
}

/// The acknowledgement of a retransmitted unit is ambiguous: it may be the copy that arrived.
#[test]
fn a_late_unit_that_was_retransmitted_teaches_nothing_before_it_is_reported() {
    let mut d = adaptive();
    d.send(20);
    for end in 2..=6 {
        d.ack_and_resend(0, &[(2, end)]);
    }
    d.ack(6, &[]);
    assert_eq!(d.loss.reordering(0, &d.state).extent, 0);
    let told = d.state.outstanding.on_duplicate_report(1).expect("it was retransmitted");
    assert_eq!((told.cause, told.needed), (SendCause::FastRetransmit, 6));
    d.loss.tolerance.as_mut().expect("it is adaptive").on_report(0, told.cause, told.needed);
    assert_eq!(d.loss.reordering(0, &d.state).extent, 6);
}

#[test]
fn the_standard_applies_once_no_further_report_can_come() {
    let mut d = adaptive();
    d.loss.tolerance.as_mut().expect("it is adaptive").on_mut(0).on_late(10);
    d.send(6);
    for end in 2..=5 {
        assert_eq!(d.ack(0, &[(2, end)]).lost, [], "6 is to come");
    }
    assert_eq!(d.ack(0, &[(2, 6)]).lost, [1]);
}

#[test]
fn another_route_forgets_reordering_and_what_reports() {
    let mut d = adaptive();
    d.loss.tolerance.as_mut().expect("it is adaptive").on_mut(0).on_late(10);
    d.loss.renew_path(0);
    assert_eq!(d.loss.reordering(0, &d.state).extent, 0);
    d.loss.tolerance.as_mut().expect("it is adaptive").on_mut(0).on_late(10);
    d.loss.replace_path(0);
    assert_eq!(d.loss.reordering(0, &d.state).extent, 0);
}

const EARLY: LossDetection =
    LossDetection::MissingReports { reordering: Reordering::Fixed, early_retransmit: true };

impl Detecting {
    /// When the timer of Early Fast Retransmit expires if it is started now.
    fn early_deadline(&mut self) -> Instant {
        let flight = self.state.outstanding.flight(0).bytes;
        self.loss.restart_early(self.now, 0, flight, &self.state);
        self.loss.deadline(0)
    }

    /// The packets that Early Fast Retransmit repeats at `ms`.
    fn expired_early(&self, ms: u64) -> Vec<u64> {
        expired_early(AT(ms), 0, &self.state).into_iter().map(|it| it.0).collect()
    }
}

/// Early Fast Retransmit: SRTT + 2 RTTVAR is 200 ms, below the least wait of 250 ms.
#[test]
fn the_early_timer_runs_while_the_window_is_not_used_up() {
    let mut d = Detecting::with(|config| config.loss_detection = EARLY);
    assert_eq!(d.early_deadline(), Instant::FAR_FUTURE, "nothing is outstanding");
    d.at(10).send(1);
    d.state.sample(AT(10), 0, MS(100));
    assert_eq!(d.early_deadline(), AT(260));
    d.at(20).send(1);
    assert_eq!(d.early_deadline(), AT(270), "it starts anew");
    assert_eq!(d.expired_early(259), []);
    assert_eq!(d.expired_early(260), [0]);
    assert_eq!(d.expired_early(270), [1, 0], "newest first");
    // A retransmission is waited for as its original was.
    d.state.outstanding.lose(1, SendCause::Early);
    d.state.resend(AT(270), 0, 1, SendCause::Early);
    assert_eq!(d.expired_early(519), [1]);
    assert_eq!(d.expired_early(520), [2, 1]);
    d.at(300).send(2);
    assert_eq!(d.early_deadline(), Instant::FAR_FUTURE, "the window holds four");
}

#[test]
fn the_end_leaves_no_timer_and_no_count() {
    let mut d = Detecting::with(|config| config.loss_detection = EARLY);
    d.state.sample(AT(0), 0, MS(100));
    d.send(4);
    d.ack(0, &[(2, 3)]);
    assert_eq!(d.at(100).early_deadline(), AT(350));
    d.loss.stop_timer(0);
    assert_eq!(d.loss.deadline(0), Instant::FAR_FUTURE);
    d.loss.clear();
    assert_eq!(d.loss.deadline(0), Instant::FAR_FUTURE);
    assert_eq!(d.ack(0, &[(2, 4)]).lost, [], "the first two reports are forgotten");
    assert_eq!(d.loss.needed_so_far(1, &d.state), 0);
}
