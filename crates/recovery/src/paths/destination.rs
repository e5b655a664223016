//! Where retransmissions go, and which path new data take (RFC 9260 §6.4, §6.4.1; RFC 7829 §3.2, §4.1).

use super::{PathState, Reach};
use crate::Coupling;
use rexmit_core::{Instant, config};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which path a retransmission takes.
///
/// A path that is not active gets nothing while another one is active, and of those that are not, the one
/// with the fewest errors comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetransmissionDestination {
    /// The path over which the data was sent.
    Same,
    /// After a timeout another active path, otherwise the path over which the data was sent
    /// (RFC 9260 §6.4).
    #[default]
    Alternate,
    /// Another active path, however the loss was detected (RFC 2960 §6.4).
    Elsewhere,
    /// As soon as possible: any path whose window has room, chosen at random.
    Asap,
    /// The path with the lowest loss rate; of equals one at random.
    LossRate,
    /// The path with the largest window; of equals one at random.
    Cwnd,
    /// The path with the largest slow start threshold; of equals one at random.
    Ssthresh,
    /// The path with the largest window; of equals, the one with the largest slow start
    /// threshold, then with the fewest timeouts within [`TIMEOUT_MEMORY`](crate::TIMEOUT_MEMORY), then with the longest
    /// time since the last one; then one at random.
    Csi,
}

impl RetransmissionDestination {
    /// Whether the path is chosen when the packet is sent, and not when the loss is detected.
    pub(crate) const fn is_chosen_late(self) -> bool {
        !matches!(self, Self::Same | Self::Alternate | Self::Elsewhere)
    }
}

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

/// The path over which to try again what was not answered over `path`: another one, if there is one
/// as good; the primary one first.
pub(super) fn alternate_to(
    path: u8,
    reaches: impl ExactSizeIterator<Item = Reach>,
    primary: u8,
) -> u8 {
    let distance = distance_from(path, reaches.len());
    best(reaches, |other| (other == path, other != primary, distance(other)))
}

/// How far on in the list, from `path` and around, another path is.
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

config! {
    const
    /// Concurrent multipath transfer: new data over all paths at once (Iyengar, Amer and Stewart 2006). Off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CmtConfig {
        /// New data leave over every active path, as the window of each allows.
        pub all_paths: bool,
        /// SFR, split fast retransmit: a unit is reported missing only by the acknowledgement of a later
        /// one that was sent over the same path, and each path has a fast recovery of its own.
        pub split_fast_retransmit: bool,
        /// CUC, cwnd update: the window of a path grows when the earliest unit outstanding on it is
        /// acknowledged, those retransmitted and the others looked at apart (CUCv2). Otherwise it grows only
        /// when the cumulative point of the association advances (RFC 4960 §7.2.1).
        pub cwnd_update: bool,
        /// DAC, delayed acknowledgements: as a receiver, a gap does not hurry an acknowledgement, and it
        /// says how many packets it answers; as a sender, so many reports count, if all that is newly
        /// acknowledged was sent over one path and after what is missing.
        pub delayed_ack: bool,
        /// Receive buffer splitting: what is under way over a path is no more than its part of the peer's
        /// window, so that a slow path with a long queue does not take it all (Dreibholz, Becke, Rathgeb
        /// and Tüxen 2010). What has arrived and waits for others is of no path.
        pub split_buffer: bool,
        /// Blocking estimation: nothing new leaves over a slower path that would keep faster ones waiting for
        /// the peer's window, since what they send in the meantime cannot be delivered before it (BLEST:
        /// Ferlin, Alay, Mehani and Boreli 2016).
        pub avoid_blocking: bool,
        /// The coupling of the windows of the paths. Takes [`all_paths`](Self::all_paths)
        /// and the windows of RFC 9260.
        pub coupling: Coupling,
    }
}

impl CmtConfig {
    /// All paths at once, with the three algorithms that this needs.
    pub const ON: Self = Self {
        all_paths: true,
        split_fast_retransmit: true,
        cwnd_update: true,
        delayed_ack: true,
        split_buffer: false,
        avoid_blocking: false,
        coupling: Coupling::None,
    };
}
