//! Where retransmissions go, and which path new data take (RFC 9260 §6.4, §6.4.1; RFC 7829 §3.2, §4.1).

use super::{PathState, Reach};
use crate::RetransmissionDestination;
use rexmit_core::Instant;
use std::time::Duration;

/// The path that new data take: the primary one while it is active. Otherwise another active one,
/// which is kept while it is active; without one, a potentially failed path, and last of all an
/// inactive one, each with the fewest errors (RFC 7829 §3.2 rules 3 and 4, §4.1).
pub(super) fn data_path(
    reaches: impl ExactSizeIterator<Item = Reach>,
    primary: u8,
    current: u8,
) -> u8 {
    let distance = distance_from(current, reaches.len());
    best(reaches, |path| (path != primary, distance(path)))
}

/// The path over which to retransmit data that was not acknowledged over `path`: another one, if there is one
/// in as good a state; the primary one first.
pub(super) fn alternate_to(
    path: u8,
    reaches: impl ExactSizeIterator<Item = Reach>,
    primary: u8,
) -> u8 {
    let distance = distance_from(path, reaches.len());
    best(reaches, |other| (other == path, other != primary, distance(other)))
}

/// The number of steps from `path` to another path in the list of paths, which continues at its beginning.
fn distance_from(path: u8, paths: usize) -> impl Fn(u8) -> usize {
    move |other| (usize::from(other) + paths - usize::from(path)) % paths
}

/// Confirmed before unconfirmed before removed, active before potentially failed before inactive; fewest errors
/// first among those that are not active; then by `preference`, lowest first.
fn best<K: Ord>(reaches: impl Iterator<Item = Reach>, preference: impl Fn(u8) -> K) -> u8 {
    let rank = |(path, reach): &(u8, Reach)| {
        let (rank, errors) = match reach.state() {
            PathState::Active => (0, 0),
            PathState::PotentiallyFailed => (1, reach.errors()),
            PathState::Inactive => (2, reach.errors()),
            PathState::Unconfirmed => (3, 0),
            PathState::Removed => (4, 0),
        };
        (rank, errors, preference(*path))
    };
    (0..).zip(reaches).min_by_key(rank).map_or(0, |(path, _)| path)
}

/// Δ: how long [`RetransmissionDestination::Csi`] remembers a timeout.
pub(crate) const TIMEOUT_MEMORY: Duration = Duration::from_secs(30);

/// A path over which a retransmission may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) path: u8,
    /// Whether the window of the path has room now.
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
    /// What `policy` compares, most significant first; the path with the highest figures is chosen.
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
            // Any will do, or the path is not chosen late.
            _ => [0; 4],
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
