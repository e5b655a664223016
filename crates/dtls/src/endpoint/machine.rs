//! The API boundary: datagrams and time in, datagrams and events out.

use dimpl::Output;
use rexmit_core::{Ecn, Instant, Machine, Route};

use super::{Arrival, Endpoint, Event};
use crate::HandshakeError;
use crate::config::MAX_PACKET_BYTES;
use crate::connection::{LEAST, State};
use crate::record::is_client_hello;

impl Machine for Endpoint {
    type Event = Event;

    fn handle_input(&mut self, now: Instant, route: Route, datagram: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, datagram);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, datagram: &[u8]) {
        let arrival = Arrival { route, ecn };
        if self.accepts && is_client_hello(datagram) && self.on_client_hello(now, route, datagram) {
            return;
        }
        let handshaking = self.handshaking.get(&route.remote).copied();
        let secured = self.secured.get(&route.remote).copied();
        if let Some(index) = handshaking {
            self.deliver(now, index, arrival, datagram);
        }
        // The handshake may have completed, and replaced the secured connection.
        if let Some(index) = secured.filter(|index| self.secured.get(&route.remote) == Some(index))
        {
            self.deliver(now, index, arrival, datagram);
        }
        if handshaking.is_none() && secured.is_none() {
            self.on_unknown_address(now, arrival, datagram);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, index));
            self.connections[index].deadline = Instant::FAR_FUTURE;
            self.on_timeout(now, index);
        }
        self.sctp.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let waiting = self.queues.answers.pop_front().or_else(|| self.queues.outgoing.pop_front());
        if let Some((route, datagram)) = waiting {
            *packet = datagram;
            self.transmit_ecn = Ecn::NotEct;
            return Some(route);
        }
        loop {
            let Some(route) = self.sctp.poll_transmit(now, &mut self.buffers.packet) else {
                packet.clear();
                return None;
            };
            self.transmit_ecn = self.sctp.transmit_ecn();
            if self.seal(now, route, packet) {
                return Some(route);
            }
        }
    }

    fn transmit_ecn(&self) -> Ecn {
        self.transmit_ecn
    }

    fn poll_event(&mut self) -> Option<Event> {
        let own = self.queues.events.pop_front();
        own.or_else(|| self.sctp.poll_event().map(|(id, event)| Event::Association(id, event)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.deadlines.first().map(|&(at, _)| at);
        own.into_iter().chain(self.sctp.poll_timeout()).min()
    }
}

impl Endpoint {
    fn on_timeout(&mut self, now: Instant, index: usize) {
        let limit = self.encryption.handshake_timeout;
        let connection = &mut self.connections[index];
        let elapsed = now - connection.begun;
        match &mut connection.state {
            State::Handshaking if elapsed >= limit => {
                return self.end(now, index, HandshakeError::NoAnswer(elapsed));
            }
            State::Refused { until, .. } if *until <= now => return self.forget(index),
            State::Secured { check_at, is_unused } if *check_at <= now => {
                let was_unused = *is_unused;
                let is_free = |&remote| self.sctp.associations_with(remote).next().is_none();
                *is_unused = connection.addresses.iter().all(is_free);
                *check_at = now + self.encryption.idle_timeout.max(LEAST);
                if *is_unused && was_unused {
                    let farewell = connection.close(&mut self.buffers.output);
                    self.queues.outgoing.push_back((connection.route, farewell));
                    return self.end(now, index, HandshakeError::Idle);
                }
            }
            _ => {}
        }
        self.advance(now, index, |connection| connection.handle_timeout(now));
    }

    /// Encrypts the pending SCTP packet for `route` into `record`. Returns whether there is a secured connection.
    fn seal(&mut self, now: Instant, route: Route, record: &mut Vec<u8>) -> bool {
        let Some(&index) = self.secured.get(&route.remote) else { return false };
        if self.buffers.packet.len() > MAX_PACKET_BYTES {
            return false;
        }
        let connection = &mut self.connections[index];
        connection.route = route;
        if let Err(error) = connection.seal(now, &self.buffers.packet) {
            self.fail(now, index, &error);
            return false;
        }
        let Some(Output::Packet(sealed)) = connection.poll_output(&mut self.buffers.output) else {
            return false;
        };
        // Copying the record costs less than clearing a buffer for the longest one.
        record.clear();
        record.extend_from_slice(sealed);
        // Handles other outputs of the library, and its next deadline.
        self.advance(now, index, |_| Ok(()));
        true
    }
}
