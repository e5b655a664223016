//! Records the sender's trace, up to a limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, TraceSink};

/// Default limit of events: about 60 MB, or an hour at a hundred packets per second.
pub const DEFAULT_EVENT_LIMIT: usize = 1_000_000;

/// An event with its time and association.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedEvent {
    /// The time of the event on the driver's clock.
    pub at: Instant,
    /// The association, by its number in the endpoint.
    pub association: u32,
    /// The event.
    pub event: TraceEvent,
}

/// The trace of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The events in the order of time, up to the recorder's limit.
    pub events: Vec<TimedEvent>,
    /// Number of events after the limit, which were dropped.
    pub dropped_events: u64,
}

/// A handle on a recording; its [`sink`](Self::sink) is passed to the endpoint.
///
/// ```
/// use rexmit_core::{Instant, trace::TraceEvent};
/// use rexmit_lab::measure::Recorder;
/// let recorder = Recorder::default();
/// let mut sink = recorder.sink(); // endpoint.set_trace(Some(recorder.sink()))
/// sink.record(Instant::ZERO, 0, &TraceEvent::PacketSpurious { packet: 1 });
/// assert_eq!(recorder.take().events.len(), 1);
/// ```
#[derive(Debug)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    limit: usize,
}

struct Sink {
    recording: Arc<Mutex<Recording>>,
    limit: usize,
}

impl Recorder {
    /// A recorder that keeps at most `limit` events.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { recording: Arc::default(), limit }
    }

    /// A sink for one endpoint. Several endpoints may share a recorder if their association numbers
    /// differ.
    #[must_use]
    pub fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(Sink { recording: Arc::clone(&self.recording), limit: self.limit })
    }

    /// Returns the recording, and begins a new one.
    #[must_use]
    pub fn take(&self) -> Recording {
        std::mem::take(&mut *lock(&self.recording))
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(DEFAULT_EVENT_LIMIT)
    }
}

impl TraceSink for Sink {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        // Nothing that reads a recording needs the packets' lengths, and they would fill it.
        if matches!(event, TraceEvent::Transmitted { .. } | TraceEvent::Arrived { .. }) {
            return;
        }
        let mut recording = lock(&self.recording);
        if recording.events.len() < self.limit {
            recording.events.push(TimedEvent { at: now, association, event: event.clone() });
        } else {
            recording.dropped_events += 1;
        }
    }
}

fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    // Every change is complete when the lock is released, even by a panic elsewhere.
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_beyond_the_limit_are_counted_and_not_kept() {
        let recorder = Recorder::new(2);
        let mut sink = recorder.sink();
        for packet in 0..5 {
            sink.record(Instant::from_millis(packet), 3, &TraceEvent::PacketSpurious { packet });
        }
        let recording = recorder.take();
        assert_eq!(recording.dropped_events, 3);
        let kept: Vec<_> = recording.events.iter().map(|e| (e.at, e.association)).collect();
        assert_eq!(kept, [(Instant::ZERO, 3), (Instant::from_millis(1), 3)]);
        assert!(recorder.take().events.is_empty());
    }
}
