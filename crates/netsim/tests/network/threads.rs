//! Runs on several threads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::{Instant, Rng, Route, Seed};
use rexmit_netsim::network::{
    Direction, Dumbbell, HostId, HostStats, LinkId, LinkStats, Network, NetworkStats, NodeId,
    ObservedPacket, PacketObserver, PacketStep, PointToPoint, SharedBuffer, TapId, TapPoint,
};
use rexmit_netsim::path::PathConfig;

use crate::machines::Node;

/// The end of the runs.
const END: Instant = Instant::from_millis(300);

/// Paths with the delay 1, 2 or 4 ms, so that many packets arrive at one instant.
fn random_path(rng: &mut Rng) -> PathConfig {
    const KINDS: [&str; 10] = [
        "",
        "rate 2mbit limit 20",
        "loss 5%",
        "rate 1mbit fq_codel limit 50",
        "duplicate 3% corrupt 3%",
        "rate 1mbit limit 30 red 5 15",
        "reorder 10% 1ms",
        "delay 3ms 1ms",
        "delay 2ms 1ms distribution normal",
        "loss burst 5% 3",
    ];
    let kind = KINDS[rng.below(KINDS.len() as u64) as usize];
    let delay = ["delay 1ms", "delay 2ms", "delay 4ms"][rng.below(3) as usize];
    let words = if kind.starts_with("delay") { kind.to_owned() } else { format!("{delay} {kind}") };
    words.parse().unwrap_or_else(|error| panic!("{words}: {error:?}"))
}

struct Lab {
    network: Network<Node>,
    hosts: Vec<HostId>,
    links: Vec<LinkId>,
    captures: Vec<(TapId, SharedBuffer)>,
}

/// The end of a run: what was captured, and all counters.
#[derive(PartialEq, Debug)]
struct End {
    captures: Vec<Vec<u8>>,
    hosts: Vec<HostStats>,
    links: Vec<LinkStats>,
    network: NetworkStats,
    next_at: Option<Instant>,
    scheduled: usize,
    in_flight: usize,
}

impl Lab {
    /// A random tree of routers with hosts that send to each other, at times that often coincide.
    fn random(seed: u64) -> Self {
        let seed = Seed::from_u64(seed);
        let mut rng = seed.split("plan").rng();
        let mut network = Network::for_threads(&seed.split("network"));
        let mut links = Vec::new();
        let mut routers: Vec<NodeId> = Vec::new();
        for n in 0..2 + rng.below(4) {
            let router = network.add_router(format!("router {n}")).into();
            if !routers.is_empty() {
                let other = routers[rng.below(n) as usize];
                let paths = [random_path(&mut rng), random_path(&mut rng)];
                let [forward, backward] = paths;
                links.push(network.add_link(other, router, forward, backward).unwrap());
            }
            routers.push(router);
        }
        let count = 3 + rng.below(6);
        let address = |n: u64| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n as u8));
        let mut hosts = Vec::new();
        for n in 0..count {
            let remote = (n + 1 + rng.below(count - 1)) % count;
            let ends = [n, remote].map(|n| SocketAddr::new(address(n), 0));
            let route = Route { local: ends[0], remote: ends[1] };
            let gap = Duration::from_millis(1 + rng.below(5));
            let first = Instant::from_millis(rng.below(3));
            let len = 40 + rng.below(300) as usize;
            let node =
                if rng.chance(0.4) { Node::echo() } else { Node::source(route, len, gap, first) };
            let host = network.add_host(format!("host {n}"), node);
            let router = routers[rng.below(routers.len() as u64) as usize];
            let node = network.host_node(host);
            let path = if rng.chance(0.5) { PathConfig::default() } else { random_path(&mut rng) };
            let link = network.add_link(node, router, path.clone(), path).unwrap();
            network.add_address(host, address(n), link).unwrap();
            links.push(link);
            hosts.push(host);
        }
        for &link in &links {
            if rng.chance(0.2) {
                let at = Instant::from_millis(rng.below(300));
                let path = random_path(&mut rng);
                network.change_path_at(link, Direction::Forward, at, path).unwrap();
            }
        }
        network.wake_at(hosts[0], Instant::from_millis(70), 1);
        let points = hosts.iter().map(|&host| TapPoint::Host(host));
        let exits = links.iter().map(|&link| TapPoint::Exit(link, Direction::Backward));
        let entries = links.iter().map(|&link| TapPoint::Entry(link, Direction::Forward));
        let points: Vec<_> = points.chain(exits).chain(entries).collect();
        let mut captures = Vec::new();
        for point in points {
            let buffer = SharedBuffer::default();
            captures.push((network.tap(&[point], buffer.clone()).unwrap(), buffer));
        }
        Self { network, hosts, links, captures }
    }

    fn end(&mut self) -> End {
        let network = &self.network;
        let directions = [Direction::Forward, Direction::Backward];
        let links = self.links.iter().flat_map(|&link| directions.map(|it| (link, it)));
        End {
            captures: self.captures.iter().map(|(_, buffer)| buffer.bytes()).collect(),
            hosts: self.hosts.iter().map(|&host| *network.host_stats(host)).collect(),
            links: links.map(|(link, direction)| network.link_stats(link, direction)).collect(),
            network: *network.stats(),
            next_at: network.next_at(),
            scheduled: network.scheduled_events(),
            in_flight: network.packets_in_flight().0,
        }
    }
}

