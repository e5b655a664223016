//! The agent as a [`Machine`], for its driver.

use rexmit_core::{Ecn, Instant, Machine, Route};

use super::{Agent, State};
use crate::{Event, IceMode};

/// First bytes of STUN and of DTLS (RFC 7983 §7, RFC 9443 §3).
const STUN: std::ops::RangeInclusive<u8> = 0..=3;
const DTLS: std::ops::RangeInclusive<u8> = 20..=63;

/// Whether a datagram is a STUN message.
pub(crate) fn is_stun(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| STUN.contains(first))
}

impl Agent {
    /// Grants data to an address, and counts it where it is limited. Returns whether it may be sent. A full agent has
    /// received an answer from there to a check of its own.
    fn grant(&mut self, route: Route, bytes: usize) -> bool {
        let is_lite = self.settings.config.ice == IceMode::Lite;
        !is_lite || self.reachability.grant(route.remote, bytes)
    }
}

impl Machine for Agent {
    type Event = Event;

    fn handle_input(&mut self, now: Instant, route: Route, datagram: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, datagram);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, datagram: &[u8]) {
        self.now = now;
        if self.is_closed() {
            return;
        }
        if is_stun(datagram) {
            if !self.ice.handle_input(now, route, datagram) {
                return;
            }
            self.reachability.on_received(route.remote, datagram.len());
            self.on_check(now);
        } else if datagram.first().is_some_and(|first| DTLS.contains(first))
            && self.ice.is_source(route.remote)
        {
            self.reachability.on_received(route.remote, datagram.len());
            self.hello.on_answer();
            self.call_session(now, Some((route, ecn, datagram)));
        } else {
            return;
        }
        self.advance(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.is_closed() {
            return;
        }
        self.check_deadline(now);
        if self.ice.poll_timeout().is_some_and(|at| at <= now) {
            self.ice.handle_timeout(now);
        }
        let session = self.session.as_ref();
        if session.and_then(rexmit_dtls::Session::poll_timeout).is_some_and(|at| at <= now) {
            self.call_session(now, None);
        }
        self.association.handle_timeout(now);
        self.advance(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.now = now;
        packet.clear();
        if let Some((route, datagram)) = self.ice.poll_transmit().filter(|_| !self.is_closed()) {
            self.grant(route, datagram.len());
            *packet = datagram;
            self.outgoing.ecn = Ecn::NotEct;
            return Some(route);
        }
        loop {
            if self.outgoing.is_empty() && !self.is_closed() {
                self.seal_one(now);
                // A transmission makes room in the send buffer.
                self.advance(now);
            }
            let (route, mut datagram) = self.outgoing.pop()?;
            // A datagram beyond the limit counts as lost: DTLS or SCTP retransmits it.
            if self.grant(route, datagram.len()) {
                std::mem::swap(packet, &mut datagram);
                return Some(route);
            }
        }
    }

    fn transmit_ecn(&self) -> Ecn {
        self.outgoing.ecn
    }

    fn poll_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.channels.events.pop_front() {
                return Some(event);
            }
            match self.association.receive(self.now) {
                Some(message) => self.channels.on_message(message),
                None if self.channels.on_drained() => {}
                None => break,
            }
            self.advance(self.now);
        }
        if !matches!(self.state, State::Ending(_)) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Ending(reason) => Some(Event::Closed(reason)),
            _ => None,
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        let session = self.session.as_ref().and_then(rexmit_dtls::Session::poll_timeout);
        let all = [
            self.next_deadline(),
            self.ice.poll_timeout(),
            session,
            self.association.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }
}
