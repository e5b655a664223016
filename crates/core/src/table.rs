//! The table of an endpoint's connections: found by key, called in the order of their deadlines, and asked in
//! turn for packets. The cost of an operation does not depend on the number of other connections.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::Instant;

/// The key of an entry of a [`Table`]. It is never used again for another entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    index: u32,
    /// The number of entries that had this index before.
    generation: u32,
}

impl Key {
    /// The key of the entry at `index`, which `generation` entries used before.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// The index of the entry in the table. It may be used again after the entry is removed.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The key as an integer, for bindings to other languages.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`to_bits`](Self::to_bits). Of a number that `to_bits` did not return, it makes a key that finds no
    /// entry, or any entry.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// An entry of a [`Table`].
pub trait Timed {
    /// The earliest of its timers.
    fn next_timeout(&self) -> Option<Instant>;
}

#[derive(Debug)]
struct Slot<T> {
    key: Key,
    /// Whether the entry is in `Table::ready`.
    is_ready: bool,
    /// Whether the application has got its last event.
    is_end_reported: bool,
    /// The connection's entry in `Table::deadlines`, never later than its earliest timer, unless that was in the past when
    /// it was entered; [`Instant::FAR_FUTURE`] if it has none (half the size of an `Option`).
    scheduled: Instant,
    value: T,
}

/// Entries with a deadline each, and a queue of those that may have something to transmit.
///
/// An entry whose deadline becomes later keeps its place: one call that finds no timer due costs less than a move with
/// every packet.
#[derive(Debug)]
pub struct Table<T> {
    slots: Vec<Option<Slot<T>>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    /// The entry whose deadline is not in `deadlines` yet, and when it was called.
    deferred: Option<(u32, Instant)>,
    /// May contain keys of removed entries: removing a key from the middle would cost O(n).
    ready: VecDeque<Key>,
    /// The entry whose last event was taken most recently.
    reported: Option<u32>,
    len: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            deadlines: BTreeSet::new(),
            deferred: None,
            ready: VecDeque::new(),
            reported: None,
            len: 0,
        }
    }
}

impl<T> Table<T> {
    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The key that the next entry gets.
    ///
    /// # Panics
    /// With 2³² entries.
    #[must_use]
    pub fn next_key(&self) -> Key {
        let fresh = || u32::try_from(self.slots.len()).expect("fewer than 2³² entries");
        let index = self.free.last().copied().unwrap_or_else(fresh);
        let generation = self.generations.get(index as usize).copied().unwrap_or(0);
        Key { index, generation }
    }

    /// Adds an entry with the key [`Self::next_key`]. Call [`Self::update`] to schedule its deadline.
    pub fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        if self.free.pop().is_none() {
            self.slots.push(None);
            self.generations.push(0);
        }
        let slot = Slot {
            key,
            is_ready: false,
            is_end_reported: false,
            scheduled: Instant::FAR_FUTURE,
            value,
        };
        self.slots[key.index as usize] = Some(slot);
        self.len += 1;
        key
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        self.slots.get(index as usize)?.as_ref()
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// The entry at `index`.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.slot(index).map(|slot| &slot.value)
    }

    /// The entry at `index`, to be changed; call [`Self::update`] afterwards.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<(Key, &mut T)> {
        self.slot_mut(index).map(|slot| (slot.key, &mut slot.value))
    }

    /// The key of the entry at `index`.
    #[must_use]
    pub fn key_of(&self, index: u32) -> Option<Key> {
        self.slot(index).map(|slot| slot.key)
    }

    /// The entry with the key `key`, unless it was removed.
    #[must_use]
    #[inline]
    pub fn find(&self, key: Key) -> Option<&T> {
        self.slot(key.index).filter(|slot| slot.key == key).map(|slot| &slot.value)
    }

    /// The index of the entry with the key `key`, unless it was removed.
    #[must_use]
    #[inline]
    pub fn index_of(&self, key: Key) -> Option<u32> {
        self.find(key).map(|_| key.index)
    }

    /// Every entry, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten().map(|slot| &slot.value)
    }

    /// Removes the entry at `index`.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?.take()?;
        self.deferred = self.deferred.filter(|&(deferred, _)| deferred != index);
        if slot.scheduled < Instant::FAR_FUTURE {
            self.deadlines.remove(&(slot.scheduled, index));
        }
        self.generations[index as usize] = slot.key.generation.wrapping_add(1);
        self.free.push(index);
        self.len -= 1;
        Some(slot.value)
    }

    /// Moves the first ready entry to the end of the queue, after it has transmitted a packet.
    #[inline]
    pub fn rotate_ready(&mut self) {
        if self.ready.len() > 1 {
            self.ready.rotate_left(1);
        }
    }

    /// Removes the first ready entry from the queue, because it has nothing more to transmit.
    #[inline]
    pub fn pop_ready(&mut self) {
        let Some(key) = self.ready.pop_front() else { return };
        if let Some(slot) = self.slot_mut(key.index).filter(|slot| slot.key == key) {
            slot.is_ready = false;
        }
    }

    /// Records that the application has got the last event of `key`. The entry stays until
    /// [`Self::take_reported`], so that it can still be read.
    pub fn report_end(&mut self, key: Key) {
        if let Some(slot) = self.slot_mut(key.index).filter(|slot| slot.key == key) {
            slot.is_end_reported = true;
            self.reported = Some(key.index);
        }
    }

    /// Whether the application has got the last event of the entry at `index`.
    #[must_use]
    pub fn is_end_reported(&self, index: u32) -> bool {
        self.slot(index).is_some_and(|slot| slot.is_end_reported)
    }

    /// The entry whose last event the application has got, returned once.
    pub const fn take_reported(&mut self) -> Option<u32> {
        self.reported.take()
    }
}

