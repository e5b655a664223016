//! Machines for tests.

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::{Ecn, Instant, Machine, Route};

/// A machine that reports every packet it receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) outbox: VecDeque<(Route, Vec<u8>)>,
    pub(crate) inbox: VecDeque<Received>,
    pub(crate) kind: Kind,
    /// The ECN field of the packets it sends.
    pub(crate) ecn: Ecn,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Kind {
    /// Sends what is put into its outbox.
    #[default]
    Plain,
    /// Sends every packet back.
    Echo,
    /// Sends a packet of `len` bytes every `gap`, the first at `next`.
    Source { route: Route, len: usize, gap: Duration, next: Instant },
    /// Rearms a timer with each packet.
    Rearming { deadline: Option<Instant>, expired: u64 },
    /// Always has a deadline, which is this or in the past.
    Restless(Instant),
    /// Panics at this time.
    Panicking(Instant),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    pub(crate) route: Route,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: Ecn,
}

impl Node {
    pub(crate) fn sending(route: Route, bytes: &[u8]) -> Self {
        Self { outbox: [(route, bytes.to_vec())].into(), ..Self::default() }
    }

    pub(crate) fn echo() -> Self {
        Self { kind: Kind::Echo, ..Self::default() }
    }

    pub(crate) fn source(route: Route, len: usize, gap: Duration, first: Instant) -> Self {
        Self { kind: Kind::Source { route, len, gap, next: first }, ..Self::default() }
    }

    pub(crate) fn rearming() -> Self {
        Self { kind: Kind::Rearming { deadline: None, expired: 0 }, ..Self::default() }
    }

    pub(crate) fn restless() -> Self {
        Self::restless_after(Instant::ZERO)
    }

    pub(crate) fn restless_after(at: Instant) -> Self {
        Self { kind: Kind::Restless(at), ..Self::default() }
    }

    pub(crate) fn panicking_after(at: Instant) -> Self {
        Self { kind: Kind::Panicking(at), ..Self::default() }
    }

    pub(crate) fn expired(&self) -> u64 {
        match self.kind {
            Kind::Rearming { expired, .. } => expired,
            _ => 0,
        }
    }
}

impl Machine for Node {
    type Event = Received;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, packet);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        match &mut self.kind {
            Kind::Echo => self.outbox.push_back((route, packet.to_vec())),
            Kind::Rearming { deadline, .. } => *deadline = Some(now + Duration::from_secs(1)),
            _ => {}
        }
        self.inbox.push_back(Received { route, bytes: packet.to_vec(), ecn });
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.kind {
            Kind::Source { route, len, gap, next } if *next <= now => {
                self.outbox.push_back((*route, vec![0; *len]));
                *next += *gap;
            }
            Kind::Rearming { deadline, expired } => {
                *deadline = None;
                *expired += 1;
            }
            Kind::Panicking(_) => panic!("as the test wants"),
            _ => {}
        }
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let (route, bytes) = self.outbox.pop_front()?;
        packet.clear();
        packet.extend_from_slice(&bytes);
        Some(route)
    }

    fn transmit_ecn(&self) -> Ecn {
        self.ecn
    }

    fn poll_event(&mut self) -> Option<Received> {
        self.inbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.kind {
            Kind::Source { next, .. } => Some(next),
            Kind::Rearming { deadline, .. } => deadline,
            Kind::Restless(at) | Kind::Panicking(at) => Some(at),
            Kind::Plain | Kind::Echo => None,
        }
    }
}
