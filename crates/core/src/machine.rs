//! The interface between protocol implementations and their drivers.

use std::net::SocketAddr;

use crate::Instant;

/// The addresses of a packet between two hosts, seen from one of them.
///
/// The port is the UDP port of the encapsulation (RFC 6951), or 0 where the protocol runs directly
/// over IP. An unspecified local address lets the driver choose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Route {
    /// This host's address.
    pub local: SocketAddr,
    /// The other host's address.
    pub remote: SocketAddr,
}

impl Route {
    /// The route as seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }
}

/// A protocol endpoint or traffic source without I/O: its inputs are packets and the time, its
/// outputs packets and events.
///
/// A driver (real sockets, simulator, test, fuzzer, foreign function) is a loop of these five
/// calls: pass inputs and timeouts ([`handle_input`](Self::handle_input),
/// [`handle_timeout`](Self::handle_timeout)), then drain [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event) until they return `None`, then sleep until
/// [`poll_timeout`](Self::poll_timeout).
///
/// `now` never goes back between calls. A machine reads no clock, and all its randomness comes from
/// the seed it was created with, so a run is a pure function of its inputs and its seed.
pub trait Machine {
    /// The events that the machine reports to its owner.
    type Event;

    /// Called when a packet arrived over `route`. Its bytes are untrusted, and borrowed for this call only.
    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]);

    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Harmless when called early.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the next packet to be sent into `packet` (cleared first) and returns its route.
    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route>;

    /// The next event for the owner.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When [`handle_timeout`](Self::handle_timeout) is to be called at the latest. That may be at once, even after a call
    /// at the same time: packets that were written since may have made another timer due.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A boxed machine, for a type chosen at run time.
impl<M: Machine + ?Sized> Machine for Box<M> {
    type Event = M::Event;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        (**self).handle_input(now, route, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        (**self).poll_transmit(now, packet)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        (**self).poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
}
