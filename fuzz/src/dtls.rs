//! Two correct endpoints over DTLS, and an attacker without keys between them who drops, repeats, changes and invents
//! datagrams.

use std::collections::VecDeque;
use std::sync::Arc;

use bolero::{TypeGenerator, produce};
use rexmit_core::{Instant, Machine as _, Route, Seed};
use rexmit_dtls::{Encryption, Endpoint, Event, Identity, Trust};
use rexmit_sctp::{
    AssociationConfig, AssociationId, EndpointConfig, Event as Sctp, OutboundMessage,
};

use crate::inputs;

/// The most datagrams and events that one input may cause; more indicate an endless loop.
const MOST_OUTPUTS: usize = 10_000;
/// The most captured datagrams that are kept for replay.
const MOST_CAPTURED: usize = 64;
/// The most timeouts until everything deliverable is delivered, or the endpoints are idle.
const MOST_TIMEOUTS: usize = 1000;
/// Bytes of a record's header, where changes have the greatest effect.
const HEADER_BYTES: u16 = 16;

/// The SCTP port of both sides.
const SCTP_PORT: u16 = 5000;

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// The fate of the next datagram in each direction.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub enum Handling {
    /// The datagram arrives.
    Deliver,
    /// The datagram is lost.
    Drop,
    /// The datagram arrives twice.
    Twice,
    /// The datagram arrives after the next one.
    Late,
    /// One bit is flipped: the byte's offset, and the bit.
    Flip(u16, u8),
    /// One byte near the beginning is replaced: its offset, and the new value.
    Header(u16, u8),
    /// The datagram is truncated to this many bytes.
    Cut(u16),
    /// Bytes are appended: their number and value.
    Append(u8, u8),
    /// The records of a captured datagram follow in the same datagram.
    Join(u8),
    /// A captured datagram of either direction arrives instead.
    Instead(u8),
    /// The datagram arrives from another UDP port of the peer's address.
    Elsewhere(u16),
}

/// Traffic, and the attacks on it.
#[derive(Clone, Debug, TypeGenerator)]
pub struct DtlsTraffic {
    /// Whether the attacker waits until both sides have a connection and an association.
    pub is_connected: bool,
    /// The share of attacked datagrams, in 1/256.
    pub share: u8,
    /// The attacks, each with a number that decides whether it is performed.
    #[generator(produce::<Vec<(u8, Handling)>>().with().len(0usize..400))]
    pub handlings: Vec<(u8, Handling)>,
}

struct Side {
    endpoint: Endpoint,
    address: Route,
    is_client: bool,
    association: Option<AssociationId>,
    is_connected: bool,
    has_ended: bool,
    inbox: VecDeque<(Route, Vec<u8>)>,
    /// The number of messages that this side has sent, and that of messages received.
    sent: u32,
    received: u32,
}

/// The endpoints, and all datagrams in flight between them.
pub struct DtlsExchange {
    now: Instant,
    sides: [Side; 2],
    captured: VecDeque<Vec<u8>>,
}

/// A server that trusts the client of [`client`].
#[must_use]
pub fn server() -> Endpoint {
    endpoint(SERVER)
}

/// A client of [`server`].
#[must_use]
pub fn client() -> Endpoint {
    endpoint(CLIENT)
}

fn endpoint(index: usize) -> Endpoint {
    let identity = |index: usize| Identity::from_seed(&Seed::from_u64(index as u64));
    let trust = Trust::only([identity(1 - index).fingerprint()]);
    let association = AssociationConfig::default();
    let config =
        EndpointConfig::default().accept(index == SERVER).association(Arc::new(association));
    let encryption = Encryption::new(identity(index), trust);
    let seed = Seed::from_u64(100 + index as u64);
    Endpoint::new(config, encryption, &seed).expect("the configuration is valid")
}

