//! Loss by duplicate acknowledgements, for a peer without SACK (RFC 5681 §3.2, RFC 6582).
//!
//! Each one says that some segment left the network, but not which. RFC 5681 inflates cwnd by
//! it; here it is taken off the flight instead, which leaves the same room and the window as it is.

/// Duplicate acknowledgements since the cumulative point moved, and what they tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct DuplicateAcks {
    count: u32,
    /// Bytes out of the network, of unknown segments.
    departed: u64,
    /// Partial acknowledgements in this recovery; `None` out of it.
    partial: Option<u32>,
}

impl DuplicateAcks {
    /// One more, with `flight` bytes in flight: more cannot have been sent (RFC 5681 §3.2, Note).
    /// Returns how many there were.
    pub(crate) fn on_duplicate(&mut self, packet: u64, flight: u64) -> u32 {
        self.count = self.count.saturating_add(1);
        self.departed = (self.departed + packet).min(flight);
        self.count
    }

    /// Recovery begins.
    pub(crate) const fn on_recovery(&mut self) {
        self.partial = Some(0);
    }

    /// Whether a recovery is under way that duplicates began.
    pub(crate) const fn is_recovering(&self) -> bool {
        self.partial.is_some()
    }

    /// `acked` bytes were acknowledged, not all of the recovery's. Those that had been counted as
    /// departed are known now: all but the segment retransmitted (RFC 6582 §3.2 step 3). Returns
    /// whether this is the first partial acknowledgement of the recovery.
    pub(crate) fn on_partial(&mut self, acked: u64, packet: u64) -> bool {
        let sent_again = if acked >= packet { packet } else { 0 };
        self.departed = self.departed.saturating_sub(acked - sent_again);
        let partial = self.partial.get_or_insert(0);
        *partial = partial.saturating_add(1);
        *partial == 1
    }

    /// The cumulative point moved out of recovery, or the timer expired.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes known in a recovery to be out of the network.
    pub(crate) const fn departed(&self) -> u64 {
        if self.is_recovering() { self.departed } else { 0 }
    }

    /// Bytes that the first two, before a recovery, allow beyond the window (RFC 3042 §2).
    pub(crate) fn limited_transmit(&self, packet: u64) -> u64 {
        if self.is_recovering() { 0 } else { packet * u64::from(self.count.min(2)) }
    }

    /// Whether any came since the cumulative point moved.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6582 §3.2 step 3: cwnd is deflated by what a partial acknowledgement covers, and a
    /// packet is added back if it covers at least one. The flight has lost the same bytes, so the
    /// room grows by that packet, or not at all.
    #[test]
    fn a_partial_acknowledgement_makes_room_for_one_packet_at_most() {
        for (acked, room) in [(3000, 1000), (1000, 1000), (400, 0)] {
            let mut duplicates = DuplicateAcks::default();
            (0..5).for_each(|_| _ = duplicates.on_duplicate(1000, 9000));
            duplicates.on_recovery();
            assert_eq!(duplicates.departed(), 5000);
            duplicates.on_partial(acked, 1000);
            let in_network = (9000 - acked) - duplicates.departed();
            assert_eq!(in_network, 9000 - 5000 - room, "{acked} bytes");
        }
    }

    #[test]
    fn no_more_departs_than_is_in_flight() {
        let mut duplicates = DuplicateAcks::default();
        (0..1000).for_each(|_| _ = duplicates.on_duplicate(1000, 3500));
        duplicates.on_recovery();
        assert_eq!(duplicates.departed(), 3500);
    }

    /// RFC 3042 §2: a packet for each of the first two.
    #[test]
    fn limited_transmit_is_two_packets_before_a_recovery() {
        let mut duplicates = DuplicateAcks::default();
        let allowed = [(); 4].map(|()| {
            duplicates.on_duplicate(1000, 9000);
            duplicates.limited_transmit(1000)
        });
        assert_eq!(allowed, [1000, 2000, 2000, 2000]);
        duplicates.on_recovery();
        assert_eq!(duplicates.limited_transmit(1000), 0);
    }
}
