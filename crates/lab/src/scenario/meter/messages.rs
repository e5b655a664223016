//! The latency of messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::RateMeter;
use crate::hosts::{Counter, Gauge, ThinRecord};
use crate::measure::LatencyDistribution;
use crate::scenario::{Scenario, ThinFlow};

/// Measures the messages of a thin flow.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct MessageMeter {
    /// Time from the intended sending to the delivery to the application.
    pub(in crate::scenario) latency: LatencyDistribution,
    /// Time from the intended sending to the arrival at the transport.
    pub(in crate::scenario) transport: LatencyDistribution,
    /// As `transport`, weighted by bytes.
    pub(in crate::scenario) bytes: LatencyDistribution,
    /// Latency limits, and the numbers of messages that exceed them: at the application, and at the
    /// transport.
    pub(in crate::scenario) late: Vec<(Duration, [u64; 2])>,
    pub(in crate::scenario) goodput: RateMeter,
    pub(in crate::scenario) messages: u64,
    pub(in crate::scenario) undelivered: u64,
    pub(in crate::scenario) payload_bytes: u64,
    /// The records of all messages, if requested.
    pub(in crate::scenario) rows: Option<Vec<ThinRecord>>,
}

impl MessageMeter {
    pub(in crate::scenario) fn new(scenario: &Scenario, flow: &ThinFlow) -> Self {
        let goodput = scenario.rate_meter(flow.start.as_ref());
        Self {
            latency: LatencyDistribution::new(),
            transport: LatencyDistribution::new(),
            bytes: LatencyDistribution::new(),
            late: flow.late.iter().map(|bound| (***bound, [0; 2])).collect(),
            goodput,
            messages: 0,
            undelivered: 0,
            payload_bytes: 0,
            rows: scenario.rows.then(Vec::new),
        }
    }

    fn add(&mut self, message: &ThinRecord) {
        let since = |at: Option<_>| at.map(|at| at - message.intended);
        let (delivered, arrived) = (since(message.delivered), since(message.arrived));
        if let Some(latency) = delivered {
            self.latency.record(latency);
        }
        if let Some(latency) = arrived {
            self.transport.record(latency);
            self.bytes.record_weighted(latency, u64::from(message.bytes));
        }
        for (bound, late) in &mut self.late {
            let is_late =
                |latency: Option<Duration>| latency.is_none_or(|latency| latency > *bound);
            late[0] += u64::from(is_late(delivered));
            late[1] += u64::from(is_late(arrived));
        }
        self.messages += 1;
        self.payload_bytes += u64::from(message.bytes);
        self.rows.iter_mut().for_each(|rows| rows.push(*message));
    }

    /// Adds the messages that were not delivered until the end.
    pub(in crate::scenario) fn finish(&mut self, undelivered: impl Iterator<Item = ThinRecord>) {
        for message in undelivered {
            self.add(&message);
            self.undelivered += 1;
        }
        self.goodput.finish();
        self.rows.iter_mut().for_each(|rows| rows.sort_unstable_by_key(|row| row.number));
    }
}

/// A meter shared by several connections.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct SharedMeter(Arc<Mutex<MessageMeter>>);

impl SharedMeter {
    pub(in crate::scenario) fn new(meter: MessageMeter) -> Self {
        Self(Arc::new(Mutex::new(meter)))
    }

    /// The measurements so far.
    pub(in crate::scenario) fn meter(&self) -> MessageMeter {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, MessageMeter> {
        // A panic elsewhere ends the run; nothing is read from it then.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gauge for SharedMeter {
    fn on_delivered(&mut self, message: &ThinRecord) {
        self.lock().on_delivered(message);
    }
}

impl Gauge for MessageMeter {
    fn on_delivered(&mut self, message: &ThinRecord) {
        self.add(message);
        if let Some(at) = message.delivered {
            self.goodput.add(at, u64::from(message.bytes));
        }
    }
}
