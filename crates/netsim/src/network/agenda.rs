//! What is to happen: events by time, then by order of insertion, and one deadline per host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rexmit_core::Instant;

/// Orders everything that happens: earliest first, among equals the one scheduled first.
pub(super) type Key = (Instant, u64);

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next<E> {
    /// A scheduled event.
    Event(E),
    /// The deadline of this host.
    Deadline(usize),
}

/// Events and deadlines of one run.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    events: BinaryHeap<Scheduled<E>>,
    deadlines: Deadlines,
    next_order: u64,
}

impl<E> Agenda<E> {
    pub(super) fn new() -> Self {
        Self { events: BinaryHeap::new(), deadlines: Deadlines::default(), next_order: 0 }
    }

    pub(super) fn schedule(&mut self, at: Instant, event: E) {
        let key = Reverse((at, self.next_order));
        self.next_order += 1;
        self.events.push(Scheduled { key, event });
    }

    /// Replaces the deadline of `host`. The same time again keeps its place in the order.
    pub(super) fn set_deadline(&mut self, host: usize, at: Option<Instant>) {
        if self.deadlines.of(host) != at {
            self.deadlines.set(host, at.map(|at| (at, self.next_order)));
            self.next_order += 1;
        }
    }

    /// When something happens next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let event = self.events.peek().map(|event| event.key.0);
        let deadline = self.deadlines.earliest().map(|(key, _)| key);
        event.into_iter().chain(deadline).min().map(|(at, _)| at)
    }

    /// What happens next, unless it is after `limit`. A deadline is stopped by being returned.
    pub(super) fn pop(&mut self, limit: Instant) -> Option<(Instant, Next<E>)> {
        let event = self.events.peek().map(|event| event.key.0);
        let deadline = self.deadlines.earliest();
        match (event, deadline) {
            (event, Some((key, host))) if event.is_none_or(|event| key < event) => {
                if key.0 > limit {
                    return None;
                }
                self.deadlines.set(host, None);
                Some((key.0, Next::Deadline(host)))
            }
            (Some((at, _)), _) if at <= limit => {
                self.events.pop().map(|scheduled| (at, Next::Event(scheduled.event)))
            }
            _ => None,
        }
    }

    /// Events that are scheduled.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}

#[derive(Debug)]
struct Scheduled<E> {
    key: Reverse<Key>,
    event: E,
}

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

/// The earliest of one deadline per host, as a tournament: replacing one costs the logarithm of
/// the number of hosts and leaves nothing behind.
#[derive(Debug, Default)]
struct Deadlines {
    /// A complete binary tree from index 1 on; the leaves are its last half; every inner node
    /// repeats the earlier of its children.
    tree: Vec<Option<(Key, usize)>>,
}

impl Deadlines {
    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    fn of(&self, host: usize) -> Option<Instant> {
        let leaf = self.tree.get(self.leaves() + host)?;
        leaf.map(|((at, _), _)| at)
    }

    fn earliest(&self) -> Option<(Key, usize)> {
        *self.tree.get(1)?
    }

    fn set(&mut self, host: usize, key: Option<Key>) {
        if host >= self.leaves() {
            self.grow(host + 1);
        }
        let mut node = self.leaves() + host;
        self.tree[node] = key.map(|key| (key, host));
        while node > 1 {
            node /= 2;
            let winner = earlier(self.tree[2 * node], self.tree[2 * node + 1]);
            if self.tree[node] == winner {
                break;
            }
            self.tree[node] = winner;
        }
    }

    fn grow(&mut self, hosts: usize) {
        let leaves = hosts.next_power_of_two();
        let old = std::mem::replace(&mut self.tree, vec![None; 2 * leaves]);
        for (key, host) in old[old.len() / 2..].iter().copied().flatten() {
            self.set(host, Some(key));
        }
    }
}

fn earlier(a: Option<(Key, usize)>, b: Option<(Key, usize)>) -> Option<(Key, usize)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
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
    fn the_tournament_agrees_with_a_search() {
        let mut agenda = Agenda::<()>::new();
        let mut rng = Seed::from_u64(5).rng();
        let mut expected: Vec<Option<Key>> = vec![None; 100];
        for order in 0..20_000 {
            // Times within a small range, so that equal ones are common.
            let (host, at) = (rng.below(100) as usize, ms(order + rng.below(30)));
            let at = rng.chance(0.8).then_some(at);
            if expected[host].map(|key| key.0) != at {
                expected[host] = at.map(|at| (at, agenda.next_order));
            }
            agenda.set_deadline(host, at);
            if rng.chance(0.3) {
                let first =
                    (0..100).filter(|&h| expected[h].is_some()).min_by_key(|&h| expected[h]);
                let popped = agenda.pop(Instant::FAR_FUTURE);
                let next = first.map(|h| (expected[h].unwrap().0, Next::Deadline(h)));
                assert_eq!(popped, next);
                expected[first.unwrap()] = None;
            }
        }
    }

    #[test]
    fn rearming_a_timer_leaves_nothing_behind() {
        let mut agenda = Agenda::<()>::new();
        for n in 0..100_000 {
            agenda.set_deadline(3, Some(ms(1_000_000 - n)));
            agenda.set_deadline(3, Some(ms(2_000_000 + n)));
        }
        assert_eq!(agenda.len(), 0);
        assert_eq!(agenda.deadlines.tree.len(), 8);
        assert_eq!(agenda.next_at(), Some(ms(2_099_999)));
    }
}
