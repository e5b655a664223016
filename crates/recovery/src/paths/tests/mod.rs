//! The paths together: which one data and retransmissions take, and what each has of the peer's window.

mod choice;
mod destination;

mod reach;

use crate::{CmtConfig, RetransmissionDestination};
use rexmit_core::trace::SendCause;

use super::*;
use crate::RetransmissionDestination::{Alternate, Asap, Csi, Cwnd, Elsewhere, Same};
use crate::state::tests::{AT, FULL, MS, wide};
use crate::state::{PeerWindow, State};
use crate::{Coupling, RecoveryConfig};

const LIMITS: FailureLimits = FailureLimits { potentially_failed: None, inactive: 1 };

fn with(paths: u8, change: impl FnOnce(&mut RecoveryConfig)) -> State<()> {
    let mut state = State::with(change);
    (1..paths).for_each(|_| state.add_active_path());
    state
}

fn to(destination: RetransmissionDestination) -> State<()> {
    with(2, |config| config.sctp.retransmission_destination = destination)
}

impl State<()> {
    fn fail(&mut self, path: u8) {
        (0..2).for_each(|_| self.paths[path].reach.on_error(LIMITS));
    }

    fn revive(&mut self, path: u8) {
        self.paths[path].reach.on_answer(true);
    }

    fn waiting(&self) -> [Option<u64>; 2] {
        [0, 1].map(|path| self.outstanding.on(path).first_lost())
    }
}

#[test]
fn multipath_state_begins_with_the_second_path() {
    let mut state = with(1, |_| ());
    assert!(state.paths.is_one() && state.paths[0].multipath.is_none());
    state.add_active_path();
    assert!(!state.paths.is_one() && state.paths.numbers().eq(0..2));
    assert!(state.paths.iter().all(|path| path.multipath.is_some()));
    assert_eq!(with(1, |_| ()).paths.alternate_to(0), 0, "there is no other");
}

#[test]
#[should_panic(expected = "limits the paths")]
fn paths_are_bits_of_a_word() {
    with(65, |_| ());
}

#[test]
fn data_follow_the_state_of_paths_and_waiting_data_follows_them() {
    let mut state = to(Same);
    state.send(AT(0), 0, FULL);
    state.outstanding.lose(1, SendCause::Timeout);
    assert_eq!(state.choose_paths(), crate::state::Moves::default());
    state.fail(0);
    let moves = state.choose_paths();
    assert_eq!((moves.left, moves.begun), (0b01, 0b10));
    assert_eq!((state.paths.data_path(), state.paths.primary()), (1, 0));
    assert_eq!(state.waiting(), [None, Some(1)]);
    state.revive(0);
    assert_eq!(state.choose_paths(), crate::state::Moves::default(), "it stays where it waits");
    assert_eq!(state.paths.data_path(), 0);
    state.paths.set_primary(1);
    state.choose_paths();
    assert_eq!(state.paths.data_path(), 1);
}

#[test]
fn one_packet_may_pass_the_window_where_it_goes() {
    let mut state = to(Same);
    (0..2).for_each(|_| _ = state.send(AT(0), 0, FULL));
    state.outstanding.lose(1, SendCause::Timeout);
    state.paths[0].gate.open_for_retransmission();
    state.fail(0);
    state.choose_paths();
    assert_eq!([0, 1].map(|path| state.paths[path].gate.may_retransmit_now()), [false, true]);
}

#[test]
fn lost_data_goes_where_the_policy_says() {
    for (policy, by_timer, otherwise) in
        [(Same, 0, 0), (Alternate, 1, 0), (Elsewhere, 1, 1), (Cwnd, 0, 0)]
    {
        let mut state = to(policy);
        assert_eq!(state.destination(0, true), by_timer, "{policy:?}");
        assert_eq!(state.destination(0, false), otherwise, "{policy:?}");
        state.retransmit_now(0);
        assert!(state.paths[otherwise].gate.may_retransmit_now());
        state.fail(0);
        assert_eq!([true, false].map(|is_timeout| state.destination(0, is_timeout)), [1, 1]);
        state.fail(1);
        assert_eq!(state.destination(0, false), 1, "none is active: another one");
    }
}

