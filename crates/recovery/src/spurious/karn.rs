//! Round trips of what left twice (Karn's algorithm, RFC 9260 §6.3.1 C5).
//!
//! An acknowledgement of something that left twice tells no round trip, for nobody knows which copy it
//! answers. If the receiver reports a duplicate later, both have arrived, so that the acknowledgement
//! answered the first. (One that comes with the report may answer the second, that of the first being
//! lost.) A thin stream needs these samples: where a receiver delays acknowledgements
//! for longer than the timeout waits, every timeout is spurious, everything leaves twice, and no
//! acknowledgement is left that could make the timeout longer.

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::Instant;

/// How many units are remembered.
const MAX_UNITS: usize = 64;

/// Units of which the first copy was judged lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstCopies(BTreeMap<u64, FirstCopy>);

/// The first copy of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstCopy {
    pub(crate) path: u8,
    pub(crate) sent_at: Instant,
    /// When it left again.
    repeated_at: Option<Instant>,
    pub(crate) acked_at: Option<Instant>,
    /// It was acknowledged before the copy can have been.
    pub(crate) is_answered: bool,
    /// It was judged lost once, and left again once at most.
    is_followed_once: bool,
}

impl FirstCopies {
    /// The first copy of `unit`, which left over `path` at `sent_at`, is judged lost.
    pub(crate) fn on_first_lost(&mut self, unit: u64, path: u8, sent_at: Instant) {
        if self.0.len() == MAX_UNITS {
            self.0.pop_first();
        }
        let first = FirstCopy {
            path,
            sent_at,
            repeated_at: None,
            acked_at: None,
            is_answered: false,
            is_followed_once: true,
        };
        self.0.insert(unit, first);
    }

    /// What is known of the first copy of `unit`.
    pub(crate) fn of(&self, unit: u64) -> Option<FirstCopy> {
        self.0.get(&unit).copied()
    }

    /// `unit` left again.
    pub(crate) fn on_repeated(&mut self, now: Instant, unit: u64) {
        if let Some(known) = self.0.get_mut(&unit) {
            known.repeated_at.get_or_insert(now);
        }
    }

    /// `unit`, which left last over `path`, is acknowledged, and answers take `shortest` there at least.
    /// When the first copy left over the same path, if it must have been that which was answered.
    pub(crate) fn answered_before_repeat(
        &mut self,
        now: Instant,
        (unit, path): (u64, u8),
        shortest: Duration,
    ) -> Option<Instant> {
        let known = self.0.get_mut(&unit)?;
        known.is_answered = now - known.repeated_at? < shortest;
        (known.is_answered && known.path == path).then_some(known.sent_at)
    }

    /// A later copy of `unit` is judged lost.
    pub(crate) fn on_later_lost(&mut self, unit: u64) {
        if let Some(known) = self.0.get_mut(&unit) {
            known.is_followed_once = false;
        }
    }

    /// `unit` is acknowledged.
    pub(crate) fn on_acked(&mut self, now: Instant, unit: u64) {
        if let Some(known) = self.0.get_mut(&unit) {
            known.acked_at = Some(now);
        }
    }

    /// The receiver has `unit` twice: the path of the first copy, and the time from when it left to
    /// its acknowledgement, if that is known to be of the first.
    pub(crate) fn on_duplicate_report(&mut self, unit: u64) -> Option<(u8, Duration)> {
        let FirstCopy { path, sent_at, acked_at, is_followed_once, .. } = self.0.remove(&unit)?;
        acked_at.filter(|_| is_followed_once).map(|at| (path, at - sent_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn the_first_acknowledgement_is_that_of_the_first_copy() {
        let mut copies = FirstCopies::default();
        copies.on_first_lost(5, 1, AT(100));
        copies.on_acked(AT(424), 5);
        assert_eq!(copies.on_duplicate_report(4), None);
        assert_eq!(copies.on_duplicate_report(5), Some((1, Duration::from_millis(324))));
        assert_eq!(copies.on_duplicate_report(5), None, "told once");
    }

    #[test]
    fn an_acknowledgement_that_comes_with_the_report_may_be_of_either() {
        let mut copies = FirstCopies::default();
        copies.on_first_lost(5, 1, AT(100));
        assert_eq!(copies.on_duplicate_report(5), None);
        copies.on_acked(AT(430), 5);
        assert_eq!(copies.on_duplicate_report(5), None);
    }

    #[test]
    fn of_three_copies_nobody_knows_which_came_first() {
        let mut copies = FirstCopies::default();
        copies.on_first_lost(5, 1, AT(100));
        copies.on_later_lost(5);
        copies.on_acked(AT(424), 5);
        assert_eq!(copies.on_duplicate_report(5), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut copies = FirstCopies::default();
        (1..=1000).for_each(|unit| copies.on_first_lost(unit, 0, AT(unit)));
        (1..=1000).for_each(|unit| copies.on_acked(AT(1001), unit));
        assert_eq!(copies.0.len(), MAX_UNITS);
        assert_eq!(copies.on_duplicate_report(1000), Some((0, Duration::from_millis(1))));
    }
}
