//! Bundled copies of one packet.

/// Units of which copies are bundled: a set of the newest ones before the new unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copies {
    /// One above the highest unit that may be in it.
    end: u64,
    /// Bit `n` stands for unit `end - 1 - n`.
    bits: u64,
}

impl Copies {
    /// Units looked at to find what to copy, at most: only the newest few can be of the packets before.
    pub(crate) const MAX_LOOK_BACK: usize = u64::BITS as usize;

    /// The empty set of units below `end`.
    pub(crate) const fn before(end: u64) -> Self {
        Self { end, bits: 0 }
    }

    /// Adds `unit`, one of the [`MAX_LOOK_BACK`](Self::MAX_LOOK_BACK) before the end.
    pub(crate) const fn insert(&mut self, unit: u64) {
        self.bits |= 1 << (self.end - 1 - unit);
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The lowest unit in it.
    pub(crate) fn first(self) -> Option<u64> {
        self.bits.checked_ilog2().map(|bit| self.end - 1 - u64::from(bit))
    }
}

/// Takes the units out of it, in order.
impl Iterator for Copies {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.bits ^= 1 << self.bits.ilog2();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_taken_in_order() {
        let mut copies = Copies::before(100);
        [99, 36, 50].into_iter().for_each(|unit| copies.insert(unit));
        assert_eq!(copies.first(), Some(36));
        assert_eq!(copies.collect::<Vec<_>>(), [36, 50, 99]);
        assert_eq!(Copies::before(0).next(), None);
    }
}
