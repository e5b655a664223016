//! The event queue: events by time, then by order of insertion or by rank, and one deadline per host.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use rexmit_core::Instant;

use super::deadlines::Deadlines;

/// The order of events: earliest first, at one instant the one scheduled first, or by rank.
///
/// The ranks: arrivals by link direction, departures by link direction, calls, deadlines by host. Events of one link
/// direction, and calls, stay in the order in which they were scheduled. So the order of two events does not depend on
/// other events, and a part of a network that runs alone has the same order.
///
/// A single number with the time in the upper and the sequence number or rank in the lower bits, because comparisons
/// dominate the cost of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key(u128);

impl Key {
    /// Later than every event: this sequence number, or rank, is never assigned.
    pub(super) const NEVER: Self = Self(u128::MAX);

    const fn new(at: Instant, order: u64) -> Self {
        Self((at.as_nanos() as u128) << 64 | order as u128)
    }

    const fn ranked(at: Instant, kind: Kind, number: usize, count: u64) -> Self {
        debug_assert!(number < 1 << NUMBER_BITS && count < 1 << COUNT_BITS);
        let kind = (kind as u64) << (NUMBER_BITS + COUNT_BITS);
        Self::new(at, kind | (number as u64) << COUNT_BITS | count)
    }

    pub(super) fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
}

/// The kinds of events, in their order at one instant.
#[derive(Clone, Copy)]
enum Kind {
    Arrival,
    Departure,
    Call,
    Deadline,
}

/// The bits of a rank for the number of a host or link direction; 2 more are for the kind.
const NUMBER_BITS: u32 = 24;
/// The bits of a rank for the events scheduled before of the same kind and number.
const COUNT_BITS: u32 = 38;

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
/// The arrivals of one link direction are mostly created in ascending order of time. They are queued in a lane, and only
/// the first of each lane is in the priority queue, so that the cost depends on the number of links in use, not on the
/// number of packets in flight.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    heap: BinaryHeap<Scheduled<E>>,
    lanes: Vec<Lane<E>>,
    deadlines: Deadlines,
    /// The next sequence number; `None`: events of one instant are ordered by rank.
    next_order: Option<u64>,
    /// The number of calls scheduled so far.
    calls: u64,
    scheduled: usize,
}

