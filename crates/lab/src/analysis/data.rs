//! The data that one side of a connection sent, and the acknowledgements of the other.

use std::collections::BTreeMap;
use std::time::Duration;

use smallvec::smallvec;

use super::arrivals::Arrivals;
use super::unit::{Cause, Fate, Part, SentPacket, Transmission, Unit};
use crate::measure::LatencyDistribution;

/// Consecutive numbers of data in a packet, unwrapped: the first, and the one after the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) bytes: u32,
    pub(super) part: Option<Part>,
}

/// An acknowledgement, with unwrapped numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Ack {
    /// The number after the last that was acknowledged cumulatively.
    pub(super) cumulative: u64,
    /// SACK blocks: their first numbers, and the numbers after their last ones.
    pub(super) blocks: Vec<(u64, u64)>,
    /// Data reported as received again (RFC 2883; duplicate TSNs).
    pub(super) duplicates: Vec<(u64, u64)>,
    /// Whether the receiver advertises a window of zero.
    pub(super) is_window_closed: bool,
    /// Whether it may repeat the previous acknowledgement: no data, the same window (RFC 5681 §2).
    pub(super) may_be_duplicate: bool,
    /// Whether it counts as one report of lost data, however much it acknowledges: for SCTP, SACKs are counted (RFC
    /// 9260 §7.2.4), for TCP segments (RFC 6675 §4).
    pub(super) counts_once: bool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Data {
    /// By their first number.
    pub(super) units: BTreeMap<u64, Unit>,
    /// Packets with data, in the order of sending.
    pub(super) packets: Vec<SentPacket>,
    pub(super) arrivals: Arrivals,
    pub(super) acks: Acks,
    pub(super) counts: Counts,
    /// The highest number sent, plus one.
    pub(super) next: u64,
    /// The last recovery after a timeout, and the last one after a fast retransmit.
    recoveries: Recoveries,
}

/// Recoveries in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Recoveries {
    timer: Option<Recovery>,
    fast: Option<Recovery>,
}

/// A recovery. It ends when everything sent before it began is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// The end of the data that was sent before the recovery began.
    point: u64,
    /// The first retransmission.
    packet: usize,
}

impl Recovery {
    /// Whether a unit was sent before the recovery, and not since.
    fn concerns(&self, start: u64, unit: &Unit) -> bool {
        start < self.point && unit.last().packet < self.packet
    }
}

impl Recoveries {
    fn begin(&mut self, cause: Cause, point: u64, packet: usize) {
        let recovery = Some(Recovery { point, packet });
        match cause {
            Cause::Timer => self.timer = self.timer.or(recovery),
            Cause::Fast | Cause::Early => self.fast = self.fast.or(recovery),
            _ => {}
        }
    }

    fn on_ack(&mut self, cumulative: u64) {
        for recovery in [&mut self.timer, &mut self.fast] {
            *recovery = recovery.filter(|it| it.point > cumulative);
        }
    }
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Packets, by the cause of the first repeated data in them.
    pub(super) packets_by_cause: [u64; Cause::ALL.len()],
    /// Bytes of repeated data.
    pub(super) bytes_by_cause: [u64; Cause::ALL.len()],
    /// Payload sent, new or not.
    pub(super) bytes: u64,
    /// Keep-alives of TCP (RFC 9293 §3.8.4).
    pub(super) keep_alives: u64,
}

/// The ACKs to one side: numbers acknowledged, duplicates, and RTT samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Acks {
    pub(super) cumulative: u64,
    pub(super) count: u64,
    pub(super) duplicates: u64,
    /// Series of one, two, and three or more duplicate ACKs.
    pub(super) series: [u64; 3],
    /// Duplicate ACKs since the cumulative acknowledgement has advanced.
    present_series: u64,
    /// Whether any ACK had SACK blocks or gaps.
    has_sack: bool,
    /// Whether the receiver reports data that arrived again.
    pub(super) reports_duplicates: bool,
    is_window_closed: bool,
    /// Data reported as received: the time of the report, and the packet in which the data was sent.
    reports: Vec<(Duration, usize)>,
    /// Duplicate ACKs without SACK: their times and cumulative acknowledgements.
    bare: Vec<(Duration, u64)>,
    /// From the first transmission to the ACK, of the latest packet that each ACK covers.
    pub(super) rtt: LatencyDistribution,
    pub(super) rtt_min: Option<Duration>,
}

