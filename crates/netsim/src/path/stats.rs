//! Counters of a path's packets by outcome.

use serde::Serialize;

use super::{Fate, LossCause, Outcome};

/// Counters of the decisions on offered packets.
///
/// Always `offered = passed + held + aqm.queued + lost()`, where `held` is the number of packets currently held
/// back, and `aqm.queued` that of packets in queues of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PathStats {
    /// Packets offered.
    pub offered: u64,
    /// The bytes of the packets offered.
    pub offered_bytes: u64,
    /// Packets that are or will be delivered, each counted once.
    pub passed: u64,
    /// Packets currently held back.
    pub held: u64,
    /// Packets lost uniformly.
    pub lost_uniform: u64,
    /// Packets lost in a burst.
    pub lost_burst: u64,
    /// Packets lost because they were listed.
    pub lost_listed: u64,
    /// Packets dropped by random early detection.
    pub lost_red: u64,
    /// Packets lost because the queue was full.
    pub lost_queue: u64,
    /// Packets lost because they were larger than the MTU.
    pub lost_mtu: u64,
    /// Duplicated packets; lost packets are not duplicated.
    pub duplicated: u64,
    /// Packets in which a bit is flipped, without lost ones.
    pub corrupted: u64,
    /// What active queue management did, apart from drops of random early detection.
    pub aqm: AqmStats,
    /// Largest number of packets in the queue.
    pub max_queue_packets: usize,
    /// Largest number of bytes in the queue.
    pub max_queue_bytes: usize,
}

/// Counters of active queue management.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct AqmStats {
    /// Packets of which the ECN field was set to "congestion experienced" instead of a drop.
    pub marked: u64,
    /// Packets dropped by CoDel.
    pub lost_codel: u64,
    /// Packets currently in the queues of FQ-CoDel.
    pub queued: u64,
}

impl PathStats {
    /// Packets lost, whatever the cause.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost_uniform
            + self.lost_burst
            + self.lost_listed
            + self.lost_red
            + self.lost_queue
            + self.aqm.lost_codel
            + self.lost_mtu
    }

    pub(super) fn on_offer(&mut self, len: usize, outcome: &Outcome) {
        self.offered += 1;
        self.offered_bytes += len as u64;
        self.count(outcome);
    }

    /// Counts the outcome for a packet that was [`Fate::Queued`].
    pub(super) fn on_departure(&mut self, outcome: &Outcome) {
        self.aqm.queued -= 1;
        self.count(outcome);
    }

    fn count(&mut self, outcome: &Outcome) {
        self.aqm.marked += u64::from(outcome.is_marked);
        match outcome.fate {
            Fate::Passed => self.passed += 1,
            Fate::Held => self.held += 1,
            Fate::Queued => self.aqm.queued += 1,
            Fate::Lost(LossCause::Codel) => self.aqm.lost_codel += 1,
            Fate::Lost(LossCause::Uniform) => self.lost_uniform += 1,
            Fate::Lost(LossCause::Burst) => self.lost_burst += 1,
            Fate::Lost(LossCause::Listed) => self.lost_listed += 1,
            Fate::Lost(LossCause::Red) => self.lost_red += 1,
            Fate::Lost(LossCause::Queue) => self.lost_queue += 1,
            Fate::Lost(LossCause::Mtu) => self.lost_mtu += 1,
        }
    }

    pub(super) fn on_released(&mut self) {
        self.held -= 1;
        self.passed += 1;
    }

    pub(super) fn on_queue(&mut self, packets: usize, bytes: usize) {
        self.max_queue_packets = self.max_queue_packets.max(packets);
        self.max_queue_bytes = self.max_queue_bytes.max(bytes);
    }
}

/// Counters of deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ArrivalStats {
    /// Deliveries, copies included.
    pub delivered: u64,
    /// The bytes of these deliveries.
    pub delivered_bytes: u64,
    /// Deliveries of packets after one that was offered later (RFC 4737 §3.3), copies included.
    pub reordered: u64,
    highest: u64,
}

impl ArrivalStats {
    /// Counts the delivery of packet `packet` of `len` bytes.
    #[inline]
    pub fn on_delivery(&mut self, packet: u64, len: usize) {
        if self.delivered > 0 && packet < self.highest {
            self.reordered += 1;
        }
        self.delivered += 1;
        self.delivered_bytes += len as u64;
        self.highest = self.highest.max(packet);
    }
}
