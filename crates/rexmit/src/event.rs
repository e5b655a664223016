//! Events of an association for the application, in a bounded queue, because an application may never read
//! them.

use std::collections::VecDeque;

pub use rexmit_sctp::{DroppedEvents, Event};

/// The most unread events of an association, failed messages not counted. Further ones are counted by
/// [`Event::EventsDropped`].
pub const MAX_EVENTS: usize = 1024;

/// The most memory for unread failed messages of an association, in bytes. Further ones are counted by
/// [`Event::EventsDropped`]. A full send buffer of the default size fits, unless its messages are tiny.
pub const MAX_FAILED_BYTES: usize = 4 << 20;

/// Memory that a failed message keeps; zero for other events.
fn failed_bytes(event: &Event) -> usize {
    match event {
        Event::MessageFailed { message, .. } => size_of::<Event>() + message.payload.len(),
        _ => 0,
    }
}

/// The events of one association that were not read yet.
///
/// Events beyond the limits are counted in an [`Event::EventsDropped`] at their position. There is at most one of these
/// between two other events, so that they are bounded, too.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    events: VecDeque<Event>,
    others: usize,
    failed_bytes: usize,
}

impl EventQueue {
    pub(crate) fn push(&mut self, event: Event) {
        let bytes = failed_bytes(&event);
        let has_room = match event {
            Event::Closed(_) => true, // The last one.
            _ if bytes > 0 => self.failed_bytes + bytes <= MAX_FAILED_BYTES,
            _ => self.others < MAX_EVENTS,
        };
        if has_room {
            self.failed_bytes += bytes;
            self.others += usize::from(bytes == 0);
            self.events.push_back(event);
        } else {
            self.on_missed(&event);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        let bytes = failed_bytes(&event);
        self.failed_bytes -= bytes;
        self.others -= usize::from(bytes == 0 && !matches!(event, Event::EventsDropped(_)));
        if self.events.is_empty() {
            self.events = VecDeque::new(); // Idle associations are many.
        }
        Some(event)
    }

    fn on_missed(&mut self, event: &Event) {
        if !matches!(self.events.back(), Some(Event::EventsDropped(_))) {
            self.events.push_back(Event::EventsDropped(DroppedEvents::default()));
        }
        let Some(Event::EventsDropped(missed)) = self.events.back_mut() else { return };
        missed.events += 1;
        if let Event::MessageFailed { message, .. } = event {
            missed.messages_failed += 1;
            missed.failed_bytes += message.payload.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use rexmit_sctp::{CloseReason, FailReason, MessageId, OutboundMessage};

    use super::*;

    fn failed(id: u64, len: usize) -> Event {
        Event::MessageFailed {
            id: MessageId(id),
            reason: FailReason::Expired,
            was_begun: true,
            message: OutboundMessage::new(0, vec![0; len]),
        }
    }

    fn missed(events: u64) -> Event {
        let mut missed = DroppedEvents::default();
        missed.events = events;
        Event::EventsDropped(missed)
    }

    fn drain(queue: &mut EventQueue) -> Vec<Event> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn events_come_out_in_order() {
        let mut queue = EventQueue::default();
        let events = [Event::PeerShutdown, failed(3, 10), Event::Closed(CloseReason::Shutdown)];
        events.iter().cloned().for_each(|event| queue.push(event));
        assert_eq!(drain(&mut queue), events);
        assert_eq!((queue.others, queue.failed_bytes), (0, 0));
    }

    #[test]
    fn unread_events_are_counted_at_their_position() {
        let mut queue = EventQueue::default();
        (0..MAX_EVENTS as u64 + 5).for_each(|id| queue.push(Event::MessageSent(MessageId(id))));
        queue.push(failed(9, 10));
        queue.push(Event::PeerShutdown);
        queue.push(Event::Closed(CloseReason::Unreachable));
        let events = drain(&mut queue);
        assert_eq!(events[MAX_EVENTS], missed(5));
        assert_eq!(events[MAX_EVENTS + 1], failed(9, 10));
        assert_eq!(events[MAX_EVENTS + 2], missed(1));
        assert_eq!(events[MAX_EVENTS + 3], Event::Closed(CloseReason::Unreachable));
        assert_eq!(events.len(), MAX_EVENTS + 4);
        queue.push(Event::PeerShutdown);
        assert_eq!(queue.pop(), Some(Event::PeerShutdown));
    }

    #[test]
    fn memory_of_failed_messages_is_bounded_and_every_failure_is_counted() {
        let mut queue = EventQueue::default();
        let (count, len) = (100_000, 1000);
        (0..count).for_each(|id| queue.push(failed(id, len)));
        assert!(queue.failed_bytes <= MAX_FAILED_BYTES);
        let events = drain(&mut queue);
        let Some((Event::EventsDropped(missed), told)) = events.split_last() else {
            panic!("nothing was missed");
        };
        assert_eq!(missed.messages_failed + told.len() as u64, count);
        assert_eq!(missed.failed_bytes, missed.messages_failed * len as u64);
        assert!(told.len() > 1000);
    }

    #[test]
    fn alternating_overflow_does_not_grow_the_queue() {
        let mut queue = EventQueue::default();
        for id in 0..10 * MAX_EVENTS as u64 {
            queue.push(Event::MessageSent(MessageId(id)));
            queue.push(failed(id, 10_000));
        }
        let bound = 2 * (MAX_EVENTS + MAX_FAILED_BYTES / 10_000) + 1;
        assert!(queue.events.len() <= bound, "{}", queue.events.len());
    }
}
