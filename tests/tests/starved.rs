//! A server, or the host of its clients, without enough processor time: answers that are late on most connections at
//! once are not loss. In virtual time, so that each count is exact.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Machine as _, Route, Seed};

use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

const CLIENTS: usize = 1000;
const PORT: u16 = 5000;
/// From one host to the other.
const DELAY: Duration = Duration::from_micros(50);

/// A host with one core: packets are processed one after the other, each for a time, and timers only when no packet
/// waits.
struct Host {
    endpoints: Vec<(Endpoint, SocketAddr)>,
    cost: Duration,
    waiting: VecDeque<(usize, Route, Vec<u8>)>,
    busy_until: Instant,
}

impl Host {
    fn new(
        addresses: impl Iterator<Item = SocketAddr>,
        config: &EndpointConfig,
        cost: Duration,
    ) -> Self {
        let endpoint = |address: SocketAddr| {
            let seed = Seed::from_u64(address.port().into());
            (Endpoint::new(config.clone(), &seed).expect("a valid configuration"), address)
        };
        let endpoints = addresses.map(endpoint).collect();
        Self { endpoints, cost, waiting: VecDeque::new(), busy_until: Instant::ZERO }
    }
}

/// Two hosts: one with all clients, one with the server.
struct World {
    now: Instant,
    /// Clients, server.
    hosts: [Host; 2],
    /// Packets in flight, by time of arrival: the receiving host and the addresses.
    on_way: BTreeMap<(Instant, u64), (usize, Route, Vec<u8>)>,
    sent: u64,
    /// The clients' associations, and the server's, each as it became known.
    associations: [Vec<AssociationId>; 2],
    /// Messages that the clients have got back.
    returned: usize,
}

fn client_address(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 10_000 + number as u16))
}

impl World {
    fn new(profile: &str) -> Self {
        let recovery = RecoveryConfig::profile(profile).expect("it exists");
        let association = AssociationConfig::default().recovery(recovery).heartbeat_interval(None);
        let config = EndpointConfig::default().port(PORT).association(association.into());
        let server = SocketAddr::from(([192, 0, 2, 2], 9899));
        let none = Duration::ZERO;
        let clients = Host::new((0..CLIENTS).map(client_address), &config, none);
        let server = Host::new([server].into_iter(), &config.clone().accept(true), none);
        Self {
            now: Instant::from_millis(1000),
            hosts: [clients, server],
            on_way: BTreeMap::new(),
            sent: 0,
            associations: <[Vec<_>; 2]>::default(),
            returned: 0,
        }
    }

    /// Reads packets and events of the endpoint.
    fn drain(&mut self, host: usize, index: usize) {
        let now = self.now;
        loop {
            let (endpoint, address) = &mut self.hosts[host].endpoints[index];
            let mut packet = Vec::new();
            while let Some(route) = endpoint.poll_transmit(now, &mut packet) {
                let local = *address;
                let route = Route { local: route.remote, remote: local };
                self.sent += 1;
                let key = (now + DELAY, self.sent);
                self.on_way.insert(key, (1 - host, route, std::mem::take(&mut packet)));
            }
            let Some((id, event)) = endpoint.poll_event() else { return };
            match event {
                Event::Connected { .. } => self.associations[host].push(id),
                Event::Readable => {
                    while let Some(message) = endpoint.receive(now, id) {
                        if host == 1 {
                            let answer = OutboundMessage::new(0, message.payload);
                            endpoint.send(now, id, answer).expect("it is connected");
                        } else {
                            self.returned += 1;
                        }
                    }
                }
                Event::Closed(reason) => panic!("an association ended: {reason:?}"),
                _ => {}
            }
        }
    }

