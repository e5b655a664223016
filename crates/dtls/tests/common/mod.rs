//! Two encrypted endpoints with a path between them, in virtual time.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_dtls::{Encryption, Endpoint, Event, Fingerprint, HandshakeError, Identity, Trust};
use rexmit_sctp::{
    AssociationConfig, AssociationId, CloseReason, EndpointConfig, Event as Sctp, OutboundMessage,
};

/// The one-way delay of the path.
const DELAY: Duration = Duration::from_millis(20);
pub(crate) const CLIENT: &str = "192.0.2.1:4000";
pub(crate) const SERVER: &str = "192.0.2.2:9899";

pub(crate) fn identity(number: u64) -> Identity {
    Identity::from_seed(&Seed::from_u64(number))
}

pub(crate) fn route(local: &str, remote: &str) -> Route {
    Route { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

pub(crate) fn endpoint(accept: bool, encryption: Encryption, seed: u64) -> Endpoint {
    endpoint_with_mtu(AssociationConfig::default().max_packet_bytes, accept, encryption, seed)
}

/// An endpoint that sends datagrams of at most `mtu` bytes.
pub(crate) fn endpoint_with_mtu(
    mtu: usize,
    accept: bool,
    encryption: Encryption,
    seed: u64,
) -> Endpoint {
    let association = AssociationConfig::default().max_packet_bytes(mtu);
    let config = EndpointConfig::default().accept(accept).association(Arc::new(association));
    Endpoint::new(config, encryption, &Seed::from_u64(seed)).unwrap()
}

/// One end, with its events.
pub(crate) struct End {
    pub(crate) endpoint: Endpoint,
    pub(crate) secured: Vec<Fingerprint>,
    pub(crate) ended: Vec<HandshakeError>,
    pub(crate) association: Option<AssociationId>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) received: Vec<Vec<u8>>,
    /// Sends each message back.
    pub(crate) echoes: bool,
}

impl End {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            secured: Vec::new(),
            ended: Vec::new(),
            association: None,
            closed: None,
            received: Vec::new(),
            echoes: false,
        }
    }

    fn drain_events(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Secured { peer, .. } => self.secured.push(peer),
                Event::Ended { error, .. } => self.ended.push(error),
                Event::Association(id, Sctp::Connected { .. }) => self.association = Some(id),
                Event::Association(_, Sctp::Closed(reason)) => self.closed = Some(reason),
                Event::Association(id, Sctp::Readable) => self.read(now, id),
                _ => {}
            }
        }
    }

    fn read(&mut self, now: Instant, id: AssociationId) {
        let sctp = self.endpoint.sctp_mut();
        while let Some(message) = sctp.receive(now, id) {
            if self.echoes {
                let echo = OutboundMessage::new(message.stream, message.payload.clone());
                sctp.send(now, id, echo).unwrap();
            }
            self.received.push(message.payload.to_vec());
        }
    }
}

/// A datagram on its way.
type Datagram = (usize, Route, Vec<u8>);

/// What happens to a datagram, given the side that sends it and its number, counted from 0.
type Fate = Box<dyn FnMut(usize, usize, &mut Vec<u8>) -> bool>;

/// Both ends: 0 is the client. Datagrams arrive after [`DELAY`], unless `fate` drops or changes them.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) ends: [End; 2],
    under_way: BTreeMap<Instant, VecDeque<Datagram>>,
    pub(crate) fate: Fate,
    /// The client's address as the server sees it.
    pub(crate) client_seen_at: &'static str,
    sent: [usize; 2],
    pub(crate) bytes: [usize; 2],
}

impl Pair {
    pub(crate) fn new(client: Encryption, server: Encryption) -> Self {
        let ends = [
            End::new(endpoint(false, client, 1)),
            End { echoes: true, ..End::new(endpoint(true, server, 2)) },
        ];
        Self {
            now: Instant::ZERO + Duration::from_secs(1000),
            ends,
            under_way: BTreeMap::new(),
            fate: Box::new(|_, _, _| true),
            client_seen_at: CLIENT,
            sent: [0; 2],
            bytes: [0; 2],
        }
    }