#[test]
fn a_run_on_threads_gives_the_same_bytes() {
    let mut runs = [0; 5];
    let mut events = 0;
    for seed in 0..40 {
        let [mut whole, mut parted] = [Lab::random(seed), Lab::random(seed)];
        // In steps, so that the parts are united and divided while packets are in flight.
        for step in [50, 51, 150, 299, 300] {
            let end = Instant::from_millis(step);
            whole.network.run_until(end, |_, _| {}).unwrap();
            let threads = 2 + (seed as usize + step as usize) % 3;
            let used = parted.network.run_on_threads(end, threads).unwrap();
            assert!(used <= threads);
            runs[used] += 1;
            let [whole, parted] = [whole.end(), parted.end()];
            assert!(whole == parted, "seed {seed}, {step} ms, {used} threads");
        }
        // And on one thread again.
        for lab in [&mut whole, &mut parted] {
            lab.network.run_until(END + Duration::from_millis(100), |_, _| {}).unwrap();
            for (tap, _) in &lab.captures {
                lab.network.finish_tap(*tap).unwrap();
            }
        }
        let [whole, parted] = [whole.end(), parted.end()];
        assert!(whole == parted, "seed {seed}");
        events += whole.network.events;
    }
    assert!(events > 50_000, "{events}");
    // Most networks are divided, into two parts and into more.
    assert!(runs[2] > 20 && runs[3] > 20 && runs[4] > 20 && runs[1] < 50, "{runs:?}");
}

fn pair(nodes: [Node; 2], path: &str) -> (Network<Node>, PointToPoint) {
    let mut network = Network::for_threads(&Seed::from_u64(1));
    let path: PathConfig = path.parse().unwrap();
    let pair = PointToPoint::build(&mut network, nodes, &path).unwrap();
    (network, pair)
}

fn source() -> Node {
    Node::source(PointToPoint::route(), 100, Duration::from_millis(1), Instant::ZERO)
}

