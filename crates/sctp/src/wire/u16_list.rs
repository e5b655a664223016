//! A list of 16-bit numbers, borrowed from the wire or from the caller.

use std::fmt;

use super::sink::Sink;

/// Stream numbers, address types or parameter types, in order.
///
/// A list read from a packet is a view over its bytes; a list to be written borrows a slice of numbers
/// (`U16List::from(&numbers[..])`). Both compare by content.
#[derive(Clone, Copy)]
pub struct U16List<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Wire(&'a [[u8; 2]]),
    Host(&'a [u16]),
}

impl<'a> U16List<'a> {
    /// The list in `bytes`; `None` if their number is odd.
    pub(super) fn from_wire(bytes: &'a [u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks();
        rest.is_empty().then_some(Self(Source::Wire(pairs)))
    }

    pub(super) fn encode(&self, sink: &mut Sink<'_>) {
        for number in self.iter() {
            sink.put_u16(number);
        }
    }

    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Wire(pairs) => pairs.len(),
            Source::Host(numbers) => numbers.len(),
        }
    }

    /// Whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + Clone + 'a {
        let source = self.0;
        (0..self.len()).map(move |index| match source {
            Source::Wire(pairs) => u16::from_be_bytes(pairs[index]),
            Source::Host(numbers) => numbers[index],
        })
    }
}

impl Default for U16List<'_> {
    fn default() -> Self {
        Self(Source::Host(&[]))
    }
}

impl<'a> From<&'a [u16]> for U16List<'a> {
    fn from(numbers: &'a [u16]) -> Self {
        Self(Source::Host(numbers))
    }
}

impl PartialEq for U16List<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for U16List<'_> {}

impl fmt::Debug for U16List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
