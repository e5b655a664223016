//! Measurements from the trace of a sender.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{SentRun, TraceEvent, TraceSink};

use super::{NthRetransmission, Thinned};
use crate::measure::LatencyDistribution;

/// The index of the path whose values over time are reported.
const FIRST: u8 = 0;

/// The measurements of a sender's trace.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct SenderTally {
    /// Size of a window with room for one packet but not for two.
    packet_bytes: u64,
    /// Expiries of the retransmission timer.
    pub(in crate::scenario) timeouts: u64,
    /// Number of reductions of the congestion window.
    pub(in crate::scenario) reductions: u64,
    /// Number of reductions of the congestion window to one packet.
    pub(in crate::scenario) collapses: u64,
    /// The congestion window of each path.
    cwnd_bytes: Vec<u64>,
    pub(in crate::scenario) rtt_samples: LatencyDistribution,
    pub(in crate::scenario) rto_samples: LatencyDistribution,
    pub(in crate::scenario) rtt: Thinned,
    pub(in crate::scenario) rto: Thinned,
    pub(in crate::scenario) cwnd: Thinned,
    pub(in crate::scenario) nth: NthRetransmission,
    /// The number of the first data unit.
    first_unit: Option<u64>,
    /// Transmission times of data units, by number from 1.
    pub(in crate::scenario) sequence: Thinned,
    pub(in crate::scenario) missing_reports: Thinned,
}

impl SenderTally {
    /// Adds the measurements of another connection. Series are those of the first one.
    pub(in crate::scenario) fn merge(&mut self, other: &Self) {
        self.timeouts += other.timeouts;
        self.reductions += other.reductions;
        self.collapses += other.collapses;
        self.rtt_samples.merge(&other.rtt_samples);
        self.rto_samples.merge(&other.rto_samples);
        self.rtt.or(&other.rtt);
        self.rto.or(&other.rto);
        self.cwnd.or(&other.cwnd);
        self.nth.merge(&other.nth);
        self.sequence.or(&other.sequence);
        self.missing_reports.or(&other.missing_reports);
    }

    fn on_event(&mut self, now: Instant, event: &TraceEvent) {
        match event {
            TraceEvent::RttSample { path, rtt, rto, .. } => {
                self.rtt_samples.record(*rtt);
                self.rto_samples.record(*rto);
                if *path == FIRST {
                    self.rtt.push(now, rtt.as_secs_f64() * 1e3);
                    self.rto.push(now, rto.as_secs_f64() * 1e3);
                }
            }
            TraceEvent::RetransmissionTimeout { path, rto } => {
                self.timeouts += 1;
                if *path == FIRST {
                    self.rto.push(now, rto.as_secs_f64() * 1e3);
                }
            }
            TraceEvent::Window { path, cwnd, .. } => {
                let paths = self.cwnd_bytes.len().max(usize::from(*path) + 1);
                self.cwnd_bytes.resize(paths, 0);
                let before = std::mem::replace(&mut self.cwnd_bytes[usize::from(*path)], *cwnd);
                if *cwnd != before && *path == FIRST {
                    self.cwnd.push(now, *cwnd as f64);
                }
                self.reductions += u64::from(*cwnd < before);
                self.collapses += u64::from(*cwnd < before && *cwnd <= self.packet_bytes);
            }
            TraceEvent::PacketSent { runs, .. } => {
                self.nth.on_sent(now, runs);
                self.on_sent(now, runs);
            }
            TraceEvent::LossThreshold { missing_reports, .. } => {
                self.missing_reports.push(now, f64::from(*missing_reports));
            }
            TraceEvent::AckReceived { cumulative, .. } => self.nth.on_acknowledged(*cumulative),
            _ => {}
        }
    }

    fn on_sent(&mut self, now: Instant, runs: &[SentRun]) {
        for unit in runs.iter().flat_map(|run| run.lowest..=run.highest) {
            let first = *self.first_unit.get_or_insert(unit);
            self.sequence.push(now, (unit + 1).saturating_sub(first) as f64);
        }
    }
}

/// Measures a sender's trace, for each of its connections separately.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct SenderTrace(Arc<Mutex<Connections>>);

/// The measurements of each connection, by its number in the trace.
#[derive(Debug)]
struct Connections {
    packet_bytes: u64,
    tallies: BTreeMap<u32, SenderTally>,
}

impl SenderTrace {
    /// A meter for a sender whose packets have at most `packet_bytes`, including transport headers.
    pub(in crate::scenario) fn new(packet_bytes: usize) -> Self {
        let tallies = BTreeMap::new();
        let connections = Connections { packet_bytes: packet_bytes as u64, tallies };
        Self(Arc::new(Mutex::new(connections)))
    }

    /// The sink for the endpoint.
    pub(in crate::scenario) fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(Sink(Arc::clone(&self.0)))
    }

    /// The measurements so far, over all connections.
    pub(in crate::scenario) fn tally(&self) -> SenderTally {
        let mut sum = SenderTally::default();
        lock(&self.0).tallies.values().for_each(|tally| sum.merge(tally));
        sum
    }
}

struct Sink(Arc<Mutex<Connections>>);

impl TraceSink for Sink {
    fn record(&mut self, now: Instant, connection: u32, event: &TraceEvent) {
        let Connections { packet_bytes, tallies } = &mut *lock(&self.0);
        let new = || SenderTally { packet_bytes: *packet_bytes, ..SenderTally::default() };
        tallies.entry(connection).or_insert_with(new).on_event(now, event);
    }
}

fn lock(connections: &Mutex<Connections>) -> MutexGuard<'_, Connections> {
    // Every change is complete when the lock is released, even by a panic elsewhere.
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}
