//! Two connections over a link whose losses and delays the test chooses; and packet scripts: one connection with a
//! scripted peer.

mod acks;
mod blind;
mod closing;
mod costs;
mod handshake;
mod hostile;
mod interactive;
mod keep_alive;
mod loss;
mod nagle;
mod pair;
mod paws;
mod redundant;
mod robust;
mod script;
mod thin;
mod windows;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};
use rexmit_recovery::RecoveryConfig;

use super::*;
use crate::endpoint::ConnectionId;
use crate::event::Event;
use crate::statistics::EndpointStatistics;
use crate::wire::{Flags, Header};

/// One-way delay of the link.
const DELAY: Duration = Duration::from_millis(10);

fn config() -> ConnectionConfig {
    let recovery = RecoveryConfig::tcp_profile("tcp-sack").expect("it is listed");
    ConnectionConfig { recovery, ..ConnectionConfig::sack() }
}

fn surroundings(seed: u64) -> Surroundings {
    Surroundings {
        unanswered: rexmit_recovery::Unanswered::default(),
        recovery: None,
        rng: Seed::from_u64(seed).rng(),
        challenges: ChallengeLimit::new(1000),
        events: VecDeque::new(),
        sink: None,
        statistics: EndpointStatistics::default(),
    }
}

fn identity(local: u8, remote: u8) -> Identity {
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host], 1000 + u16::from(host)));
    Identity {
        local: address(local),
        remote: address(remote),
        iss: u32::MAX - 1 - u32::from(local),
        timestamp_offset: u32::MAX - 500,
    }
}

/// One end.
struct End {
    connection: Connection,
    around: Surroundings,
    id: ConnectionId,
    events: Vec<Event>,
    received: Vec<u8>,
    /// The packets for the other end, with their times of arrival.
    outgoing: VecDeque<(Instant, Vec<u8>)>,
}

/// The fate of a packet on a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Deliver,
    Lose,
    Duplicate,
    Delay(Duration),
}

struct Pair {
    now: Instant,
    a: End,
    b: End,
    rng: Rng,
}

impl End {
    fn call<T>(
        &mut self,
        now: Instant,
        f: impl FnOnce(&mut Connection, &mut Context<'_>) -> T,
    ) -> T {
        let mut cx = Context { now, id: self.id, around: &mut self.around };
        let result = f(&mut self.connection, &mut cx);
        self.events.extend(self.around.events.drain(..).map(|(_, event)| event));
        result
    }

    fn input(&mut self, now: Instant, packet: &[u8]) {
        let (local, remote) =
            (self.connection.identity().local.ip(), self.connection.identity().remote.ip());
        let segment = Segment::parse(remote, local, packet).expect("it is well-formed");
        self.call(now, |c, cx| c.on_segment(cx, &segment));
    }

    fn drain(&mut self, now: Instant, mut fate: impl FnMut(&[u8]) -> Fate) {
        let mut packet = Vec::new();
        while self.call(now, |c, cx| c.poll_transmit(cx, &mut packet)) {
            let (times, delay) = match fate(&packet) {
                Fate::Deliver => (1, DELAY),
                Fate::Lose => (0, DELAY),
                Fate::Duplicate => (2, DELAY),
                Fate::Delay(more) => (1, DELAY + more),
            };
            for _ in 0..times {
                let at = now + delay;
                let place = self.outgoing.partition_point(|(other, _)| *other <= at);
                self.outgoing.insert(place, (at, packet.clone()));
            }
        }
    }

    fn read(&mut self, now: Instant) {
        let mut into = [0; 4096];
        while let Ok(count @ 1..) = self.call(now, |c, cx| c.receive(cx, &mut into)) {
            self.received.extend(&into[..count]);
        }
    }

    fn send(&mut self, now: Instant, bytes: &[u8]) -> usize {
        self.call(now, |c, cx| c.send(cx, bytes)).expect("it is open")
    }
}

impl Pair {
    /// A client that has sent its SYN, and a server that has received it.
    fn new(client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let now = Instant::from_millis(1);
        let mut packet = Vec::new();
        let id = ConnectionId::new(0, 0);
        let mut around = surroundings(1);
        let mut cx = Context { now, id, around: &mut around };
        let mut connection = Connection::connect(&mut cx, Arc::new(client), identity(1, 2));
        assert!(connection.poll_transmit(&mut cx, &mut packet));
        let a = End::new(connection, around, id);
        let mut around = surroundings(2);
        let mut cx = Context { now, id, around: &mut around };
        let syn = Segment::parse(identity(1, 2).local.ip(), identity(1, 2).remote.ip(), &packet);
        let connection =
            Connection::accept(&mut cx, Arc::new(server), identity(2, 1), &syn.unwrap());
        Self { now, a, b: End::new(connection, around, id), rng: Seed::from_u64(3).rng() }
    }

    fn established(client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let mut pair = Self::new(client, server);
        pair.run_until(|pair| pair.b.connection.state() == State::Established);
        pair
    }

    /// Runs both connections until `done`, over a link without loss.
    fn run_until(&mut self, done: impl FnMut(&mut Self) -> bool) {
        self.run(|_, _| Fate::Deliver, done);
    }

    fn run(
        &mut self,
        mut fate: impl FnMut(&mut Rng, &[u8]) -> Fate,
        mut done: impl FnMut(&mut Self) -> bool,
    ) {
        for _ in 0..2_000_000 {
            let Self { a, b, rng, now } = self;
            a.drain(*now, |packet| fate(rng, packet));
            b.drain(*now, |packet| fate(rng, packet));
            if done(self) {
                return;
            }
            let Self { a, b, now, .. } = self;
            a.drain(*now, |packet| fate(&mut self.rng, packet));
            b.drain(*now, |packet| fate(&mut self.rng, packet));
            let due = [
                a.outgoing.front().map(|(at, _)| *at),
                b.outgoing.front().map(|(at, _)| *at),
                a.connection.next_timeout(),
                b.connection.next_timeout(),
            ];
            let next = due.into_iter().flatten().min().expect("something is still to happen");
            *now = next.max(*now);
            let now = *now;
            deliver(now, a, b);
            deliver(now, b, a);
        }
        panic!("it never ends");
    }
}

impl End {
    fn new(connection: Connection, around: Surroundings, id: ConnectionId) -> Self {
        Self {
            connection,
            around,
            id,
            events: Vec::new(),
            received: Vec::new(),
            outgoing: VecDeque::new(),
        }
    }
}

/// Delivers all packets of `from` to `to`, whose timers then fire.
fn deliver(now: Instant, from: &mut End, to: &mut End) {
    while from.outgoing.front().is_some_and(|(at, _)| *at <= now) {
        let (_, packet) = from.outgoing.pop_front().expect("there is one");
        to.input(now, &packet);
    }
    if to.connection.next_timeout().is_some_and(|at| at <= now) {
        to.call(now, Connection::on_timeout);
        let next = to.connection.next_timeout();
        assert!(next.is_none_or(|at| at > now), "a timer that was due did not fire");
    }
}
