//! `SO_LINGER` with a time: calls of `close` that wait for the end of an association.

use std::collections::BTreeMap;

use rustix::event::{PollFd, PollFlags, poll};

use super::{Engine, EventFlags};

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
    fn wait(&mut self, socket: u64, token: u64) -> Option<u64> {
        let association = self.associations.get(&socket);
        match association.and_then(|association| self.sockets.get_mut(association)) {
            Some(lingering) => lingering.waiting.replace(token),
            None => Some(token),
        }
    }

    /// Removes the socket of an association that has ended; returns the request to be answered.
    fn end(&mut self, association: u32) -> Option<u64> {
        let Lingering { socket, waiting } = self.sockets.remove(&association)?;
        self.associations.remove(&socket);
        waiting
    }
}

impl Engine {
    /// Answers the request of a program that has closed a descriptor of this socket: when its association has ended, or
    /// at once if the program has other descriptors of it.
    pub(super) fn linger(&mut self, number: u64, token: u64) {
        if let Some(socket) = self.sockets.get(&number) {
            let mut pair = [PollFd::new(&socket.pair, PollFlags::empty())];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            let is_closed =
                poll(&mut pair, Some(&now)).is_ok() && pair[0].revents().contains(PollFlags::HUP);
            if is_closed {
                // A message for which SCTP has no room delays the end of the socket itself.
                if let Some(association) = socket.association
                    && self.associations.contains_key(&association)
                {
                    self.lingers.begin(number, association);
                }
                self.on_socket_ready(number, EventFlags::HUP);
                self.catch_up();
            }
        }
        if let Some(token) = self.lingers.wait(number, token) {
            self.requests.answer(token, &Ok(Vec::new()), None);
        }
    }

    /// Called when an association has ended.
    pub(super) fn end_linger(&mut self, association: u32) {
        if let Some(token) = self.lingers.end(association) {
            self.requests.answer(token, &Ok(Vec::new()), None);
        }
    }
}
