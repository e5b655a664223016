//! Numbered parts of a network.

use std::ops::{Index, IndexMut};

/// The hosts or link directions of a network by number. While the network runs on several threads, each thread has some
/// of them, under the same numbers.
#[derive(Debug)]
pub(super) struct Items<T>(Vec<Option<T>>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Items<T> {
    /// As many places as `other` has, without items.
    pub(super) fn places_of(other: &Self) -> Self {
        Self(other.0.iter().map(|_| None).collect())
    }

    pub(super) fn push(&mut self, item: T) {
        self.0.push(Some(item));
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&T> {
        self.0[number].as_ref()
    }

    /// All items.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Moves the item with this number, if it is here, to its place in `other`.
    pub(super) fn move_to(&mut self, other: &mut Self, number: usize) {
        if let Some(item) = self.0[number].take() {
            other.0[number] = Some(item);
        }
    }
}

impl<T> Index<usize> for Items<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        self.0[number].as_ref().expect("an item of this part of the network")
    }
}

impl<T> IndexMut<usize> for Items<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.0[number].as_mut().expect("an item of this part of the network")
    }
}
