//! Two agents and the network between them, in virtual time.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Machine as _, Rng, Route, Seed};
use rexmit_dtls::Identity;
use rexmit_webrtc::{Agent, AgentConfig, Event, IceMode, Settings};

pub(crate) const CLIENT: &str = "192.0.2.1:4000";
pub(crate) const SERVER: &str = "198.51.100.1:4000";
/// One-way delay.
pub(crate) const DELAY: Duration = Duration::from_millis(20);

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(crate) fn config(own: &str) -> AgentConfig {
    AgentConfig::new(Identity::generate().unwrap()).addresses(vec![address(own)])
}

pub(crate) fn settings(config: AgentConfig) -> Settings {
    Settings::new(config).unwrap()
}

/// An agent at its address, with its events.
pub(crate) struct Host {
    pub(crate) agent: Agent,
    pub(crate) address: SocketAddr,
    pub(crate) events: Vec<Event>,
}

impl Host {
    pub(crate) fn has(&self, matches: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(matches)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.has(|event| *event == Event::Connected)
    }
}

/// A datagram on its way.
struct Flying {
    at: Instant,
    route: Route,
    datagram: Vec<u8>,
}

/// Two hosts and a network that loses datagrams.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    /// The side that made the offer.
    pub(crate) client: Host,
    pub(crate) server: Host,
    pub(crate) loss: f64,
    /// The next datagram that this matches is lost.
    pub(crate) lost: Option<fn(&[u8]) -> bool>,
    rng: Rng,
    flying: Vec<Flying>,
}

impl Pair {
    /// A pair in which the server answers the client's offer.
    pub(crate) fn new(client: AgentConfig, server: AgentConfig, seed: u64) -> Self {
        let now = Instant::from_millis(1000);
        let seed = Seed::from_u64(seed);
        let (mut offerer, offer) = Agent::offer(now, settings(client), &seed.split("client"));
        let offer = offer.to_string().parse().unwrap();
        let answered = Agent::answer(now, settings(server), &offer, &seed.split("server"));
        let (answerer, answer) = answered.unwrap();
        offerer.accept(now, &answer.to_string().parse().unwrap()).unwrap();
        Self::of(now, offerer, answerer, &seed)
    }

    pub(crate) fn of(now: Instant, client: Agent, server: Agent, seed: &Seed) -> Self {
        let host = |agent, at| Host { agent, address: address(at), events: Vec::new() };
        Self {
            now,
            client: host(client, CLIENT),
            server: host(server, SERVER),
            loss: 0.0,
            lost: None,
            rng: seed.split("network").rng(),
            flying: Vec::new(),
        }
    }

    /// Full agent against full, or against a lite server.
    pub(crate) fn with(mode: IceMode, seed: u64) -> Self {
        Self::new(config(CLIENT), config(SERVER).ice(mode), seed)
    }

    /// Polls both hosts, and adds their datagrams to those in flight.
    fn drain(&mut self) {
        let mut packet = Vec::new();
        for host in [&mut self.client, &mut self.server] {
            loop {
                while let Some(route) = host.agent.poll_transmit(self.now, &mut packet) {
                    let route = Route { local: route.remote, remote: host.address };
                    let is_lost = self.lost.take_if(|lost| lost(&packet)).is_some();
                    if !is_lost && !self.rng.chance(self.loss) {
                        let datagram = packet.clone();
                        self.flying.push(Flying { at: self.now + DELAY, route, datagram });
                    }
                }
                let before = host.events.len();
                host.events.extend(std::iter::from_fn(|| host.agent.poll_event()));
                if host.events.len() == before {
                    break;
                }
            }
        }
    }

    /// Advances to the next event that occurs within `limit`. Returns whether there was one.
    pub(crate) fn step(&mut self, limit: Instant) -> bool {
        self.drain();
        let timeouts = [self.client.agent.poll_timeout(), self.server.agent.poll_timeout()];
        let arrivals = self.flying.iter().map(|it| it.at);
        let next = timeouts.into_iter().flatten().chain(arrivals).min();
        let Some(next) = next.filter(|&at| at <= limit) else {
            self.now = limit;
            return false;
        };
        self.now = self.now.max(next);
        for host in [&mut self.client, &mut self.server] {
            if host.agent.poll_timeout().is_some_and(|at| at <= self.now) {
                host.agent.handle_timeout(self.now);
            }
        }
        let (due, rest) =
            std::mem::take(&mut self.flying).into_iter().partition(|it| it.at <= self.now);
        self.flying = rest;
        let due: Vec<Flying> = due;
        for Flying { route, datagram, .. } in due {
            for host in [&mut self.client, &mut self.server] {
                if host.address == route.local {
                    host.agent.handle_input(self.now, route, &datagram);
                }
            }
        }
        self.drain();
        true
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let limit = self.now + time;
        while self.step(limit) {}
    }

    /// Runs until `is_done`; fails after a minute.
    pub(crate) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let limit = self.now + Duration::from_secs(60);
        self.drain();
        while !is_done(self) {
            assert!(self.step(limit), "{:?} {:?}", self.client.events, self.server.events);
        }
    }

    pub(crate) fn connect(&mut self) {
        self.run_until(|pair| pair.client.is_connected() && pair.server.is_connected());
    }
}
