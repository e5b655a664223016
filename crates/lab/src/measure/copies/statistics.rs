//! The measurements of the copies of a flow.

use std::ops::{AddAssign, Index, IndexMut};

use rexmit_core::trace::SendCause;
use rexmit_sctp::recovery::ByCause;

use super::unit::UnitCopy;
use crate::measure::LatencyDistribution;

/// One value for each cause of sending a data unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerCause<T>([T; SendCause::ALL.len()]);

impl<T> PerCause<T> {
    /// Every cause with its value.
    pub fn iter(&self) -> impl Iterator<Item = (SendCause, &T)> {
        SendCause::ALL.into_iter().zip(&self.0)
    }
}

impl PerCause<u64> {
    /// All causes together.
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

/// The copies sent as the k-th retransmission of their unit. The first
/// transmission is number 0. A redundant copy ([`SendCause::Redundant`]) is not a retransmission and
/// counts with the last one before it.
#[derive(Clone, Debug, Default)]
pub struct RetransmissionStatistics {
    /// Of the units that they brought: from the first transmission to the arrival.
    pub latency: LatencyDistribution,
    /// How many units they brought.
    pub delivered: PerCause<u64>,
    /// How many left.
    pub sent: PerCause<u64>,
    /// Of those that were sent: how many were spurious, as an earlier copy arrives, be it later.
    pub spurious: PerCause<u64>,
}

/// The retransmission events of one kind. An event is *spurious* if nothing of what was declared lost in
/// it was: all of its retransmissions were spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindStatistics {
    /// How many began.
    pub events: u64,
    /// Those of them that were spurious.
    pub spurious: u64,
    /// Of the spurious ones, those that the sender found to be so.
    pub detected: u64,
    /// Those that it found to be spurious and that were not.
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

/// Spurious repetitions, by what the sender could have known. What had arrived is answered by every
/// packet with an acknowledgement that the receiver sends from then on. Redundant copies
/// ([`SendCause::Redundant`]) are in none of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NeedlessStatistics {
    /// The sender did not wait for the first answer, which had not been lost: the unit was still under
    /// way, it had not been answered (as acknowledgements may be delayed), or the answer came.
    pub impatient: u64,
    /// The first answer was lost, and a later one under way that came: it told of a unit behind.
    pub crossed: u64,
    /// Every answer that had been sent was lost, as if the unit had been.
    pub unanswered: u64,
}

impl NeedlessStatistics {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.impatient + self.crossed + self.unanswered
    }
}

impl AddAssign for NeedlessStatistics {
    fn add_assign(&mut self, other: Self) {
        self.impatient += other.impatient;
        self.crossed += other.crossed;
        self.unanswered += other.unanswered;
    }
}

/// The retransmission events of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventStatistics {
    /// Expiries of the retransmission timer.
    pub timeouts: KindStatistics,
    /// Fast retransmits, each with those that follow it until fast recovery ends.
    pub fast_retransmits: KindStatistics,
}

/// What became of the data units of a flow, and of every copy of them that was sent.
#[derive(Clone, Debug, Default)]
pub struct CopyStatistics {
    /// Packets with data that were sent.
    pub packets: u64,
    /// Those of them that ended without having arrived undamaged.
    pub packets_lost: u64,
    /// Units that were sent.
    pub units: u64,
    /// By the number of the retransmission; the last has all from number 4 on.
    pub by_retransmission: [RetransmissionStatistics; Self::RETRANSMISSIONS],
    /// From the first transmission of a unit to its arrival, by the cause of the copy that arrived
    /// first.
    pub latency_by_cause: PerCause<LatencyDistribution>,
    /// Spurious copies by reason, without redundant ones.
    pub needless: NeedlessStatistics,
    /// Retransmission events.
    pub events: EventStatistics,
}

impl CopyStatistics {
    /// Numbers of retransmissions that are distinguished.
    pub const RETRANSMISSIONS: usize = 5;

    /// Units that have arrived.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.by_retransmission.iter().map(|number| number.latency.count()).sum()
    }

    /// From the first transmission of a unit to its arrival, of all that have arrived.
    #[must_use]
    pub fn latency(&self) -> LatencyDistribution {
        let mut all = LatencyDistribution::default();
        self.by_retransmission.iter().for_each(|number| all.merge(&number.latency));
        all
    }

    /// Copies that were sent, by cause: the first, retransmissions, and redundant copies.
    #[must_use]
    pub fn sent(&self) -> PerCause<u64> {
        self.sum(|number| number.sent)
    }

    /// Copies that were spurious, by cause.
    #[must_use]
    pub fn spurious(&self) -> PerCause<u64> {
        self.sum(|number| number.spurious)
    }

    fn sum(&self, of: impl Fn(&RetransmissionStatistics) -> PerCause<u64>) -> PerCause<u64> {
        let mut sum = PerCause::default();
        self.by_retransmission.iter().for_each(|number| sum += of(number));
        sum
    }

    /// Adds what was measured of another flow or run.
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
        self.needless += other.needless;
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
        for (n, cause) in (1..).zip(SendCause::ALL) {
            assert_eq!(counts[cause], 0);
            counts[cause] = n;
        }
        assert!(counts.iter().eq(SendCause::ALL.into_iter().zip(&[1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(counts.total(), 36);
    }

    #[test]
    fn what_is_merged_adds_up() {
        let kind =
            |n| KindStatistics { events: n, spurious: 2 * n, detected: 3 * n, mistaken: 4 * n };
        let needless = |n| NeedlessStatistics { impatient: n, crossed: 2 * n, unanswered: 3 * n };
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
            statistics.needless = needless(7 * n);
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
        assert_eq!((sum.needless, sum.needless.total()), (needless(77), 6 * 77));
        assert_eq!((sum.events.timeouts, sum.events.fast_retransmits), (kind(77), kind(88)));
    }
}
