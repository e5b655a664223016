//! Episodes, their detectors and undo, over a state without a sender.

mod eifel;
mod f_rto;

use super::*;
use crate::RetransmissionDestination::Cwnd;
use crate::RttEstimator;
use crate::SpuriousConfig;
use crate::state::tests::{AT, FULL, MS, wide};
use crate::{RtoConfig, SendCause::FastRetransmit, SendCause::Timeout};

const DUPLICATES: SpuriousConfig = SpuriousConfig::DUPLICATES;
const F_RTO: SpuriousConfig =
    SpuriousConfig { f_rto: Some(crate::SpuriousResponse::Undo), ..SpuriousConfig::OFF };
const ACK: Acknowledged =
    Acknowledged { advanced_to: None, highest_newly_acked: None, has_new: true, echo: None };

struct Detecting {
    state: State<()>,
    spurious: Box<SpuriousDetection>,
}

impl Detecting {
    /// A state with two paths, windows of 20 packets, and ten units in flight over the first.
    fn new(config: SpuriousConfig) -> Self {
        Self::with(config, |_| ())
    }

    fn eifel() -> Self {
        Self::with(SpuriousConfig::OFF, |config| {
            config.tcp.eifel = Some(crate::SpuriousResponse::Undo);
        })
    }

    fn with(spurious: SpuriousConfig, change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut state = State::with(|config| {
            change(config);
            config.spurious = spurious;
        });
        let mut spurious = SpuriousDetection::new(&state.config).expect("a detector is on");
        state.add_active_path();
        for path in [0, 1] {
            spurious.add_path();
            state.paths[path].window = wide(20);
        }
        (0..10).for_each(|_| _ = state.send(AT(0), 0, FULL));
        Self { state, spurious }
    }

    fn begin(&mut self, path: u8, kind: SendCause) {
        self.spurious.begin(path, kind, &mut self.state);
    }

    /// `unit` is lost and retransmitted. Returns its episode.
    fn resend(&mut self, ms: u64, unit: u64, cause: SendCause) -> Option<EpisodeId> {
        self.state.outstanding.lose(unit, cause);
        let path = self.state.outstanding.unit(unit)?.last().path;
        let episode = self.spurious.on_retransmitted(AT(ms), path, cause);
        self.state.resend(AT(ms), path, unit, cause);
        episode
    }

    fn is_proven(&self, path: u8) -> bool {
        self.spurious.detect_by_duplicates(path, &self.state)
    }

    /// An ACK up to `unit` that echoes the timestamp of the packet sent at `ms`.
    fn is_shown_by_echo(&mut self, unit: u64, ms: u64) -> bool {
        let ack = Acknowledged {
            advanced_to: Some(unit),
            echo: Some(Echo { sent_at: AT(ms), tick: MS(1) }),
            ..ACK
        };
        let is_shown = self.spurious.detect_by_timestamp(0, &ack, &self.state);
        self.spurious.end_ack();
        is_shown
    }

    fn is_shown_by_f_rto(&mut self, ack: Acknowledged) -> bool {
        let highest = self.state.outstanding.next_unit() - 1;
        let path = self.spurious.on_mut(0);
        path.f_rto.on_ack(&ack, path.has_acked_original, highest)
    }
}

#[test]
fn every_transmission_of_an_episode_has_to_be_reported() {
    let mut d = Detecting::new(DUPLICATES);
    d.begin(0, FastRetransmit);
    let [first, second] = [1, 2].map(|unit| d.resend(10, unit, FastRetransmit).expect("it is on"));
    assert_eq!(first, second);
    assert!(d.spurious.has_open_fast_retransmit());
    assert!(d.spurious.on_reported(first) && !d.is_proven(0));
    assert!(d.spurious.on_reported(second) && d.is_proven(0) && !d.is_proven(1));
    let episode = d.spurious.settle(0).expect("it is open");
    assert_eq!((episode.kind, episode.retransmitted_at), (FastRetransmit, Some(AT(10))));
    assert!(d.spurious.settle(0).is_none() && !d.is_proven(0), "it is decided once");
}

