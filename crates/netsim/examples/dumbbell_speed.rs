//! Measures the speed of the simulator: flows with a fixed window of 1460-byte packets over a
//! dumbbell, each packet acknowledged by 40 bytes.
//!
//! `cargo run --release -p rexmit-netsim --example dumbbell_speed -- 50 600` runs 50 flows for 600
//! seconds of virtual time and prints the numbers of packets and events; divide them by the elapsed
//! time, measured with `time` or a profiler.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_netsim::network::{Direction, Dumbbell, Network};
use rexmit_netsim::path::PathConfig;

const DATA: usize = 1460;
const ACK: usize = 40;
const WINDOW: u32 = 20;

/// Keeps a window of packets in flight, or acknowledges every packet.
struct Flow {
    route: Route,
    is_sender: bool,
    owed: u32,
    received: u64,
    deadline: Option<Instant>,
}

impl Flow {
    fn new(n: u32, is_sender: bool) -> Self {
        let route = Route {
            local: SocketAddr::new(Dumbbell::left_address(n), 0),
            remote: SocketAddr::new(Dumbbell::right_address(n), 0),
        };
        Self {
            route: if is_sender { route } else { route.reversed() },
            is_sender,
            owed: if is_sender { WINDOW } else { 0 },
            received: 0,
            deadline: None,
        }
    }
}

impl Machine for Flow {
    type Event = ();

    fn handle_input(&mut self, now: Instant, _: Route, packet: &[u8]) {
        self.received += packet.len() as u64;
        self.owed += 1;
        // As a retransmission timer: armed anew with every acknowledgement.
        self.deadline = self.is_sender.then(|| now + Duration::from_secs(1));
    }

    fn handle_timeout(&mut self, _: Instant) {
        self.deadline = None;
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.owed = self.owed.checked_sub(1)?;
        packet.clear();
        packet.resize(if self.is_sender { DATA } else { ACK }, 0);
        Some(self.route)
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (flows, seconds) = match numbers[..] {
        [flows, seconds] => (flows as u32, seconds),
        _ => (50, 600),
    };
    let mut network = Network::new(&Seed::from_u64(1));
    let access: PathConfig = "delay 5ms rate 100mbit limit 100000".parse().expect("a path");
    let shared: PathConfig = "delay 45ms rate 10mbit limit 100000".parse().expect("a path");
    let left = (0..flows).map(|n| Flow::new(n, true));
    let right = (0..flows).map(|n| Flow::new(n, false));
    let dumbbell = Dumbbell::build(&mut network, left, right, &access, &shared).expect("a network");
    network.run_until(Instant::from_millis(seconds * 1000), |_, _| {}).expect("becomes idle");
    let delivered: u64 = dumbbell.right.iter().map(|&host| network.machine(host).received).sum();
    let ends = |links: &[_]| -> u64 {
        let hops = |&link| {
            let of = |direction| network.link_stats(link, direction).arrivals.delivered;
            of(Direction::Forward) + of(Direction::Backward)
        };
        links.iter().map(hops).sum()
    };
    let shared = [dumbbell.bottleneck];
    let hops = ends(&dumbbell.left_access) + ends(&dumbbell.right_access) + ends(&shared);
    println!(
        "{flows} flows, {seconds} s: {} data packets delivered, {hops} packet-hops, {} events",
        delivered / DATA as u64,
        network.stats().events
    );
}