#[test]
fn a_timeout_moves_waiting_data_to_the_other_path() {
    for (policy, waiting, gates) in
        [(Same, [Some(1), None], [true, false]), (Alternate, [None, Some(1)], [false, true])]
    {
        let mut state = to(policy);
        state.send(AT(0), 0, FULL);
        state.outstanding.lose(1, SendCause::Timeout);
        let moves = state.move_timed_out(0);
        assert_eq!(moves.left != 0, policy == Alternate);
        assert_eq!(state.waiting(), waiting);
        assert_eq!([0, 1].map(|path| state.paths[path].gate.may_retransmit_now()), gates);
    }
}

/// RTX-ASAP and RTX-CWND; with one path, or a fixed destination, there is nothing to choose.
#[test]
fn a_path_is_chosen_when_the_packet_is_sent() {
    for (policy, is_late) in [(Same, false), (Cwnd, true), (Asap, true)] {
        let mut state = to(policy);
        assert_eq!(state.chooses_late(), is_late);
        (0..4).for_each(|_| _ = state.send(AT(0), 0, FULL));
        state.choose_destination(AT(1), |_| 0);
        assert_eq!(state.paths.chosen, None, "nothing waits");
        state.outstanding.lose(1, SendCause::FastRetransmit);
        state.send(AT(0), 0, FULL); // The first window is full again.
        state.paths[1].window = wide(if policy == Cwnd { 20 } else { 4 });
        state.choose_destination(AT(1), |_| 0);
        assert_eq!(state.paths.chosen, is_late.then_some(1), "{policy:?}");
        state.fail(1);
        state.choose_destination(AT(1), |_| 0);
        let left = (policy == Cwnd).then_some(0);
        assert_eq!(state.paths.chosen, left, "{policy:?}: the first alone, which is full");
        state.fail(0);
        state.choose_destination(AT(1), |_| 0);
        assert_eq!(state.paths.chosen, is_late.then_some(1), "none is active: the alternate");
    }
    assert!(!with(1, |config| config.sctp.retransmission_destination = Asap).chooses_late());
}

/// RTX-CSI: expiries within half a minute count.
#[test]
fn timeouts_are_remembered_for_a_while_and_bounded() {
    let mut state = to(Csi);
    (0..2).for_each(|path| _ = state.send(AT(0), path, FULL));
    state.outstanding.lose(1, SendCause::Timeout);
    state.paths[0].remember_timeout(AT(1000));
    state.choose_destination(AT(30_000), |_| panic!("no tie"));
    assert_eq!(state.paths.chosen, Some(1));
    state.paths[1].remember_timeout(AT(20_000));
    state.choose_destination(AT(30_000), |_| panic!("no tie"));
    assert_eq!(state.paths.chosen, Some(0), "as many, and longer ago");
    state.paths[0].remember_timeout(AT(21_000));
    state.choose_destination(AT(30_900), |_| panic!("no tie"));
    assert_eq!(state.paths.chosen, Some(1), "two");
    state.choose_destination(AT(31_000), |_| panic!("no tie"));
    assert_eq!(state.paths.chosen, Some(1), "one each, and the latest of the first is later");
    (0..100).for_each(|n| state.paths[0].remember_timeout(AT(40_000 + n)));
    assert_eq!(state.paths[0].timeouts().count(), 64);
    assert_eq!(state.paths[0].timeouts().next(), Some(AT(40_099)));
}

/// RFC 9260 §6.3.1 C4, C5.
#[test]
fn a_sample_is_taken_once_per_round_trip_and_not_over_a_retransmission() {
    let mut state = with(1, |_| ());
    assert!(state.paths[0].may_sample(AT(0)));
    state.sample(AT(100), 0, MS(100));
    assert!(!state.paths[0].may_sample(AT(99)) && state.paths[0].may_sample(AT(100)));
    state.paths[0].on_retransmission(AT(150));
    assert!(!state.paths[0].may_sample(AT(150)) && state.paths[0].may_sample(AT(151)));
}

#[test]
fn a_path_with_another_route_begins_anew() {
    let mut state = with(1, |_| ());
    state.sample(AT(100), 0, MS(100));
    state.paths[0].window = wide(20);
    state.paths[0].gate.is_single_packet = true;
    state.paths[0].t3.on_expired_over(7);
    let config = std::sync::Arc::clone(&state.config);
    let path = &mut state.paths[0];
    path.renew(AT(200), &config, FULL);
    assert_eq!((path.timer().rtt().srtt(), path.window().cwnd()), (None, 4000));
    assert!(!path.gate.is_single_packet && !path.t3.has_expired_over(7));
    assert!(!path.may_sample(AT(200)), "it took the other way");
    assert!(path.may_sample(AT(201)));
}

