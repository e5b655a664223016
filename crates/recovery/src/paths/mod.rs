//! The paths of an association: the state of each, and the path of data and retransmissions
//! (RFC 9260 §6.4, §8.2; RFC 7829). With one path there is nothing to choose.

mod choice;
mod cmt;
mod destination;
mod path;
mod queue;
mod reach;
mod sparse;

#[cfg(test)]
mod tests;

use std::ops::{Index, IndexMut};

pub use choice::TIMEOUT_MEMORY;
pub(crate) use choice::{Candidate, choose};
pub use cmt::CmtConfig;
pub use destination::RetransmissionDestination;
pub use path::Path;
pub use reach::{FailureLimits, PathState, Reach};
pub(crate) use sparse::PerPath;

use crate::congestion::{RateShare, rate};

/// Paths of one association at most; sets of paths are kept as bits.
const MAX_PATHS: usize = 64;

/// The paths of an association, numbered from 0, those that were removed included.
#[derive(Debug)]
pub struct Paths {
    list: Vec<Path>,
    /// The path that data take while it works.
    primary: u8,
    /// The path that new data take.
    data_path: u8,
    /// The path that retransmissions take now, if it is chosen when they are sent.
    pub(crate) chosen: Option<u8>,
}

impl Index<u8> for Paths {
    type Output = Path;

    #[inline]
    fn index(&self, path: u8) -> &Path {
        &self.list[usize::from(path)]
    }
}

impl IndexMut<u8> for Paths {
    #[inline]
    fn index_mut(&mut self, path: u8) -> &mut Path {
        &mut self.list[usize::from(path)]
    }
}

impl Paths {
    pub(crate) fn new(first: Path) -> Self {
        Self { list: vec![first], primary: 0, data_path: 0, chosen: None }
    }

    /// Adds a path and returns its number.
    ///
    /// # Panics
    /// With more than 64 paths; the protocol limits them far below.
    pub(crate) fn add(&mut self, path: Path) -> u8 {
        assert!(self.list.len() < MAX_PATHS, "the protocol limits the paths");
        self.list.push(path);
        self.list.iter_mut().for_each(|path| _ = path.beside.get_or_insert_default());
        self.count() - 1
    }

    /// How many there are, those that were removed included.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u8 {
        self.list.len() as u8
    }

    /// Whether there is only one.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.list.len() == 1
    }

    /// Their numbers.
    #[inline]
    pub(crate) fn numbers(&self) -> std::ops::Range<u8> {
        0..self.count()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Path> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Path> {
        self.list.iter_mut()
    }

    /// The path that the application has chosen for data.
    #[must_use]
    pub const fn primary(&self) -> u8 {
        self.primary
    }

    /// The path that new data take now: the primary one or, while that has failed, another.
    #[must_use]
    #[inline]
    pub const fn data_path(&self) -> u8 {
        self.data_path
    }

    /// New data take `path` while it works.
    pub(crate) const fn set_primary(&mut self, path: u8) {
        self.primary = path;
    }

    /// Chooses the path of new data again: a path has changed.
    pub(crate) fn choose_data_path(&mut self) {
        self.data_path = destination::data_path(self.reaches(), self.primary, self.data_path);
    }

    /// The path over which to try again what was not answered over `path` (RFC 9260 §6.4.1).
    #[must_use]
    pub fn alternate_to(&self, path: u8) -> u8 {
        if self.is_one() {
            return path;
        }
        destination::alternate_to(path, self.reaches(), self.primary)
    }

    fn reaches(&self) -> impl ExactSizeIterator<Item = Reach> + '_ {
        self.list.iter().map(|path| path.reach)
    }

    /// Whether `path` is active.
    #[inline]
    pub(crate) fn is_active(&self, path: u8) -> bool {
        self[path].reach.state() == PathState::Active
    }

    /// Sets the share of every window in the rate of all paths in use (coupled congestion control).
    pub(crate) fn couple_windows(&mut self) {
        let rate_of = |path: &Path| {
            let srtt = path.timer.rtt().srtt()?;
            let is_active = path.reach.state() == PathState::Active;
            is_active.then(|| rate(path.window.cwnd(), srtt))
        };
        let total = self.list.iter().filter_map(rate_of).sum();
        for path in &mut self.list {
            let share = rate_of(path).map(|rate| RateShare::of(rate, total));
            path.window.set_share(share);
        }
    }

    /// Bytes that paths with a shorter round trip than `path` send in a round trip of `path`.
    pub(crate) fn bytes_of_faster(&self, path: u8) -> u128 {
        let round_trip = |path: &Path| path.timer.rtt().srtt().unwrap_or_default().as_nanos();
        let slow = round_trip(&self[path]);
        let is_faster = |other: &&Path| {
            let is_measured = round_trip(other) > 0;
            other.reach.state() == PathState::Active && is_measured && round_trip(other) < slow
        };
        let meanwhile = |other: &Path| u128::from(other.window.cwnd()) * slow / round_trip(other);
        self.list.iter().filter(is_faster).map(meanwhile).sum()
    }
}