#[test]
fn what_concerns_the_whole_network_is_done_on_one_thread() {
    struct Observer;
    impl PacketObserver for Observer {
        fn observe(&mut self, _: Instant, _: &ObservedPacket<'_>, _: PacketStep) {}
    }
    let run = |path: &str, change: &dyn Fn(&mut Network<Node>, PointToPoint)| {
        let (mut network, pair) = pair([source(), Node::echo()], path);
        change(&mut network, pair);
        let used = network.run_on_threads(END, 2).unwrap();
        assert_eq!(network.now(), END);
        assert!(network.host_stats(pair.hosts[1]).packets_in > 270);
        used
    };
    assert_eq!(run("delay 20ms", &|_, _| {}), 2);
    // The shortest delay counts, also of a configuration that is planned.
    assert_eq!(run("delay 20ms 20ms", &|_, _| {}), 1);
    assert_eq!(run("delay 50us", &|_, _| {}), 1);
    let hold = |network: &mut Network<Node>, pair: PointToPoint| {
        let path = "delay 1us".parse().unwrap();
        network
            .change_path_at(pair.link, Direction::Backward, END - Duration::from_millis(10), path)
            .unwrap();
    };
    assert_eq!(run("delay 20ms", &hold), 1);
    assert_eq!(run("delay 20ms", &|network, _| network.add_observer(Observer)), 1);
    let call = |network: &mut Network<Node>, pair: PointToPoint| {
        network.call_at(pair.hosts[0], END, |_| {});
    };
    assert_eq!(run("delay 20ms", &call), 1);
    let tap = |network: &mut Network<Node>, pair: PointToPoint| {
        let points = pair.hosts.map(TapPoint::Host);
        network.tap(&points, SharedBuffer::default()).unwrap();
    };
    assert_eq!(run("delay 20ms", &tap), 1);
    let ended = |network: &mut Network<Node>, pair: PointToPoint| {
        let points = pair.hosts.map(TapPoint::Host);
        let tap = network.tap(&points, SharedBuffer::default()).unwrap();
        network.finish_tap(tap).unwrap();
    };
    assert_eq!(run("delay 20ms", &ended), 2);
    let mut network = Network::new(&Seed::from_u64(1));
    PointToPoint::build(&mut network, [source(), Node::echo()], &"delay 20ms".parse().unwrap())
        .unwrap();
    assert_eq!(network.run_on_threads(END, 2), Ok(1));
}

/// Packets that wait in a queue keep the delay of the configuration with which they were offered.
#[test]
fn a_path_whose_delay_has_grown_is_not_cut_while_packets_of_before_wait() {
    let run = |threads: usize| {
        let fast: PathConfig = "delay 10us rate 1mbit fq_codel limit 50".parse().unwrap();
        let slow: PathConfig = "delay 20ms rate 1mbit fq_codel limit 50".parse().unwrap();
        let mut network = Network::for_threads(&Seed::from_u64(1));
        let back =
            Route { local: PointToPoint::route().remote, remote: PointToPoint::route().local };
        let gap = Duration::from_micros(500);
        let nodes =
            [PointToPoint::route(), back].map(|route| Node::source(route, 100, gap, Instant::ZERO));
        let pair = PointToPoint::build(&mut network, nodes, &fast).unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            network
                .change_path_at(pair.link, direction, Instant::from_millis(50), slow.clone())
                .unwrap();
        }
        let buffers = pair.hosts.map(|host| {
            let buffer = SharedBuffer::default();
            network.tap(&[TapPoint::Host(host)], buffer.clone()).unwrap();
            buffer
        });
        network.run_until(Instant::from_millis(60), |_, _| {}).unwrap();
        let used = network.run_on_threads(END, threads).unwrap();
        (buffers.map(|buffer| buffer.bytes()), used)
    };
    let [(alone, _), (divided, used)] = [1, 2].map(run);
    assert!(alone == divided && used == 1);
}

