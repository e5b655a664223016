//! The budget, bundled copies and delayed ones, without a sender.

mod bundled;

use std::num::NonZeroU32;

use super::*;
use crate::SendCause;
use crate::state::tests::{AT, FULL, MS, SMALL};
use crate::{CopyBudget, DelayedCopyConfig};
use crate::{ProbeConfig, ThinConfig, ThinTest};
use rexmit_deadline::Planner;

const BUNDLED: ThinConfig = ThinConfig {
    bundling: Some(crate::BundlingConfig::ALL),
    test: ThinTest::Packets(16),
    ..ThinConfig::OFF
};
const DOUBLED: ThinConfig = ThinConfig {
    delayed_copies: DelayedCopyConfig {
        of_retransmissions: Some(crate::RetransmissionCopies::ONE),
        ..DelayedCopyConfig::OFF
    },
    ..ThinConfig::OFF
};
const BYTES: CopyBudget = crate::state::tests::budget(0, 10);

impl Redundancy {
    /// The bytes that `budget` still allows, without the reduction by a queue.
    pub(crate) fn spending_left(&self, budget: CopyBudget) -> u64 {
        self.spending.bytes_left(budget)
    }
}

struct Copying {
    state: State<()>,
    probe: ProbeTimer,
    redundancy: Redundancy,
}

impl Copying {
    fn new(thin: ThinConfig) -> Self {
        let state = State::thin(thin);
        let (mut probe, redundancy) = (ProbeTimer::default(), Redundancy::default());
        probe.enable(0);
        Self { state, probe, redundancy }
    }

    /// Sends `count` small units, each in a packet of its own.
    fn send(&mut self, now: Instant, count: usize) {
        (0..count).for_each(|_| _ = self.state.send(now, 0, SMALL));
    }

    fn choose(&self, now: Instant, room: u32, is_contiguous: bool) -> (Vec<u64>, bool) {
        let room = BundleRoom { new_bytes: SMALL, room, is_contiguous };
        let (path, group, probe, plan) = (0, 0, &self.probe, &Planner::default());
        let bundling = Bundling { path, group, room, probe, plan };
        let Chosen { copies, is_denied } = self.redundancy.choose(now, &bundling, &self.state);
        (copies.collect(), is_denied)
    }

    /// `unit` is declared lost and retransmitted, and its copies are planned.
    fn retransmit(&mut self, now: Instant, unit: u64) {
        self.state.outstanding.lose(unit, SendCause::FastRetransmit);
        let repeats = self.state.outstanding.unit(unit).and_then(Unit::repeats);
        let standing = repeats.map_or(0, |repeats| repeats.standing_copies().0);
        self.state.resend(now, 0, unit, SendCause::FastRetransmit);
        self.redundancy.plan_of_retransmission(now, unit, standing, &self.state);
    }

    /// Sends due copies, and returns the number that the budget denied.
    fn ready(&mut self, now: Instant) -> u64 {
        self.redundancy.ready_copies(now, 0, &self.state, &Planner::default())
    }

    /// Sends the first due copy in a packet of its own.
    fn copy(&mut self, now: Instant) -> Option<u64> {
        let unit = self.redundancy.next_copy(0, false, &self.state)?;
        let left = self.redundancy.take_copy(0, unit).expect("it was named");
        self.state.resend(now, 0, unit, SendCause::Redundant);
        self.redundancy.on_copy_sent(now, unit, left, &self.state);
        self.redundancy.spending.on_packet_of_copies();
        Some(unit)
    }
}

#[test]
fn the_newest_packets_are_copied_as_far_as_the_limits_go() {
    let table = [(0, 0, 900, vec![]), (2, 0, 900, vec![2, 3]), (9, 0, 900, vec![1, 2, 3])];
    let table = table.into_iter().chain([
        (9, 0, 299, vec![2, 3]),
        (9, 3 * SMALL, 900, vec![2, 3]),
        (9, 3 * SMALL - 1, 900, vec![3]),
        (9, SMALL, 900, vec![]),
    ]);
    for (packets, bytes, room, want) in table {
        let bytes = NonZeroU32::new(bytes);
        let bundling = crate::state::tests::bundling(packets).map(|it| it.bytes(bytes));
        let mut c = Copying::new(ThinConfig { bundling, ..BUNDLED });
        c.send(AT(0), 3);
        assert_eq!(c.choose(AT(9), room, false), (want, false));
        assert_eq!(Redundancy::may_copy(0, &c.state), bundling.is_some());
    }
}

