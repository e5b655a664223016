//! The packets and acknowledgements of one direction as the events of a trace, for graphs.

use std::collections::BTreeMap;
use std::time::Duration;

use rexmit_core::trace::{SendCause, SentRun, TraceEvent};
use rexmit_core::{Instant, RangeSet};

use super::data::Data;
use super::unit::{Cause, Unit};

/// Data beyond the cumulative acknowledgement that an event shows, in ranges.
const MAX_GAPS: usize = 64;

/// Packets sent and acknowledgements received by the sender of one direction, since the capture began.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// The name of the direction.
    pub name: String,
    /// Packets with data and acknowledgements, in the order of time. SCTP has its TSNs, TCP the numbers of the ranges of bytes that
    /// were always sent together.
    pub events: Vec<(Instant, TraceEvent)>,
}

const fn cause(cause: Option<Cause>) -> SendCause {
    match cause {
        None => SendCause::New,
        Some(Cause::Fast) => SendCause::FastRetransmit,
        Some(Cause::Early) => SendCause::Early,
        Some(Cause::Timer) => SendCause::Timeout,
        Some(Cause::WindowProbe) => SendCause::WindowProbe,
        Some(Cause::Bundled | Cause::Copy) => SendCause::Redundant,
    }
}

/// The events of `data`, at times since `begin`.
pub(super) fn events(data: &Data, begin: Duration) -> Vec<(Instant, TraceEvent)> {
    let at = |time: Duration| Instant::ZERO + time.saturating_sub(begin);
    let numbered = || {
        // 0 is before the first.
        let number = |(n, (&start, unit)): (u64, (&u64, &_))| number(n + 1, start, unit);
        (0..).zip(&data.units).map(number).zip(data.units.values())
    };
    let mut packets: BTreeMap<usize, (u32, Vec<SentRun>)> = BTreeMap::new();
    let mut acked = Vec::new();
    for (number, unit) in numbered() {
        for sent in &unit.sent {
            let (bytes, runs) = packets.entry(sent.packet).or_default();
            let cause = cause(sent.cause);
            *bytes = bytes.saturating_add(unit.bytes);
            match runs.last_mut() {
                Some(run) if run.cause == cause && run.highest + 1 == number => {
                    run.highest = number;
                }
                _ => runs.push(SentRun::new(number, number, cause)),
            }
        }
        acked.extend(unit.acked.map(|time| (time, number)));
    }
    let mut events = Vec::new();
    for (packet, (bytes, runs)) in packets {
        let units = u16::try_from(runs.len()).unwrap_or(u16::MAX);
        let event = TraceEvent::PacketSent { packet: packet as u64, path: 0, units, bytes, runs };
        events.push((at(data.packets[packet].time), event));
    }
    acked.sort_unstable();
    let before = numbered().next().map_or(0, |(number, _)| number - 1);
    events.extend(acknowledgements(&acked, before).map(|(time, event)| (at(time), event)));
    events.sort_by_key(|(at, _)| *at);
    events
}

const fn number(n: u64, start: u64, unit: &Unit) -> u64 {
    if unit.part.is_some() { start } else { n }
}

/// An acknowledgement for each time in `acked`, which has the numbers that were acknowledged then.
fn acknowledgements(
    acked: &[(Duration, u64)],
    mut cumulative: u64,
) -> impl Iterator<Item = (Duration, TraceEvent)> {
    let mut beyond = RangeSet::default();
    acked.chunk_by(|one, next| one.0 == next.0).map(move |together| {
        for &(_, number) in together {
            beyond.insert(number);
        }
        while beyond.first().is_some_and(|range| *range.start() == cumulative + 1) {
            cumulative = beyond.first().map_or(cumulative, |range| *range.end());
            beyond.remove_below(cumulative + 1);
        }
        let gaps = beyond.iter().take(MAX_GAPS).map(|range| (*range.start(), *range.end()));
        (together[0].0, TraceEvent::AckReceived { cumulative, gaps: gaps.collect() })
    })
}