impl Data {
    /// Records a packet with data.
    pub(super) fn on_sent(&mut self, time: Duration, runs: &[Run], is_lost: bool) {
        let packet = self.packets.len();
        let fate = if is_lost { Fate::Lost } else { Fate::Unseen };
        self.packets.push(SentPacket { time, fate });
        self.arrivals.on_sent(packet, runs);
        let highest = self.next;
        let has_new = runs.iter().any(|run| self.has_new(run));
        let mut first_cause = None;
        for run in runs {
            self.counts.bytes += u64::from(run.bytes);
            self.cut(run);
            let mut repeated = 0;
            for (&start, unit) in self.units.range_mut(run.first..run.end) {
                let last = &self.packets[unit.last().packet];
                let cause = if has_new && run.part.is_none() {
                    // TCP sends lost data again in segments without new data.
                    Cause::Bundled
                } else {
                    let times = Resent { now: time, before: last.time };
                    self.acks.cause(start, unit, times, has_new, &self.recoveries)
                };
                // Data in the same packet as a retransmission is not a redundant copy.
                let with =
                    first_cause.filter(|it: &Cause| cause.is_redundant() && !it.is_redundant());
                let cause = with.unwrap_or(cause);
                self.recoveries.begin(cause, highest, packet);
                unit.sent.push(Transmission { packet, cause: Some(cause) });
                self.counts.bytes_by_cause[cause as usize] += u64::from(unit.bytes);
                first_cause.get_or_insert(cause);
                repeated += u64::from(unit.bytes);
            }
            if repeated < u64::from(run.bytes)
                || self.units.range(run.first..run.end).next().is_none()
            {
                self.add_new(run, packet, highest);
            }
            self.next = self.next.max(run.end);
        }
        if let Some(cause) = first_cause {
            self.counts.packets_by_cause[cause as usize] += 1;
        }
    }

    /// Whether a part of `run` was not sent before.
    fn has_new(&self, run: &Run) -> bool {
        let mut next = run.first;
        if let Some((_, before)) = self.units.range(..run.first).next_back() {
            next = next.max(before.end);
        }
        for (&start, unit) in self.units.range(run.first..run.end) {
            if start > next {
                return true;
            }
            next = unit.end;
        }
        next < run.end
    }

    /// Splits units so that `run` begins and ends at boundaries of units.
    fn cut(&mut self, run: &Run) {
        for at in [run.first, run.end] {
            let before = self.units.range_mut(..at).next_back();
            if let Some((&start, unit)) = before.filter(|(_, unit)| unit.end > at) {
                let rest = unit.split(start, at);
                self.units.insert(at, rest);
            }
        }
    }

    /// Adds units for the parts of `run` that are in none.
    fn add_new(&mut self, run: &Run, packet: usize, highest: u64) {
        let known: Vec<(u64, u64)> =
            self.units.range(run.first..run.end).map(|(&start, unit)| (start, unit.end)).collect();
        let mut next = run.first;
        for (start, end) in known.into_iter().chain([(run.end, run.end)]) {
            if start > next {
                let bytes = if run.part.is_some() { run.bytes } else { (start - next) as u32 };
                let unit = Unit {
                    end: start,
                    bytes,
                    sent: smallvec![Transmission { packet, cause: None }],
                    acked: None,
                    duplicates: 0,
                    arrived: None,
                    is_late: next < highest,
                    is_abandoned: false,
                    part: run.part,
                };
                self.units.insert(next, unit);
            }
            next = end;
        }
    }

