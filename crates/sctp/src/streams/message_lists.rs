//! Many first-in-first-out lists in one block of memory, with removal from anywhere in O(1).

use slab::Slab;

const NONE: u32 = u32::MAX;

/// One list: where it begins and ends in its [`MessageLists`].
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE };

    /// The key of the oldest value.
    pub(super) fn head(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }
}

#[derive(Debug)]
struct Node<T> {
    value: T,
    previous: u32,
    next: u32,
}

/// The values of all lists.
#[derive(Debug)]
pub(super) struct MessageLists<T> {
    nodes: Slab<Node<T>>,
}

impl<T> MessageLists<T> {
    pub(super) const fn new() -> Self {
        Self { nodes: Slab::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of values in all lists.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn at(&self, key: u32) -> Option<&T> {
        self.nodes.get(key as usize).map(|node| &node.value)
    }

    /// Appends to `list`; the key is valid until the value is removed.
    pub(super) fn push_back(&mut self, list: &mut List, value: T) -> u32 {
        let key = self.nodes.insert(Node { value, previous: list.tail, next: NONE }) as u32;
        self.link(list, list.tail, key);
        list.tail = key;
        key
    }

    /// Removes the value `key` from `list`, to which it must belong.
    pub(super) fn remove(&mut self, list: &mut List, key: u32) -> Option<T> {
        let node = self.nodes.try_remove(key as usize)?;
        self.link(list, node.previous, node.next);
        match self.nodes.get_mut(node.next as usize) {
            Some(next) => next.previous = node.previous,
            None => list.tail = node.previous,
        }
        Some(node.value)
    }

    /// Removes everything, in no particular order. Every list is void afterwards.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.nodes.drain().map(|node| node.value)
    }

    /// Links `next` behind `previous`, or at the beginning of the list.
    fn link(&mut self, list: &mut List, previous: u32, next: u32) {
        match self.nodes.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => list.head = next,
        }
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.nodes.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_core::Seed;
    use std::collections::VecDeque;

    #[test]
    fn agrees_with_plain_queues_under_random_operations() {
        for seed in 0..50 {
            let mut rng = Seed::from_u64(seed).rng();
            let mut lists = MessageLists::new();
            let mut heads = [List::EMPTY; 3];
            let mut models: [VecDeque<(u32, u64)>; 3] = Default::default();
            for number in 0..400 {
                let which = rng.below(3) as usize;
                if rng.chance(0.5) {
                    let key = lists.push_back(&mut heads[which], number);
                    models[which].push_back((key, number));
                } else if !models[which].is_empty() {
                    let at = rng.below(models[which].len() as u64) as usize;
                    let (key, value) = models[which].remove(at).unwrap();
                    assert_eq!(lists.remove(&mut heads[which], key), Some(value));
                }
                for (list, model) in heads.iter().zip(&models) {
                    assert_eq!(list.head(), model.front().map(|&(key, _)| key));
                }
                assert_eq!(lists.is_empty(), models.iter().all(VecDeque::is_empty));
            }
        }
    }

    #[test]
    fn a_long_queue_gives_its_memory_back() {
        let (mut lists, mut list) = (MessageLists::new(), List::EMPTY);
        for number in 0..1000u64 {
            lists.push_back(&mut list, number);
        }
        while let Some(key) = list.head() {
            lists.remove(&mut list, key);
        }
        lists.release_memory();
        assert_eq!(lists.nodes.capacity(), 0);
    }
}
