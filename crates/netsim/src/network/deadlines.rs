//! The earliest of one deadline per host.

use rexmit_core::Instant;

use super::agenda::Key;

/// One deadline per host, as a tournament: replacing one costs the logarithm of the number of
/// hosts and leaves nothing behind.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// A complete binary tree from index 1 on; the leaves are its last half; every inner node
    /// repeats the earlier of its children.
    tree: Vec<Entry>,
}

/// The key of a deadline and the host, in the order of time.
type Entry = (Key, u32);

/// No deadline: after all others, which are never given this order.
const NONE: Entry = ((Instant::FAR_FUTURE, u64::MAX), u32::MAX);

impl Deadlines {
    /// When the deadline of `host` is.
    #[inline]
    pub(super) fn of(&self, host: usize) -> Option<Instant> {
        present(*self.tree.get(self.leaves() + host)?).map(|((at, _), _)| at)
    }

    /// The earliest of all, and whose it is.
    #[inline]
    pub(super) fn earliest(&self) -> Option<(Key, usize)> {
        present(*self.tree.get(1)?)
    }

    pub(super) fn set(&mut self, host: usize, key: Option<Key>) {
        if host >= self.leaves() {
            self.grow(host + 1);
        }
        let mut node = self.leaves() + host;
        self.tree[node] = key.map_or(NONE, |key| (key, host as u32));
        while node > 1 {
            node /= 2;
            let winner = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if self.tree[node] == winner {
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
        for (key, host) in old[old.len() / 2..].iter().copied().filter_map(present) {
            self.set(host, Some(key));
        }
    }

    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.tree.len()
    }
}

fn present(entry: Entry) -> Option<(Key, usize)> {
    (entry != NONE).then_some((entry.0, entry.1 as usize))
}
