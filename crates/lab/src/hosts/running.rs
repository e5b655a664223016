//! A program and its transport, as one machine.

use std::any::Any;
use std::convert::Infallible;

use rexmit_core::{Ecn, Instant, Machine, Route};

use super::Station;
use super::transport::{ConnectionEvent, Transport};

/// An application that uses a transport.
///
/// It is called for events of the transport, and at times that it sets.
pub trait Program<T: Transport>: Send + 'static {
    /// The time of the next call of [`on_time`](Self::on_time).
    fn next_at(&self) -> Option<Instant>;

    /// Called at the time of [`next_at`](Self::next_at).
    fn on_time(&mut self, now: Instant, transport: &mut T);

    /// Called for an event of a connection.
    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent);

    /// Called for an arriving packet before the transport processes it.
    fn on_packet(&mut self, now: Instant, route: Route, packet: &[u8]) {
        let _ = (now, route, packet);
    }
}

/// A program and the transport that it uses.
#[derive(Debug)]
pub struct Running<T, P> {
    transport: T,
    program: P,
}

impl<T: Transport, P: Program<T>> Running<T, P> {
    /// Combines `program` with `transport`, which must be configured and, if necessary, listening.
    #[must_use]
    pub fn new(transport: T, program: P) -> Self {
        Self { transport, program }
    }

    /// Passes all events to the program; returns whether there were any.
    fn attend(&mut self, now: Instant) -> bool {
        let mut has_event = false;
        while let Some(event) = self.transport.poll_event() {
            if let Some((id, event)) = T::connection_event(&event) {
                self.program.on_event(now, &mut self.transport, id, event);
                has_event = true;
            }
        }
        has_event
    }
}

impl<T: Transport, P: Program<T>> Machine for Running<T, P> {
    type Event = Infallible;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        self.program.on_packet(now, route, packet);
        self.transport.handle_input_with_ecn(now, route, ecn, packet);
        self.attend(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.transport.poll_timeout().is_some_and(|at| at <= now) {
            self.transport.handle_timeout(now);
            self.attend(now);
        }
        if self.program.next_at().is_some_and(|at| at <= now) {
            self.program.on_time(now, &mut self.transport);
            self.attend(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        loop {
            let route = self.transport.poll_transmit(now, packet);
            // Events during sending may require further packets.
            if route.is_some() || !self.attend(now) {
                return route;
            }
        }
    }

    fn transmit_ecn(&self) -> Ecn {
        self.transport.transmit_ecn()
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.transport.poll_timeout(), self.program.next_at()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl<T: Transport, P: Program<T>> Station for Running<T, P> {
    fn program(&self) -> &dyn Any {
        &self.program
    }

    fn transport(&self) -> Option<&dyn Any> {
        Some(&self.transport)
    }

    fn ip_protocol(&self) -> u8 {
        self.transport.ip_protocol()
    }
}
