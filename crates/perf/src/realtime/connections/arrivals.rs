//! Records of the arrivals on all connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit::clock;
use rexmit_core::Instant;
use rexmit_lab::connections::Connections;
use rexmit_lab::measure::MessageRecord;
use rexmit_netsim::traffic::trace::Message;

use crate::realtime::records::Records;

/// A handle on the records of all connections, shared by their receivers.
#[derive(Clone)]
pub(super) struct Arrivals(Arc<Mutex<State>>);

struct State {
    /// The records of each connection. Times count from the connection's establishment, because a
    /// receiver may get a message before the sending task has seen that the connection is
    /// established.
    connections: Vec<Records>,
    /// The first check that failed.
    broken: Option<String>,
}

impl Arrivals {
    /// Records of `connections` without arrivals.
    pub(super) fn of(connections: &Connections, unordered: bool) -> Self {
        Self::new(connections.flows.iter().map(|flow| &flow.messages[..]), unordered)
    }

    /// Records of the messages of each connection, without arrivals.
    fn new<'a>(flows: impl Iterator<Item = &'a [Message]>, unordered: bool) -> Self {
        let records = |(n, messages): (u32, &[Message])| {
            Records::new((n, 0), messages, Instant::ZERO, unordered)
        };
        let connections = (0..).zip(flows).map(records).collect();
        Self(Arc::new(Mutex::new(State { connections, broken: None })))
    }

    /// Records that message `number` of a connection has arrived.
    pub(super) fn on_arrival(&self, connection: usize, number: u32, payload: &[u8]) {
        let now = clock::now();
        let state = &mut *self.lock();
        let told = match state.connections.get_mut(connection) {
            Some(records) => records.on_arrival(now, number, payload).map(drop),
            None => {
                Err(format!("a message of connection {connection} arrived, which does not exist"))
            }
        };
        if let Err(what) = told {
            state.broken.get_or_insert(what);
        }
    }

    /// Whether all messages of a connection have arrived, or a check has failed, which ends the
    /// run.
    pub(super) fn is_complete(&self, connection: usize) -> bool {
        let state = self.lock();
        state.broken.is_some() || state.connections[connection].is_complete()
    }

    /// All records; `starts` are the times at which the connections were established.
    ///
    /// # Errors
    /// A description of the check that failed.
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