#[test]
fn data_that_is_not_in_flight_or_of_another_group_is_left_out_and_ends_a_run() {
    for (is_contiguous, want) in [(false, vec![1, 2, 5]), (true, vec![5])] {
        let mut c = Copying::new(BUNDLED);
        let group =
            c.state.groups.add(ThinConfig::OFF, &c.state.statistics).expect("there is room");
        c.send(AT(0), 3);
        c.state.send_of(AT(0), (0, group), SMALL);
        c.send(AT(0), 1);
        c.state.outstanding.acknowledge(3);
        assert_eq!(c.choose(AT(9), 900, is_contiguous).0, want);
    }
}

/// (4096 + 0) · 10 % is 409 bytes, of which 25 are reserved for data without an ACK within a round trip.
#[test]
fn data_older_than_a_round_trip_is_copied_first_when_the_budget_is_short() {
    let mut c = Copying::new(ThinConfig { copy_budget: BYTES, ..BUNDLED });
    c.probe.on_rtt(0, MS(100));
    c.send(AT(0), 1);
    c.send(AT(50), 1);
    c.redundancy.spending.on_copied(290);
    assert_eq!(c.choose(AT(90), 900, false), (vec![], true), "119 are left, 94 for the recent");
    assert_eq!(c.choose(AT(110), 900, false), (vec![1], true));
    c.redundancy.spending.on_copied(20);
    assert_eq!(c.choose(AT(110), 900, false), (vec![], true));
}

#[test]
fn a_budget_in_bytes_is_spent_by_copies_and_earned_by_new_data() {
    let mut c = Copying::new(ThinConfig { copy_budget: BYTES, ..BUNDLED });
    assert_eq!(c.redundancy.bytes_to_copy(0, 0, &c.state), 409);
    c.redundancy.spending.on_copied(300);
    assert_eq!(c.redundancy.bytes_to_copy(0, 0, &c.state), 109);
    c.redundancy.on_first_sent(0, 0, 1000, &c.state);
    assert_eq!(c.redundancy.bytes_to_copy(0, 0, &c.state), 209);
    c.redundancy.spending.on_copied(300);
    assert!(!c.redundancy.may_bundle(0, 0, &c.state));
}

#[test]
fn a_delayed_copy_is_paid_for() {
    let mut c = Copying::new(ThinConfig { copy_budget: BYTES, ..DOUBLED });
    c.send(AT(0), 1);
    c.retransmit(AT(100), 1);
    let before = c.redundancy.spending_left(BYTES);
    assert_eq!((c.ready(AT(101)), c.copy(AT(101))), (0, Some(1)));
    assert_eq!(c.redundancy.spending_left(BYTES), before - u64::from(SMALL));
}

#[test]
fn a_retransmission_has_its_copies_one_after_the_other() {
    let delayed_copies = DelayedCopyConfig {
        of_retransmissions: crate::state::tests::copies(2),
        ..DOUBLED.delayed_copies
    };
    let mut c = Copying::new(ThinConfig { delayed_copies, ..DOUBLED });
    c.send(AT(0), 1);
    c.retransmit(AT(100), 1);
    assert_eq!((c.redundancy.deadline(0), c.redundancy.has_ready(0)), (AT(101), false));
    assert_eq!((c.ready(AT(101)), c.copy(AT(101))), (0, Some(1)));
    assert_eq!(c.redundancy.deadline(0), AT(102), "the second");
    assert_eq!((c.ready(AT(102)), c.copy(AT(102)), c.copy(AT(102))), (0, Some(1), None));
    assert_eq!(c.redundancy.deadline(0), Instant::FAR_FUTURE);
}

/// A copy bundled since the original counts as one of the delayed copies.
#[test]
fn bundled_copies_count_as_copies_of_the_retransmission() {
    let mut c = Copying::new(DOUBLED);
    c.send(AT(0), 1);
    c.state.outstanding.remember_bundled_copy(AT(50), 1, PacketNumber(1));
    c.retransmit(AT(100), 1);
    assert_eq!(c.redundancy.deadline(0), Instant::FAR_FUTURE);
}

