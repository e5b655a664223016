//! A table of streams.

/// The streams of a page.
const PAGE: usize = 8;

/// A value for each stream, in pages, so that a FORWARD-TSN that names thousands of streams costs no search for each. Streams
/// without a page have the default.
#[derive(Debug)]
pub(super) struct ByStream<T>(Vec<Option<Box<[T; PAGE]>>>);

impl<T> Default for ByStream<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + Default + PartialEq> ByStream<T> {
    pub(super) fn get(&self, stream: u16) -> T {
        let page = self.0.get(usize::from(stream) / PAGE).and_then(Option::as_deref);
        page.map_or_else(T::default, |page| page[usize::from(stream) % PAGE])
    }

    pub(super) fn get_mut(&mut self, stream: u16) -> &mut T {
        let page = usize::from(stream) / PAGE;
        if page >= self.0.len() {
            self.0.reserve_exact(page + 1 - self.0.len());
            self.0.resize_with(page + 1, || None);
        }
        let page = self.0[page].get_or_insert_with(|| Box::new([T::default(); PAGE]));
        &mut page[usize::from(stream) % PAGE]
    }

    pub(super) fn reset(&mut self, stream: u16) {
        if self.get(stream) != T::default() {
            *self.get_mut(stream) = T::default();
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_a_value_of_its_own() {
        let mut table = ByStream::<u64>::default();
        let streams = [0, 1, 7, 8, 9, 4095, u16::MAX];
        for stream in streams {
            assert_eq!(table.get(stream), 0);
            *table.get_mut(stream) = u64::from(stream) + 1;
        }
        table.reset(8);
        table.reset(5000);
        let value = |stream| if stream == 8 { 0 } else { u64::from(stream) + 1 };
        assert!(streams.iter().all(|&stream| table.get(stream) == value(stream)));
        assert_eq!((table.get(2), table.get(5000)), (0, 0));
        table.clear();
        assert!(streams.iter().all(|&stream| table.get(stream) == 0));
    }
}
