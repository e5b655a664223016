//! The state that the endpoint has for an association, in addition to that of the protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_sctp::{AssociationStatistics, CloseReason, InboundMessage};

use crate::association::Cell;
use crate::event::EventQueue;

/// One association.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) cell: Arc<Cell>,
    /// `None` while the peer has not answered.
    pub(crate) established: Option<Established>,
    /// Why the association ended; `None` before that.
    pub(crate) closed: Option<CloseReason>,
    /// The last statistics, once it has ended.
    pub(crate) statistics: Option<Box<AssociationStatistics>>,
    pub(crate) events: EventQueue,
    /// Whether the last handle was dropped: received messages are then discarded.
    pub(crate) is_orphaned: bool,
    pub(crate) recipients: Recipients,
}

/// The recipients of messages: a reader gets those of its stream, `recv` all others.
#[derive(Debug, Default)]
pub(crate) struct Recipients {
    /// The stream of each reader.
    readers: Vec<u16>,
    /// The next message, if the task that received it was not its recipient.
    head: Option<InboundMessage>,
}

impl Recipients {
    pub(crate) fn add_reader(&mut self, stream: u16) {
        self.readers.push(stream);
    }

    pub(crate) fn remove_reader(&mut self, stream: u16) {
        if let Some(place) = self.readers.iter().position(|&reader| reader == stream) {
            self.readers.swap_remove(place);
        }
    }

    pub(crate) fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    pub(crate) fn take_head(&mut self) -> Option<InboundMessage> {
        self.head.take()
    }

    /// Returns the message if it is for this recipient: the reader of `stream` or, with `None`, `recv`. Otherwise it
    /// stays the next message.
    pub(crate) fn take_if_for(
        &mut self,
        stream: Option<u16>,
        message: InboundMessage,
    ) -> Option<InboundMessage> {
        let reader = self.readers.contains(&message.stream).then_some(message.stream);
        if reader == stream {
            return Some(message);
        }
        self.head = Some(message);
        None
    }
}

/// Values of an association that do not change once it is established.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Established {
    pub(crate) peer: SocketAddr,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    #[cfg(feature = "dtls")]
    pub(crate) fingerprint: Option<rexmit_dtls::Fingerprint>,
}

impl Entry {
    pub(crate) fn new(cell: Arc<Cell>, established: Option<Established>) -> Self {
        let events = EventQueue::default();
        let recipients = Recipients::default();
        Self {
            cell,
            established,
            closed: None,
            statistics: None,
            events,
            is_orphaned: false,
            recipients,
        }
    }
}
