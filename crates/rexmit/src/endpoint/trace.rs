//! Trace events of an endpoint with several shards, in one sink.
//!
//! Shards work at the same time, and a sink may combine the events of one packet. So each shard keeps the events of a turn, and
//! passes them to the sink at the end of the turn, under one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, TraceSink};

/// The sink that all shards have in common.
pub(super) type SharedSink = Arc<Mutex<Box<dyn TraceSink>>>;

/// The trace of one shard: the events of its turn, and the sink that it has in common with the others.
pub(super) struct ShardTrace {
    turn: Turn,
    sink: SharedSink,
}

impl ShardTrace {
    pub(super) fn new(sink: &SharedSink) -> Self {
        Self { turn: Turn::default(), sink: Arc::clone(sink) }
    }

    /// The sink of the shard's protocol.
    pub(super) fn of_turn(&self) -> Box<dyn TraceSink> {
        Box::new(self.turn.clone())
    }

    /// Passes the events of the turn to the sink, with the `number` that an association has in the endpoint.
    pub(super) fn end_turn(&self, number: impl Fn(u32) -> u32) {
        let mut events = lock(&self.turn.0);
        if events.is_empty() {
            return;
        }
        let mut sink = lock(&self.sink);
        for (now, association, event) in events.drain(..) {
            sink.record(now, number(association), &event);
        }
    }
}

/// The events of a turn, in their order.
#[derive(Clone, Default)]
struct Turn(Arc<Mutex<Vec<(Instant, u32, TraceEvent)>>>);

impl TraceSink for Turn {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        lock(&self.0).push((now, association, event.clone()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::handover::Member;
    use super::super::shards::Steering;
    use super::*;

    #[derive(Clone, Default)]
    struct Numbers(Arc<Mutex<Vec<u32>>>);

    impl TraceSink for Numbers {
        fn record(&mut self, _: Instant, association: u32, _: &TraceEvent) {
            self.0.lock().unwrap().push(association);
        }
    }

    #[test]
    fn the_events_of_a_turn_are_together() {
        let numbers = Numbers::default();
        let sink: SharedSink = Arc::new(Mutex::new(Box::new(numbers.clone())));
        let mut members = Member::all(Steering::new(2, true).unwrap());
        let turns = members.iter_mut().filter_map(|it| it.set_trace(Some(&sink)));
        let mut turns: Vec<_> = turns.collect();
        let event = TraceEvent::State { state: "ESTABLISHED" };
        for _ in 0..2 {
            turns.iter_mut().for_each(|turn| turn.record(Instant::ZERO, 3, &event));
        }
        assert!(numbers.0.lock().unwrap().is_empty());
        members.iter().for_each(Member::end_turn);
        members.iter().for_each(Member::end_turn);
        assert_eq!(*numbers.0.lock().unwrap(), [6, 6, 7, 7]);
    }
}
