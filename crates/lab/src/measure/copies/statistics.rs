//! Statistics of the copies of a flow.

use std::ops::{AddAssign, Index, IndexMut};

use rexmit_core::trace::SendCause;
use rexmit_sctp::recovery::ByCause;

use super::unit::UnitCopy;
use crate::measure::LatencyDistribution;

/// One value per cause of sending a data unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerCause<T>([T; SendCause::ALL.len()]);

impl<T> PerCause<T> {
    /// Every cause with its value.
    pub fn iter(&self) -> impl Iterator<Item = (SendCause, &T)> {
        SendCause::ALL.iter().copied().zip(&self.0)
    }
}

impl PerCause<u64> {
    /// The sum over all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl From<&ByCause> for PerCause<u64> {
    /// The counters of a sender; new data is not counted.
    fn from(counted: &ByCause) -> Self {
        let mut counts = Self::default();
        counts[SendCause::Timeout] = counted.timeout;
        counts[SendCause::FastRetransmit] = counted.fast_retransmit;
        counts[SendCause::Bundled] = counted.bundled;
        counts[SendCause::WindowProbe] = counted.window_probe;
        counts[SendCause::Early] = counted.early;
        counts[SendCause::Redundant] = counted.redundant;
        counts[SendCause::Probe] = counted.probe;
        counts
    }
}

impl<T> Index<SendCause> for PerCause<T> {
    type Output = T;

    fn index(&self, cause: SendCause) -> &T {
        &self.0[cause as usize]
    }
}

impl<T> IndexMut<SendCause> for PerCause<T> {
    fn index_mut(&mut self, cause: SendCause) -> &mut T {
        &mut self.0[cause as usize]
    }
}

impl AddAssign for PerCause<u64> {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// Statistics of copies sent as the k-th retransmission of their unit; number 0 is the first
/// transmission. A redundant copy ([`SendCause::Redundant`]) is not a retransmission, and is
/// counted with the last one before it.
#[derive(Clone, Debug, Default)]
pub struct RetransmissionStatistics {
    /// Time from the first transmission to the arrival of units that these copies delivered.
    pub latency: LatencyDistribution,
    /// Number of units that these copies delivered.
    pub delivered: PerCause<u64>,
    /// Number of copies sent.
    pub sent: PerCause<u64>,
    /// Number of spurious copies sent, that is, of units of which an earlier copy arrived, before or
    /// after this one was sent.
    pub spurious: PerCause<u64>,
}

/// Statistics of retransmission events of one kind. An event is *spurious* if nothing declared lost
/// in it was lost, that is, if all its retransmissions were spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindStatistics {
    /// Number of events.
    pub events: u64,
    /// Number of spurious events.
    pub spurious: u64,
    /// Number of spurious events that the sender detected as such.
    pub detected: u64,
    /// Number of events that the sender wrongly detected as spurious.
    pub mistaken: u64,
}

impl AddAssign for KindStatistics {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.spurious += other.spurious;
        self.detected += other.detected;
        self.mistaken += other.mistaken;
    }
}

/// Spurious retransmissions, classified by the information that the sender could have had. An
/// answer to a unit is every packet with an acknowledgement that the receiver sends after the
/// unit's arrival. Redundant copies ([`SendCause::Redundant`]) are not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpuriousClasses {
    /// The sender did not wait for the first answer, which was not lost. When it retransmitted, the unit was still in
    /// flight, or the answer was not sent yet (for example a delayed ACK), was in flight, or had arrived.
    pub premature: u64,
    /// The first answer was lost, but a later one was in flight and arrived.
    pub crossed: u64,
    /// All answers sent so far were lost, which the sender cannot distinguish from a loss of the
    /// unit.
    pub unacknowledged: u64,
}

impl SpuriousClasses {
    /// The sum of all classes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.premature + self.crossed + self.unacknowledged
    }
}

impl AddAssign for SpuriousClasses {
    fn add_assign(&mut self, other: Self) {
        self.premature += other.premature;
        self.crossed += other.crossed;
        self.unacknowledged += other.unacknowledged;
    }
}

/// Statistics of the retransmission events of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventStatistics {
    /// Expiries of the retransmission timer.
    pub timeouts: KindStatistics,
    /// Fast retransmits, each with those that follow it until fast recovery ends.
    pub fast_retransmits: KindStatistics,
}

/// Statistics of the data units of a flow, and of every copy sent.
#[derive(Clone, Debug, Default)]
pub struct CopyStatistics {
    /// Number of packets with data sent.
    pub packets: u64,
    /// Number of packets with data that were lost or arrived damaged.
    pub packets_lost: u64,
    /// Number of units sent.
    pub units: u64,
    /// By the number of the retransmission; the last entry includes all from number 4 on.
    pub by_retransmission: [RetransmissionStatistics; Self::RETRANSMISSIONS],
    /// Time from the first transmission of a unit to its arrival, by the cause of the copy that
    /// arrived first.
    pub latency_by_cause: PerCause<LatencyDistribution>,
    /// Spurious retransmissions by class, without redundant copies.
    pub spurious_classes: SpuriousClasses,
    /// Retransmission events.
    pub events: EventStatistics,
}