    /// Records an acknowledgement that the sender received.
    pub(super) fn on_ack(&mut self, time: Duration, ack: &Ack) {
        let outstanding = self.acks.cumulative < self.next;
        self.acks.count += 1;
        self.acks.is_window_closed = ack.is_window_closed;
        self.acks.has_sack |= !ack.blocks.is_empty();
        self.acks.reports_duplicates |= !ack.duplicates.is_empty();
        for &(first, end) in &ack.duplicates {
            self.units.range_mut(first..end).for_each(|(_, unit)| unit.duplicates += 1);
        }
        let from = self.acks.cumulative;
        if ack.cumulative > from {
            self.acks.end_series();
            self.acks.cumulative = ack.cumulative;
            self.recoveries.on_ack(ack.cumulative);
        } else if outstanding && ack.cumulative == from && ack.may_be_duplicate {
            self.acks.duplicates += 1;
            self.acks.present_series += 1;
            self.acks.bare.push((time, ack.cumulative));
        }
        let mut reported = Vec::new();
        let runs = std::iter::once((from, ack.cumulative)).chain(ack.blocks.iter().copied());
        for (first, end) in runs.filter(|(first, end)| first < end) {
            self.acknowledge(time, first, end, &mut reported);
        }
        let Some(&latest) = reported.iter().max() else { return };
        if ack.counts_once {
            reported = vec![latest];
        }
        self.acks.reports.extend(reported.into_iter().map(|packet| (time, packet)));
        self.acks.sample(time.saturating_sub(self.packets[latest].time));
    }

    /// Marks units from `first` to `end` as acknowledged. Adds the packets of those sent only once to `reported`.
    fn acknowledge(&mut self, time: Duration, first: u64, end: u64, reported: &mut Vec<usize>) {
        // A unit that begins below and ends within is a part of what an earlier ACK covered.
        let below = self.units.range(..first).next_back().map(|(&start, _)| start);
        for (_, unit) in self.units.range_mut(below.unwrap_or(first)..end) {
            if unit.end <= end && unit.end > first && unit.acked.is_none() {
                unit.acked = Some(time);
                if unit.sent.len() == 1 {
                    reported.push(unit.sent[0].packet);
                }
            }
        }
    }

    /// Records that the sender has given up everything below `end`.
    pub(super) fn on_abandoned(&mut self, end: u64) {
        for (_, unit) in self.units.range_mut(self.acks.cumulative..end) {
            unit.is_abandoned |= unit.acked.is_none();
        }
    }

    /// Ends the analysis of packets.
    pub(super) fn finish(&mut self) {
        self.acks.end_series();
        self.arrivals.settle(&mut self.packets, &mut self.units);
    }
}

/// The times of a retransmission, and of the transmission before it.
#[derive(Clone, Copy)]
struct Resent {
    now: Duration,
    before: Duration,
}

impl Acks {
    fn end_series(&mut self) {
        if self.present_series > 0 {
            self.series[(self.present_series - 1).min(2) as usize] += 1;
        }
        self.present_series = 0;
    }

    fn sample(&mut self, rtt: Duration) {
        self.rtt.record(rtt);
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
    }

    /// Why a unit is sent again.
    fn cause(
        &self,
        start: u64,
        unit: &Unit,
        Resent { now, before }: Resent,
        has_new: bool,
        recoveries: &Recoveries,
    ) -> Cause {
        if self.is_window_closed {
            return Cause::WindowProbe;
        }
        match self.reports_of(start, unit, before) {
            0 if has_new => Cause::Bundled,
            // A timeout concerns everything outstanding (RFC 9260 §6.3.3).
            0 if recoveries.timer.is_some_and(|it| it.concerns(start, unit)) => Cause::Timer,
            // After a partial ACK (RFC 6582 §3.2), or what no ACK has reported (RFC 6675 §4, NextSeg).
            0 if unit.part.is_none()
                && recoveries
                    .fast
                    .is_some_and(|it| unit.last().packet < it.packet || start >= it.point) =>
            {
                Cause::Fast
            }
            0 if self.rtt_min.is_some_and(|rtt| now.saturating_sub(before) < rtt) => Cause::Copy,
            0 => Cause::Timer,
            1 | 2 => Cause::Early,
            _ => Cause::Fast,
        }
    }

    /// The number of reports, up to three, of data sent after the unit was last sent, at `before`.
    fn reports_of(&self, start: u64, unit: &Unit, before: Duration) -> usize {
        const ENOUGH: usize = 3;
        let last = unit.last().packet;
        let until = unit.acked.unwrap_or(Duration::MAX);
        let recent = self.reports.iter().rev().take_while(|report| report.0 >= before);
        let reports =
            recent.filter(|report| report.1 > last && report.0 < until).take(ENOUGH).count();
        if self.has_sack {
            return reports;
        }
        let recent = self.bare.iter().rev().take_while(|report| report.0 >= before);
        recent.filter(|report| report.1 == start).take(ENOUGH).count()
    }
}
