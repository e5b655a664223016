//! Arrivals on all connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit::clock;
use rexmit_core::Instant;
use rexmit_lab::connections::Connections;
use rexmit_lab::measure::MessageRecord;
use rexmit_netsim::traffic::trace::Message;

use crate::realtime::records::Records;

/// A handle on the records of all connections, which their receivers share.
#[derive(Clone)]
pub(super) struct Arrivals(Arc<Mutex<State>>);

struct State {
    /// Of each connection, with times that count from when it stands: a receiver may hear of a
    /// message before the sender's program knows that the connection does.
    connections: Vec<Records>,
    /// The first promise that was broken.
    broken: Option<String>,
}

impl Arrivals {
    /// Nothing yet of the messages of `connections`.
    pub(super) fn of(connections: &Connections, unordered: bool) -> Self {
        Self::new(connections.flows.iter().map(|flow| &flow.messages[..]), unordered)
    }

    /// Nothing of the messages of each connection.
    fn new<'a>(flows: impl Iterator<Item = &'a [Message]>, unordered: bool) -> Self {
        let records = |(n, messages): (u32, &[Message])| {
            Records::new((n, 0), messages, Instant::ZERO, unordered)
        };
        let connections = (0..).zip(flows).map(records).collect();
        Self(Arc::new(Mutex::new(State { connections, broken: None })))
    }

    /// Message `number` of a connection has arrived.
    pub(super) fn on_arrival(&self, connection: usize, number: u32, payload: &[u8]) {
        let now = clock::now();
        let state = &mut *self.lock();
        let told = match state.connections.get_mut(connection) {
            Some(records) => records.on_arrival(now, number, payload).map(drop),
            None => {
                Err(format!("a message of connection {connection} arrived, which there is not"))
            }
        };
        if let Err(what) = told {
            state.broken.get_or_insert(what);
        }
    }

    /// Whether all messages of a connection have arrived; or nothing matters any more.
    pub(super) fn is_complete(&self, connection: usize) -> bool {
        let state = self.lock();
        state.broken.is_some() || state.connections[connection].is_complete()
    }

    /// All records; the connections stood from these times on.
    ///
    /// # Errors
    /// The promise that was broken, in words.
    pub(super) fn records(&self, starts: &[Instant]) -> Result<Vec<MessageRecord>, String> {
        let state = self.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        let since = |&start: &Instant| start - Instant::ZERO;
        let connections = state.connections.iter().zip(starts.iter().map(since));
        let records = connections.flat_map(|(records, since)| {
            let at = move |record: &MessageRecord| record.intended + since;
            records
                .all()
                .iter()
                .map(move |record| MessageRecord { intended: at(record), ..*record })
        });
        Ok(records.collect())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
