//! The ranges of the stream that were retransmitted: a duplicate report (RFC 2883) concerns sequence numbers,
//! also of units that loss recovery has forgotten.

use std::collections::BTreeMap;

use rexmit_recovery::LOG_CAPACITY;

use super::piece::Piece;

/// The retransmitted pieces, and the number of retransmissions of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Retransmitted {
    /// The pieces by their first sequence number and unit, each with its number of retransmissions.
    pieces: BTreeMap<(u64, u64), (Piece, u32)>,
    /// Ranges that begin below this may have been forgotten.
    forgotten_below: u64,
}

/// Whether data reported as a duplicate was sent more than once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// The data was retransmitted, or that is unknown.
    Maybe,
    /// The data was sent only once.
    Never,
}

impl Retransmitted {
    /// Called when `piece`, the range of `unit`, is retransmitted. Beyond [`LOG_CAPACITY`] pieces, the lowest is
    /// forgotten.
    pub(super) fn add(&mut self, piece: Piece, unit: u64) {
        let (_, times) = self.pieces.entry((piece.start, unit)).or_insert((piece, 0));
        *times = times.saturating_add(1);
        if self.pieces.len() > LOG_CAPACITY
            && let Some(((start, _), _)) = self.pieces.pop_first()
        {
            self.forgotten_below = self.forgotten_below.max(start + 1);
        }
    }

    /// Evaluates a report of `left..right` as a duplicate: calls `on_unit` once for each retransmitted unit
    /// within it. Costs a search, and a pass over the entries within.
    pub(super) fn report(&mut self, left: u64, right: u64, mut on_unit: impl FnMut(u64)) -> Known {
        let below = self.pieces.range(..(left, 0)).next_back();
        let mut is_known =
            left < self.forgotten_below || below.is_some_and(|(_, (piece, _))| piece.end() > left);
        let within = self.pieces.extract_if((left, 0)..(right, 0), |&(_, unit), (piece, times)| {
            is_known = true;
            let is_whole = piece.end() <= right;
            if is_whole {
                on_unit(unit);
                *times -= 1;
            }
            *times == 0
        });
        within.for_each(drop);
        if is_known { Known::Maybe } else { Known::Never }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Forgets all pieces, which are below `next`, and releases their memory.
    pub(super) fn release_memory(&mut self, next: u64) {
        *self = Self { pieces: BTreeMap::new(), forgotten_below: next };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn piece(start: u64) -> Piece {
        Piece { start, len: 100, has_fin: false }
    }

    fn reported(sent: &mut Retransmitted, left: u64, right: u64) -> (Vec<u64>, Known) {
        let mut units = Vec::new();
        let known = sent.report(left, right, |unit| units.push(unit));
        (units, known)
    }

    #[test]
    fn a_report_names_each_unit_within_it_once() {
        let mut sent = Retransmitted::default();
        for (start, unit) in [(1000, 1), (1100, 2), (1100, 2), (1200, 3)] {
            sent.add(piece(start), unit);
        }
        assert_eq!(reported(&mut sent, 1100, 1300), (vec![2, 3], Known::Maybe));
        assert_eq!(reported(&mut sent, 1000, 1300), (vec![1, 2], Known::Maybe));
        assert_eq!(reported(&mut sent, 1000, 1300), (vec![], Known::Never));
    }

    /// A part of a retransmitted unit is reported: neither did the network duplicate it, nor was the whole unit
    /// received twice.
    #[test]
    fn a_part_of_a_unit_proves_nothing() {
        let mut sent = Retransmitted::default();
        sent.add(piece(1000), 1);
        for (left, right) in [(1000, 1050), (1050, 1100), (950, 1050)] {
            assert_eq!(reported(&mut sent, left, right), (vec![], Known::Maybe));
        }
        assert_eq!(reported(&mut sent, 1100, 1200), (vec![], Known::Never));
    }

    #[test]
    fn memory_is_bounded_and_forgotten_ranges_are_not_mistaken_for_copies_by_the_network() {
        let mut sent = Retransmitted::default();
        for unit in 0..2 * LOG_CAPACITY as u64 {
            sent.add(piece(100 * unit), unit);
        }
        assert_eq!(sent.pieces.len(), LOG_CAPACITY);
        assert_eq!(reported(&mut sent, 0, 100), (vec![], Known::Maybe));
        sent.release_memory(1_000_000);
        assert_eq!(reported(&mut sent, 999_900, 1_000_000), (vec![], Known::Maybe));
        assert_eq!(reported(&mut sent, 1_000_000, 1_000_100), (vec![], Known::Never));
    }
}
