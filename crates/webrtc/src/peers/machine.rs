//! The peers as a [`Machine`], for their driver.

use rexmit_core::{Ecn, Instant, Machine, Route};

use super::{PeerId, Peers};
use crate::agent::is_stun;
use crate::ice::local_ufrag;
use crate::servers::Received;
use crate::{Event, IceMode};

/// The most peers with which a response from one address is tried, if they have all sent checks to it: behind different
/// NATs, hosts have the same private addresses.
const MAX_TRIED: usize = 8;

impl Peers {
    fn deliver(&mut self, now: Instant, index: u32, arrival: (Route, Ecn), datagram: &[u8]) {
        let (route, ecn) = arrival;
        if let Some((_, peer)) = self.table.get_mut(index) {
            peer.agent.handle_input_with_ecn(now, route, ecn, datagram);
            self.update(index);
            self.activate(index);
        }
    }

    /// Handles a STUN message without a user name.
    fn on_response(&mut self, now: Instant, arrival: (Route, Ecn), datagram: &[u8]) {
        let remote = arrival.0.remote;
        let asked = self.asked.range((remote, 0)..=(remote, u32::MAX));
        let indices: Vec<u32> = asked.map(|&(_, index)| index).take(MAX_TRIED).collect();
        self.statistics.discarded += u64::from(indices.is_empty());
        for index in indices {
            self.deliver(now, index, arrival, datagram);
        }
    }

    /// Handles a datagram that does not come from a server.
    fn dispatch(&mut self, now: Instant, arrival: (Route, Ecn), datagram: &[u8]) {
        let remote = arrival.0.remote;
        if !is_stun(datagram) {
            let owners = self.by_address.get(&remote).map_or(0, Vec::len);
            self.statistics.discarded += u64::from(owners == 0);
            for place in 0..owners {
                let owners = self.by_address.get(&remote);
                if let Some(&index) = owners.and_then(|owners| owners.get(place)) {
                    self.deliver(now, index, arrival, datagram);
                }
            }
            return;
        }
        match local_ufrag(datagram) {
            Some(ufrag) => match self.by_ufrag.get(&ufrag) {
                Some(&index) => self.deliver(now, index, arrival, datagram),
                None => self.statistics.discarded += 1,
            },
            None => self.on_response(now, arrival, datagram),
        }
    }

    fn poll_transmit_of_peers(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        while let Some(index) = self.table.first_ready() {
            let (_, peer) = self.table.get_mut(index)?;
            let route = peer.agent.poll_transmit(now, packet);
            self.transmit_ecn = peer.agent.transmit_ecn();
            self.update(index);
            if let Some(route) = route {
                self.activate(index);
                self.table.rotate_ready();
                if self.config.agent.ice == IceMode::Full && is_stun(packet) {
                    self.on_check(index, route);
                }
                return Some(route);
            }
            self.table.pop_ready();
            if self.table.is_end_reported(index) {
                self.remove(index);
            }
        }
        packet.clear();
        None
    }

    /// Called when a check was sent: its response will come from that address.
    fn on_check(&mut self, index: u32, route: Route) {
        if let Some((_, peer)) = self.table.get_mut(index)
            && self.asked.insert((route.remote, index))
        {
            peer.asked.push(route.remote);
        }
    }
}

impl Machine for Peers {
    type Event = (PeerId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, datagram: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, datagram);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, datagram: &[u8]) {
        match self.servers.handle_input(now, route.remote, datagram) {
            Received::Direct => self.dispatch(now, (route, ecn), datagram),
            Received::Relayed(route, datagram) => self.dispatch(now, (route, ecn), &datagram),
            Received::Consumed => self.update_candidates(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.servers.handle_timeout(now);
        self.update_candidates();
        while let Some((index, _)) = self.table.pop_due(now) {
            if let Some((_, peer)) = self.table.get_mut(index) {
                if peer.agent.poll_timeout().is_some_and(|at| at <= now) {
                    peer.agent.handle_timeout(now);
                }
                self.update(index);
                self.activate(index);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        loop {
            if let Some(route) = self.servers.poll_transmit(now, packet) {
                // Also of a relayed datagram: a server need not copy a mark of congestion on the way to it (RFC 8656 §14).
                self.transmit_ecn = Ecn::NotEct;
                return Some(route);
            }
            let route = self.poll_transmit_of_peers(now, packet)?;
            // A relayed datagram is sent to the server, in a message of TURN.
            if !self.servers.send(now, route, packet) {
                return Some(route);
            }
        }
    }

    fn transmit_ecn(&self) -> Ecn {
        self.transmit_ecn
    }

    fn poll_event(&mut self) -> Option<(PeerId, Event)> {
        loop {
            let &key = self.active.front()?;
            let id = PeerId(key);
            if let Some(event) = self.poll_event_of(id) {
                return Some((id, event));
            }
            self.poll_active();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.table.next_deadline(), self.servers.poll_timeout()].into_iter().flatten().min()
    }
}
