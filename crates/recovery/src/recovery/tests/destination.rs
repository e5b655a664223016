//! Which path data take (RFC 9260 §6.4, §6.4.1, §8.2; RFC 7829 §3.2, §4.1).

use super::{FULL, Sender};
use crate::{PathState, RecoveryConfig, RetransmissionDestination};

const PMR: u32 = 2;

impl Sender {
    pub(super) fn add_confirmed_path(&mut self) {
        let path = self.recovery.open_path(None, FULL);
        assert_eq!(self.recovery.paths()[path].reach().state(), PathState::Unconfirmed);
        assert_eq!(self.path_probed(path), Some(PathState::Active));
    }

    fn over_two(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut s = Self::with(change);
        s.add_confirmed_path();
        s
    }

    fn fail(&mut self, path: u8) {
        (0..=PMR).for_each(|_| _ = self.path_error(path, PMR));
    }

    /// Units that wait to be retransmitted over each path.
    fn waiting(&self) -> [Vec<u64>; 2] {
        [0, 1].map(|path| self.waiting_on(path))
    }
}

/// RFC 9260 §6.4: data that timed out is retransmitted over another active path, one packet at once, whatever
/// its window says (§6.3.3 E3).
#[test]
fn timed_out_data_goes_to_another_active_path() {
    let mut s = Sender::over_two(|_| ());
    (0..4).for_each(|_| s.push_over(1, &[FULL]));
    (0..2).for_each(|_| s.push_over(0, &[FULL]));
    s.recovery.state.paths[1].t3.stop();
    assert_eq!(s.expire(), 1000);
    assert_eq!(s.waiting(), [vec![], vec![5, 6]]);
    assert_eq!((s.resend_over(0), s.resend_over(1)), (vec![], vec![5]));
    assert_eq!(s.resend_over(1), [], "the window of the other path holds four");
    assert_eq!([0, 1].map(|path| s.window(path).cwnd()), [1000, 4000]);
    s.check();
}

/// RFC 9260 §6.4: unless none exists, or the profile has it otherwise.
#[test]
fn timed_out_data_stays_without_another_active_path() {
    let mut s = Sender::with(|_| ());
    s.recovery.open_path(None, FULL);
    s.push(&[FULL]);
    s.expire();
    assert_eq!(s.waiting(), [vec![1], vec![]], "the other one is not confirmed");
    let mut s = Sender::over_two(|_| ());
    s.fail(1);
    s.push(&[FULL]);
    s.expire();
    assert_eq!(s.waiting(), [vec![1], vec![]], "the other one is inactive");
    let same = RetransmissionDestination::Same;
    let mut s = Sender::over_two(|config| config.sctp.retransmission_destination = same);
    s.push(&[FULL]);
    s.expire();
    assert_eq!(s.waiting(), [vec![1], vec![]]);
    s.fail(0);
    assert_eq!(s.waiting(), [vec![], vec![1]], "until it is inactive");
}

/// RFC 9260 §6.4: fast retransmissions go where the data went.
#[test]
fn fast_retransmissions_take_the_same_path() {
    let mut s = Sender::over_two(|_| ());
    s.push_full(4);
    for end in [2, 3, 4] {
        s.ack(0, &[(2, end)]);
    }
    assert_eq!(s.waiting(), [vec![1], vec![]]);
}

/// RFC 2960 §6.4: unless the profile sends all lost data over another path. One packet is sent at once, and
/// new data where it always is.
#[test]
fn fast_retransmissions_may_take_another_path() {
    let elsewhere = RetransmissionDestination::Elsewhere;
    let mut s = Sender::over_two(|config| config.sctp.retransmission_destination = elsewhere);
    s.push_full(4);
    (0..4).for_each(|_| s.push_over(1, &[FULL])); // The window of path 1 is full.
    for end in [2, 3, 4] {
        s.ack(0, &[(2, end)]);
    }
    assert_eq!(s.waiting(), [vec![], vec![1]]);
    s.recovery.begin_opportunity();
    assert!(s.has_room_for_new(0));
    assert_eq!((s.resend_over(0), s.resend_over(1)), (vec![], vec![1]));
    s.check();
}

/// RFC 9260 §6.4.1: what waits moves on when its path fails, and so do new data; they come back.
#[test]
fn everything_leaves_a_path_that_fails_and_new_data_return() {
    let mut s = Sender::over_two(|_| ());
    s.push_full(4);
    s.ack(0, &[(2, 4)]);
    s.expire();
    assert_eq!((s.waiting(), s.recovery.paths().data_path()), ([vec![], vec![1]], 0));
    s.fail(1);
    assert_eq!(s.waiting(), [vec![1], vec![]], "back, since the other is worse");
    s.fail(0);
    assert_eq!(
        (s.waiting(), s.recovery.paths().data_path()),
        ([vec![1], vec![]], 0),
        "equally bad"
    );
    s.path_error(0, PMR);
    assert_eq!(
        (s.waiting(), s.recovery.paths().data_path()),
        ([vec![], vec![1]], 1),
        "fewest errors"
    );
    assert_eq!(s.path_probed(0), Some(PathState::Active));
    assert_eq!((s.waiting(), s.recovery.paths().data_path()), ([vec![1], vec![]], 0));
    s.check();
}

