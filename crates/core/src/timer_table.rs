//! A small table of named deadlines: the timers of one association, one path, one link.

use crate::Instant;

/// The names of the timers of a [`TimerTable`]: a field-less enum numbered from zero.
pub trait TimerKey: Copy + 'static {
    /// Every key, in the order in which simultaneous timers fire.
    const ALL: &'static [Self];
    /// The key's place in [`TimerKey::ALL`].
    fn index(self) -> usize;
}

/// A table with one optional deadline per key.
#[derive(Clone, Debug)]
pub struct TimerTable<const N: usize> {
    /// [`Instant::FAR_FUTURE`] for a timer that is not armed: half the size of an option, and the
    /// minimum is computed without a branch.
    deadlines: [Instant; N],
    /// The minimum of `deadlines`, cached because it is read more often than a deadline changes.
    next: Instant,
}

impl<const N: usize> Default for TimerTable<N> {
    fn default() -> Self {
        Self { deadlines: [Instant::FAR_FUTURE; N], next: Instant::FAR_FUTURE }
    }
}

impl<const N: usize> TimerTable<N> {
    /// Arms the timer `key` for `deadline`, replacing an earlier deadline;
    /// [`Instant::FAR_FUTURE`] stops it.
    #[inline]
    pub fn arm(&mut self, key: impl TimerKey, deadline: Instant) {
        let before = std::mem::replace(&mut self.deadlines[key.index()], deadline);
        if deadline <= self.next {
            self.next = deadline;
        } else if before == self.next {
            self.find_next();
        }
    }

    fn find_next(&mut self) {
        // Values, not references, so that the least is found without a branch.
        self.next = self.deadlines.iter().fold(Instant::FAR_FUTURE, |least, &at| least.min(at));
    }

    /// Stops the timer `key`; no effect if it is not armed.
    #[inline]
    pub fn stop(&mut self, key: impl TimerKey) {
        if self.deadlines[key.index()] < Instant::FAR_FUTURE {
            self.arm(key, Instant::FAR_FUTURE);
        }
    }

    /// Stops every timer.
    pub fn stop_all(&mut self) {
        *self = Self::default();
    }

    /// The deadline of the timer `key`, if it is armed.
    #[must_use]
    pub fn deadline(&self, key: impl TimerKey) -> Option<Instant> {
        Some(self.deadlines[key.index()]).filter(|&at| at < Instant::FAR_FUTURE)
    }

    /// Whether the timer `key` is armed.
    #[must_use]
    pub fn is_armed(&self, key: impl TimerKey) -> bool {
        self.deadline(key).is_some()
    }

    /// The earliest deadline.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        (self.next < Instant::FAR_FUTURE).then_some(self.next)
    }

    /// Stops and returns one timer that is due at `now`: the earliest; among equals, the first key.
    pub fn pop_expired<K: TimerKey>(&mut self, now: Instant) -> Option<K> {
        if self.next > now || self.next == Instant::FAR_FUTURE {
            return None;
        }
        let due = K::ALL
            .iter()
            .filter_map(|&key| Some((self.deadline(key).filter(|&at| at <= now)?, key)))
            .min_by_key(|&(at, key)| (at, key.index()))?;
        self.stop(due.1);
        Some(due.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Key {
        A,
        B,
    }
    impl TimerKey for Key {
        const ALL: &'static [Self] = &[Self::A, Self::B];
        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn pops_the_earliest_due_timer_and_only_once() {
        let mut table = TimerTable::<2>::default();
        table.arm(Key::A, Instant::from_millis(20));
        table.arm(Key::B, Instant::from_millis(10));
        assert_eq!(table.next(), Some(Instant::from_millis(10)));
        assert_eq!(table.pop_expired::<Key>(Instant::from_millis(9)), None);
        assert_eq!(table.pop_expired(Instant::from_millis(20)), Some(Key::B));
        assert_eq!(table.pop_expired(Instant::from_millis(20)), Some(Key::A));
        assert_eq!(table.pop_expired::<Key>(Instant::from_millis(20)), None);
    }

    #[test]
    fn the_earliest_deadline_is_exact_whatever_is_armed_and_stopped() {
        let mut table = TimerTable::<2>::default();
        let far = Instant::FAR_FUTURE;
        let choices = [Instant::ZERO, Instant::from_millis(1), Instant::from_millis(2), far];
        // Every sequence of two pairs of deadlines.
        for n in 0..choices.len().pow(4) {
            let choose = |place: u32| choices[n / choices.len().pow(place) % choices.len()];
            for (key, place) in [(Key::A, 0), (Key::B, 1), (Key::A, 2), (Key::B, 3)] {
                table.arm(key, choose(place));
                let least = table.deadlines.iter().min().copied().filter(|&at| at < far);
                assert_eq!(table.next(), least);
            }
            table.stop(Key::A);
            assert_eq!(table.next(), table.deadline(Key::B));
            table.stop(Key::A);
            assert_eq!(table.next(), table.deadline(Key::B));
        }
    }
}
