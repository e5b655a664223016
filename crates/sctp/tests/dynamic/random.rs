//! Random changes of addresses on both sides, over a network that loses and reorders: every message
//! arrives exactly once and in order, and in the end both sides agree on the addresses of each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Rng, Route, Seed};
use rexmit_sctp::{
    AddressChange, AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event,
    OutboundMessage, PathState,
};

/// The number of random runs; `REXMIT_SEEDS` overrides it.
fn seeds() -> u64 {
    std::env::var("REXMIT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60)
}

/// From this time on there are no more changes, messages and losses.
const CALM_MS: u64 = 60_000;

struct Host {
    endpoint: Endpoint,
    id: Option<AssociationId>,
    is_connected: bool,
    /// The addresses at which it can be reached.
    plugged: BTreeSet<IpAddr>,
    /// The addresses that it wants the peer to know.
    wanted: BTreeSet<IpAddr>,
    /// The addresses that it has used so far.
    moved: BTreeSet<IpAddr>,
    sent: u32,
    received: u32,
}

struct World {
    seed: u64,
    now: Instant,
    rng: Rng,
    hosts: [Host; 2],
    /// Packets in flight, by time of arrival and order of transmission: the receiving host, the route and the bytes.
    wire: BTreeMap<(Instant, u64), (usize, Route, Vec<u8>)>,
    packets: u64,
}

fn address(host: usize, number: u64) -> IpAddr {
    IpAddr::from([10, host as u8, 0, number as u8])
}

impl World {
    fn new(seed: u64) -> Self {
        let host = |index: usize| {
            let association = AssociationConfig::rfc9260()
                .association_max_retrans(200)
                .heartbeat_interval(Some(Duration::from_secs(2)));
            let config = EndpointConfig::default()
                .accept(true)
                .addresses(vec![address(index, 1)])
                .initial_tsn(Some(u32::MAX - 3))
                .association(Arc::new(association));
            let seed = Seed::from_u64(seed * 2 + index as u64);
            let home = BTreeSet::from([address(index, 1)]);
            Host {
                endpoint: Endpoint::new(config, &seed).unwrap(),
                id: None,
                is_connected: false,
                plugged: home.clone(),
                wanted: home,
                moved: BTreeSet::new(),
                sent: 0,
                received: 0,
            }
        };
        Self {
            seed,
            now: Instant::from_millis(1),
            rng: Seed::from_u64(seed).split("world").rng(),
            hosts: [host(0), host(1)],
            wire: BTreeMap::new(),
            packets: 0,
        }
    }

    fn is_calm(&self) -> bool {
        self.now >= Instant::from_millis(CALM_MS)
    }

    /// Exchanges the packets and events of the endpoints.
    fn settle(&mut self) {
        for index in [0, 1] {
            let mut packet = Vec::new();
            while let Some(route) = self.hosts[index].endpoint.poll_transmit(self.now, &mut packet)
            {
                self.send(index, route, &packet);
            }
            while let Some((id, event)) = self.hosts[index].endpoint.poll_event() {
                self.on_event(index, id, &event);
            }
        }
    }

    fn send(&mut self, from: usize, route: Route, packet: &[u8]) {
        self.packets += 1;
        let is_there = self.hosts[from].plugged.contains(&route.local.ip())
            && self.hosts[1 - from].plugged.contains(&route.remote.ip());
        // A host that moves before the other side is established may never be found again.
        let is_up = self.hosts.iter().all(|host| host.is_connected);
        let is_lost = is_up && !self.is_calm() && self.rng.chance(0.1);
        if is_there && !is_lost {
            let at = self.now + Duration::from_micros(5_000 + self.rng.below(20_000));
            self.wire.insert((at, self.packets), (1 - from, route.reversed(), packet.to_vec()));
        }
    }

    fn on_event(&mut self, index: usize, id: AssociationId, event: &Event) {
        let now = self.now;
        let host = &mut self.hosts[index];
        match event {
            Event::Connected { .. } => (host.id, host.is_connected) = (Some(id), true),
            Event::Readable => {
                while let Some(message) = host.endpoint.receive(now, id) {
                    assert_eq!(message.ppid, host.received, "exactly once, in order");
                    host.received += 1;
                }
            }
            Event::AddressChanged { change, refused } => {
                // A request overtaken by an address change may be refused, as its source differs; any other refusal is
                // found by the checks at the end. An address may be unplugged once the peer knows that it was deleted.
                // Addresses to which the host has moved stay plugged: a later move may have overtaken the request that
                // reports them.
                let (wanted, moved) = (host.wanted.clone(), host.moved.clone());
                if let (AddressChange::Deleted(deleted), None) = (*change, *refused) {
                    host.plugged.retain(|plugged| {
                        let is_deleted = deleted.is_unspecified() || *plugged == deleted;
                        !is_deleted || wanted.contains(plugged) || moved.contains(plugged)
                    });
                }
            }
            // The reason is reported by `Closed`.
            Event::MessageFailed { .. } => {}
            Event::Closed(_) | Event::PeerRestarted => {
                panic!("seed {}, {index} at {:?}: {event:?}", self.seed, self.now)
            }
            _ => {}
        }
    }

    fn change(&mut self) {
        let index = self.rng.below(2) as usize;
        let fresh = address(index, 1 + self.rng.below(6));
        let (now, kind) = (self.now, self.rng.below(10));
        let is_abrupt = index == 0 && self.rng.chance(0.5);
        let host = &mut self.hosts[index];
        let Some(id) = host.id else { return };
        match kind {
            0..4 => {
                if host.endpoint.add_address(now, id, fresh).is_ok() {
                    host.plugged.insert(fresh);
                    host.wanted.insert(fresh);
                }
            }
            4..7 => {
                if host.endpoint.delete_address(now, id, fresh).is_ok() {
                    host.wanted.remove(&fresh);
                }
            }
            7 => _ = host.endpoint.set_peer_primary(now, id, fresh),
            _ => {
                if host.endpoint.move_to(now, id, fresh).is_ok() {
                    host.plugged.insert(fresh);
                    host.wanted = BTreeSet::from([fresh]);
                    host.moved.insert(fresh);
                    if is_abrupt {
                        host.plugged = BTreeSet::from([fresh]);
                    }
                }
            }
        }
    }

    fn say_something(&mut self) {
        let index = self.rng.below(2) as usize;
        let len = 1 + self.rng.below(3_000) as usize;
        let host = &mut self.hosts[index];
        let Some(id) = host.id else { return };
        let message = OutboundMessage::new(0, vec![0; len]).ppid(host.sent);
        if host.endpoint.send(self.now, id, message).is_ok() {
            host.sent += 1;
        }
    }

    /// Advances to the next event, at `next` at the latest.
    fn step(&mut self, next: Instant) {
        let timers = self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout());
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        self.now = timers.chain(arrival).chain([next]).min().unwrap_or(next).max(self.now);
        while let Some(entry) = self.wire.first_entry().filter(|it| it.key().0 <= self.now) {
            let (to, route, packet) = entry.remove();
            // The address may have been unplugged meanwhile.
            if self.hosts[to].plugged.contains(&route.local.ip()) {
                self.hosts[to].endpoint.handle_input(self.now, route, &packet);
            }
        }
        let now = self.now;
        self.hosts.iter_mut().for_each(|host| host.endpoint.handle_timeout(now));
        self.settle();
    }

    fn run(&mut self) {
        let at = |host| SocketAddr::new(address(host, 1), 9899);
        let route = Route { local: at(0), remote: at(1) };
        let id = self.hosts[0].endpoint.connect(self.now, route, 5000).unwrap();
        self.hosts[0].id = Some(id);
        let mut next = Instant::from_millis(1_000);
        while !self.is_calm() {
            self.step(next);
            if self.now >= next {
                next = self.now + Duration::from_millis(1 + self.rng.below(300));
                if self.rng.chance(0.2) {
                    self.change();
                } else {
                    self.say_something();
                }
                self.settle();
            }
        }
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            self.step(end);
        }
    }

    /// The peer's addresses, as known to `index`.
    fn known(&self, index: usize) -> BTreeSet<IpAddr> {
        let host = &self.hosts[index];
        let paths = host.endpoint.statistics(host.id.unwrap()).unwrap().paths;
        let live = paths.iter().filter(|path| path.state != PathState::Removed);
        live.map(|path| path.remote.ip()).collect()
    }
}

#[test]
fn messages_arrive_once_and_addresses_agree_whatever_changes() {
    let (mut changes, mut messages) = (0, 0);
    for seed in 0..seeds() {
        let mut world = World::new(seed);
        world.run();
        for index in [0, 1] {
            let (this, other) = (&world.hosts[index], &world.hosts[1 - index]);
            assert_eq!(other.received, this.sent, "seed {seed}, from {index}");
            assert_eq!(world.known(1 - index), this.wanted, "seed {seed}, addresses of {index}");
            assert!(this.endpoint.is_idle(), "seed {seed}");
            changes += usize::from(this.wanted != BTreeSet::from([address(index, 1)]));
            messages += this.received;
        }
    }
    assert!(
        changes > seeds() as usize && messages > 1_000,
        "{changes} changes, {messages} messages"
    );
}