#[test]
fn waiting_data_leaves_an_episode_open() {
    let mut d = Detecting::new(DUPLICATES);
    d.begin(0, Timeout);
    let id = d.resend(10, 1, Timeout).expect("it is on");
    d.state.outstanding.lose(2, Timeout);
    d.spurious.on_reported(id);
    assert!(!d.is_proven(0));
    // Wherever it waits.
    d.state.outstanding.move_to(2, 1);
    assert!(!d.is_proven(0));
    d.state.outstanding.return_lost(2);
    assert!(d.is_proven(0));
}

/// Copies and window probes belong to no episode.
#[test]
fn only_data_declared_lost_is_of_an_episode() {
    let mut d = Detecting::new(DUPLICATES);
    assert_eq!(d.spurious.on_retransmitted(AT(5), 0, Timeout), None, "none has begun");
    d.begin(0, Timeout);
    for cause in
        [SendCause::Redundant, SendCause::Bundled, SendCause::WindowProbe, SendCause::Early]
    {
        assert_eq!(d.spurious.on_retransmitted(AT(5), 0, cause), None, "{cause:?}");
    }
    assert!(d.spurious.on_retransmitted(AT(5), 0, SendCause::Probe).is_some());
    assert_eq!(d.spurious.on_retransmitted(AT(5), 1, Timeout), None, "another path");
}

/// Transmissions of the episodes before are remembered over the renewal, and reported after it: were the
/// numbers to begin again, they would be taken for those of the new episode, and counted below zero.
#[test]
fn numbers_of_episodes_go_on_when_a_path_is_renewed() {
    type End = fn(&mut SpuriousDetection);
    let ends: [End; 3] = [|it| it.renew_path(0), |it| it.cancel(0), |it| it.clear()];
    for end in ends {
        let mut d = Detecting::new(DUPLICATES);
        let mut old = Vec::new();
        for (unit, kind) in [(1, Timeout), (2, Timeout), (3, FastRetransmit)] {
            d.begin(0, kind);
            old.extend(d.resend(10, unit, kind));
        }
        end(&mut d.spurious);
        d.begin(0, Timeout);
        let new = d.resend(20, 4, Timeout).expect("it is on");
        assert!(old.len() == 3 && old.iter().all(|id| id.number < new.number), "{old:?} {new:?}");
        for _ in 0..2 {
            for &id in &old {
                assert!(!d.spurious.on_reported(id), "it is of no open episode");
                assert!(!d.is_proven(0), "the new one is not reported");
            }
        }
        // Forgotten transmissions of before leave the new one provable.
        old.iter().for_each(|&id| d.spurious.on_forgotten(Some(id)));
        assert!(d.spurious.on_reported(new) && d.is_proven(0));
    }
}

/// A delay that outlasts two timeouts: back to before the first, if both prove spurious.
#[test]
fn episodes_that_follow_each_other_lead_back_to_before_the_first() {
    for (is_first_reported, cwnd) in [(true, 20_000), (false, 8000)] {
        let mut d = Detecting::new(DUPLICATES);
        d.begin(0, Timeout);
        let first = d.resend(10, 1, Timeout).expect("it is on");
        d.state.paths[0].window = wide(8);
        d.begin(0, Timeout);
        let second = d.resend(20, 1, Timeout).expect("it is on");
        if is_first_reported {
            assert!(!d.spurious.on_reported(first), "not the latest");
        }
        assert!(d.spurious.on_reported(second) && d.is_proven(0));
        let episode = d.spurious.settle(0).expect("it is open");
        assert_eq!(episode.before.window.cwnd(), cwnd);
    }
}

