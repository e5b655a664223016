//! `SO_LINGER` with a time: calls of `close` that wait for the end of an association.

use std::collections::BTreeMap;

/// The closed sockets whose associations go on, of those that linger.
#[derive(Debug, Default)]
pub(super) struct Lingers {
    associations: BTreeMap<u64, u32>,
    sockets: BTreeMap<u32, Lingering>,
}

/// A closed socket, and the request to be answered when its association has ended.
#[derive(Debug)]
struct Lingering {
    socket: u64,
    waiting: Option<u64>,
}

impl Lingers {
    /// Enters a closed socket whose association goes on.
    pub(super) fn begin(&mut self, socket: u64, association: u32) {
        self.associations.insert(socket, association);
        self.sockets.entry(association).or_insert(Lingering { socket, waiting: None });
    }

    /// Has a request wait; returns the one to be answered instead: this one if there is nothing to wait for, or one that
    /// waited before.
    pub(super) fn wait(&mut self, socket: u64, token: u64) -> Option<u64> {
        let association = self.associations.get(&socket);
        match association.and_then(|association| self.sockets.get_mut(association)) {
            Some(lingering) => lingering.waiting.replace(token),
            None => Some(token),
        }
    }

    /// Removes the socket of an association that has ended; returns the request to be answered.
    pub(super) fn end(&mut self, association: u32) -> Option<u64> {
        let Lingering { socket, waiting } = self.sockets.remove(&association)?;
        self.associations.remove(&socket);
        waiting
    }
}
