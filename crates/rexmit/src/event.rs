//! What an application is told about an association while it lasts, in a queue that stays small
//! although nobody may be reading it.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rexmit_sctp::{
    self as sctp, AddressChange, CloseReason, FailReason, MessageId, OutboundMessage, PathState,
};

/// Events other than failures that wait to be read, per association. More are [`Event::Missed`].
pub const MAX_EVENTS: usize = 1024;

/// Memory of failed messages that wait to be read, per association, in bytes. More are
/// [`Event::Missed`]. It holds what a send buffer of the default size held, unless its messages
/// were tiny.
pub const MAX_FAILED_BYTES: usize = 4 << 20;

/// What happened to an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The last part of the message has left for the first time. Only with
    /// [`report_sent`](sctp::AssociationConfig::report_sent).
    MessageSent(MessageId),
    /// The peer has acknowledged all of the message. Only with
    /// [`report_acknowledged`](sctp::AssociationConfig::report_acknowledged).
    MessageAcknowledged(MessageId),
    /// The message will not be delivered, or it is not known whether it was.
    MessageFailed {
        /// Which.
        id: MessageId,
        /// Why.
        reason: FailReason,
        /// Whether a part of it has left.
        was_begun: bool,
        /// As it was given.
        message: OutboundMessage,
    },
    /// The peer takes no more messages; those on the way are still delivered.
    PeerShutdown,
    /// The peer has started anew: what was not acknowledged has failed.
    PeerRestarted,
    /// Outgoing streams were reset as asked for (empty: all), or the peer refused.
    StreamsReset {
        /// The streams.
        streams: Vec<u16>,
        /// Whether the peer did it.
        performed: bool,
    },
    /// The peer has reset its outgoing streams, our incoming ones (empty: all).
    PeerResetStreams(Vec<u16>),
    /// A path was found to work, or not to work any more.
    PathStatus {
        /// Its number: its place in the statistics.
        path: u8,
        /// The peer's address.
        address: SocketAddr,
        /// Its state from now on.
        state: PathState,
    },
    /// New data take another path from now on.
    DataPathChanged {
        /// Its number.
        path: u8,
        /// The peer's address.
        address: SocketAddr,
    },
    /// The peer has another address.
    PeerAddressAdded {
        /// The number of its path.
        path: u8,
        /// The address.
        address: SocketAddr,
    },
    /// The peer has an address no more.
    PeerAddressDeleted {
        /// The number of its path, or of the first of them.
        path: u8,
        /// The address.
        address: SocketAddr,
    },
    /// The peer has answered a change of our addresses.
    AddressChanged {
        /// The change.
        change: AddressChange,
        /// The cause for which it was refused, if it was: a code of RFC 5061 §4.3 or RFC 9260 §3.3.10.
        refused: Option<u16>,
    },
    /// The peer reported an error: its cause code of RFC 9260 §3.3.10.
    PeerError(u16),
    /// Events that were not read in time, as numbers.
    Missed(Missed),
    /// The end. No event comes after it.
    Closed(CloseReason),
}

/// Events that found no room in the queue: more than [`MAX_EVENTS`], or failed messages of more
/// than [`MAX_FAILED_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Events, failed messages included.
    pub events: u64,
    /// Messages that failed.
    pub messages_failed: u64,
    /// Their payload bytes.
    pub failed_bytes: u64,
}