impl Side {
    fn new(index: usize) -> Self {
        let address = |index: usize| {
            let host = if index == CLIENT { 1 } else { 2 };
            ([192, 0, 2, host], 4000).into()
        };
        Self {
            endpoint: endpoint(index),
            address: Route { local: address(index), remote: address(1 - index) },
            is_client: index == CLIENT,
            association: None,
            is_connected: false,
            has_ended: false,
            inbox: VecDeque::new(),
            sent: 0,
            received: 0,
        }
    }

    fn on_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Secured { .. } if self.is_client && self.association.is_none() => {
                let id = self.endpoint.sctp_mut().connect(now, self.address, SCTP_PORT);
                self.association = id.ok();
            }
            Event::Ended { .. } => self.has_ended = true,
            Event::Association(id, Sctp::Connected { .. }) => {
                (self.association, self.is_connected) = (Some(id), true);
            }
            Event::Association(_, Sctp::Closed(_)) => self.has_ended = true,
            Event::Association(id, Sctp::Readable) => {
                while let Some(message) = self.endpoint.sctp_mut().receive(now, id) {
                    // Exactly what the peer sent, in order: nothing forged, lost, doubled or overtaken.
                    assert_eq!(message.payload, content(self.received), "not what was sent");
                    self.received += 1;
                }
            }
            _ => {}
        }
    }

    fn send(&mut self, now: Instant) {
        let Some(id) = self.association.filter(|_| !self.has_ended) else { return };
        let message = OutboundMessage::new(1, content(self.sent));
        if self.endpoint.sctp_mut().send(now, id, message).is_ok() {
            self.sent += 1;
        }
    }

    fn check_limits(&self) {
        // One connection, a second one that the peer has begun anew, and one from each other port that an attacker
        // names only if a cookie for it came back: never here.
        assert!(self.endpoint.connection_count() <= 2, "{}", self.endpoint.connection_count());
        assert!(self.endpoint.sctp().association_count() <= 2);
    }
}

/// Message `number` of a side: it begins with the number, which also determines its size.
fn content(number: u32) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(4 + number as usize * 397 % 2500, number as u8);
    bytes
}

impl DtlsExchange {
    /// A client that begins to connect; both sides are connected if `is_connected`.
    ///
    /// # Panics
    /// If they do not connect without an attacker.
    #[must_use]
    pub fn new(is_connected: bool) -> Self {
        let mut exchange = Self {
            now: Instant::from_millis(1_000_000),
            sides: [Side::new(CLIENT), Side::new(SERVER)],
            captured: VecDeque::new(),
        };
        let client = &mut exchange.sides[CLIENT];
        client.endpoint.begin_handshake(exchange.now, client.address);
        exchange.settle();
        if is_connected {
            for _ in 0..MOST_TIMEOUTS {
                if exchange.is_connected() {
                    break;
                }
                exchange.handle_next(Handling::Deliver);
            }
            assert!(exchange.is_connected(), "no connection without an attacker");
        }
        exchange
    }