    /// A pair whose ends trust each other.
    pub(crate) fn trusting() -> Self {
        let trust = |number| Trust::only([identity(number).fingerprint()]);
        Self::new(Encryption::new(identity(1), trust(2)), Encryption::new(identity(2), trust(1)))
    }

    pub(crate) fn client(&mut self) -> &mut End {
        &mut self.ends[0]
    }

    pub(crate) fn server(&mut self) -> &mut End {
        &mut self.ends[1]
    }

    /// Delivers a datagram to the server at once.
    pub(crate) fn inject(&mut self, to: usize, from: &str, datagram: &[u8]) {
        let local = if to == 0 { CLIENT } else { SERVER };
        self.ends[to].endpoint.handle_input(self.now, route(local, from), datagram);
    }

    fn collect(&mut self) {
        for end in 0..2 {
            let mut packet = Vec::new();
            while let Some(route) = self.ends[end].endpoint.poll_transmit(self.now, &mut packet) {
                let number = self.sent[end];
                self.sent[end] += 1;
                self.bytes[end] += packet.len();
                if !(self.fate)(end, number, &mut packet) {
                    continue;
                }
                let mut seen = route.reversed();
                if end == 0 {
                    seen.remote = self.client_seen_at.parse().unwrap();
                } else if route.remote != self.client_seen_at.parse().unwrap() {
                    continue; // The NAT has forgotten this port.
                } else {
                    seen.local = CLIENT.parse().unwrap();
                }
                let arrival = self.under_way.entry(self.now + DELAY).or_default();
                arrival.push_back((1 - end, seen, packet.clone()));
            }
            self.ends[end].drain_events(self.now);
        }
    }

    /// Runs until `done` returns true, for at most `limit`. Returns whether it did.
    pub(crate) fn run(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            // Events may have made packets due.
            self.collect();
            self.collect();
            if done(self) {
                return true;
            }
            let timers = self.ends.iter().filter_map(|end| end.endpoint.poll_timeout());
            let arrival = self.under_way.first_key_value().map(|(at, _)| *at);
            let next = timers.chain(arrival).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            while let Some(arrivals) =
                self.under_way.first_entry().filter(|it| *it.key() <= self.now)
            {
                for (to, route, packet) in arrivals.remove() {
                    self.ends[to].endpoint.handle_input(self.now, route, &packet);
                }
            }
            for end in &mut self.ends {
                if end.endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                    end.endpoint.handle_timeout(self.now);
                }
            }
        }
    }

    pub(crate) fn secure(&mut self) {
        let now = self.now;
        self.client().endpoint.begin_handshake(now, route(CLIENT, SERVER));
    }

    /// Secures the connection, and begins an association.
    pub(crate) fn connect(&mut self) {
        self.secure();
        assert!(self.run(Duration::from_secs(10), |pair| !pair.ends[0].secured.is_empty()));
        self.begin();
        assert!(self.run(Duration::from_secs(10), |pair| pair.ends[0].association.is_some()));
    }

    /// Begins an association over the connection.
    pub(crate) fn begin(&mut self) {
        let now = self.now;
        let sctp = self.client().endpoint.sctp_mut();
        sctp.connect(now, route(CLIENT, SERVER), 5000).unwrap();
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        let (now, id) = (self.now, self.client().association.expect("an association"));
        let message = OutboundMessage::new(0, message.to_vec());
        self.client().endpoint.sctp_mut().send(now, id, message).unwrap();
    }

    /// Sends a message and waits for its echo.
    pub(crate) fn echo(&mut self, message: &[u8]) {
        let before = self.client().received.len();
        self.send(message);
        assert!(self.run(Duration::from_secs(20), |pair| pair.ends[0].received.len() > before));
        assert_eq!(self.client().received[before], message);
    }
}