impl CopyStatistics {
    /// Number of entries by the number of the retransmission.
    pub const RETRANSMISSIONS: usize = 5;

    /// Number of units that have arrived.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.by_retransmission.iter().map(|number| number.latency.count()).sum()
    }

    /// Time from the first transmission of a unit to its arrival, for all units that have arrived.
    #[must_use]
    pub fn latency(&self) -> LatencyDistribution {
        let mut all = LatencyDistribution::default();
        self.by_retransmission.iter().for_each(|number| all.merge(&number.latency));
        all
    }

    /// Number of copies sent, by cause: first transmissions, retransmissions, and redundant copies.
    #[must_use]
    pub fn sent(&self) -> PerCause<u64> {
        self.sum(|number| number.sent)
    }

    /// Number of spurious copies, by cause.
    #[must_use]
    pub fn spurious(&self) -> PerCause<u64> {
        self.sum(|number| number.spurious)
    }

    fn sum(&self, of: impl Fn(&RetransmissionStatistics) -> PerCause<u64>) -> PerCause<u64> {
        let mut sum = PerCause::default();
        self.by_retransmission.iter().for_each(|number| sum += of(number));
        sum
    }

    /// Adds the statistics of another flow or run.
    pub fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.packets_lost += other.packets_lost;
        self.units += other.units;
        for (sum, more) in self.by_retransmission.iter_mut().zip(&other.by_retransmission) {
            sum.latency.merge(&more.latency);
            sum.delivered += more.delivered;
            sum.sent += more.sent;
            sum.spurious += more.spurious;
        }
        self.spurious_classes += other.spurious_classes;
        self.events.timeouts += other.events.timeouts;
        self.events.fast_retransmits += other.events.fast_retransmits;
        let causes = self.latency_by_cause.0.iter_mut().zip(&other.latency_by_cause.0);
        causes.for_each(|(sum, more)| sum.merge(more));
    }

    pub(super) fn of_number(&mut self, copy: &UnitCopy) -> &mut RetransmissionStatistics {
        let last = Self::RETRANSMISSIONS - 1;
        &mut self.by_retransmission[(copy.retransmission as usize).min(last)]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_cause_has_its_own_place() {
        let mut counts = PerCause::<u64>::default();
        for (n, cause) in (1..).zip(SendCause::ALL.iter().copied()) {
            assert_eq!(counts[cause], 0);
            counts[cause] = n;
        }
        assert!(counts.iter().eq(SendCause::ALL.iter().copied().zip(&[1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(counts.total(), 36);
    }

    #[test]
    fn merged_counts_add_up() {
        let kind =
            |n| KindStatistics { events: n, spurious: 2 * n, detected: 3 * n, mistaken: 4 * n };
        let classes = |n| SpuriousClasses { premature: n, crossed: 2 * n, unacknowledged: 3 * n };
        let of = |n: u64| {
            let mut statistics = CopyStatistics {
                packets: n,
                packets_lost: 2 * n,
                units: 3 * n,
                ..Default::default()
            };
            let number = &mut statistics.by_retransmission[2];
            number.latency.record(Duration::from_millis(n));
            number.delivered[SendCause::Early] = 4 * n;
            number.sent[SendCause::Early] = 5 * n;
            number.spurious[SendCause::Early] = 6 * n;
            statistics.latency_by_cause[SendCause::Early].record(Duration::from_millis(n));
            statistics.spurious_classes = classes(7 * n);
            statistics.events.timeouts = kind(7 * n);
            statistics.events.fast_retransmits = kind(8 * n);
            statistics
        };
        let mut sum = of(10);
        sum.merge(&of(1));
        assert_eq!((sum.packets, sum.packets_lost, sum.units), (11, 22, 33));
        let number = &sum.by_retransmission[2];
        let mean = Some(Duration::from_micros(5500));
        assert_eq!((number.latency.mean(), sum.delivered()), (mean, 2));
        assert_eq!((sum.latency().mean(), sum.latency().count()), (mean, 2));
        assert_eq!(number.delivered[SendCause::Early], 44);
        assert_eq!((sum.sent()[SendCause::Early], sum.spurious()[SendCause::Early]), (55, 66));
        assert_eq!(sum.latency_by_cause[SendCause::Early].mean(), mean);
        assert_eq!(sum.latency_by_cause[SendCause::New].count(), 0);
        assert_eq!((sum.spurious_classes, sum.spurious_classes.total()), (classes(77), 6 * 77));
        assert_eq!((sum.events.timeouts, sum.events.fast_retransmits), (kind(77), kind(88)));
    }
}