#[test]
fn a_forgotten_or_unprovable_episode_is_never_proven() {
    let mut d = Detecting::new(DUPLICATES);
    d.begin(0, Timeout);
    let id = d.resend(10, 1, Timeout);
    d.spurious.on_forgotten(None);
    d.spurious.on_forgotten(id);
    d.spurious.on_reported(id.expect("it is on"));
    assert!(!d.is_proven(0));
    d.begin(0, Timeout);
    let id = d.resend(20, 2, Timeout).expect("it is on");
    d.spurious.mark_unprovable(0);
    d.spurious.on_reported(id);
    assert!(!d.is_proven(0));
    // A retransmitted unit was acknowledged while it waited, by an unknown transmission.
    d.begin(0, Timeout);
    let id = d.resend(30, 3, Timeout).expect("it is on");
    d.spurious.on_lost_acked(0, true);
    assert!(!d.is_proven(0));
    d.spurious.on_lost_acked(0, false);
    d.spurious.on_reported(id);
    assert!(!d.is_proven(0));
}

/// RFC 3708 §3 A.4.
#[test]
fn a_network_that_duplicates_is_distrusted_for_as_many_units() {
    let mut d = Detecting::new(DUPLICATES);
    d.begin(0, Timeout);
    let id = d.resend(10, 1, Timeout).expect("it is on");
    d.spurious.on_unexplained_duplicate(d.state.outstanding.next_unit());
    d.spurious.on_reported(id);
    assert!(!d.is_proven(0), "the open one");
    for (more, is_proven) in [(0, false), (DISTRUST_UNITS, false), (1, true)] {
        (0..more).for_each(|_| _ = d.state.send(AT(0), 1, FULL));
        d.begin(0, Timeout);
        let id = d.resend(20, 2, Timeout).expect("it is on");
        d.spurious.on_reported(id);
        assert_eq!(d.is_proven(0), is_proven, "{more} units later");
    }
}

#[test]
fn nothing_is_kept_without_a_detector() {
    let state = State::<()>::with(|_| ());
    assert!(SpuriousDetection::new(&state.config).is_none());
    // With another detector alone, duplicates prove nothing.
    let mut d = Detecting::new(F_RTO);
    d.begin(0, Timeout);
    let id = d.resend(10, 1, Timeout).expect("it is on");
    d.spurious.on_reported(id);
    assert!(!d.is_proven(0));
}

/// RFC 3522: the first acknowledgement that moves the cumulative point decides.
#[test]
fn an_older_timestamp_shows_a_spurious_timeout_once() {
    for (echo, is_shown) in [(0, true), (100, false)] {
        let mut d = Detecting::eifel();
        d.begin(0, Timeout);
        d.resend(100, 1, Timeout);
        d.state.outstanding.lose(2, Timeout);
        let ack = Acknowledged { echo: Some(Echo { sent_at: AT(echo), tick: MS(1) }), ..ACK };
        assert!(!d.spurious.detect_by_timestamp(0, &ack, &d.state), "it does not advance");
        assert_eq!(d.is_shown_by_echo(1, echo), is_shown);
        assert!(!d.is_shown_by_echo(2, 0), "the second says nothing");
    }
    let mut d = Detecting::new(DUPLICATES);
    d.begin(0, Timeout);
    d.resend(100, 1, Timeout);
    assert!(!d.is_shown_by_echo(1, 0), "it is off");
}

/// With two holes, one of them may be a loss.
#[test]
fn a_timestamp_decides_a_fast_retransmit_of_one_unit_alone() {
    for (others, is_waiting, is_shown) in [(0, false, true), (1, false, false), (0, true, false)] {
        let mut d = Detecting::eifel();
        d.begin(0, FastRetransmit);
        (1..=1 + others).for_each(|unit| _ = d.resend(100, unit, FastRetransmit));
        if is_waiting {
            d.state.outstanding.lose(9, FastRetransmit);
        }
        assert_eq!(d.is_shown_by_echo(1, 0), is_shown, "{others} {is_waiting}");
    }
}