fn at_once(change: impl FnOnce(&mut CmtConfig)) -> State<()> {
    with(2, |config| {
        let mut cmt = CmtConfig::ON;
        change(&mut cmt);
        config.sctp.cmt = Some(cmt);
    })
}

#[test]
fn each_path_has_its_part_of_the_peers_window() {
    let window = |a_rwnd| PeerWindow { a_rwnd, buffer: u64::MAX };
    let mut state = at_once(|cmt| cmt.split_buffer = true);
    assert!(state.may_take(0, 984, window(0)), "nothing is under way");
    state.send(AT(0), 0, FULL);
    assert!(state.may_take(0, 1016, window(4000)) && !state.may_take(0, 1017, window(4000)));
    assert!(state.may_take(1, 9999, window(0)));
    state.fail(1);
    assert!(state.may_take(0, 3016, window(4000)) && !state.may_take(0, 3017, window(4000)));
    let mut state = at_once(|_| ());
    state.send(AT(0), 0, FULL);
    assert!(state.may_take(0, 9999, window(0)), "without the switch there are no parts");
}

/// Round trips of 100 and 300 ms: the faster path sends three windows of 4000 bytes during one round trip of
/// the slower.
#[test]
fn a_slower_path_leaves_the_peers_buffer_to_faster_ones() {
    let buffer = |buffer| PeerWindow { a_rwnd: u64::MAX, buffer };
    let mut state = at_once(|cmt| cmt.avoid_blocking = true);
    state.sample(AT(0), 0, MS(100));
    state.sample(AT(0), 1, MS(300));
    assert_eq!([0, 1].map(|path| state.paths.bytes_of_faster(path)), [0, 12_000]);
    (0..2).for_each(|path| _ = state.send(AT(0), path, FULL));
    assert!(state.may_take(1, 1000, buffer(13_984)) && !state.may_take(1, 1000, buffer(13_983)));
    assert!(state.may_take(0, 1000, buffer(0)), "there is no faster one");
    state.fail(0);
    assert!(state.may_take(1, 1000, buffer(0)), "it has failed");
}

/// CUC: the earliest outstanding unit of each path that was sent once.
#[test]
fn each_path_has_a_pseudo_cumulative_point() {
    let mut state = at_once(|_| ());
    (0..6).for_each(|n| _ = state.send(AT(0), n % 2, FULL)); // 1, 3, 5 over the first.
    let points = |state: &mut State<()>| {
        state.find_pseudo_cumulative();
        [0, 1].map(|path| state.paths[path].multipath.as_ref().expect("two").earliest_first_sent)
    };
    assert_eq!(points(&mut state), [1, 2]);
    state.outstanding.acknowledge(1);
    state.resend(AT(1), 0, 2, SendCause::Redundant);
    assert_eq!(points(&mut state), [3, 4], "2 was sent twice");
    state.deliver_through(6);
    assert_eq!(points(&mut state), [7, 7], "none");
}

/// Half of the rate each; a path that has failed has no part.
#[test]
fn windows_are_coupled_by_their_part_of_the_rate() {
    let mut state = at_once(|cmt| cmt.coupling = Some(Coupling::ResourcePoolingV2));
    state.sample(AT(0), 0, MS(100));
    state.sample(AT(0), 1, MS(50));
    state.paths[0].window = wide(20);
    state.paths[1].window = wide(10);
    let after_loss = |state: &mut State<()>| {
        state.couple_windows();
        let mut window = state.paths[0].window.clone();
        window.on_fast_retransmit(0);
        window.cwnd()
    };
    assert_eq!(after_loss(&mut state), 2000, "half of the whole rate is all of it");
    state.fail(1);
    assert_eq!(after_loss(&mut state), 10_000, "alone");
}

#[test]
fn a_loss_is_counted_once_for_its_packet_and_path() {
    let mut state = with(2, |_| ());
    state.send(AT(0), 1, FULL);
    let lost = state.outstanding.lose(1, SendCause::Timeout).expect("in flight");
    state.count_lost(&lost, true);
    assert_eq!((state.statistics.packets_lost, state.paths[1].counters().packets_lost), (1, 1));
    state.count_lost(&lost, false);
    let of_other = crate::outstanding::LostUnit { packet: None, ..lost };
    state.count_lost(&of_other, true);
    assert_eq!(state.statistics.packets_lost, 1, "a probe, and a unit that ended no packet");
    assert_eq!((state.statistics.packets, state.statistics.packets_lost), (1, 1));
}