impl Event {
    /// `None` for what the endpoint itself acts upon.
    pub(crate) fn from_protocol(event: sctp::Event) -> Option<Self> {
        Some(match event {
            sctp::Event::Connected { .. } | sctp::Event::Readable | sctp::Event::Writable => {
                return None;
            }
            sctp::Event::MessageSent(id) => Self::MessageSent(id),
            sctp::Event::MessageAcknowledged(id) => Self::MessageAcknowledged(id),
            sctp::Event::MessageFailed { id, reason, was_begun, message } => {
                Self::MessageFailed { id, reason, was_begun, message }
            }
            sctp::Event::PeerShutdown => Self::PeerShutdown,
            sctp::Event::PeerRestarted => Self::PeerRestarted,
            sctp::Event::StreamsReset { streams, performed } => {
                Self::StreamsReset { streams, performed }
            }
            sctp::Event::PeerResetStreams(streams) => Self::PeerResetStreams(streams),
            sctp::Event::PathStatus { path, address, state } => {
                Self::PathStatus { path, address, state }
            }
            sctp::Event::DataPathChanged { path, address } => {
                Self::DataPathChanged { path, address }
            }
            sctp::Event::PeerAddressAdded { path, address } => {
                Self::PeerAddressAdded { path, address }
            }
            sctp::Event::PeerAddressDeleted { path, address } => {
                Self::PeerAddressDeleted { path, address }
            }
            sctp::Event::AddressChanged { change, refused } => {
                Self::AddressChanged { change, refused }
            }
            sctp::Event::PeerError(cause) => Self::PeerError(cause),
            sctp::Event::Closed(reason) => Self::Closed(reason),
        })
    }

    /// Memory that a failed message keeps; zero for other events.
    fn failed_bytes(&self) -> usize {
        match self {
            Self::MessageFailed { message, .. } => size_of::<Self>() + message.payload.len(),
            _ => 0,
        }
    }
}

/// The events of one association that were not read yet.
///
/// What finds no room is counted in an [`Event::Missed`] at its place in the order. There is one
/// of these between two events at most, so they are bounded too.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    events: VecDeque<Event>,
    others: usize,
    failed_bytes: usize,
}

impl EventQueue {
    pub(crate) fn push(&mut self, event: Event) {
        let bytes = event.failed_bytes();
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
        let bytes = event.failed_bytes();
        self.failed_bytes -= bytes;
        self.others -= usize::from(bytes == 0 && !matches!(event, Event::Missed(_)));
        if self.events.is_empty() {
            self.events = VecDeque::new(); // Idle associations are many.
        }
        Some(event)
    }

    fn on_missed(&mut self, event: &Event) {
        if !matches!(self.events.back(), Some(Event::Missed(_))) {
            self.events.push_back(Event::Missed(Missed::default()));
        }
        let Some(Event::Missed(missed)) = self.events.back_mut() else { return };
        missed.events += 1;
        if let Event::MessageFailed { message, .. } = event {
            missed.messages_failed += 1;
            missed.failed_bytes += message.payload.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(id: u64, len: usize) -> Event {
        Event::MessageFailed {
            id: MessageId(id),
            reason: FailReason::Expired,
            was_begun: true,
            message: OutboundMessage::new(0, vec![0; len]),
        }
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
    fn events_that_nobody_reads_become_a_number_at_their_place() {
        let mut queue = EventQueue::default();
        (0..MAX_EVENTS as u64 + 5).for_each(|id| queue.push(Event::MessageSent(MessageId(id))));
        queue.push(failed(9, 10));
        queue.push(Event::PeerShutdown);
        queue.push(Event::Closed(CloseReason::Unreachable));
        let events = drain(&mut queue);
        assert_eq!(events[MAX_EVENTS], Event::Missed(Missed { events: 5, ..Missed::default() }));
        assert_eq!(events[MAX_EVENTS + 1], failed(9, 10));
        assert_eq!(
            events[MAX_EVENTS + 2],
            Event::Missed(Missed { events: 1, ..Missed::default() })
        );
        assert_eq!(events[MAX_EVENTS + 3], Event::Closed(CloseReason::Unreachable));
        assert_eq!(events.len(), MAX_EVENTS + 4);
        queue.push(Event::PeerShutdown);
        assert_eq!(queue.pop(), Some(Event::PeerShutdown));
    }

    #[test]
    fn memory_of_failed_messages_is_bounded_and_none_goes_untold() {
        let mut queue = EventQueue::default();
        let (count, len) = (100_000, 1000);
        (0..count).for_each(|id| queue.push(failed(id, len)));
        assert!(queue.failed_bytes <= MAX_FAILED_BYTES);
        let events = drain(&mut queue);
        let Some((Event::Missed(missed), told)) = events.split_last() else {
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
