//! Messages of several chunks, of which at least one was sent: their content, in case they fail, and the TSNs of their
//! chunks.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::message::{MessageId, OutboundMessage};

/// A message of several chunks.
#[derive(Debug)]
pub(super) struct Divided {
    message: OutboundMessage,
    /// The TSNs of its chunks so far. Chunks of other messages are between them if messages are interleaved.
    runs: Vec<RangeInclusive<u64>>,
}

impl Divided {
    pub(super) fn into_message(self) -> OutboundMessage {
        self.message
    }

    /// The TSNs of the chunks that were sent.
    pub(super) fn tsns(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().cloned().flatten()
    }

    /// The TSN of the last chunk that was sent.
    pub(super) fn last_tsn(&self) -> Option<u64> {
        self.runs.last().map(|run| *run.end())
    }

    /// The TSN of the first chunk.
    pub(super) fn first_tsn(&self) -> Option<u64> {
        self.runs.first().map(|run| *run.start())
    }
}

/// The divided messages that are not completely acknowledged.
#[derive(Debug, Default)]
pub(super) struct DividedMessages(BTreeMap<MessageId, Divided>);

impl DividedMessages {
    /// Called when the first chunk of a message is sent as `tsn`.
    pub(super) fn begin(&mut self, id: MessageId, tsn: u64, message: OutboundMessage) {
        self.0.insert(id, Divided { message, runs: vec![tsn..=tsn] });
    }

    /// Called when a further chunk of a message is sent as `tsn`.
    pub(super) fn go_on(&mut self, id: MessageId, tsn: u64) {
        let Some(divided) = self.0.get_mut(&id) else { return };
        match divided.runs.last_mut() {
            Some(run) if run.end() + 1 == tsn => *run = *run.start()..=tsn,
            _ => divided.runs.push(tsn..=tsn),
        }
    }

    pub(super) fn of(&self, id: MessageId) -> Option<&Divided> {
        self.0.get(&id)
    }

    /// Stops tracking the message, and returns what was recorded of it.
    pub(super) fn remove(&mut self, id: MessageId) -> Option<Divided> {
        self.0.remove(&id)
    }

    /// Stops tracking all messages, and returns what was recorded of each.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (MessageId, Divided)> {
        std::mem::take(&mut self.0).into_iter()
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        if self.0.is_empty() {
            self.0.clear(); // Or it keeps a node.
        }
    }
}
