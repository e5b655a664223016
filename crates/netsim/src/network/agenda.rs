//! The event queue: events by time, then by order of insertion, and one deadline per host.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use rexmit_core::Instant;

use super::deadlines::Deadlines;

/// The order of events: earliest first, among equals the one scheduled first.
///
/// A single number with the time in the upper and the sequence number in the lower bits, because
/// comparisons dominate the cost of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key(u128);

impl Key {
    /// Later than every event: this sequence number is never assigned.
    pub(super) const NEVER: Self = Self(u128::MAX);

    fn new(at: Instant, order: u64) -> Self {
        Self(u128::from(at.as_nanos()) << 64 | u128::from(order))
    }

    pub(super) fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
}

/// The next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next<E> {
    /// A scheduled event.
    Event(E),
    /// The deadline of this host.
    Deadline(usize),
}

/// The events and deadlines of one run.
///
/// Events of one origin, such as the arrivals of one link, are mostly created in ascending order of
/// time. They are queued in a lane, and only the first of each lane is in the priority queue, so
/// that the cost depends on the number of links in use, not on the number of packets in flight.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    heap: BinaryHeap<Scheduled<E>>,
    lanes: Vec<Lane<E>>,
    deadlines: Deadlines,
    next_order: u64,
    scheduled: usize,
}

impl<E> Agenda<E> {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            lanes: Vec::new(),
            deadlines: Deadlines::default(),
            next_order: 0,
            scheduled: 0,
        }
    }

    /// Adds a lane; they are numbered from 0.
    pub(super) fn add_lane(&mut self) {
        self.lanes.push(Lane { last: None, waiting: VecDeque::new() });
    }

    pub(super) fn schedule(&mut self, at: Instant, event: E) {
        let key = self.next_key(at);
        self.heap.push(Scheduled { key: Reverse(key), event, lane: NO_LANE });
    }

    /// Schedules an event; most events of a lane are scheduled in ascending order of time.
    pub(super) fn schedule_in_lane(&mut self, lane: usize, at: Instant, event: E) {
        let key = self.next_key(at);
        let place = &mut self.lanes[lane];
        let lane = match place.last {
            Some(last) if at < last.at() => NO_LANE,
            Some(_) => {
                place.last = Some(key);
                place.waiting.push_back((key, event));
                return;
            }
            None => {
                place.last = Some(key);
                lane as u32
            }
        };
        self.heap.push(Scheduled { key: Reverse(key), event, lane });
    }

    /// Replaces the deadline of `host`. Setting the same time again keeps its position in the
    /// order.
    pub(super) fn set_deadline(&mut self, host: usize, at: Option<Instant>) {
        if self.deadlines.of(host) != at {
            self.deadlines.set(host, at.map(|at| Key::new(at, self.next_order)));
            self.next_order += 1;
        }
    }

    /// The time of the next event.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let event = self.heap.peek().map(|event| event.key.0);
        let deadline = self.deadlines.earliest().map(|(key, _)| key);
        event.into_iter().chain(deadline).min().map(Key::at)
    }

    /// Removes and returns the next event, unless it is after `limit`. A returned deadline is
    /// cleared.
    pub(super) fn pop(&mut self, limit: Instant) -> Option<(Instant, Next<E>)> {
        let event = self.heap.peek().map(|event| event.key.0);
        let deadline = self.deadlines.earliest();
        match (event, deadline) {
            (event, Some((key, host))) if event.is_none_or(|event| key < event) => {
                if key.at() > limit {
                    return None;
                }
                self.deadlines.set(host, None);
                Some((key.at(), Next::Deadline(host)))
            }
            (Some(key), _) if key.at() <= limit => {
                self.pop_event().map(|event| (key.at(), Next::Event(event)))
            }
            _ => None,
        }
    }

    /// The number of scheduled events.
    pub(super) fn len(&self) -> usize {
        self.scheduled
    }

    fn next_key(&mut self, at: Instant) -> Key {
        let key = Key::new(at, self.next_order);
        self.next_order += 1;
        self.scheduled += 1;
        key
    }

    fn pop_event(&mut self) -> Option<E> {
        self.scheduled -= 1;
        let mut first = self.heap.peek_mut()?;
        let Some(lane) = self.lanes.get_mut(first.lane as usize) else {
            return Some(PeekMut::pop(first).event);
        };
        let Some((key, event)) = lane.waiting.pop_front() else {
            lane.last = None;
            return Some(PeekMut::pop(first).event);
        };
        first.key = Reverse(key);
        Some(std::mem::replace(&mut first.event, event))
    }
}

