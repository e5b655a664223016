//! The minimum of the deadlines of all hosts.

use rexmit_core::Instant;

use super::agenda::Key;

/// One deadline per host, as a tournament tree: replacing one costs O(log hosts), and leaves no
/// stale entries.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// A complete binary tree with its root at index 1. The leaves are the last half; every inner
    /// node is the earlier of its children.
    tree: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// [`Key::NEVER`] if there is no deadline.
    key: Key,
    host: u32,
}

const NONE: Entry = Entry { key: Key::NEVER, host: u32::MAX };

impl Deadlines {
    /// The deadline of `host`.
    #[inline]
    pub(super) fn of(&self, host: usize) -> Option<Instant> {
        let leaf = self.tree.get(self.leaves() + host)?;
        (leaf.key < Key::NEVER).then(|| leaf.key.at())
    }

    /// The earliest deadline and its host.
    #[inline]
    pub(super) fn earliest(&self) -> Option<(Key, usize)> {
        let winner = self.tree.get(1)?;
        (winner.key < Key::NEVER).then_some((winner.key, winner.host as usize))
    }

    pub(super) fn set(&mut self, host: usize, key: Option<Key>) {
        if host >= self.leaves() {
            self.grow(host + 1);
        }
        let mut node = self.leaves() + host;
        self.tree[node] = key.map_or(NONE, |key| Entry { key, host: host as u32 });
        while node > 1 {
            node /= 2;
            let [first, second] = [self.tree[2 * node], self.tree[2 * node + 1]];
            let winner = if second.key < first.key { second } else { first };
            if self.tree[node].key == winner.key {
                break;
            }
            self.tree[node] = winner;
        }
    }

    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    fn grow(&mut self, hosts: usize) {
        let leaves = hosts.next_power_of_two();
        let old = std::mem::replace(&mut self.tree, vec![NONE; 2 * leaves]);
        for entry in old[old.len() / 2..].iter().filter(|entry| entry.key < Key::NEVER) {
            self.set(entry.host as usize, Some(entry.key));
        }
    }

    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.tree.len()
    }
}
