//! The number of the next message of each stream, in pages: a FORWARD-TSN may name thousands of streams, in any order,
//! and a search for each would cost more than the rest of the packet.

/// The unwrapped form of the first number of a stream, 0. So far up that its neighbourhood does
/// not reach below zero.
pub(super) const FIRST: u64 = 1 << 32;

/// Streams per page. An association that uses few streams has a page of 128 bytes.
const PAGE: usize = 16;

type Page = [u64; PAGE];

/// The unwrapped number that each stream delivers next: [`FIRST`] until a message was delivered. Pages exist for
/// streams that have been used since the last reset of all.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pages: Vec<Option<Box<Page>>>,
}

impl Expected {
    pub(super) fn of(&self, stream: u16) -> u64 {
        let (page, place) = split(stream);
        let page = self.pages.get(page).and_then(Option::as_deref);
        page.map_or(FIRST, |page| page[place])
    }

    /// The number of `stream`, to be changed.
    pub(super) fn entry(&mut self, stream: u16) -> &mut u64 {
        let (page, place) = split(stream);
        if self.pages.len() <= page {
            self.pages.reserve_exact(page + 1 - self.pages.len());
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([FIRST; PAGE]));
        &mut page[place]
    }

    /// Makes `stream` begin anew.
    pub(super) fn reset(&mut self, stream: u16) {
        let (page, place) = split(stream);
        if let Some(page) = self.pages.get_mut(page).and_then(Option::as_deref_mut) {
            page[place] = FIRST;
        }
    }

    /// Makes all streams begin anew.
    pub(super) fn reset_all(&mut self) {
        self.pages = Vec::new();
    }
}

const fn split(stream: u16) -> (usize, usize) {
    (stream as usize / PAGE, stream as usize % PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_a_number_of_its_own() {
        let mut expected = Expected::default();
        let streams = [0, 1, 15, 16, 17, 4095, 65_520, 65_535];
        for stream in streams {
            assert_eq!(expected.of(stream), FIRST);
            *expected.entry(stream) += 1 + u64::from(stream);
        }
        for stream in streams {
            assert_eq!(expected.of(stream), FIRST + 1 + u64::from(stream));
        }
        assert_eq!(expected.of(14), FIRST);
        expected.reset(15);
        assert_eq!([15, 16].map(|stream| expected.of(stream)), [FIRST, FIRST + 17]);
        expected.reset(3000);
        expected.reset_all();
        assert_eq!(streams.map(|stream| expected.of(stream)), [FIRST; 8]);
    }

    /// Space for all of them is the most that a peer can have held.
    #[test]
    fn all_streams_take_nine_bytes_each() {
        let mut expected = Expected::default();
        for stream in (0..=u16::MAX).rev() {
            *expected.entry(stream) += 1;
        }
        let pages = expected.pages.iter().flatten().count();
        let bytes = pages * size_of::<Page>() + expected.pages.capacity() * size_of::<usize>();
        assert!(bytes <= 9 * 65_536, "{bytes}");
    }
}