/// A queue of events that are mostly created in ascending order of time.
#[derive(Debug)]
struct Lane<E> {
    /// The key of the event added last, if there is any event. The first event is in the priority queue.
    last: Option<Key>,
    /// All events but the first. Few lanes have any, so this memory is rarely accessed.
    waiting: VecDeque<(Key, E)>,
}

#[derive(Debug)]
struct Scheduled<E> {
    key: Reverse<Key>,
    event: E,
    /// The lane of which this is the first event, or [`NO_LANE`].
    lane: u32,
}

const NO_LANE: u32 = u32::MAX;

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_core::Seed;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn happens_by_time_then_by_order_of_insertion() {
        let mut agenda = Agenda::new();
        agenda.schedule(ms(5), "late");
        agenda.schedule(ms(1), "first");
        agenda.set_deadline(7, Some(ms(1)));
        agenda.schedule(ms(1), "third");
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop(ms(4))).collect();
        let expected = [Next::Event("first"), Next::Deadline(7), Next::Event("third")];
        assert_eq!(order, expected.map(|next| (ms(1), next)));
        assert_eq!(agenda.next_at(), Some(ms(5)));
    }

    #[test]
    fn lanes_change_nothing_but_the_cost() {
        let (mut plain, mut laned) = (Agenda::new(), Agenda::new());
        (0..5).for_each(|_| laned.add_lane());
        let mut rng = Seed::from_u64(6).rng();
        for n in 0..20_000 {
            // Mostly, but not always, later than what is in the lane.
            let (lane, at) = (rng.below(5) as usize, ms(n / 3 + rng.below(4)));
            plain.schedule(at, n);
            laned.schedule_in_lane(lane, at, n);
            assert_eq!(plain.next_at(), laned.next_at());
            while rng.chance(0.48) {
                assert_eq!(plain.pop(ms(n / 3)), laned.pop(ms(n / 3)));
            }
        }
        assert_eq!(plain.len(), laned.len());
        assert!(laned.heap.len() < plain.heap.len());
        while let Some(next) = plain.pop(Instant::FAR_FUTURE) {
            assert_eq!(Some(next), laned.pop(Instant::FAR_FUTURE));
        }
        assert_eq!((laned.len(), laned.next_at()), (0, None));
    }

    #[test]
    fn the_tournament_agrees_with_a_search() {
        let mut agenda = Agenda::<()>::new();
        let mut rng = Seed::from_u64(5).rng();
        let mut expected: Vec<Option<Key>> = vec![None; 100];
        for order in 0..20_000 {
            // Times within a small range, so that equal ones are common.
            let (host, at) = (rng.below(100) as usize, ms(order + rng.below(30)));
            let at = rng.chance(0.8).then_some(at);
            if expected[host].map(Key::at) != at {
                expected[host] = at.map(|at| Key::new(at, agenda.next_order));
            }
            agenda.set_deadline(host, at);
            if rng.chance(0.3) {
                let first =
                    (0..100).filter(|&h| expected[h].is_some()).min_by_key(|&h| expected[h]);
                let popped = agenda.pop(Instant::FAR_FUTURE);
                let next = first.map(|h| (expected[h].unwrap().at(), Next::Deadline(h)));
                assert_eq!(popped, next);
                expected[first.unwrap()] = None;
            }
        }
    }

    #[test]
    fn rearming_a_timer_keeps_no_old_deadline() {
        let mut agenda = Agenda::<()>::new();
        for n in 0..100_000 {
            agenda.set_deadline(3, Some(ms(1_000_000 - n)));
            agenda.set_deadline(3, Some(ms(2_000_000 + n)));
        }
        assert_eq!(agenda.len(), 0);
        assert_eq!(agenda.deadlines.nodes(), 8);
        assert_eq!(agenda.next_at(), Some(ms(2_099_999)));
    }
}
