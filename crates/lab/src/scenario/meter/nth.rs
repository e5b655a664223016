//! The time of the n-th retransmission of a data unit.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun};

/// Times from the first transmission of a unit to its n-th retransmission, without redundant
/// copies. Stores the unacknowledged units, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct NthRetransmission {
    /// The number of the first stored unit.
    first: u64,
    units: VecDeque<Unit>,
    times: [Times; Self::COUNT],
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    left: Instant,
    retransmissions: usize,
}

/// The times of all n-th retransmissions.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scenario) struct Times {
    pub(in crate::scenario) count: u64,
    sum: Duration,
    pub(in crate::scenario) max: Duration,
}

impl Times {
    pub(in crate::scenario) fn mean(&self) -> Option<Duration> {
        let count = u32::try_from(self.count).unwrap_or(u32::MAX);
        self.sum.checked_div(count)
    }
}

impl NthRetransmission {
    /// Number of retransmissions measured per unit; later ones are ignored.
    pub(in crate::scenario) const COUNT: usize = 10;
    /// Largest number of stored units; no sender here has more in flight.
    const LIMIT: usize = 1 << 16;

    pub(in crate::scenario) fn on_sent(&mut self, now: Instant, runs: &[SentRun]) {
        for run in runs.iter().filter(|run| run.cause != SendCause::Redundant) {
            (run.lowest..=run.highest).for_each(|number| self.on_unit(now, number));
        }
    }

    fn on_unit(&mut self, now: Instant, number: u64) {
        if self.units.is_empty() {
            self.first = number;
        }
        let Some(place) = number.checked_sub(self.first).map(|place| place as usize) else {
            return;
        };
        if let Some(unit) = self.units.get_mut(place) {
            if let Some(times) = self.times.get_mut(unit.retransmissions) {
                let time = now - unit.left;
                times.count += 1;
                times.sum = times.sum.saturating_add(time);
                times.max = times.max.max(time);
            }
            unit.retransmissions += 1;
        } else if place < Self::LIMIT {
            self.units.resize(place + 1, Unit { left: now, retransmissions: 0 });
        }
    }

    /// Removes units up to `cumulative`, which have arrived.
    pub(in crate::scenario) fn on_acknowledged(&mut self, cumulative: u64) {
        while self.first <= cumulative && self.units.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Adds the times of another connection.
    pub(in crate::scenario) fn merge(&mut self, other: &Self) {
        for (sum, more) in self.times.iter_mut().zip(&other.times) {
            sum.count += more.count;
            sum.sum = sum.sum.saturating_add(more.sum);
            sum.max = sum.max.max(more.max);
        }
    }

    /// The times of the first retransmission, the second, and so on.
    pub(in crate::scenario) fn times(&self) -> &[Times] {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_are_counted_from_the_first_transmission_of_their_unit() {
        let mut nth = NthRetransmission::default();
        let mut sent = |ms, lowest, highest, cause| {
            nth.on_sent(Instant::from_millis(ms), &[SentRun::new(lowest, highest, cause)]);
        };
        sent(0, 7, 8, SendCause::New);
        sent(100, 9, 9, SendCause::New);
        sent(150, 7, 9, SendCause::Redundant);
        sent(1000, 7, 9, SendCause::Timeout);
        sent(3000, 7, 7, SendCause::Timeout);
        nth.on_acknowledged(8);
        nth.on_sent(Instant::from_millis(4000), &[SentRun::new(9, 10, SendCause::FastRetransmit)]);
        let [first, second] = [nth.times()[0], nth.times()[1]];
        assert_eq!((first.count, first.max), (3, Duration::from_millis(1000)));
        assert_eq!(first.mean(), Some(Duration::from_millis(2900) / 3));
        assert_eq!((second.count, second.max), (2, Duration::from_millis(3900)));
        assert_eq!((nth.times()[2].count, nth.times()[2].mean()), (0, None));
        assert_eq!(nth.units.len(), 2);
    }
}