impl<E> Agenda<E> {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            lanes: Vec::new(),
            deadlines: Deadlines::default(),
            next_order: Some(0),
            calls: 0,
            scheduled: 0,
        }
    }

    /// An agenda that orders events of one instant by rank.
    pub(super) fn ranked() -> Self {
        Self { next_order: None, ..Self::new() }
    }

    /// Whether events of one instant are ordered by rank.
    pub(super) const fn is_ranked(&self) -> bool {
        self.next_order.is_none()
    }

    fn key(&mut self, at: Instant, kind: Kind, number: usize, count: u64) -> Key {
        match &mut self.next_order {
            None => Key::ranked(at, kind, number, count),
            Some(order) => {
                *order += 1;
                Key::new(at, *order - 1)
            }
        }
    }

    /// Adds a lane, for a link direction; they are numbered from 0.
    pub(super) fn add_lane(&mut self) {
        assert!(self.lanes.len() < 1 << NUMBER_BITS, "under 2²⁴ link directions");
        self.lanes.push(Lane::after(0));
    }

    /// Schedules a call.
    pub(super) fn schedule_call(&mut self, at: Instant, event: E) {
        let key = self.key(at, Kind::Call, 0, self.calls);
        self.calls += 1;
        self.insert(key, event);
    }

    /// Schedules the next departure from the queues of a link direction.
    pub(super) fn schedule_departure(&mut self, link: usize, at: Instant, event: E) {
        let key = self.key(at, Kind::Departure, link, 0);
        self.insert(key, event);
    }

    /// The key of the next arrival that is scheduled for a link direction.
    pub(super) fn arrival_key(&mut self, link: usize, at: Instant) -> Key {
        let count = self.lanes[link].arrivals;
        self.lanes[link].arrivals += 1;
        self.key(at, Kind::Arrival, link, count)
    }

    /// Adds an arrival at the end of a link direction; most are added in ascending order.
    pub(super) fn insert_arrival(&mut self, link: usize, key: Key, event: E) {
        let place = &mut self.lanes[link];
        match place.last {
            Some(last) if key < last => self.insert(key, event),
            Some(_) => {
                self.scheduled += 1;
                place.last = Some(key);
                place.waiting.push_back((key, event));
            }
            None => {
                self.scheduled += 1;
                place.last = Some(key);
                self.heap.push(Scheduled { key: Reverse(key), event, lane: link as u32 });
            }
        }
    }

    /// Adds an event that is no arrival, or not in order.
    pub(super) fn insert(&mut self, key: Key, event: E) {
        self.scheduled += 1;
        self.heap.push(Scheduled { key: Reverse(key), event, lane: NO_LANE });
    }

    /// Replaces the deadline of `host`. Setting the same time again keeps its position in the order.
    pub(super) fn set_deadline(&mut self, host: usize, at: Option<Instant>) {
        if self.deadlines.of(host) != at {
            let key = at.map(|at| self.key(at, Kind::Deadline, host, 0));
            self.deadlines.set(host, key);
        }
    }

    /// The deadline of `host`.
    pub(super) fn deadline(&self, host: usize) -> Option<Instant> {
        self.deadlines.of(host)
    }

    /// An agenda by rank, without events, that continues the counts of this one.
    pub(super) fn part(&self) -> Self {
        let lane = |lane: &Lane<E>| Lane::after(lane.arrivals);
        Self { lanes: self.lanes.iter().map(lane).collect(), calls: self.calls, ..Self::ranked() }
    }

    /// Removes all events, in their order; deadlines stay.
    pub(super) fn drain(&mut self) -> Vec<(Key, E)> {
        let mut all = Vec::with_capacity(self.scheduled);
        while let Some(key) = self.heap.peek().map(|event| event.key.0) {
            all.extend(self.pop_event().map(|event| (key, event)));
        }
        all
    }

    /// Continues the count of arrivals of a link direction that `other` has scheduled.
    pub(super) fn continue_count(&mut self, other: &Self, link: usize) {
        self.lanes[link].arrivals = other.lanes[link].arrivals;
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

/// The arrivals of a link direction, which are mostly created in ascending order of time.
#[derive(Debug)]
struct Lane<E> {
    /// The key of the event added last, if there is any event. The first event is in the priority queue.
    last: Option<Key>,
    /// All events but the first. Few lanes have any, so this memory is rarely accessed.
    waiting: VecDeque<(Key, E)>,
    /// The number of arrivals scheduled so far.
    arrivals: u64,
}

impl<E> Lane<E> {
    const fn after(arrivals: u64) -> Self {
        Self { last: None, waiting: VecDeque::new(), arrivals }
    }
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
        agenda.schedule_call(ms(5), "late");
        agenda.schedule_call(ms(1), "first");
        agenda.set_deadline(7, Some(ms(1)));
        agenda.schedule_departure(0, ms(1), "third");
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop(ms(4))).collect();
        let expected = [Next::Event("first"), Next::Deadline(7), Next::Event("third")];
        assert_eq!(order, expected.map(|next| (ms(1), next)));
        assert_eq!(agenda.next_at(), Some(ms(5)));
    }

    #[test]
    fn events_of_one_instant_are_in_the_order_of_their_rank() {
        let mut agenda = Agenda::ranked();
        (0..3).for_each(|_| agenda.add_lane());
        agenda.set_deadline(7, Some(ms(1)));
        agenda.set_deadline(2, Some(ms(1)));
        agenda.schedule_call(ms(5), "late");
        agenda.schedule_call(ms(1), "call");
        agenda.schedule_call(ms(1), "next call");
        agenda.schedule_departure(0, ms(1), "departure");
        for (link, name) in [(2, "last link"), (1, "link"), (1, "link again")] {
            let key = agenda.arrival_key(link, ms(1));
            agenda.insert_arrival(link, key, name);
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop(ms(4))).collect();
        let events = ["link", "link again", "last link", "departure", "call", "next call"];
        let deadlines = [Next::Deadline(2), Next::Deadline(7)];
        let expected = events.into_iter().map(Next::Event).chain(deadlines);
        assert_eq!(order, expected.map(|next| (ms(1), next)).collect::<Vec<_>>());
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
            let key = laned.arrival_key(lane, at);
            plain.insert(key, n);
            laned.insert_arrival(lane, key, n);
            assert_eq!(plain.next_at(), laned.next_at());
            while rng.chance(0.48) {
                assert_eq!(plain.pop(ms(n / 3)), laned.pop(ms(n / 3)));
            }
        }
        assert_eq!(plain.len(), laned.len());
        assert!(laned.heap.len() < plain.heap.len());
        assert_eq!(plain.drain(), laned.drain());
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
                expected[host] = at.map(|at| Key::new(at, agenda.next_order.unwrap()));
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
