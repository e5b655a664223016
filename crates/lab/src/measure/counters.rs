//! What a run cost: packets and bytes on the wire, what was sent again and why, and how much of it
//! in vain.

use std::ops::AddAssign;

use rexmit_core::trace::SendCause;
use serde::{Deserialize, Serialize};

/// Data units (chunks) sent again, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ByCause {
    /// The retransmission timer had expired.
    pub timeout: u64,
    /// Enough missing reports had come.
    pub fast_retransmit: u64,
    /// Taken along by a retransmission that had room.
    pub bundled: u64,
    /// A probe of a closed receive window.
    pub window_probe: u64,
}

impl ByCause {
    /// Adds `units` that were sent because of `cause`; new data are no retransmission.
    pub const fn count(&mut self, cause: SendCause, units: u64) {
        match cause {
            SendCause::New => {}
            SendCause::Timeout => self.timeout += units,
            SendCause::FastRetransmit => self.fast_retransmit += units,
            SendCause::Bundled => self.bundled += units,
            SendCause::WindowProbe => self.window_probe += units,
        }
    }

    /// All causes together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.timeout + self.fast_retransmit + self.bundled + self.window_probe
    }
}

impl AddAssign for ByCause {
    fn add_assign(&mut self, other: Self) {
        self.timeout += other.timeout;
        self.fast_retransmit += other.fast_retransmit;
        self.bundled += other.bundled;
        self.window_probe += other.window_probe;
    }
}

/// Counts of one run, all associations together.
///
/// What was sent again comes from the statistics of the senders, which know it per data unit; their
/// traces tell of packets, and of a packet only the cause of its first unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Data units sent again.
    pub retransmissions: ByCause,
    /// Those of them that were needless: the first copy had arrived.
    pub spurious: ByCause,
    /// Packets on the wire, of any kind, in the directions that the driver counts.
    pub packets: u64,
    /// Bytes of those packets, with the headers that the driver counts.
    pub wire_bytes: u64,
}

impl Counters {
    /// Counts `packets` on the wire of `bytes` together.
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
    use super::*;

    #[test]
    fn each_cause_has_its_own_count_and_new_data_has_none() {
        let mut counts = ByCause::default();
        counts.count(SendCause::New, 100);
        counts.count(SendCause::Timeout, 1);
        counts.count(SendCause::Timeout, 2);
        counts.count(SendCause::FastRetransmit, 5);
        counts.count(SendCause::Bundled, 7);
        counts.count(SendCause::WindowProbe, 11);
        let expected = ByCause { timeout: 3, fast_retransmit: 5, bundled: 7, window_probe: 11 };
        assert_eq!(counts, expected);
        assert_eq!(counts.total(), 26);
    }

    #[test]
    fn packets_and_bytes_on_the_wire_add_up() {
        let mut counters = Counters::default();
        counters.on_wire(2, 300);
        counters.on_wire(1, 50);
        assert_eq!((counters.packets, counters.wire_bytes), (3, 350));
    }

    #[test]
    fn the_counts_of_two_associations_add_up() {
        let by_cause =
            |n| ByCause { timeout: n, fast_retransmit: n + 1, bundled: n + 2, window_probe: n + 3 };
        let counters = |n| Counters {
            retransmissions: by_cause(n),
            spurious: by_cause(2 * n),
            packets: n,
            wire_bytes: 100 * n,
        };
        let mut sum = counters(10);
        sum += counters(20);
        let double = |n: u64| ByCause {
            timeout: n,
            fast_retransmit: n + 2,
            bundled: n + 4,
            window_probe: n + 6,
        };
        let expected = Counters {
            retransmissions: double(30),
            spurious: double(60),
            packets: 30,
            wire_bytes: 3000,
        };
        assert_eq!(sum, expected);
    }
}