impl<T: Timed> Table<T> {
    /// Updates the queue and the deadline of the entry at `index`. To be called after each call of the entry.
    #[inline]
    pub fn update(&mut self, index: u32) -> Option<&mut T> {
        self.update_at(Instant::ZERO, index)
    }

    /// Updates the queue and the deadline of the entry at `index`, at `now`: [`pop_due`](Self::pop_due) is not late for a
    /// deadline that is in the past already.
    #[inline]
    pub fn update_at(&mut self, now: Instant, index: u32) -> Option<&mut T> {
        self.deferred = self.deferred.filter(|&(deferred, _)| deferred != index);
        let slot = self.slots.get_mut(index as usize)?.as_mut()?;
        slot.enqueue(&mut self.ready);
        slot.schedule(now, &mut self.deadlines);
        Some(&mut slot.value)
    }

    /// As [`update_at`](Self::update_at), but the deadline is read when it is needed, after all such calls of the entry in
    /// a row. Other calls of it must not follow before [`settle`](Self::settle).
    #[inline]
    pub fn update_later(&mut self, now: Instant, index: u32) -> Option<&mut T> {
        // The first call of several counts: a deadline that it has set may be late by now.
        if self.deferred.is_none_or(|(deferred, _)| deferred != index) {
            self.settle();
            self.deferred = Some((index, now));
        }
        let slot = self.slots.get_mut(index as usize)?.as_mut()?;
        slot.enqueue(&mut self.ready);
        Some(&mut slot.value)
    }

    /// Enters the deadline that was deferred. [`pop_due`](Self::pop_due) and [`first_ready`](Self::first_ready) do it, too.
    #[inline]
    pub fn settle(&mut self) {
        let Some((index, now)) = self.deferred.take() else { return };
        if let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_mut) {
            slot.schedule(now, &mut self.deadlines);
        }
    }

    /// A lower bound of the deadlines of all entries.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let entered = self.deadlines.first().map(|&(at, _)| at);
        let deferred = self.deferred.and_then(|(index, now)| Some(self.slot(index)?.deadline(now)));
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        let earliest = or_never(entered).min(or_never(deferred));
        (earliest < Instant::FAR_FUTURE).then_some(earliest)
    }

    /// Removes a deadline that is reached at `now`, and returns the index of its entry, and for how long the deadline had
    /// been reached: a time in which this host did not call the table. The caller must call the entry and then
    /// [`Self::update`], even if none of its timers is due any more.
    pub fn pop_due(&mut self, now: Instant) -> Option<(u32, Duration)> {
        self.settle();
        let (at, index) = *self.deadlines.first().filter(|&&(at, _)| at <= now)?;
        self.deadlines.pop_first();
        if let Some(slot) = self.slot_mut(index) {
            slot.scheduled = Instant::FAR_FUTURE;
        }
        Some((index, now - at))
    }

    /// The first entry in the queue of those that may have a packet to transmit. It stays first until
    /// [`Self::rotate_ready`] or [`Self::pop_ready`].
    #[inline]
    pub fn first_ready(&mut self) -> Option<u32> {
        self.settle();
        loop {
            let key = *self.ready.front()?;
            if self.find(key).is_some() {
                return Some(key.index);
            }
            self.ready.pop_front();
        }
    }
}

