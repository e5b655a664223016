//! Reading selective acknowledgements: from blocks of sequence numbers to units (RFC 2018 §5,
//! RFC 2883 §4, §5).

use rexmit_core::serial::unwrap_u32;

use super::outbound::Outbound;
use super::retransmitted::Known;
use crate::wire::MAX_SACK_BLOCKS;

/// The content of the blocks of one segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reports {
    units: [(u64, u64); MAX_SACK_BLOCKS],
    len: usize,
    /// The range of sequence numbers reported as a duplicate.
    pub(super) duplicate: Option<(u64, u64)>,
}

impl Reports {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Runs of units that have arrived, ascending.
    pub(super) fn units(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        self.units[..self.len].iter().copied()
    }
}

/// Evaluates the SACK blocks of a segment that acknowledges `ack`. A block that is empty, reversed or beyond
/// sent data is ignored.
pub(super) fn blocks_of(out: &Outbound, ack: u64, blocks: &[(u32, u32)]) -> Reports {
    let mut reports = Reports::default();
    let place = |&(left, right): &(u32, u32)| {
        (unwrap_u32(out.snd_una, left), unwrap_u32(out.snd_una, right))
    };
    let second = blocks.get(1).map(place);
    for (index, (left, right)) in blocks.iter().map(place).enumerate() {
        if left >= right || right > out.snd_nxt {
            continue;
        }
        let is_within_second = second.is_some_and(|(from, to)| from <= left && right <= to);
        if index == 0 && (left < ack || is_within_second) {
            reports.duplicate = Some((left, right));
        } else if left > ack
            && let Some(run) = units_within(out, left, right)
        {
            reports.units[reports.len] = run;
            reports.len += 1;
        }
    }
    reports.units[..reports.len].sort_unstable();
    reports
}

/// The units entirely within `left..right`, found by binary search, because units are contiguous.
fn units_within(out: &Outbound, left: u64, right: u64) -> Option<(u64, u64)> {
    let recovery = &out.recovery;
    let first = first_unit(out, |start, _| start >= left);
    let after = first_unit(out, |_, end| end > right);
    (first < after && after > recovery.outstanding().cumulative() + 1).then(|| (first, after - 1))
}

/// The first unit for whose start and end `is_there` holds; it holds for all later units, too.
fn first_unit(out: &Outbound, is_there: impl Fn(u64, u64) -> bool) -> u64 {
    let recovery = &out.recovery;
    let (mut low, mut high) =
        (recovery.outstanding().cumulative() + 1, recovery.outstanding().next_unit());
    while low < high {
        let middle = low + (high - low) / 2;
        let piece = recovery.outstanding().unit(middle).map(|unit| unit.payload);
        if piece.is_none_or(|piece| is_there(piece.start, piece.end())) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The content of a duplicate report.
#[derive(Clone, Debug)]
pub(super) enum Duplicates {
    /// No duplicate, or one for which it is unknown whether it was sent more than once.
    None,
    /// A duplicate of data that was sent once: the network duplicated it.
    Unexplained,
    /// Units that were sent more than once, and arrived more than once.
    Units(Vec<u64>),
}

impl Outbound {
    /// Evaluates a report that the peer has received `left..right` more than once. Each retransmitted or copied unit in
    /// it was a spurious retransmission or a redundant copy. Otherwise the network duplicated a segment.
    pub(super) fn duplicates_within(&mut self, left: u64, right: u64) -> Duplicates {
        let mut units = Vec::new();
        let known = self.retransmitted.as_mut().map_or(Known::Never, |retransmitted| {
            retransmitted.report(left, right, |unit| units.push(unit))
        });
        match known {
            Known::Never => Duplicates::Unexplained,
            Known::Maybe if units.is_empty() => Duplicates::None,
            Known::Maybe => Duplicates::Units(units),
        }
    }
}