    /// Processes the next event: a packet that arrives, one that waits, or a timer.
    fn step(&mut self) {
        let arrival = self.on_way.first_key_value().map(|(&(at, _), _)| at);
        let hosts = self.hosts.iter();
        let waiting = hosts.clone().map(|it| (!it.waiting.is_empty()).then_some(it.busy_until));
        let timer = |it: &Host| {
            let timers = it.endpoints.iter().filter_map(|(endpoint, _)| endpoint.poll_timeout());
            timers.min().map(|at| at.max(it.busy_until))
        };
        let timers = hosts.map(|it| if it.waiting.is_empty() { timer(it) } else { None });
        let next = waiting.chain(timers).flatten().chain(arrival).min().expect("something");
        self.now = self.now.max(next);
        while let Some(entry) = self.on_way.first_entry().filter(|it| it.key().0 <= self.now) {
            let (host, route, packet) = entry.remove();
            let endpoints = &self.hosts[host].endpoints;
            let index =
                if endpoints.len() == 1 { 0 } else { usize::from(route.local.port()) - 10_000 };
            self.hosts[host].waiting.push_back((index, route, packet));
        }
        for host in 0..2 {
            let it = &mut self.hosts[host];
            if it.busy_until > self.now {
                continue;
            }
            if let Some((index, route, packet)) = it.waiting.pop_front() {
                it.busy_until = self.now + it.cost;
                it.endpoints[index].0.handle_input(self.now, route, &packet);
                self.drain(host, index);
            } else {
                for index in 0..it.endpoints.len() {
                    let endpoint = &mut self.hosts[host].endpoints[index].0;
                    if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                        endpoint.handle_timeout(self.now);
                        self.drain(host, index);
                    }
                }
            }
        }
    }

    fn connect(&mut self) {
        let remote = self.hosts[1].endpoints[0].1;
        for index in 0..CLIENTS {
            let route = Route { local: client_address(index), remote };
            let client = &mut self.hosts[0].endpoints[index].0;
            client.connect(self.now, route, PORT).expect("a new association");
            self.drain(0, index);
            while self.associations.iter().any(|known| known.len() <= index) {
                self.step();
            }
        }
        self.idle();
    }

    /// Advances the time, so that only timers are processed.
    fn idle(&mut self) {
        let end = self.now + Duration::from_millis(500);
        while self.on_way.first_key_value().is_some_and(|(&(at, _), _)| at < end)
            || self.hosts.iter().any(|host| !host.waiting.is_empty())
        {
            self.step();
        }
        self.now = self.now.max(end);
    }

    fn send(&mut self, index: usize) {
        let id = self.associations[0][index];
        let client = &mut self.hosts[0].endpoints[index].0;
        client.send(self.now, id, OutboundMessage::new(0, vec![7; 100])).expect("it is connected");
        self.drain(0, index);
    }

    /// Data packets of the clients, and of the server.
    fn data_packets(&self) -> [u64; 2] {
        let clients = self.hosts[0].endpoints.iter().zip(&self.associations[0]);
        let of =
            |endpoint: &Endpoint, id| endpoint.statistics(id).map_or(0, |it| it.recovery.packets);
        let server = &self.hosts[1].endpoints[0].0;
        [
            clients.map(|((endpoint, _), &id)| of(endpoint, id)).sum(),
            self.associations[1].iter().map(|&id| of(server, id)).sum(),
        ]
    }

    /// All associations send a message at once; each packet costs this much processor time at either host. Returns the
    /// number of data packets of both sides.
    fn burst(&mut self, costs: [Duration; 2]) -> [u64; 2] {
        let before = self.data_packets();
        (self.hosts[0].cost, self.hosts[1].cost) = (costs[0], costs[1]);
        self.returned = 0;
        (0..CLIENTS).for_each(|index| self.send(index));
        while self.returned < CLIENTS {
            self.step();
        }
        self.idle();
        let after = self.data_packets();
        [after[0] - before[0], after[1] - before[1]]
    }

    /// The server sends a message to each client at once; each packet costs the clients' host this much processor time.
    /// Returns the server's data packets.
    fn burst_of_server(&mut self, cost: Duration) -> u64 {
        let before = self.data_packets();
        (self.hosts[0].cost, self.hosts[1].cost) = (cost, NONE);
        self.returned = 0;
        for id in self.associations[1].clone() {
            let server = &mut self.hosts[1].endpoints[0].0;
            server.send(self.now, id, OutboundMessage::new(0, vec![7; 100])).expect("connected");
        }
        self.drain(1, 0);
        while self.returned < CLIENTS {
            self.step();
        }
        self.idle();
        self.data_packets()[1] - before[1]
    }

    /// Each client sends some messages while the others are idle.
    fn calm(&mut self) {
        for _ in 0..10 {
            for index in 0..CLIENTS {
                self.returned = 0;
                self.send(index);
                while self.returned == 0 {
                    self.step();
                }
            }
            self.idle();
        }
    }
}

const NONE: Duration = Duration::ZERO;
const COST: Duration = Duration::from_micros(20);

/// The last of the clients is answered after 40 ms: twice 1000 packets of 20 µs each.
#[test]
fn a_thousand_clients_at_once_over_cold_paths_are_no_loss() {
    let mut world = World::new("interactive");
    world.connect();
    for costs in [[NONE, COST], [COST, COST], [COST, NONE]] {
        let [clients, server] = world.burst(costs);
        let all = clients + server;
        assert!(all <= 2000 * 105 / 100, "{clients} and {server} packets for 2000, {costs:?}");
    }
}

/// The RTT estimate is 0.1 ms; clients then answer after up to 40 ms.
#[test]
fn a_server_whose_clients_are_late_puts_probes_off() {
    let mut world = World::new("interactive");
    world.connect();
    world.calm();
    let [_, server] = world.burst([COST, NONE]);
    assert!(server <= 1050, "{server} packets of the server for 1000");
}

/// One endpoint sends on a thousand connections. Over cold paths, and over paths on which 0.1 ms is usual, ACKs come after
/// up to 20 ms, or after up to 120 ms; `rfc9260` sends each message once. The late ACKs of the first connections extend
/// the wait of the others; over cold paths, half of all come before the first probe is due.
#[test]
fn one_endpoint_with_a_thousand_late_connections_takes_nothing_for_lost() {
    for (cost_us, is_warm) in [(20, false), (20, true), (120, false), (120, true)] {
        let mut world = World::new("interactive");
        world.connect();
        if is_warm {
            world.calm();
        }
        let packets = world.burst_of_server(Duration::from_micros(cost_us));
        assert!(packets <= 1050, "{packets} for 1000, {cost_us} us, warm: {is_warm}");
    }
}