#[test]
fn data_that_arrives_or_is_retransmitted_and_thick_streams_have_no_copy() {
    type Change = fn(&mut Copying);
    let changes: [Change; 4] = [
        |c| _ = c.state.outstanding.acknowledge(1),
        |c| c.state.resend(AT(100), 0, 1, SendCause::Timeout),
        |c| c.send(AT(100), 9),
        |c| (0..4).for_each(|_| _ = c.state.send(AT(100), 0, FULL)),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut c = Copying::new(DOUBLED);
        c.send(AT(0), 1);
        c.retransmit(AT(100), 1);
        change(&mut c);
        assert_eq!((c.ready(AT(101)), c.copy(AT(101))), (0, None), "{index}");
        // The same after it was made ready.
        let mut c = Copying::new(DOUBLED);
        c.send(AT(0), 1);
        c.retransmit(AT(100), 1);
        c.ready(AT(101));
        change(&mut c);
        assert_eq!(c.copy(AT(101)).is_none(), index < 2, "{index}");
    }
}

#[test]
fn a_copy_that_is_refused_is_not_named_again() {
    let mut c = Copying::new(DOUBLED);
    c.send(AT(0), 2);
    c.retransmit(AT(100), 1);
    c.retransmit(AT(100), 2);
    c.ready(AT(101));
    c.redundancy.drop_copy(0, 1);
    assert_eq!((c.copy(AT(101)), c.copy(AT(101))), (Some(2), None));
}

/// (16 + 2) · 10 % is one packet; further copies may be sent only in packets with other units.
#[test]
fn a_budget_in_packets_denies_and_counts() {
    let copy_budget = crate::state::tests::budget(10, 0);
    let mut c = Copying::new(ThinConfig { copy_budget, ..DOUBLED });
    c.send(AT(0), 2);
    (0..2).for_each(|_| c.redundancy.on_first_sent(0, 0, SMALL, &c.state));
    c.retransmit(AT(100), 1);
    c.retransmit(AT(100), 2);
    assert_eq!(c.ready(AT(101)), 0, "either may");
    assert_eq!((c.copy(AT(101)), c.copy(AT(101))), (Some(1), None));
    assert_eq!(c.redundancy.next_copy(0, true, &c.state), Some(2));
    assert_eq!(c.ready(AT(102)), 1, "it was denied in the end");
    assert!(!c.redundancy.has_ready(0));
}

#[test]
fn the_last_units_have_a_copy_unless_others_follow() {
    let delayed_copies =
        DelayedCopyConfig { of_last_after: Some(MS(10)), ..DelayedCopyConfig::OFF };
    let mut c = Copying::new(ThinConfig { delayed_copies, ..ThinConfig::OFF });
    for ms in [0, 9] {
        c.send(AT(ms), 1);
        let next = c.state.outstanding.next_unit();
        c.redundancy.plan_last(AT(ms), 0, next - 1..next, &c.state);
        assert_eq!(c.redundancy.deadline(0), AT(ms + 10));
    }
    assert_eq!((c.ready(AT(10)), c.redundancy.has_ready(0)), (0, false), "2 followed");
    assert_eq!((c.ready(AT(19)), c.copy(AT(19)), c.copy(AT(19))), (0, Some(2), None));
}

/// The copies that an expired packet lacks: nothing is bundled, one copy of two, both, and one that has expired itself.
#[test]
fn an_expired_packet_is_retransmitted_unless_enough_copies_were() {
    let thin = ThinConfig { probe_timer: Some(ProbeConfig::DEFAULT), ..DOUBLED };
    let table = [
        (vec![], 0, ProbeAction::Retransmission { is_beside: false }),
        (vec![50], 0, ProbeAction::Retransmission { is_beside: true }),
        (vec![50, 60], 0, ProbeAction::Nothing { is_denied: false }),
        (vec![50], 50, ProbeAction::Retransmission { is_beside: false }),
        (vec![50, 60], 50, ProbeAction::Nothing { is_denied: false }),
    ];
    for (copies, at, want) in table {
        let mut c = Copying::new(thin);
        c.send(AT(0), 1);
        for &ms in &copies {
            c.state.outstanding.remember_bundled_copy(AT(ms), 1, PacketNumber(ms));
        }
        assert_eq!(c.redundancy.action_on_expiry(1, AT(at), &mut c.state), want, "{copies:?} {at}");
    }
    // A budget that is spent: the one copy has to do.
    let copy_budget = crate::state::tests::budget(1, 0);
    let mut c = Copying::new(ThinConfig { copy_budget, ..thin });
    c.send(AT(0), 1);
    c.state.outstanding.remember_bundled_copy(AT(50), 1, PacketNumber(1));
    let lack = c.redundancy.action_on_expiry(1, AT(0), &mut c.state);
    assert_eq!(lack, ProbeAction::Nothing { is_denied: true });
}

