//! What few paths have: state of a mechanism that begins when it is needed.

/// At most one `T` for each path, in 16 bytes while no path has one.
#[derive(Debug)]
pub(crate) struct PerPath<T>(Box<[Option<Box<T>>]>);

impl<T> Default for PerPath<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T> PerPath<T> {
    /// That of `path`.
    #[inline]
    pub(crate) fn get(&self, path: u8) -> Option<&T> {
        self.0.get(usize::from(path))?.as_deref()
    }

    /// That of `path`.
    #[inline]
    pub(crate) fn get_mut(&mut self, path: u8) -> Option<&mut T> {
        self.0.get_mut(usize::from(path))?.as_deref_mut()
    }

    /// That of `path`, created by `new` at its first use.
    pub(crate) fn get_or_insert_with(&mut self, path: u8, new: impl FnOnce() -> T) -> &mut T {
        let index = usize::from(path);
        if index >= self.0.len() {
            let mut paths = std::mem::take(&mut self.0).into_vec();
            paths.resize_with(index + 1, || None);
            self.0 = paths.into_boxed_slice();
        }
        self.0[index].get_or_insert_with(|| Box::new(new()))
    }

    /// `path` has none.
    pub(crate) fn remove(&mut self, path: u8) {
        self.0.get_mut(usize::from(path)).into_iter().for_each(|of_path| *of_path = None);
    }

    /// Those that there are.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(Option::as_deref)
    }

    /// Those that there are.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().filter_map(Option::as_deref_mut)
    }
}
