//! Loss by duplicate acknowledgements, for a peer without SACK (RFC 5681 §3.2, RFC 6582).
//!
//! Each one tells that some segment has left the network, but not which. RFC 5681 inflates cwnd by
//! it; here it is taken off the flight instead, which leaves the same room and the window as it is.

/// Duplicate acknowledgements since the cumulative point moved, and what they tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct DuplicateAcks {
    count: u32,
    /// Bytes that have left the network, nobody knows which.
    departed: u64,
    /// Partial acknowledgements in this recovery; `None` out of it.
    partial: Option<u32>,
}

impl DuplicateAcks {
    /// One more, with `flight` bytes in flight: more cannot have left (RFC 5681 §3.2, Note).
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
    /// departed are known now: all but the segment sent again (RFC 6582 §3.2 step 3). Returns
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

    /// Bytes that have left the network, as far as a recovery knows.
    pub(crate) const fn departed(&self) -> u64 {
        if self.is_recovering() { self.departed } else { 0 }
    }

    /// What the first two, before a recovery, let leave beyond the window (RFC 3042 §2).
    pub(crate) fn limited_transmit(&self, packet: u64) -> u64 {
        if self.is_recovering() { 0 } else { packet * u64::from(self.count.min(2)) }
    }

    /// Whether any came since the cumulative point moved.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
