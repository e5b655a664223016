//! The application of the endpoint under test.

use rexmit_sctp::{AssociationStatistics, MessageId, OutboundMessage, SendError};

use super::{PacketScript, Script};

impl Script {
    /// Sends an ordered message on stream 0.
    #[track_caller]
    pub fn send(&mut self, payload: &'static [u8]) -> MessageId {
        self.try_send(OutboundMessage::new(0, payload)).expect("the message is accepted")
    }

    /// Sends any message.
    pub fn try_send(&mut self, message: OutboundMessage) -> Result<MessageId, SendError> {
        self.endpoint.send(self.run.now, self.id(), message)
    }

    /// The payload of the next message, if there is one.
    pub fn receive(&mut self) -> Option<bytes::Bytes> {
        self.endpoint.receive(self.run.now, self.id()).map(|message| message.payload)
    }

    /// Shuts the association down.
    pub fn shutdown(&mut self) {
        self.endpoint.shutdown(self.run.now, self.id());
    }

    /// Aborts the association.
    pub fn abort(&mut self, reason: &[u8]) {
        self.endpoint.abort(self.run.now, self.id(), reason);
    }

    /// Resets outgoing streams.
    #[track_caller]
    pub fn reset(&mut self, streams: &[u16]) {
        let id = self.id();
        self.endpoint.reset_streams(self.run.now, id, streams).expect("the reset is begun");
    }

    /// The counters of the association.
    #[track_caller]
    pub fn statistics(&self) -> AssociationStatistics {
        self.endpoint.statistics(self.id()).expect("the association exists")
    }
}