impl<T> Slot<T> {
    #[inline]
    fn enqueue(&mut self, ready: &mut VecDeque<Key>) {
        if !self.is_ready {
            self.is_ready = true;
            ready.push_back(self.key);
        }
    }
}

impl<T: Timed> Slot<T> {
    /// The earliest timer, [`Instant::FAR_FUTURE`] without one; `now` if that is in the past.
    #[inline]
    fn deadline(&self, now: Instant) -> Instant {
        self.value.next_timeout().unwrap_or(Instant::FAR_FUTURE).max(now)
    }

    #[inline]
    fn schedule(&mut self, now: Instant, deadlines: &mut BTreeSet<(Instant, u32)>) {
        let next = self.deadline(now);
        if next < self.scheduled {
            let before = std::mem::replace(&mut self.scheduled, next);
            if before < Instant::FAR_FUTURE {
                deadlines.remove(&(before, self.key.index));
            }
            deadlines.insert((next, self.key.index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, Seed};

    /// For tests: an entry that consists of its deadline.
    impl Timed for Option<u64> {
        fn next_timeout(&self) -> Option<Instant> {
            self.map(Instant::from_millis)
        }
    }

    type Timers = Table<Option<u64>>;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn set(table: &mut Timers, index: u32, timer: Option<u64>) {
        *table.get_mut(index).expect("an entry").1 = timer;
        table.update(index);
    }

    fn add(table: &mut Timers, timer: Option<u64>) -> Key {
        let key = table.insert(timer);
        table.update(key.index());
        key
    }

    fn due(table: &mut Timers, now: u64) -> Option<u32> {
        table.pop_due(ms(now)).map(|(index, _)| index)
    }

    fn ready(table: &mut Timers) -> Vec<u32> {
        std::iter::from_fn(|| table.first_ready().inspect(|_| table.pop_ready())).collect()
    }

    #[test]
    fn a_key_names_no_other_entry_after_its_own_was_removed() {
        let mut table = Timers::default();
        let (first, next) = (table.next_key(), table.insert(Some(1)));
        assert_eq!((first, table.find(first)), (next, Some(&Some(1))));
        assert_eq!(table.remove(first.index()), Some(Some(1)));
        assert_eq!((table.len(), table.remove(first.index())), (0, None));
        let second = table.insert(Some(2));
        assert_eq!((second.index(), second == first), (first.index(), false));
        assert_eq!((table.find(first), table.find(second)), (None, Some(&Some(2))));
        table.report_end(first);
        assert!(!table.is_end_reported(second.index()) && table.take_reported().is_none());
        table.report_end(second);
        assert!(table.is_end_reported(second.index()));
        assert_eq!((table.take_reported(), table.take_reported()), (Some(second.index()), None));
    }

    #[test]
    fn a_later_deadline_is_moved_when_the_earlier_one_is_reached() {
        let mut table = Timers::default();
        let index = add(&mut table, Some(10)).index();
        set(&mut table, index, Some(30));
        assert_eq!(table.next_deadline(), Some(ms(10)), "it stays");
        assert_eq!((due(&mut table, 10), table.next_deadline()), (Some(index), None));
        table.update(index);
        assert_eq!(table.next_deadline(), Some(ms(30)));
        set(&mut table, index, Some(20));
        assert_eq!((table.next_deadline(), due(&mut table, 19)), (Some(ms(20)), None));
        assert_eq!(due(&mut table, 20), Some(index));
        assert_eq!(table.next_deadline(), None, "until it is called");
        set(&mut table, index, Some(40));
        set(&mut table, index, None);
        assert_eq!((due(&mut table, 40), table.next_deadline()), (Some(index), None));
        table.update(index);
        assert_eq!(table.next_deadline(), None);
    }

    #[test]
    fn a_deadline_is_late_since_it_was_reached_or_set() {
        let mut table = Timers::default();
        let index = add(&mut table, Some(10)).index();
        assert_eq!(table.pop_due(ms(10)), Some((index, Duration::ZERO)));
        set(&mut table, index, Some(20));
        assert_eq!(table.pop_due(ms(27)), Some((index, Duration::from_millis(7))));
        // Set when it was in the past.
        *table.get_mut(index).expect("an entry").1 = Some(25);
        table.update_at(ms(40), index);
        assert_eq!(table.pop_due(ms(42)), Some((index, Duration::from_millis(2))));
    }

    #[test]
    fn a_deferred_deadline_is_that_after_the_last_call() {
        let mut table = Timers::default();
        let index = add(&mut table, None).index();
        let call = |table: &mut Timers, timer: u64| {
            *table.get_mut(index).expect("an entry").1 = Some(timer);
            table.update_later(Instant::ZERO, index);
        };
        call(&mut table, 10);
        assert_eq!(table.next_deadline(), Some(ms(10)), "before it is entered");
        call(&mut table, 20);
        assert_eq!((table.next_deadline(), due(&mut table, 19)), (Some(ms(20)), None));
        // It is entered by now, and stays; so it is when the queue is asked, and when another is called.
        call(&mut table, 30);
        assert_eq!((table.next_deadline(), due(&mut table, 20)), (Some(ms(20)), Some(index)));
        call(&mut table, 35);
        assert_eq!(table.first_ready(), Some(index));
        call(&mut table, 60);
        assert_eq!((table.next_deadline(), due(&mut table, 35)), (Some(ms(35)), Some(index)));
        call(&mut table, 40);
        let other = add(&mut table, None).index();
        *table.get_mut(other).expect("an entry").1 = Some(50);
        table.update_later(Instant::ZERO, other);
        assert_eq!((table.next_deadline(), table.remove(index)), (Some(ms(40)), Some(Some(40))));
        assert_eq!(table.next_deadline(), Some(ms(50)));
        assert_eq!((table.remove(other), table.next_deadline()), (Some(Some(50)), None));
        assert_eq!(table.insert(Some(5)).index(), other);
        assert_eq!(table.next_deadline(), None, "another entry at the same index");
    }

    #[test]
    fn a_deferred_deadline_is_late_since_it_was_reached() {
        let mut table = Timers::default();
        let index = add(&mut table, None).index();
        for now in [0, 50] {
            *table.get_mut(index).expect("an entry").1 = Some(10);
            table.update_later(ms(now), index);
        }
        assert_eq!(table.pop_due(ms(50)), Some((index, Duration::from_millis(40))));
    }

    #[test]
    fn ready_entries_take_turns_and_removed_ones_are_none_of_them() {
        let mut table = Timers::default();
        let keys = [(); 3].map(|()| add(&mut table, None));
        table.update(0);
        table.rotate_ready();
        assert_eq!(table.first_ready(), Some(1));
        table.remove(keys[1].index());
        let again = add(&mut table, None);
        assert_eq!(again.index(), 1);
        assert_eq!(ready(&mut table), [2, 0, 1], "the new entry waits for its own turn");
        table.update(2);
        assert_eq!(ready(&mut table), [2]);
    }

    /// Deadlines and ready entries of the table equal those found by a search of all entries.
    #[test]
    fn no_deadline_and_no_ready_entry_is_lost() {
        let mut rng: Rng = Seed::from_u64(1).rng();
        let mut table = Timers::default();
        let mut now = 0;
        for _ in 0..20_000 {
            let index = rng.u32() % 20;
            let timer = Some(now + u64::from(rng.u32() % 50)).filter(|_| rng.chance(0.75));
            match rng.u32() % 8 {
                0 => drop(table.remove(index)),
                1 | 2 if table.len() < 20 => drop(add(&mut table, timer)),
                3..5 if table.get(index).is_some() => set(&mut table, index, timer),
                5 if table.get(index).is_some() => {
                    *table.get_mut(index).expect("an entry").1 = timer;
                    table.update_later(ms(now), index);
                }
                6 => now += u64::from(rng.u32() % 10),
                _ => {
                    let found = ready(&mut table);
                    assert!(found.iter().all(|&index| table.get(index).is_some()), "{found:?}");
                }
            }
            while let Some(index) = due(&mut table, now) {
                let timer = *table.get(index).expect("an entry");
                set(&mut table, index, timer.filter(|&at| at > now));
            }
            assert!(table.iter().flatten().all(|&at| at > now), "all that were due were called");
            let earliest = table.iter().flatten().min().map(|&at| ms(at));
            assert!(earliest.is_none_or(|at| table.next_deadline().is_some_and(|d| d <= at)));
            assert_eq!(table.iter().count(), table.len());
        }
    }
}
