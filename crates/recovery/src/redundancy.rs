//! Copies of what is in flight, sent on purpose with new data (Petlund 2008, RDB), and what an
//! acknowledgement tells of them.
//!
//! A unit stays with the packet that it left in; a copy is only noted. A packet with a copy also
//! carries something new. If an acknowledgement brings the unit and that new part at once, the packet
//! with the copy has arrived; if the receiver does not report the unit as a duplicate by then, the
//! copy was the first to arrive, and the packet before was lost: a loss that would show nowhere else.
//! If it does not bring the new part, the copy has not arrived, and the unit's own packet has: its
//! round-trip time is not ambiguous.
//!
//! A copy of the last unit leaves with nothing new. It has brought the unit if no answer came before one
//! to the copy can have come, and no report of a duplicate with it.
//!
//! Where acknowledgements are lost or delayed, two packets may be acknowledged at once though both
//! arrived, and the report of the duplicate was lost with an acknowledgement between: that is taken
//! for a loss, too.

use std::collections::BTreeMap;

use rexmit_core::Instant;

use crate::PacketNumber;

/// The units outstanding that were copied; small as long as none is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(Option<Box<Known>>);

#[derive(Clone, Debug, Default)]
struct Known {
    known: BTreeMap<u64, FirstCopy>,
    /// The units copied into the packet being built.
    open: Vec<u64>,
    /// What the packet being built may carry copies of, descending.
    chosen: Vec<u64>,
    /// The copied units that the acknowledgement being processed brought.
    acked: Vec<AckedCopied>,
}

#[derive(Clone, Copy, Debug)]
struct FirstCopy {
    /// The packet of the first copy.
    packet: PacketNumber,
    /// When the latest left.
    latest: Instant,
    /// Copies beside new data since the unit last left in a packet of its own.
    since: u8,
    /// Of a copy that left in a packet of its own, where the unit was before.
    alone: Option<FirstSent>,
    /// The receiver has reported the unit as a duplicate.
    is_reported: bool,
}

/// Where a unit was before it was copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstSent {
    pub(crate) packet: PacketNumber,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) path: u8,
    pub(crate) group: u8,
}

/// A unit that was copied, was sent once otherwise, and is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedCopied {
    pub(crate) unit: u64,
    pub(crate) first: FirstSent,
    /// The packet of its first copy.
    pub(crate) copy: PacketNumber,
    /// Nothing new is in that.
    pub(crate) is_alone: bool,
    pub(crate) is_reported: bool,
}

impl FirstCopy {
    const fn new(now: Instant, packet: PacketNumber) -> Self {
        Self { packet, latest: now, since: 0, alone: None, is_reported: false }
    }
}

impl Copies {
    /// `unit` goes into the packet being built.
    pub(crate) fn add(&mut self, unit: u64) {
        self.0.get_or_insert_default().open.push(unit);
    }

    /// Nothing new went into the packet being built: it does not leave.
    pub(crate) fn drop_open(&mut self) {
        if let Some(known) = &mut self.0 {
            known.open.clear();
        }
    }

    /// The packet being built leaves as `packet`: the units copied into it, in order.
    pub(crate) fn take_open(&mut self, now: Instant, packet: PacketNumber) -> Vec<u64> {
        let Some(Known { known, open, .. }) = self.0.as_deref_mut() else { return Vec::new() };
        for &unit in &*open {
            let copy = known.entry(unit).or_insert(FirstCopy::new(now, packet));
            copy.latest = now;
            copy.since = copy.since.saturating_add(1);
        }
        std::mem::take(open)
    }

    /// `unit`, which left once so far, left again on purpose: in `packet`, with nothing new.
    pub(crate) fn on_left_alone(
        &mut self,
        now: Instant,
        unit: u64,
        first: FirstSent,
        packet: PacketNumber,
    ) {
        let copy = FirstCopy { alone: Some(first), ..FirstCopy::new(now, packet) };
        self.0.get_or_insert_default().known.insert(unit, copy);
    }

    /// `unit` leaves again in a packet of its own, or all its copies are overdue.
    pub(crate) fn restart(&mut self, unit: u64) {
        if let Some(copy) = self.0.as_mut().and_then(|known| known.known.get_mut(&unit)) {
            (copy.since, copy.alone) = (0, None);
        }
    }

