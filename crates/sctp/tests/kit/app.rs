//! The application of the endpoint under test.

use rexmit_core::Machine;
use rexmit_sctp::{
    AssociationId, AssociationStatistics, Event, MessageId, OutboundMessage, SendError,
};

use super::Script;

impl Script {
    /// The association of the script.
    #[track_caller]
    pub fn id(&self) -> AssociationId {
        self.id.expect("the association is known after `connect` or its first event")
    }

    /// Sends an ordered message on stream 0.
    #[track_caller]
    pub fn send(&mut self, payload: &'static [u8]) -> MessageId {
        self.try_send(OutboundMessage::new(0, payload)).expect("the message is accepted")
    }

    /// Sends any message.
    pub fn try_send(&mut self, message: OutboundMessage) -> Result<MessageId, SendError> {
        self.endpoint.send(self.now, self.id(), message)
    }

    /// The payload of the next message, if there is one.
    pub fn receive(&mut self) -> Option<bytes::Bytes> {
        self.endpoint.receive(self.now, self.id()).map(|message| message.payload)
    }

    /// Shuts the association down.
    pub fn shutdown(&mut self) {
        self.endpoint.shutdown(self.now, self.id());
    }

    /// Aborts the association.
    pub fn abort(&mut self, reason: &[u8]) {
        self.endpoint.abort(self.now, self.id(), reason);
    }

    /// Resets outgoing streams.
    #[track_caller]
    pub fn reset(&mut self, streams: &[u16]) {
        let id = self.id();
        self.endpoint.reset_streams(self.now, id, streams).expect("the reset is begun");
    }

    /// The counters of the association.
    #[track_caller]
    pub fn statistics(&self) -> AssociationStatistics {
        self.endpoint.statistics(self.id()).expect("the association exists")
    }

    /// The next event. [`Event::Closed`] must be the last of an association.
    pub fn next_event(&mut self) -> Option<Event> {
        self.collect_events();
        self.events.pop_front()
    }

    /// All events that have not been taken.
    pub fn events(&mut self) -> Vec<Event> {
        self.collect_events();
        self.events.drain(..).collect()
    }

    fn collect_events(&mut self) {
        let mut is_closed = matches!(self.events.back(), Some(Event::Closed(_)));
        while let Some((id, event)) = self.endpoint.poll_event() {
            is_closed &= self.id == Some(id);
            assert!(!is_closed, "{event:?} came after Closed");
            is_closed = matches!(event, Event::Closed(_));
            self.id = Some(id);
            self.events.push_back(event);
        }
    }
}
