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
    /// The copied units that the acknowledgement being processed brought.
    acked: Vec<AckedCopied>,
}

#[derive(Clone, Copy, Debug)]
struct FirstCopy {
    /// The packet of the first copy.
    packet: PacketNumber,
    /// When the latest left.
    latest: Instant,
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
    pub(crate) is_reported: bool,
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
            let first = FirstCopy { packet, latest: now, is_reported: false };
            known.entry(unit).or_insert(first).latest = now;
        }
        std::mem::take(open)
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

    /// When the latest copy of `unit` left.
    pub(crate) fn latest(&self, unit: u64) -> Option<Instant> {
        Some(self.0.as_ref()?.known.get(&unit)?.latest)
    }

    /// `unit` is given up.
    pub(crate) fn forget(&mut self, unit: u64) {
        if let Some(known) = &mut self.0 {
            known.known.remove(&unit);
        }
    }

    /// `unit` is acknowledged; `first` says where it was, if it left only once but for copies.
    pub(crate) fn on_acked(&mut self, unit: u64, first: Option<FirstSent>) {
        let Some(Known { known, acked, .. }) = self.0.as_deref_mut() else { return };
        let copy = known.remove(&unit);
        if let (Some(first), Some(FirstCopy { packet: copy, is_reported, .. })) = (first, copy) {
            acked.push(AckedCopied { unit, first, copy, is_reported });
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
        copies.on_acked(7, Some(first(1)));
        assert_eq!(copies.acked().len(), 1);
        assert_eq!(
            (copies.acked()[0].copy, copies.acked()[0].is_reported),
            (PacketNumber(2), false)
        );
        copies.clear_acked();
        copies.on_acked(7, Some(first(1)));
        assert!(copies.acked().is_empty(), "it is not known any more");
    }

    #[test]
    fn copies_in_a_packet_that_does_not_leave_were_never_made() {
        let mut copies = Copies::default();
        copies.add(7);
        copies.drop_open();
        assert_eq!(copies.take_open(Instant::ZERO, PacketNumber(2)), []);
        copies.on_acked(7, Some(first(1)));
        assert!(copies.acked().is_empty());
    }
}
