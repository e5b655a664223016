use rexmit_core::Instant;

use crate::RetransmissionDestination::{self, Asap, Csi, Cwnd, LossRate, Ssthresh};
use crate::paths::destination::*;

fn candidate(path: u8) -> Candidate {
    Candidate {
        path,
        has_room: true,
        lost: (1, 100),
        cwnd: 10_000,
        ssthresh: 5_000,
        recent_timeouts: 2,
        last_timeout: Some(Instant::from_millis(1_000)),
    }
}

/// The chosen one of two paths, if no random choice is needed.
fn chosen(policy: RetransmissionDestination, change: impl FnOnce(&mut Candidate)) -> u8 {
    let mut second = candidate(1);
    change(&mut second);
    let all = [candidate(0), second];
    choose(policy, all.into_iter(), |_| panic!("a tie")).expect("there are two")
}

#[test]
fn each_policy_has_its_measure() {
    assert_eq!(chosen(LossRate, |c| c.lost = (1, 101)), 1);
    assert_eq!(chosen(LossRate, |c| c.lost = (2, 100)), 0);
    assert_eq!(chosen(LossRate, |c| c.lost = (0, 0)), 1);
    assert_eq!(chosen(Cwnd, |c| c.cwnd += 1), 1);
    assert_eq!(chosen(Cwnd, |c| c.cwnd -= 1), 0);
    assert_eq!(chosen(Ssthresh, |c| c.ssthresh += 1), 1);
    assert_eq!(chosen(Asap, |c| c.has_room = false), 0);
}

#[test]
fn csi_goes_from_one_measure_to_the_next() {
    assert_eq!(chosen(Csi, |c| (c.cwnd, c.ssthresh) = (10_001, 0)), 1);
    assert_eq!(chosen(Csi, |c| (c.ssthresh, c.recent_timeouts) = (5_001, 9)), 1);
    let late = Some(Instant::from_millis(9_000));
    assert_eq!(chosen(Csi, |c| (c.recent_timeouts, c.last_timeout) = (1, late)), 1);
    assert_eq!(chosen(Csi, |c| c.last_timeout = late), 0, "the longest ago");
    assert_eq!(chosen(Csi, |c| c.last_timeout = None), 1, "never");
}

#[test]
fn ties_are_left_to_chance() {
    for policy in [Asap, LossRate, Cwnd, Ssthresh, Csi] {
        let all = [0, 1, 2].map(candidate);
        for n in 0..3 {
            let draw = |count| {
                assert_eq!(count, 3);
                u64::from(n)
            };
            assert_eq!(choose(policy, all.into_iter(), draw), Some(n));
        }
    }
}

#[test]
fn without_room_the_policy_asap_sends_nothing() {
    let full = Candidate { has_room: false, ..candidate(0) };
    assert_eq!(choose(Asap, [full].into_iter(), |_| 0), None);
    assert_eq!(choose(Cwnd, [full].into_iter(), |_| 0), Some(0));
}
