//! The cost of a run: packets and bytes on the wire, retransmissions by cause, and spurious ones
//! among them.

use std::ops::AddAssign;

use rexmit_sctp::recovery::{ByCause, RecoveryStatistics};
use serde::{Deserialize, Serialize};

/// Counts of one run, all associations together.
///
/// Retransmissions are taken from the statistics of the senders, which cover runs of any length,
/// whereas traces may be truncated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Data units retransmitted.
    pub retransmissions: ByCause,
    /// Data units retransmitted spuriously: the first transmission had arrived.
    pub spurious: ByCause,
    /// Packets on the wire, of any kind, in the directions counted by the driver.
    pub packets: u64,
    /// Bytes of these packets, with the headers counted by the driver.
    pub wire_bytes: u64,
}

impl From<&RecoveryStatistics> for Counters {
    /// The counters of a sender; the driver adds packets and bytes on the wire.
    fn from(sender: &RecoveryStatistics) -> Self {
        Self { retransmissions: sender.retransmitted, spurious: sender.spurious, ..Self::default() }
    }
}

impl Counters {
    /// Adds `packets` on the wire with `bytes` in total.
    pub const fn on_wire(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.wire_bytes += bytes;
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.retransmissions += other.retransmissions;
        self.spurious += other.spurious;
        self.on_wire(other.packets, other.wire_bytes);
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::trace::SendCause;

    use super::*;

    #[test]
    fn packets_and_bytes_on_the_wire_add_up() {
        let mut counters = Counters::default();
        counters.on_wire(2, 300);
        counters.on_wire(1, 50);
        assert_eq!((counters.packets, counters.wire_bytes), (3, 350));
    }

    #[test]
    fn the_counts_of_two_associations_add_up() {
        // Each field has a value of its own: `n` and its number times `step`.
        let of = |n: u64, step: u64| {
            let mut counts = ByCause::default();
            for (index, &cause) in (0..).zip(&SendCause::ALL[1..]) {
                (0..n + index * step).for_each(|_| counts.count(cause));
            }
            counts
        };
        let counters = |n| Counters {
            retransmissions: of(n, 1),
            spurious: of(2 * n, 1),
            packets: n,
            wire_bytes: 100 * n,
        };
        let mut sum = counters(10);
        sum += counters(20);
        let expected = Counters {
            retransmissions: of(30, 2),
            spurious: of(60, 2),
            packets: 30,
            wire_bytes: 3000,
        };
        assert_eq!(sum, expected);
    }
}