    /// Copies of `unit` beside new data since it last left in a packet of its own, and when the latest
    /// left.
    pub(crate) fn since(&self, unit: u64) -> Option<(u8, Instant)> {
        self.0.as_ref()?.known.get(&unit).map(|copy| (copy.since, copy.latest))
    }

    /// The memory for [`choose`](Self::choose), which is empty.
    pub(crate) fn take_chosen(&mut self) -> Vec<u64> {
        let mut chosen =
            self.0.as_mut().map(|known| std::mem::take(&mut known.chosen)).unwrap_or_default();
        chosen.clear();
        chosen
    }

    /// The packet being built is to carry copies of these, in descending order.
    pub(crate) fn choose(&mut self, units: Vec<u64>) {
        if units.capacity() > 0 {
            self.0.get_or_insert_default().chosen = units;
        }
    }

    /// What the packet being built is to carry copies of, in order.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|known| known.chosen.iter().rev().copied())
    }

    /// Gives back the memory of [`take_open`](Self::take_open).
    pub(crate) fn reuse(&mut self, mut units: Vec<u64>) {
        units.clear();
        if let Some(known) = &mut self.0 {
            known.open = units;
        }
    }

    /// Whether the packet being built carries no copies.
    #[inline]
    pub(crate) fn is_open_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|known| known.open.is_empty())
    }

    /// The receiver reports `unit` as a duplicate.
    pub(crate) fn on_reported(&mut self, unit: u64) {
        if let Some(copy) = self.0.as_mut().and_then(|known| known.known.get_mut(&unit)) {
            copy.is_reported = true;
        }
    }

    /// `unit` is given up.
    pub(crate) fn forget(&mut self, unit: u64) {
        if let Some(known) = &mut self.0 {
            known.known.remove(&unit);
        }
    }

    /// `unit` is acknowledged, and was in flight or not; `first` says where it was, if it left only once
    /// but for copies.
    pub(crate) fn on_acked(&mut self, unit: u64, was_in_flight: bool, first: Option<FirstSent>) {
        let Some(Known { known, acked, .. }) = self.0.as_deref_mut() else { return };
        let Some(copy) = known.remove(&unit).filter(|_| was_in_flight) else { return };
        if let Some(first) = first.or(copy.alone) {
            let (is_alone, is_reported) = (copy.alone.is_some(), copy.is_reported);
            acked.push(AckedCopied { unit, first, copy: copy.packet, is_alone, is_reported });
        }
    }

    /// The units that [`on_acked`](Self::on_acked) was told of since they were last cleared.
    #[inline]
    pub(crate) fn acked(&self) -> &[AckedCopied] {
        self.0.as_ref().map_or(&[], |known| &known.acked)
    }

    pub(crate) fn clear_acked(&mut self) {
        if let Some(known) = &mut self.0 {
            known.acked.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(packet: u64) -> FirstSent {
        FirstSent { packet: PacketNumber(packet), sent_at: None, path: 0, group: 0 }
    }

    #[test]
    fn the_first_copy_counts() {
        let mut copies = Copies::default();
        for packet in [2, 3] {
            copies.add(7);
            assert_eq!(copies.take_open(Instant::ZERO, PacketNumber(packet)), [7]);
        }
        copies.on_acked(7, true, Some(first(1)));
        assert_eq!(copies.acked().len(), 1);
        assert_eq!(
            (copies.acked()[0].copy, copies.acked()[0].is_reported),
            (PacketNumber(2), false)
        );
        copies.clear_acked();
        copies.on_acked(7, true, Some(first(1)));
        assert!(copies.acked().is_empty(), "it is not known any more");
    }

    #[test]
    fn copies_in_a_packet_that_does_not_leave_were_never_made() {
        let mut copies = Copies::default();
        copies.add(7);
        copies.drop_open();
        assert_eq!(copies.take_open(Instant::ZERO, PacketNumber(2)), []);
        copies.on_acked(7, true, Some(first(1)));
        assert!(copies.acked().is_empty());
    }
}
