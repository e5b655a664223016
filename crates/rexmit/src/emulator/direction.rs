//! One direction of the emulated link, with the packets on it.

use rexmit_core::{Instant, Seed};
use rexmit_netsim::capture::loss_comment;
use rexmit_netsim::path::{Arrival, ConfigError, Fate, PathConfig, PathModel, Pipe};

use super::statistics::DirectionStatistics;

/// The comment in captures on a packet that [`Direction::offer`] dropped for lack of room.
const OVERFLOWED: &str = "dropped by the emulator: too many packets under way";

/// The direction of a packet: the number of its interface in captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    /// From a client to the server, from the near device to the far one.
    Forward = 0,
    /// From the server to a client, from the far device to the near one.
    Backward = 1,
}

/// A packet on the path, with data that the link attached to it.
#[derive(Clone, Debug)]
pub(super) struct Packet<T> {
    pub(super) tag: T,
    pub(super) bytes: Vec<u8>,
}

/// The path, and counts of packets dropped outside its model.
#[derive(Debug)]
pub(super) struct Direction<T> {
    pipe: Pipe<Packet<T>>,
    max_under_way: usize,
    latest_offer: Instant,
    overflowed: u64,
    unsent: u64,
}

impl<T: Clone> Direction<T> {
    pub(super) fn new(
        config: &PathConfig,
        seed: &Seed,
        max_under_way: usize,
    ) -> Result<Self, ConfigError> {
        let pipe = Pipe::new(PathModel::new(config.clone(), seed)?);
        Ok(Self { pipe, max_under_way, latest_offer: Instant::ZERO, overflowed: 0, unsent: 0 })
    }

    /// Passes a packet to the path at `arrival`. Returns the cause if the packet is dropped.
    pub(super) fn offer(&mut self, arrival: Instant, packet: Packet<T>) -> Option<&'static str> {
        if self.pipe.in_flight() >= self.max_under_way {
            self.overflowed += 1;
            return Some(OVERFLOWED);
        }
        // Time stamps of different sockets are not read in ascending order, which the path requires.
        self.latest_offer = self.latest_offer.max(arrival);
        match self.pipe.offer(self.latest_offer, packet.bytes.len(), packet) {
            Fate::Lost(cause) => Some(loss_comment(cause)),
            Fate::Passed | Fate::Held => None,
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.pipe.next_arrival()
    }

    /// The next packet that is due, corrupted if the path says so.
    pub(super) fn poll_arrival(&mut self, now: Instant) -> Option<Arrival<Packet<T>>> {
        let mut arrival = self.pipe.poll_arrival(now)?;
        if let Some(corruption) = arrival.corruption {
            corruption.apply(&mut arrival.packet.bytes);
        }
        Some(arrival)
    }

    /// Called when a packet delivered by the path could not be sent.
    pub(super) fn on_unsent(&mut self) {
        self.unsent += 1;
    }

    pub(super) fn statistics(&self) -> DirectionStatistics {
        DirectionStatistics {
            path: *self.pipe.model().stats(),
            arrivals: *self.pipe.arrivals(),
            overflowed: self.overflowed,
            unsent: self.unsent,
        }
    }
}
