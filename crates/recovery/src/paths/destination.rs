//! Where retransmissions go, and which path new data take (RFC 9260 §6.4, §6.4.1; RFC 7829 §3.2, §4.1).

use serde::{Deserialize, Serialize};

use super::reach::{PathState, Reach};

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

#[cfg(test)]
mod tests {
    use super::*;
    use PathState::{Active, Inactive, PotentiallyFailed, Unconfirmed};

    fn of(reaches: &[(PathState, u32)]) -> impl ExactSizeIterator<Item = Reach> + '_ {
        reaches.iter().map(|&(state, errors)| Reach::of(state, errors))
    }

    #[test]
    fn new_data_take_the_primary_path_while_it_is_active() {
        let choose = |reaches: &[_], primary, current| data_path(of(reaches), primary, current);
        assert_eq!(choose(&[(Active, 0)], 0, 0), 0);
        assert_eq!(choose(&[(Active, 0), (Active, 5)], 1, 0), 1);
        let all = [(Inactive, 6), (Active, 0), (Active, 0)];
        assert_eq!(choose(&all, 0, 0), 1, "the next one after it");
        assert_eq!(choose(&all, 0, 2), 2, "one that works is kept");
        assert_eq!(choose(&[(Inactive, 6), (Unconfirmed, 0)], 0, 0), 0);
    }

    #[test]
    fn without_an_active_path_the_fewest_errors_decide() {
        let choose = |reaches: &[_], primary| data_path(of(reaches), primary, primary);
        assert_eq!(choose(&[(PotentiallyFailed, 2), (PotentiallyFailed, 1)], 0), 1);
        assert_eq!(choose(&[(PotentiallyFailed, 1), (PotentiallyFailed, 1)], 1), 1);
        assert_eq!(choose(&[(Inactive, 6), (PotentiallyFailed, 5)], 0), 1);
        assert_eq!(choose(&[(Inactive, 9), (Inactive, 8)], 0), 1);
        assert_eq!(choose(&[(Inactive, 8), (Inactive, 8)], 0), 0);
    }

    #[test]
    fn an_alternate_is_another_path_if_one_is_as_good() {
        let alternate = |path, reaches: &[_], primary| alternate_to(path, of(reaches), primary);
        assert_eq!(alternate(0, &[(Active, 0)], 0), 0);
        assert_eq!(alternate(0, &[(Active, 1), (Active, 0)], 0), 1);
        assert_eq!(alternate(1, &[(Active, 0), (Active, 0), (Active, 0)], 0), 0);
        assert_eq!(alternate(0, &[(Active, 1), (Active, 0), (Active, 0)], 0), 1);
        assert_eq!(alternate(0, &[(Active, 1), (Inactive, 6)], 0), 0, "an inactive one is not");
        assert_eq!(alternate(0, &[(Active, 1), (Unconfirmed, 0)], 0), 0);
        assert_eq!(alternate(0, &[(Inactive, 6), (Inactive, 6)], 0), 1);
        assert_eq!(alternate(0, &[(Inactive, 6), (Inactive, 7)], 0), 0);
    }
}
