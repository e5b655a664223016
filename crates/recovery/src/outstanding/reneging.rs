//! How much a receiver may drop of what it had acknowledged above the cumulative point (RFC 9260 §6.2.1).

/// Transmissions and renegings of an association.
///
/// Each transmission can be dropped once. A receiver that drops more than was sent to it acknowledged what it did not
/// hold; to follow it would cost work for every unit outstanding with every acknowledgement. It is no longer believed: only
/// its cumulative point counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reneging {
    sent: u64,
    dropped: u64,
}

impl Reneging {
    /// A unit is sent, once more or for the first time.
    pub(super) const fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// The receiver has dropped `count` units.
    pub(super) const fn on_dropped(&mut self, count: u64) {
        self.dropped += count;
    }

    /// The receiver has not dropped more than was sent to it.
    pub(super) const fn is_believed(&self) -> bool {
        self.dropped <= self.sent
    }
}