/// RFC 3522 §3.2 step 5: the duplicate's acknowledgement echoes the original, too.
#[test]
fn a_duplicate_report_forbids_the_conclusion() {
    let mut d = Detecting::eifel();
    d.begin(0, Timeout);
    d.resend(100, 1, Timeout);
    d.spurious.on_duplicate();
    assert!(!d.is_shown_by_echo(1, 0));
    // A peer that reports duplicates is believed with the last acknowledgement, others are not.
    for reports in [false, true] {
        let mut d = Detecting::eifel();
        if reports {
            d.spurious.on_duplicate();
            d.spurious.end_ack();
        }
        d.begin(0, Timeout);
        d.resend(100, 1, Timeout);
        d.state.deliver_through(10);
        assert_eq!(d.is_shown_by_echo(10, 0), reports);
    }
}

/// RFC 5682 §3.1.
#[test]
fn f_rto_holds_back_the_rest_and_decides_by_the_second_acknowledgement() {
    let mut d = Detecting::new(F_RTO);
    d.begin(0, Timeout);
    d.spurious.begin_f_rto(0, false, &d.state);
    assert!(!d.spurious.holds_lost(0, true) && d.spurious.holds_lost(0, false), "one packet");
    assert!(!d.spurious.prefers_new(0) && !d.spurious.prefers_new_somewhere());
    assert!(!d.is_shown_by_f_rto(Acknowledged { advanced_to: Some(1), ..ACK }));
    assert!(d.spurious.prefers_new(0) && d.spurious.holds_lost(0, true));
    assert!(d.spurious.prefers_new_somewhere() && !d.spurious.prefers_new(1));
    assert!(!d.spurious.holds_new(0));
    (0..2).for_each(|_| d.spurious.on_sent_new(0));
    assert!(d.spurious.holds_new(0) && !d.spurious.holds_new(1), "two packets");
    d.spurious.on_lost_acked(0, true);
    assert!(d.is_shown_by_f_rto(Acknowledged { highest_newly_acked: Some(2), ..ACK }));
    assert!(!d.spurious.holds_new(0) && !d.spurious.holds_lost(0, false), "it is over");
}

#[test]
fn f_rto_needs_an_original_of_this_acknowledgement() {
    let mut d = Detecting::new(F_RTO);
    d.spurious.begin_f_rto(0, false, &d.state);
    d.spurious.on_lost_acked(0, true);
    d.is_shown_by_f_rto(Acknowledged { advanced_to: Some(1), ..ACK });
    d.spurious.end_ack();
    assert!(!d.is_shown_by_f_rto(Acknowledged { highest_newly_acked: Some(2), ..ACK }));
}

/// RFC 5682 §3.1 step 1; and only where the same path takes the retransmissions.
#[test]
fn f_rto_examines_no_timeout_in_a_recovery_or_of_another_path() {
    let begins = |d: &mut Detecting, is_repeated| {
        d.spurious.begin_f_rto(0, is_repeated, &d.state);
        d.spurious.holds_lost(0, false)
    };
    let mut d = Detecting::new(F_RTO);
    d.state.fast_recovery.begin(10);
    assert!(!begins(&mut d, false) && !begins(&mut d, true));
    d.state.fast_recovery.leave();
    assert!(!begins(&mut d, false), "not everything of it is acknowledged");
    d.state.deliver_through(10);
    assert!(begins(&mut d, false));
    // The timer expired again over the same, which the first expiry had begun to examine.
    d.state.send(AT(0), 0, FULL);
    d.state.fast_recovery.on_timeout(11);
    assert!(begins(&mut d, true));
    assert!(!begins(&mut d, false));
    assert!(!begins(&mut d, true), "it was off");
    d.spurious.end_f_rto(0);
    let mut d = Detecting::with(F_RTO, |config| config.sctp.retransmission_destination = Cwnd);
    assert!(!begins(&mut d, false));
    let mut d = Detecting::new(F_RTO);
    d.state.fast_recovery.begin_on_path(0, 10);
    assert!(!begins(&mut d, false));
}

