//! One direction of the emulated link, with the packets on it.

use std::collections::VecDeque;

use rexmit_core::{Ecn, Instant, Seed};
use rexmit_netsim::capture::loss_comment;
use rexmit_netsim::path::{
    Arrival, ConfigError, Fate, LossCause, Offered, PathConfig, PathModel, Pipe,
};

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

/// The link's data about a packet, with what the path needs to know of it.
pub(super) trait Tag: Clone {
    /// The ECN field of the packet.
    fn ecn(&self, packet: &[u8]) -> Ecn;

    /// The flow of the packet, as from [`flow_key`](rexmit_netsim::path::flow_key).
    fn flow(&self, packet: &[u8]) -> u64;

    /// Sets the ECN field to "congestion experienced".
    fn mark(&mut self, packet: &mut [u8]);
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
    /// Packets dropped from the queues of FQ-CoDel, until they are polled.
    dropped: VecDeque<(Packet<T>, LossCause)>,
    overflowed: u64,
    unsent: u64,
}

impl<T: Tag> Direction<T> {
    pub(super) fn new(
        config: &PathConfig,
        seed: &Seed,
        max_under_way: usize,
    ) -> Result<Self, ConfigError> {
        let pipe = Pipe::new(PathModel::new(config.clone(), seed)?);
        Ok(Self {
            pipe,
            max_under_way,
            latest_offer: Instant::ZERO,
            dropped: VecDeque::new(),
            overflowed: 0,
            unsent: 0,
        })
    }

    /// Passes a packet to the path at `arrival`. Returns the cause if the packet is dropped.
    pub(super) fn offer(&mut self, arrival: Instant, packet: Packet<T>) -> Option<&'static str> {
        if self.pipe.in_flight() >= self.max_under_way {
            self.overflowed += 1;
            return Some(OVERFLOWED);
        }
        // Time stamps of different sockets are not read in ascending order, which the path requires.
        self.latest_offer = self.latest_offer.max(arrival);
        let Packet { tag, bytes } = &packet;
        let flow = if self.pipe.model().needs_flow() { tag.flow(bytes) } else { 0 };
        let offered = Offered { len: bytes.len(), ecn: tag.ecn(bytes), flow };
        let fate = self.pipe.offer_packet(self.latest_offer, offered, packet);
        self.collect_dropped();
        match fate {
            Fate::Lost(cause) => Some(loss_comment(cause)),
            Fate::Passed | Fate::Held | Fate::Queued => None,
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.pipe.next_arrival()
    }

    /// The next packet that is due, marked and corrupted if the path says so.
    pub(super) fn poll_arrival(&mut self, now: Instant) -> Option<Arrival<Packet<T>>> {
        let arrival = self.pipe.poll_arrival(now);
        self.collect_dropped();
        let mut arrival = arrival?;
        let Packet { tag, bytes } = &mut arrival.packet;
        if arrival.is_marked {
            tag.mark(bytes);
        }
        if let Some(corruption) = arrival.corruption {
            corruption.apply(bytes);
        }
        Some(arrival)
    }

    /// The next packet that was dropped from a queue after [`offer`](Self::offer), and the cause.
    pub(super) fn poll_dropped(&mut self) -> Option<(Packet<T>, &'static str)> {
        let (packet, cause) = self.dropped.pop_front()?;
        Some((packet, loss_comment(cause)))
    }

    /// Stores what the last call of the pipe dropped.
    fn collect_dropped(&mut self) {
        while let Some(dropped) = self.pipe.poll_dropped() {
            self.dropped.push_back(dropped);
        }
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
