//! Destinations of retransmissions that are chosen when the packet is sent (Iyengar, Amer and Stewart
//! 2006; RTX-CSI).

use std::time::Duration;

use rexmit_core::Instant;

use super::destination::RetransmissionDestination;

/// Δ: how long [`RetransmissionDestination::Csi`] remembers a timeout.
pub const TIMEOUT_MEMORY: Duration = Duration::from_secs(30);

/// A path over which a retransmission may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) path: u8,
    /// Its window has room now.
    pub(crate) has_room: bool,
    /// Packets lost, and sent.
    pub(crate) lost: (u64, u64),
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    /// Timeouts within [`TIMEOUT_MEMORY`].
    pub(crate) recent_timeouts: u64,
    pub(crate) last_timeout: Option<Instant>,
}

impl Candidate {
    /// Its figures in the order in which they count: the highest are the best.
    fn merit(&self, policy: RetransmissionDestination) -> [u64; 4] {
        match policy {
            RetransmissionDestination::LossRate => {
                let (lost, sent) = self.lost;
                let rate = (u128::from(lost) << 32) / u128::from(sent.max(1));
                [u64::MAX - u64::try_from(rate).unwrap_or(u64::MAX), 0, 0, 0]
            }
            RetransmissionDestination::Cwnd => [self.cwnd, 0, 0, 0],
            RetransmissionDestination::Ssthresh => [self.ssthresh, 0, 0, 0],
            RetransmissionDestination::Csi => {
                let last = self.last_timeout.map_or(0, |at| at.as_nanos() + 1);
                [self.cwnd, self.ssthresh, u64::MAX - self.recent_timeouts, u64::MAX - last]
            }
            RetransmissionDestination::Asap
            | RetransmissionDestination::Same
            | RetransmissionDestination::Alternate
            | RetransmissionDestination::Elsewhere => [0; 4],
        }
    }
}

/// The best of `candidates`; of several that are equally good, the one that `draw` says: a number
/// below the one that it is given.
pub(crate) fn choose(
    policy: RetransmissionDestination,
    candidates: impl Iterator<Item = Candidate> + Clone,
    draw: impl FnOnce(u64) -> u64,
) -> Option<u8> {
    let needs_room = policy == RetransmissionDestination::Asap;
    let candidates = candidates.filter(|candidate| candidate.has_room || !needs_room);
    let best = candidates.clone().map(|candidate| candidate.merit(policy)).max()?;
    let mut equals = candidates.filter(|candidate| candidate.merit(policy) == best);
    let count = equals.clone().count() as u64;
    let index = if count > 1 { draw(count) } else { 0 };
    equals.nth(index as usize).map(|candidate| candidate.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RetransmissionDestination::{Asap, Csi, Cwnd, LossRate, Ssthresh};

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

    /// Which of two paths is chosen, if nothing is left to chance.
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
    fn without_room_nothing_leaves_as_soon_as_possible() {
        let full = Candidate { has_room: false, ..candidate(0) };
        assert_eq!(choose(Asap, [full].into_iter(), |_| 0), None);
        assert_eq!(choose(Cwnd, [full].into_iter(), |_| 0), Some(0));
    }
}