/// A packet is known by its first copy: a bundled one arrives with something new, a delayed one after a
/// round trip at least.
#[test]
fn data_that_arrived_may_have_been_the_copy() {
    let mut c = Copying::new(BUNDLED);
    c.probe.on_rtt(0, MS(100));
    c.send(AT(0), 2);
    c.state.outstanding.remember_bundled_copy(AT(10), 1, PacketNumber(1));
    let acked = c.state.outstanding.acknowledge(1).expect("outstanding");
    let copied = AckedCopied::of(&acked, &mut c.state).expect("it was copied");
    assert!(!copied.may_be_of_copy(AT(110), &c.state, &c.probe), "2 has not arrived");
    c.state.outstanding.acknowledge(2);
    assert!(copied.may_be_of_copy(AT(110), &c.state, &c.probe));
    assert!(AckedCopied::of(&acked, &mut c.state).is_none(), "once");

    let mut c = Copying::new(BUNDLED);
    c.probe.on_rtt(0, MS(100));
    c.send(AT(0), 1);
    let first = FirstSent::of(&c.state.outstanding, 1);
    c.state.resend(AT(10), 0, 1, SendCause::Redundant);
    c.state.outstanding.remember_repeat(AT(10), 1, PacketNumber(0), SendCause::Redundant, None);
    c.state.outstanding.on_copied(1, first);
    let acked = c.state.outstanding.acknowledge(1).expect("outstanding");
    let copied = AckedCopied::of(&acked, &mut c.state).expect("it was copied");
    assert_eq!(copied.first.packet, PacketNumber(0));
    assert!(!copied.may_be_of_copy(AT(109), &c.state, &c.probe));
    assert!(copied.may_be_of_copy(AT(110), &c.state, &c.probe));
}

#[test]
fn planned_copies_are_bounded_and_end_with_the_path() {
    let mut c = Copying::new(ThinConfig { test: ThinTest::Packets(255), ..DOUBLED });
    c.state.paths[0].window = crate::state::tests::wide(1000);
    c.send(AT(0), 200);
    (1..=200).for_each(|unit| c.retransmit(AT(100), unit));
    c.ready(AT(101));
    let copies = std::iter::from_fn(|| c.copy(AT(101))).count();
    assert_eq!(copies, 64);
    let ends: [fn(&mut Copying); 2] = [|c| c.redundancy.clear(), |c| c.redundancy.renew_path(0)];
    for forget in ends {
        c.retransmit(AT(200), 1);
        assert!(c.redundancy.deadline(0) < Instant::FAR_FUTURE);
        forget(&mut c);
        assert_eq!(c.redundancy.deadline(0), Instant::FAR_FUTURE);
        assert_eq!((c.ready(AT(300)), c.copy(AT(300))), (0, None));
    }
}

/// Queueing delays of 0, 25 and 50 ms with a limit of 25 ms; a loss rate above 30 %; and the setting disabled.
#[test]
fn a_queue_leaves_a_share_to_copies() {
    for queue_delay_limit in [Some(MS(25)), None] {
        let mut state = State::thin(ThinConfig { queue_delay_limit, ..ThinConfig::OFF });
        let mut now = AT(0);
        let mut shares = Vec::new();
        for rtt in [100, 110, 150] {
            for _ in 0..100 {
                now += MS(50);
                state.note_queueing(now, 0, MS(rtt));
            }
            shares.push((share_beside_queue(0, 0, &state), state.yields(0, 0)));
        }
        if queue_delay_limit.is_none() {
            assert_eq!(shares, [(Share::ALL, false); 3]);
            assert!(state.paths[0].queue.is_none(), "nothing is kept");
            continue;
        }
        assert_eq!((shares[0], shares[2]), ((Share::ALL, false), (Share::NONE, true)));
        assert!(shares[1].0 != Share::ALL && !shares[1].0.is_none() && !shares[1].1, "{shares:?}");
        // Another path has a queue of its own.
        state.add_active_path();
        assert_eq!((share_beside_queue(1, 0, &state), state.yields(1, 0)), (Share::ALL, false));
        // 64 count before the first, and all weigh half once they are 128: 100 were sent.
        (0..100).for_each(|_| state.note_first_sent(1));
        (0..35).for_each(|_| state.note_first_lost(1));
        assert_eq!((share_beside_queue(1, 0, &state), state.yields(1, 0)), (Share::NONE, false));
    }
}
