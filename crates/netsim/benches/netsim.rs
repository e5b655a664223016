//! Time per offered packet, and events per second of the simulator.

use std::net::SocketAddr;
use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_netsim::network::{Dumbbell, Network};
use rexmit_netsim::path::{PathConfig, PathModel};

fn main() {
    divan::main();
}

const PATHS: [&str; 5] = [
    "",
    "delay 50ms loss 5%",
    "delay 50ms 5ms distribution normal loss 5% rate 1gbit",
    "delay 50ms loss burst 5% 100ms",
    "delay 50ms 5ms distribution pareto loss burst 5% 3 reorder 1% 5ms duplicate 1% rate 1gbit",
];

/// One packet each 100 µs.
#[divan::bench(args = PATHS)]
fn offer(bencher: Bencher<'_, '_>, path: &str) {
    const PACKETS: u64 = 10_000;
    let config: PathConfig = path.parse().expect("the words of a path");
    let mut model = PathModel::new(config, &Seed::from_u64(1)).expect("a valid path");
    let mut now = Instant::ZERO;
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for _ in 0..PACKETS {
            now += Duration::from_micros(100);
            black_box(model.offer(now, 1500));
        }
    });
}

/// Answers each packet, and rearms a timer for each.
struct PingPong {
    reply: Option<Route>,
    deadline: Option<Instant>,
}

impl Machine for PingPong {
    type Event = ();

    fn handle_input(&mut self, now: Instant, route: Route, _: &[u8]) {
        self.reply = Some(route);
        self.deadline = Some(now + Duration::from_secs(1));
    }

    fn handle_timeout(&mut self, _: Instant) {
        self.deadline = None;
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        let route = self.reply.take()?;
        packet.clear();
        packet.extend_from_slice(&[0; 100]);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

/// Ping-pong packets, 20 ms apart, on this many links at a time.
#[divan::bench(args = [1, 100])]
fn events(bencher: Bencher<'_, '_>, pairs: u32) {
    const EVENTS: u64 = 10_000;
    let mut network = Network::new(&Seed::from_u64(1));
    let path: PathConfig = "delay 10ms rate 1gbit".parse().expect("the words of a path");
    for n in 0..pairs {
        add_pair(&mut network, n, &path);
    }
    let rounds = EVENTS / u64::from(pairs);
    let mut end = network.now();
    let counted = bencher.counter(ItemsCount::new(rounds * u64::from(pairs)));
    counted.bench_local(|| {
        end += Duration::from_millis(10) * rounds as u32;
        network.run_until(end, |_, _| {}).expect("it becomes idle");
    });
}

fn add_pair(network: &mut Network<PingPong>, n: u32, path: &PathConfig) {
    let [a, b] = [Dumbbell::left_address(n), Dumbbell::right_address(n)];
    let route = Route { local: SocketAddr::new(a, 0), remote: SocketAddr::new(b, 0) };
    let first = network.add_host("first", PingPong { reply: Some(route), deadline: None });
    let second = network.add_host("second", PingPong { reply: None, deadline: None });
    let ends = [first, second].map(|host| network.host_node(host));
    let link = network.add_link(ends[0], ends[1], path.clone(), path.clone()).expect("a link");
    network.add_address(first, a, link).expect("a free address");
    network.add_address(second, b, link).expect("a free address");
}
