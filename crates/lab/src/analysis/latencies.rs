//! Latencies of the data of one direction.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::data::Data;
use super::unit::{Cause, Unit};
use crate::measure::{LatencyDistribution, LatencySummary};

/// Latencies from the first transmission, each byte counted once; `None` if nothing was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Latency {
    /// To the first ACK that covers the range, at the place of capture.
    pub ack: Option<LatencySummary>,
    /// To the first arrival, if the receiver's packets were captured.
    pub arrival: Option<LatencySummary>,
    /// To the delivery: after all bytes before it (TCP), after the ordered messages before it in its stream, and as a
    /// complete message (SCTP); if the receiver's packets were captured.
    pub delivery: Option<LatencySummary>,
}

/// Latencies of the ranges with one number of retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LatencyByNumber {
    /// Retransmissions, without redundant copies.
    pub retransmissions: usize,
    /// Ranges.
    pub ranges: u64,
    /// The bytes of these ranges.
    pub bytes: u64,
    /// Latency per byte to the ACK.
    pub ack: Option<LatencySummary>,
}

/// A range.
#[derive(Clone, PartialEq, Debug)]
pub struct RangeRow {
    /// The number of its first byte or of its chunk, relative to the first in the capture.
    pub first: u64,
    /// Bytes of the range.
    pub bytes: u32,
    /// When the range was first sent, in seconds since the first packet of the connection.
    pub sent_s: f64,
    /// From the first transmission to the first ACK that covers the range, in milliseconds.
    pub ack_ms: Option<f64>,
    /// From the first transmission to the first arrival, in milliseconds, if the receiver's packets were captured.
    pub arrival_ms: Option<f64>,
    /// The causes of its repeated transmissions, in order.
    pub repeated: Vec<Cause>,
}

/// The largest number of retransmissions with an entry of its own.
const LAST: usize = 5;

pub(super) struct Latencies {
    pub(super) latency: Latency,
    pub(super) by_number: Vec<LatencyByNumber>,
    pub(super) ranges: Vec<RangeRow>,
}

impl Latencies {
    /// The latencies of `data`, of a connection whose first packet was captured at `begin`.
    pub(super) fn of(data: &Data, begin: Duration) -> Self {
        let mut by_number: Vec<(u64, LatencyDistribution)> = vec![Default::default(); LAST + 1];
        let [mut ack, mut arrival] = [(); 2].map(|()| LatencyDistribution::new());
        let mut ranges = Vec::with_capacity(data.units.len());
        let base = data.units.keys().next().copied().unwrap_or_default();
        for (&start, unit) in &data.units {
            let row = row(data, unit, start - base, begin);
            let bytes = u64::from(unit.bytes);
            let number = &mut by_number[unit.retransmissions().min(LAST)];
            number.0 += 1;
            let since = |end: Duration| end.saturating_sub(data.packets[unit.sent[0].packet].time);
            // The first transmission of late data was not captured.
            if !unit.is_late && !unit.is_abandoned {
                if let Some(acked) = unit.acked {
                    ack.record_weighted(since(acked), bytes);
                    number.1.record_weighted(since(acked), bytes);
                }
                if let Some((arrived, _)) = unit.arrived {
                    arrival.record_weighted(since(arrived), bytes);
                }
            }
            ranges.push(row);
        }
        let entry = |(retransmissions, (ranges, ack)): (usize, (u64, LatencyDistribution))| {
            let bytes = ack.count();
            LatencyByNumber { retransmissions, ranges, bytes, ack: ack.summary() }
        };
        let latency = Latency {
            ack: ack.summary(),
            arrival: arrival.summary(),
            delivery: deliveries(data).summary(),
        };
        Self { latency, by_number: by_number.into_iter().enumerate().map(entry).collect(), ranges }
    }
}

fn row(data: &Data, unit: &Unit, first: u64, begin: Duration) -> RangeRow {
    let sent = data.packets[unit.sent[0].packet].time;
    let ms = |end: Duration| end.saturating_sub(sent).as_secs_f64() * 1e3;
    RangeRow {
        first,
        bytes: unit.bytes,
        sent_s: sent.saturating_sub(begin).as_secs_f64(),
        ack_ms: unit.acked.filter(|_| !unit.is_abandoned).map(ms),
        arrival_ms: unit.arrived.map(|(arrived, _)| ms(arrived)),
        repeated: unit.sent.iter().filter_map(|it| it.cause).collect(),
    }
}

/// A message, or the bytes of one range of TCP, and its delivery to the application.
struct Message {
    sent: Duration,
    arrived: Option<Duration>,
    bytes: u64,
    is_late: bool,
}

fn deliveries(data: &Data) -> LatencyDistribution {
    let mut deliveries = LatencyDistribution::new();
    // The delivery of the last ordered message of each stream; `None` after one that never arrived.
    let mut streams: HashMap<u16, Option<Duration>> = HashMap::new();
    let mut message: Option<Message> = None;
    let mut next = None;
    for (&start, unit) in &data.units {
        let (stream, is_unordered) =
            unit.part.map_or((0, false), |it| (it.stream, it.is_unordered));
        let (is_first, is_last) = unit.part.map_or((true, true), |it| (it.is_first, it.is_last));
        let mut whole = message.take().filter(|_| !is_first && next == Some(start));
        next = Some(unit.end);
        if let Some(parts) = &mut whole {
            parts.arrived = parts.arrived.zip(unit.arrived).map(|(all, own)| all.max(own.0));
            parts.bytes += u64::from(unit.bytes);
        } else if is_first {
            whole = Some(Message {
                sent: data.packets[unit.sent[0].packet].time,
                arrived: unit.arrived.map(|arrived| arrived.0),
                bytes: u64::from(unit.bytes),
                is_late: unit.is_late,
            });
        }
        if !is_last || unit.is_abandoned {
            message = whole.filter(|_| !unit.is_abandoned);
            continue;
        }
        let Some(whole) = whole else { continue };
        let before = streams.entry(stream).or_insert(Some(Duration::ZERO));
        let delivered = match (is_unordered, whole.arrived) {
            (true, arrived) => arrived,
            (false, arrived) => {
                *before = before.zip(arrived).map(|(before, own)| before.max(own));
                *before
            }
        };
        if let Some(delivered) = delivered.filter(|_| !whole.is_late) {
            deliveries.record_weighted(delivered.saturating_sub(whole.sent), whole.bytes);
        }
    }
    deliveries
}