/// RFC 7829 §3.2 rules 2, 3: one error is enough.
#[test]
fn a_potentially_failed_path_gets_nothing_while_another_is_active() {
    let mut s = Sender::over_two(|config| config.sctp.potentially_failed_max_retrans = Some(0));
    assert_eq!(s.path_error(0, PMR), Some(PathState::PotentiallyFailed));
    assert_eq!(s.recovery.paths().data_path(), 1);
    assert_eq!(s.path_error(1, PMR), Some(PathState::PotentiallyFailed));
    assert_eq!(s.recovery.paths().data_path(), 0, "as many errors: the primary one");
    assert_eq!(s.path_error(0, PMR), None);
    assert_eq!(s.recovery.paths().data_path(), 1);
    assert_eq!(s.path_answered(0, false), None, "it may be the other's answer");
    assert_eq!(s.path_answered(0, true), Some(PathState::Active));
    assert_eq!(s.recovery.paths().data_path(), 0);
}

/// RFC 7829 §3.2 rules 9, 10: an acknowledgement names the paths that it confirms for certain.
#[test]
fn an_acknowledgement_of_data_sent_over_two_paths_is_ambiguous() {
    let mut s = Sender::over_two(|_| ());
    s.push_full(2);
    let outcome = s.ack(1, &[]);
    assert_eq!((outcome.paths, outcome.certain_paths), (0b01, 0b01));
    s.expire();
    s.resend_over(1);
    let outcome = s.ack(2, &[]);
    assert_eq!((outcome.paths, outcome.certain_paths), (0b10, 0));
}

/// An ACK that comes before the retransmission is for the first transmission, over the first path.
#[test]
fn data_acknowledged_before_it_is_retransmitted_counts_for_its_first_path() {
    let mut s = Sender::over_two(|_| ());
    s.push_full(2);
    s.expire();
    let outcome = s.ack(2, &[]);
    assert_eq!((outcome.paths, outcome.certain_paths), (0b01, 0b01));
    assert_eq!((s.waiting(), s.t3()), ([vec![], vec![]], None));
    s.check();
}

/// RFC 9260 §6.3.2: a running timer is not restarted by data moved from another path.
#[test]
fn data_that_comes_from_another_path_restarts_no_running_timer() {
    let mut s = Sender::over_two(|_| ());
    s.push_over(0, &[FULL]);
    s.at(900).push_over(1, &[FULL]);
    s.expire();
    assert_eq!(s.resend_over(1), [1]);
    assert_eq!(s.t3(), Some(1900));
}

/// The counters of each path.
#[test]
fn each_path_has_its_own_counters() {
    let mut s = Sender::over_two(|_| ());
    s.push_full(3);
    s.expire();
    s.resend_over(1);
    let counters = [0, 1].map(|path| s.recovery.paths()[path].counters());
    let of = |c: crate::PathCounters| [c.packets, c.packets_lost, c.retransmissions, c.timeouts];
    assert_eq!(counters.map(of), [[3, 3, 0, 1], [1, 0, 1, 0]]);
}

/// A sender over two paths with this policy; the first path has the larger window, and two units
/// that were sent over the second are lost.
fn choosing(policy: RetransmissionDestination) -> Sender {
    let mut s = Sender::over_two(|config| config.sctp.retransmission_destination = policy);
    s.make_primary(1);
    (0..2).for_each(|_| s.push_over(1, &[FULL]));
    s.expire();
    s
}

impl Sender {
    fn choose(&mut self, tie: u64) {
        self.recovery.choose_destination(self.now, |count| tie.min(count - 1));
    }
}

/// RTX-CWND: the path is chosen when the packet is sent, by its window at that time.
#[test]
fn the_destination_is_chosen_when_the_packet_is_sent() {
    let mut s = choosing(RetransmissionDestination::Cwnd);
    assert_eq!(s.waiting(), [vec![], vec![1, 2]]);
    s.choose(0);
    assert_eq!((s.resend_over(1), s.resend_over(0)), (vec![], vec![1]));
    s.check();
    s.recovery.state.paths[1].window = super::fast_recovery::wide(20);
    s.choose(0);
    assert_eq!((s.resend_over(0), s.resend_over(1)), (vec![], vec![2]));
    s.check();
}

/// RTX-ASAP: a path without room, or an inactive one, is not chosen.
#[test]
fn as_soon_as_possible_takes_a_path_with_room() {
    let mut s = choosing(RetransmissionDestination::Asap);
    (0..4).for_each(|_| s.push_over(0, &[FULL]));
    s.choose(0);
    assert_eq!(s.resend_over(1), [1]);
    s.choose(0);
    assert_eq!((s.resend_over(0), s.resend_over(1)), (vec![], vec![]), "both are full");
    s.at(1_100).ack(0, &[(3, 4)]);
    s.choose(0);
    assert_eq!(s.resend_over(0), [2]);
    s.check();
    let mut s = choosing(RetransmissionDestination::Asap);
    s.fail(0);
    s.choose(0);
    assert_eq!(s.resend_over(1), [1]);
}

/// If no path is active, the one with the fewest errors is used, whatever the policy.
#[test]
fn without_an_active_path_there_is_no_choice() {
    let mut s = choosing(RetransmissionDestination::Csi);
    s.fail(0);
    s.fail(0);
    s.fail(1);
    s.choose(0);
    assert_eq!(s.resend_over(1), [1], "fewest errors");
}

/// RTX-CSI: timeouts are remembered for Δ.
#[test]
fn timeouts_decide_between_equal_windows_while_they_are_remembered() {
    let mut s = choosing(RetransmissionDestination::Csi);
    let wide = super::fast_recovery::wide(20);
    s.recovery.state.paths.iter_mut().for_each(|path| path.window = wide.clone());
    s.choose(1);
    assert_eq!(s.resend_over(0), [1], "the other one has timed out");
    s.expire_path(0, super::TimeoutKind::Loss);
    s.expire_path(0, super::TimeoutKind::Loss);
    s.recovery.state.paths.iter_mut().for_each(|path| path.window = wide.clone());
    s.at(1_500).choose(0);
    assert_eq!(s.resend_over(1), [1], "as often, but longer ago");
}
