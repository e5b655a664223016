//! The units of a path.

use std::collections::BTreeSet;

/// The units of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathUnits {
    /// Units that wait to be retransmitted over this path.
    pub(super) lost: BTreeSet<u64>,
    /// Units in flight over this path, and those that wait to be retransmitted over it.
    pub(super) outstanding: u32,
    /// No lower unit is outstanding on this path.
    pub(super) earliest: u64,
    /// User bytes last sent over this path that are in flight, or lost and wait for any path.
    pub(super) user_bytes: u64,
    /// Units declared lost that were last sent over this path, whichever path they wait for.
    pub(super) awaiting: u32,
}

impl PathUnits {
    /// Whether anything waits to be retransmitted over the path.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The first unit that waits to be retransmitted over the path.
    #[inline]
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// The first unit from `from` on that waits to be retransmitted over the path.
    pub(crate) fn lost_from(&self, from: u64) -> Option<u64> {
        self.lost.range(from..).next().copied()
    }

    /// Whether a unit that was last sent over the path is declared lost, and waits for any path.
    #[inline]
    pub(crate) const fn is_awaiting(&self) -> bool {
        self.awaiting > 0
    }

    /// Units outstanding.
    #[inline]
    pub(crate) const fn count(&self) -> u32 {
        self.outstanding
    }

    /// No lower unit is outstanding on the path.
    #[inline]
    pub(crate) const fn earliest(&self) -> u64 {
        self.earliest
    }

    /// User bytes last sent over the path that are in flight, or lost and wait for any path.
    pub(crate) const fn user_bytes(&self) -> u64 {
        self.user_bytes
    }
}