    /// Whether both sides have an association.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.sides.iter().all(|side| side.is_connected)
    }

    /// Passes the next datagram in flight to each side on, with the attack `handling`. If none is in flight, both
    /// applications send, and time passes.
    pub fn handle_next(&mut self, handling: Handling) {
        if self.sides.iter().all(|side| side.inbox.is_empty()) {
            self.sides.iter_mut().for_each(|side| side.send(self.now));
            self.settle();
            if self.sides.iter().all(|side| side.inbox.is_empty()) {
                self.wait();
            }
            return;
        }
        for to in 0..2 {
            let Some((mut route, datagram)) = self.sides[to].inbox.pop_front() else { continue };
            let len = datagram.len() as u16;
            match handling {
                Handling::Drop => {}
                Handling::Twice => {
                    self.input(to, route, &datagram);
                    self.attack(to, route, &datagram);
                }
                Handling::Late => {
                    if let Some((way, other)) = self.sides[to].inbox.pop_front() {
                        self.attack(to, way, &other);
                    }
                    self.input(to, route, &datagram);
                }
                Handling::Elsewhere(port) => {
                    route.remote.set_port(port.max(1));
                    self.attack(to, route, &datagram);
                }
                Handling::Deliver => self.input(to, route, &datagram),
                changed => {
                    let datagram = self.changed(changed, datagram, len.max(1));
                    self.attack(to, route, &datagram);
                }
            }
        }
        self.settle();
    }

    fn changed(&self, how: Handling, mut datagram: Vec<u8>, len: u16) -> Vec<u8> {
        let captured = |which: u8| {
            let index = usize::from(which) % self.captured.len().max(1);
            self.captured.get(index).cloned().unwrap_or_default()
        };
        match how {
            Handling::Flip(at, bit) => datagram[usize::from(at % len)] ^= 1 << (bit % 8),
            Handling::Header(at, byte) => {
                datagram[usize::from(at % HEADER_BYTES.min(len))] = byte;
            }
            Handling::Cut(at) => datagram.truncate(usize::from(at % len)),
            Handling::Append(count, byte) => {
                datagram.resize(datagram.len() + usize::from(count), byte);
            }
            Handling::Join(which) => datagram.extend(captured(which)),
            Handling::Instead(which) => datagram = captured(which),
            _ => {}
        }
        datagram
    }

    /// From now on, everything arrives. Returns whether all messages arrived, or an end was reported.
    ///
    /// # Panics
    /// If messages are neither delivered nor their connection reported as ended, within bounded time.
    pub fn run_out(&mut self, was_connected: bool) {
        inputs::report();
        for _ in 0..MOST_TIMEOUTS {
            while self.sides.iter().any(|side| !side.inbox.is_empty()) {
                for to in 0..2 {
                    while let Some((route, datagram)) = self.sides[to].inbox.pop_front() {
                        self.input(to, route, &datagram);
                    }
                }
                self.settle();
            }
            let is_ended = self.sides.iter().any(|side| side.has_ended);
            let is_delivered = (0..2).all(|to| self.sides[to].received == self.sides[1 - to].sent);
            if is_ended || (is_delivered && (self.is_connected() || !was_connected)) {
                return;
            }
            self.wait();
        }
        panic!("messages are neither delivered nor reported");
    }

    /// A datagram arrives that a correct peer and a perfect network would not deliver: an input.
    fn attack(&mut self, to: usize, route: Route, datagram: &[u8]) {
        inputs::count();
        self.input(to, route, datagram);
    }

    fn input(&mut self, to: usize, route: Route, datagram: &[u8]) {
        self.sides[to].endpoint.handle_input(self.now, route, datagram);
        self.sides[to].check_limits();
    }

    /// Advances the time until a timer is due.
    fn wait(&mut self) {
        let Some(at) = self.sides.iter().filter_map(|side| side.endpoint.poll_timeout()).min()
        else {
            return;
        };
        self.now = self.now.max(at);
        for side in &mut self.sides {
            side.endpoint.handle_timeout(self.now);
        }
        self.settle();
        for side in &self.sides {
            let next = side.endpoint.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "a timer that stays due");
        }
    }

    /// Reads all datagrams and events of both endpoints.
    fn settle(&mut self) {
        let mut datagram = Vec::new();
        for _ in 0..MOST_OUTPUTS {
            let mut is_idle = true;
            for from in 0..2 {
                if let Some(route) =
                    self.sides[from].endpoint.poll_transmit(self.now, &mut datagram)
                {
                    is_idle = false;
                    if self.captured.len() == MOST_CAPTURED {
                        self.captured.pop_front();
                    }
                    self.captured.push_back(datagram.clone());
                    // A datagram to a port that the attacker named does not arrive.
                    if route.remote == self.sides[from].address.remote {
                        let way = self.sides[1 - from].address;
                        self.sides[1 - from].inbox.push_back((way, datagram.clone()));
                    }
                } else if let Some(event) = self.sides[from].endpoint.poll_event() {
                    is_idle = false;
                    self.sides[from].on_event(self.now, &event);
                }
            }
            if is_idle {
                return;
            }
        }
        panic!("an endpoint does not become idle");
    }
}
