//! The one interface between everything that speaks a protocol and everything that drives it.

use std::net::SocketAddr;

use crate::Instant;

/// The way of a packet between two hosts, seen from one of them.
///
/// The port is the UDP port of the encapsulation (RFC 6951), or 0 where the protocol runs directly
/// over IP. An unspecified local address leaves the choice to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Route {
    /// This host's address.
    pub local: SocketAddr,
    /// The other host's address.
    pub remote: SocketAddr,
}

impl Route {
    /// The same way seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }
}

/// A protocol endpoint or traffic source as a value: bytes and time in, bytes and events out.
///
/// A driver (real sockets, simulator, test, fuzzer, foreign function) is a loop of these five
/// calls: feed what happened ([`handle_input`](Self::handle_input),
/// [`handle_timeout`](Self::handle_timeout)), then drain [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event) until they return `None`, then sleep until
/// [`poll_timeout`](Self::poll_timeout).
///
/// `now` never goes back between calls. A machine reads no clock and draws no randomness that it
/// was not given when it was made, so a run is a pure function of its inputs and its seed.
pub trait Machine {
    /// The events that the machine reports to its owner.
    type Event;

    /// A packet arrived over `route`. The bytes are untrusted and only borrowed.
    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]);

    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Harmless when called early.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the next packet to be sent into `packet` (cleared first) and returns its way.
    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route>;

    /// The next event for the owner.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When [`handle_timeout`](Self::handle_timeout) is to be called at the latest.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A machine on the heap, of a kind that is known only when it runs.
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
