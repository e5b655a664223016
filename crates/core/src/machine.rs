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

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// The sender does not use ECN: a congested router drops the packet.
    #[default]
    NotEct,
    /// The sender uses ECN as RFC 9331 defines it (L4S).
    Ect1,
    /// The sender uses ECN: a congested router may mark the packet instead of dropping it.
    Ect0,
    /// A router on the path was congested.
    Ce,
}

impl Ecn {
    /// The codepoint in the two lower bits of IPv4's type of service or IPv6's traffic class.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits of the IP header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// Whether a congested router may mark the packet, or has done so.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
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

    /// [`handle_input`](Self::handle_input) of a packet whose IP header had this ECN field. A machine that does not use ECN
    /// ignores the field.
    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, _: Ecn, packet: &[u8]) {
        self.handle_input(now, route, packet);
    }

    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Harmless when called early.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the next packet to be sent into `packet` (cleared first) and returns its route.
    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route>;

    /// The ECN field with which the packet that [`poll_transmit`](Self::poll_transmit) wrote last is to be sent.
    fn transmit_ecn(&self) -> Ecn {
        Ecn::NotEct
    }

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

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        (**self).handle_input_with_ecn(now, route, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        (**self).poll_transmit(now, packet)
    }

    fn transmit_ecn(&self) -> Ecn {
        (**self).transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        (**self).poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_are_those_of_the_ip_header() {
        let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(all.map(Ecn::bits), [0b00, 0b01, 0b10, 0b11], "RFC 3168 §5, figure 1");
        assert_eq!(all.map(|ecn| Ecn::from_bits(ecn.bits())), all);
        assert_eq!(Ecn::from_bits(0b1011_1011), Ecn::Ce, "DSCP is above the two bits");
        assert_eq!(all.map(Ecn::is_capable), [false, true, true, true]);
    }
}