#[test]
fn packets_have_numbers_of_their_own_after_a_run_on_threads() {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};
    struct Numbers(Arc<Mutex<BTreeSet<u64>>>);
    impl PacketObserver for Numbers {
        fn observe(&mut self, _: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
            let mut sent = self.0.lock().unwrap();
            match step {
                PacketStep::Sent { .. } => assert!(sent.insert(packet.id.0)),
                // Those that were under way before arrive, too, under numbers that no later one has.
                _ => assert!(sent.contains(&packet.id.0) || packet.id.0 < 1000),
            }
        }
    }
    let (mut network, _) = pair([source(), Node::echo()], "delay 20ms");
    assert_eq!(network.run_on_threads(Instant::from_millis(100), 2), Ok(2));
    let sent = Arc::default();
    network.add_observer(Numbers(Arc::clone(&sent)));
    let under_way = network.packets_in_flight().0;
    network.run_until(Instant::from_millis(200), |_, _| {}).unwrap();
    let sent = sent.lock().unwrap();
    // 100 packets and 81 echoes by then: the numbers of later ones are higher.
    assert!(under_way > 20 && sent.first().is_some_and(|&first| first >= 181), "{sent:?}");
}

#[test]
fn a_deadline_in_the_past_does_nothing() {
    let events = [1, 2].map(|threads| {
        let (mut network, pair) = pair([source(), Node::echo()], "delay 20ms");
        network.run_until(Instant::from_millis(100), |_, _| {}).unwrap();
        network.wake_at(pair.hosts[0], Instant::from_millis(100), 1);
        network.run_on_threads(Instant::from_millis(50), threads).unwrap();
        (network.stats().events, network.now())
    });
    assert_eq!(events[0], events[1]);
}

#[test]
fn a_livelock_of_one_part_ends_all() {
    let (mut network, _) = pair([source(), Node::restless()], "delay 20ms");
    network.set_step_limit(1000);
    // At once, before the parts run.
    let at_once = network.run_on_threads(END, 2).unwrap_err();
    assert_eq!((at_once.host.as_str(), at_once.at), ("b", Instant::ZERO));

    let (mut network, pair) = pair([source(), Node::echo()], "delay 20ms");
    network.set_step_limit(1000);
    network.run_on_threads(Instant::from_millis(100), 2).unwrap();
    *network.machine_mut(pair.hosts[1]) = Node::restless_after(Instant::from_millis(200));
    let later = network.run_on_threads(END, 2).unwrap_err();
    assert_eq!((later.host.as_str(), later.at), ("b", Instant::from_millis(200)));
}

/// The host that does not become idle is beside a source, whose packets of the same step are on their way to the other part.
#[test]
fn packets_that_were_sent_before_a_livelock_are_under_way() {
    let path = |words: &str| words.parse::<PathConfig>().unwrap();
    let mut network = Network::for_threads(&Seed::from_u64(1));
    let [from, to] = [Dumbbell::left_address(0), Dumbbell::right_address(0)];
    let route = Route { local: SocketAddr::new(from, 0), remote: SocketAddr::new(to, 0) };
    let source = Node::source(route, 100, Duration::from_millis(1), Instant::ZERO);
    let left = vec![source, Node::restless_after(Instant::from_millis(200))];
    let right = vec![Node::default()];
    let built = Dumbbell::build(&mut network, left, right, &path("delay 0ms"), &path("delay 20ms"))
        .unwrap();
    assert_eq!(network.run_on_threads(Instant::from_millis(100), 2), Ok(2));
    network.set_step_limit(1000);
    let livelock = network.run_on_threads(END, 2).unwrap_err();
    assert_eq!(livelock.at, Instant::from_millis(200));
    let sent = network.host_stats(built.left[0]).packets_out;
    let arrived = network.host_stats(built.right[0]).packets_in;
    assert!(sent > arrived);
    assert_eq!(network.packets_in_flight().0 as u64, sent - arrived);
}

#[test]
fn a_panic_of_one_machine_ends_all() {
    let (mut network, pair) = pair([source(), Node::echo()], "delay 20ms");
    *network.machine_mut(pair.hosts[1]) = Node::panicking_after(Instant::from_millis(200));
    let run = std::panic::AssertUnwindSafe(|| network.run_on_threads(END, 2));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as the test wants"));
}
