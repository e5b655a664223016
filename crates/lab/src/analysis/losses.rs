//! Which packets were lost, and which retransmissions were spurious: known from the packets of the receiver, or estimated
//! from ACKs.

use std::time::Duration;

use super::data::Data;
use super::unit::{Cause, Fate, Unit};

/// Lost packets of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Losses {
    pub(super) lost: u64,
    /// All packets, including those lost before the place of capture.
    packets: u64,
    /// Series of lost packets.
    series: u64,
}

impl Losses {
    /// The losses of `data` in a capture that ends at `end`, over a path with round-trip time `rtt`.
    pub(super) fn of(data: &Data, end: Duration, rtt: Option<Duration>) -> Self {
        if data.arrivals.are_known {
            Self::known(data, end, rtt)
        } else {
            Self::estimated(data, rtt)
        }
    }

    fn known(data: &Data, end: Duration, rtt: Option<Duration>) -> Self {
        // Later ones may still be under way.
        let until = end.saturating_sub(rtt.unwrap_or_default() / 2);
        let packets = data.packets.iter();
        Self::count(packets.filter_map(|packet| match packet.fate {
            Fate::Arrived(_) => Some(false),
            Fate::Lost => Some(true),
            Fate::Unseen => (packet.time <= until).then_some(true),
        }))
    }

    fn estimated(data: &Data, rtt: Option<Duration>) -> Self {
        // Packets in the order of sending: 2n for the captured packet n, 2n − 1 for a packet that was lost before the
        // place of capture and sent before packet n; and whether each was lost.
        let mut packets: Vec<(usize, bool)> =
            (0..data.packets.len()).map(|n| (2 * n, false)).collect();
        let mut unseen = Vec::new();
        // The packet of the data above that was not captured late.
        let mut above = None;
        let mut split = None;
        let mut before = Self::before_late(data);
        for unit in data.units.values().rev() {
            for (number, transmission) in unit.sent.iter().enumerate() {
                packets[transmission.packet].1 |= is_lost(data, unit, number);
            }
            let first = unit.sent[0].packet;
            if !unit.is_late {
                above = Some(first);
                continue;
            }
            let late = data.packets[first].time.checked_sub(before.pop().unwrap_or_default());
            // Data that is late by less than a round trip was reordered: the repair of a loss takes at least a round
            // trip.
            let is_lost = late.zip(rtt).is_some_and(|(late, rtt)| late >= rtt);
            // A segment that was split is one loss.
            let is_counted = unit.part.is_none() && split == Some(first);
            if let Some(above) = above.filter(|_| is_lost && !is_counted) {
                unseen.push(((2 * above).saturating_sub(1), true));
            }
            split = Some(first);
        }
        packets.append(&mut unseen);
        packets.sort_unstable_by_key(|packet| packet.0);
        Self::count(packets.into_iter().map(|packet| packet.1))
    }

    /// For each unit that was captured late: when the last data below it that was not late was captured.
    fn before_late(data: &Data) -> Vec<Duration> {
        let mut time = Duration::ZERO;
        let mut before = Vec::new();
        for unit in data.units.values() {
            if unit.is_late {
                before.push(time);
            } else {
                time = data.packets[unit.sent[0].packet].time;
            }
        }
        before
    }

    fn count(packets: impl Iterator<Item = bool>) -> Self {
        let mut losses = Self::default();
        let mut was_lost = false;
        for is_lost in packets {
            losses.packets += 1;
            losses.lost += u64::from(is_lost);
            losses.series += u64::from(is_lost && !was_lost);
            was_lost = is_lost;
        }
        losses
    }

    /// The share of lost packets.
    pub(super) fn share(&self) -> f64 {
        self.lost as f64 / self.packets.max(1) as f64
    }

    /// The mean number of lost packets in a row.
    pub(super) fn burst(&self) -> Option<f64> {
        (self.series > 0).then(|| self.lost as f64 / self.series as f64)
    }

    /// Whether transmission `number` of a unit was sent although an earlier one arrived.
    pub(super) fn is_spurious(data: &Data, unit: &Unit, number: usize) -> bool {
        let packet = |number: usize| &data.packets[unit.sent[number].packet];
        if data.arrivals.are_known {
            return (0..number).any(|earlier| matches!(packet(earlier).fate, Fate::Arrived(_)));
        }
        // Transmissions reported as duplicates are taken to be the last ones.
        let repeated = unit.sent.len() - number;
        if repeated <= unit.duplicates as usize {
            return true;
        }
        // Acknowledged sooner than a round trip after it was sent again.
        let rtt = data.acks.rtt_min.unwrap_or_default();
        let is_first = (1..number).all(|n| unit.sent[n].cause.is_some_and(Cause::is_redundant));
        is_first && unit.acked.is_some_and(|acked| acked < packet(number).time + rtt)
    }
}

/// Whether transmission `number` of a unit was lost, as far as ACKs show it.
fn is_lost(data: &Data, unit: &Unit, number: usize) -> bool {
    let next = (number + 1..unit.sent.len())
        .find(|&later| unit.sent[later].cause.is_some_and(|cause| !cause.is_redundant()));
    match next {
        Some(next) => !Losses::is_spurious(data, unit, next),
        // A redundant copy repaired it.
        None => {
            number == 0
                && unit.sent.len() > 1
                && unit.acked.is_some()
                && data.acks.reports_duplicates
                && unit.duplicates == 0
        }
    }
}
