//! A hash of everything that an endpoint sends.

use std::hash::Hasher;

use rexmit_core::{Instant, Machine, Route};
use siphasher::sip::SipHasher13;

/// A running hash, the same on every machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Digest {
    hasher: SipHasher13,
    packets: u64,
}

impl Digest {
    /// The hash of these numbers.
    #[must_use]
    pub fn of(numbers: &[u64]) -> Self {
        let mut digest = Self::default();
        digest.add(numbers);
        digest
    }

    /// Adds numbers.
    pub fn add(&mut self, numbers: &[u64]) {
        self.hasher.write(&(numbers.len() as u64).to_le_bytes());
        numbers.iter().for_each(|number| self.hasher.write(&number.to_le_bytes()));
    }

    /// Adds a packet that is sent.
    pub fn add_packet(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.packets += 1;
        self.add(&[now.as_nanos(), packet.len() as u64]);
        self.hasher.write(format!("{} {}", route.local, route.remote).as_bytes());
        self.hasher.write(packet);
    }

    /// The hash of everything added so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.hasher.finish()
    }

    /// Packets added.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }
}

/// A machine and the hash of what it sends.
#[derive(Debug)]
pub(super) struct Recorded<M> {
    pub(super) machine: M,
    pub(super) sent: Digest,
}

impl<M> Recorded<M> {
    pub(super) fn new(machine: M) -> Self {
        Self { machine, sent: Digest::default() }
    }
}

impl<M: Machine> Machine for Recorded<M> {
    type Event = M::Event;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.machine.handle_input(now, route, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let route = self.machine.poll_transmit(now, packet)?;
        self.sent.add_packet(now, route, packet);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.machine.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }
}