/// ssthresh is the window before, and slow start leads there; a window that is above stays.
#[test]
fn undo_sets_the_window_up_to_return() {
    for (reduced, by, acked, cwnd) in [
        (4, Detector::Duplicates, 3000, 4000),
        (4, Detector::FRto, 1000, 11_000),
        (4, Detector::Timestamps, 90_000, 14_000),
    ] {
        let mut d = Detecting::new(DUPLICATES);
        d.begin(0, Timeout);
        d.state.paths[0].window = wide(reduced);
        let episode = d.spurious.settle(0).expect("it is open");
        assert!(d.spurious.undo(0, &episode, by, acked, &mut d.state));
        let window = &d.state.paths[0].window;
        // Ten packets are in flight, and no more is acknowledged than a first window holds.
        assert_eq!((window.cwnd(), window.ssthresh()), (cwnd, 20_000), "{by:?}");
    }
    let mut d = Detecting::new(DUPLICATES);
    d.begin(0, Timeout);
    d.state.paths[0].window = wide(21);
    let episode = d.spurious.settle(0).expect("it is open");
    assert!(!d.spurious.undo(0, &episode, Detector::Duplicates, 0, &mut d.state));
    assert_eq!(d.state.paths[0].window.cwnd(), 21_000);
}

/// RFC 4015 §3.1 step 11: the first sample of a packet sent after the spurious retransmission restarts the
/// estimate, once, and only for a timeout.
#[test]
fn the_first_round_trip_after_a_spurious_timeout_is_known() {
    for (kind, is_known) in [(Timeout, true), (FastRetransmit, false)] {
        let mut d = Detecting::new(DUPLICATES);
        d.state.sample(AT(0), 0, MS(100));
        d.begin(0, kind);
        d.resend(50, 1, kind);
        d.state.paths[0].window = wide(4);
        let episode = d.spurious.settle(0).expect("it is open");
        d.spurious.undo(0, &episode, Detector::Duplicates, 0, &mut d.state);
        assert!(d.spurious.take_spurious_before(0, AT(49)).is_none());
        assert!(d.spurious.take_spurious_before(1, AT(50)).is_none());
        let after = d.spurious.take_spurious_before(0, AT(50));
        assert_eq!(after.is_some(), is_known);
        assert!(d.spurious.take_spurious_before(0, AT(60)).is_none(), "the first alone");
        let Some(after) = after else { continue };
        // SRTT was 100 ms and RTTVAR 50 ms; G is 1 ms.
        let config = RtoConfig::default().granularity(MS(1));
        let estimate = |srtt, rttvar, latest| {
            let [srtt, rttvar, latest] = [srtt, rttvar, latest].map(MS);
            RttEstimator::Measured { srtt, rttvar, latest }
        };
        assert_eq!(after.estimate_from(MS(400), &config), estimate(400, 200, 400));
        assert_eq!(after.estimate_from(MS(60), &config), estimate(102, 50, 60));
    }
}

#[test]
fn another_route_ends_what_is_examined() {
    let mut d = Detecting::new(F_RTO);
    d.begin(0, Timeout);
    d.resend(50, 1, Timeout);
    let episode = d.spurious.settle(0).expect("it is open");
    d.spurious.undo(0, &episode, Detector::FRto, 0, &mut d.state);
    d.begin(0, Timeout);
    d.spurious.begin_f_rto(0, false, &d.state);
    d.spurious.renew_path(0);
    assert!(!d.spurious.holds_lost(0, false) && d.spurious.settle(0).is_none());
    assert!(d.spurious.take_spurious_before(0, AT(90)).is_none());
}
