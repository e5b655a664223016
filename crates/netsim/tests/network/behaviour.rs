//! Times, statistics, calls and limits.

use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Machine, Route, Seed};
use rexmit_netsim::network::{
    BuildError, Direction, Dumbbell, Livelock, Network, Occurrence, PointToPoint,
};
use rexmit_netsim::path::{Delay, Hold, Jitter, Loss, PathConfig, QueueLimit};

use crate::machines::Node;

const MS: Duration = Duration::from_millis(1);

fn delay(ms: u32) -> PathConfig {
    PathConfig { delay: Delay::constant(MS * ms), ..PathConfig::default() }
}

fn network<M: Machine>() -> Network<M> {
    Network::new(&Seed::from_u64(1))
}

/// Times in milliseconds and hosts of all packets received until `end`.
fn arrivals(network: &mut Network<Node>, end: u64) -> Vec<(f64, u8)> {
    let mut seen = Vec::new();
    network
        .run_until(Instant::from_millis(end), |cx, occurrence| {
            if let Occurrence::Event(received) = occurrence {
                let SocketAddr::V4(local) = received.route.local else { panic!("IPv4 here") };
                seen.push((cx.now().as_nanos() as f64 / 1e6, local.ip().octets()[3]));
            }
        })
        .unwrap();
    seen
}

#[test]
fn ping_and_pong_arrive_at_exact_times() {
    let mut network = network();
    let ping = Node { outbox: [(PointToPoint::route(), vec![7; 80])].into(), ..Node::echo() };
    let path = PathConfig { rate: BitRate::new(800_000), ..delay(50) };
    let pair = PointToPoint::build(&mut network, [ping, Node::echo()], &path).unwrap();
    // 80 bytes and an IP header take 1 ms at 800 kbit/s.
    let seen = arrivals(&mut network, 255);
    assert_eq!(seen, [(51.0, 2), (102.0, 1), (153.0, 2), (204.0, 1), (255.0, 2)]);
    assert_eq!(network.now(), Instant::from_millis(255));
    let stats = network.link_stats(pair.link, Direction::Forward);
    assert_eq!((stats.path.offered, stats.path.offered_bytes), (3, 300));
    assert_eq!((stats.arrivals.delivered, stats.arrivals.delivered_bytes), (3, 300));
    let host = network.host_stats(pair.hosts[1]);
    assert_eq!((host.packets_in, host.bytes_in, host.packets_out), (3, 240, 3));
    assert_eq!(network.packets_in_flight().0, 1);
}

#[test]
fn encapsulation_in_udp_takes_eight_bytes_more() {
    let mut network = network();
    let plain = PointToPoint::route();
    let port = |mut address: SocketAddr| {
        address.set_port(9899);
        address
    };
    let route = Route { local: port(plain.local), remote: port(plain.remote) };
    let machines = [Node::sending(route, &[7; 72]), Node::default()];
    let path = PathConfig { rate: BitRate::new(800_000), ..PathConfig::default() };
    PointToPoint::build(&mut network, machines, &path).unwrap();
    assert_eq!(arrivals(&mut network, 10), [(1.0, 2)]);
}

#[test]
fn hosts_of_a_dumbbell_share_the_bottleneck() {
    let mut network = network();
    let sources = (0..4).map(|n| {
        let route = Route {
            local: SocketAddr::new(Dumbbell::left_address(n), 0),
            remote: SocketAddr::new(Dumbbell::right_address(n), 0),
        };
        // 1000 bytes on the wire every 2 ms: 4 Mbit/s each, twice the shared rate together.
        Node::source(route, 980, 2 * MS, Instant::ZERO)
    });
    let sinks = (0..4).map(|_| Node::default());
    let shared =
        PathConfig { rate: BitRate::new(8_000_000), queue: QueueLimit::Packets(10), ..delay(20) };
    // Jitter prevents synchronization, in which one sender always finds the queue full.
    let delay = Delay { mean: MS, jitter: Jitter::Uniform(MS) };
    let access = PathConfig { delay, ..PathConfig::default() };
    let dumbbell = Dumbbell::build(&mut network, sources, sinks, &access, &shared).unwrap();
    let end = Instant::from_millis(10_000);
    network.run_until(end, |_, _| {}).unwrap();

    let stats = network.link_stats(dumbbell.bottleneck, Direction::Forward);
    // A packet per millisecond, each with a delay of 20 to 22 ms.
    let delivered = stats.arrivals.delivered;
    assert!((9_975..=9_980).contains(&delivered), "{delivered}");
    assert_eq!(stats.path.max_queue_packets, 10);
    assert_eq!(stats.path.offered, stats.path.passed + stats.path.lost_queue);
    let received = dumbbell.right.iter().map(|&host| network.host_stats(host).packets_in);
    let received: Vec<_> = received.collect();
    assert!(received.iter().all(|n| (2200..2800).contains(n)), "{received:?}");
    let sent: u64 = dumbbell.left.iter().map(|&host| network.host_stats(host).packets_out).sum();
    assert_eq!(sent, 4 * 5001);
}

#[test]
fn loss_holding_and_duplication_reach_the_hosts() {
    let mut network = network();
    let bytes = |n: u8| (PointToPoint::route(), vec![n]);
    let sender = Node { outbox: (0..6).map(bytes).collect(), ..Node::default() };
    let path = PathConfig {
        loss: Loss { packets: vec![4], ..Loss::default() },
        holds: vec![Hold { packet: 1, by: 2 }],
        duplicate: 1.0,
        ..delay(5)
    };
    let pair = PointToPoint::build(&mut network, [sender, Node::default()], &path).unwrap();
    let mut order = Vec::new();
    network
        .run_until(Instant::FAR_FUTURE, |_, occurrence| {
            let Occurrence::Event(received) = occurrence else { return };
            order.push(received.bytes[0]);
        })
        .unwrap();
    assert_eq!(order, [0, 0, 2, 2, 3, 3, 1, 1, 5, 5]);
    assert_eq!(network.now(), Instant::from_millis(5), "a run to the end ends with the last event");
    assert_eq!(network.link_stats(pair.link, Direction::Forward).arrivals.reordered, 2);
    assert_eq!(network.packets_in_flight().0, 0);
}

#[test]
fn a_corrupted_packet_differs_in_one_bit_and_so_does_its_copy() {
    let mut network = network();
    let machines = [Node::sending(PointToPoint::route(), &[0; 40]), Node::default()];
    let path = PathConfig { corrupt: 1.0, duplicate: 1.0, ..delay(5) };
    PointToPoint::build(&mut network, machines, &path).unwrap();
    let mut seen = Vec::new();
    network
        .run_until(Instant::FAR_FUTURE, |_, occurrence| {
            let Occurrence::Event(received) = occurrence else { return };
            seen.push(received.bytes);
        })
        .unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}

#[test]
fn calls_happen_at_their_times_and_in_the_order_of_scheduling() {
    let mut network = network();
    let machines = [Node::default(), Node::default()];
    let [a, b] = PointToPoint::build(&mut network, machines, &delay(5)).unwrap().hosts;
    network.wake_at(b, Instant::from_millis(20), 7);
    network.call_at(a, Instant::from_millis(20), move |cx| {
        cx.machine().outbox.push_back((PointToPoint::route(), vec![1]));
        cx.wake_at(b, cx.now() + 5 * MS, 8);
        cx.wake_at(a, Instant::ZERO, 9);
    });
    let mut log = Vec::new();
    network
        .run_until(Instant::from_millis(100), |cx, occurrence| {
            let what = match occurrence {
                Occurrence::Event(_) => 0,
                Occurrence::Wake(token) => token,
            };
            log.push((cx.now().as_nanos() / 1_000_000, cx.host(), what));
        })
        .unwrap();
    // The packet of a call is sent after the call has returned, so after the calls that it scheduled.
    assert_eq!(log, [(20, b, 7), (20, a, 9), (25, b, 8), (25, b, 0)]);
}

#[test]
fn the_application_may_stop_a_run_and_go_on() {
    let mut network = network();
    let ping = Node { outbox: [(PointToPoint::route(), vec![7])].into(), ..Node::echo() };
    let pair = PointToPoint::build(&mut network, [ping, Node::echo()], &delay(10)).unwrap();
    let end = Instant::from_millis(100);
    network.run_until(end, |cx, _| cx.stop()).unwrap();
    assert_eq!(network.now(), Instant::from_millis(10));
    assert_eq!(network.next_at(), Some(Instant::from_millis(20)));
    assert_eq!(arrivals(&mut network, 20), [(20.0, 1)]);
    network.machine_mut(pair.hosts[0]).outbox.push_back((PointToPoint::route(), vec![8]));
    assert_eq!(arrivals(&mut network, 30), [(30.0, 2), (30.0, 2)]);
}

#[test]
fn machines_of_several_kinds_share_a_network_in_boxes() {
    type Boxed = Box<dyn Machine<Event = crate::machines::Received>>;
    let mut network: Network<Boxed> = network();
    let machines: [Boxed; 2] =
        [Box::new(Node::sending(PointToPoint::route(), b"x")), Box::new(Node::echo())];
    let pair = PointToPoint::build(&mut network, machines, &delay(10)).unwrap();
    network.run_until(Instant::from_millis(100), |_, _| {}).unwrap();
    assert_eq!(network.host_stats(pair.hosts[0]).packets_in, 1);
}

#[test]
fn a_host_in_a_livelock_is_named() {
    let restless = |machines: [Node; 2], path: &PathConfig| {
        let mut network = network();
        network.set_step_limit(1000);
        PointToPoint::build(&mut network, machines, path).unwrap();
        network.run_until(Instant::from_millis(1), |_, _| {})
    };
    let livelock = |host: &str| Livelock { host: host.into(), at: Instant::ZERO, steps: 1000 };
    let error = restless([Node::default(), Node::restless()], &delay(5)).unwrap_err();
    assert_eq!(error, livelock("b"));
    assert_eq!(
        error.to_string(),
        "host b does not become idle at 0.000000s: it was called 1000 times"
    );
    // Two hosts that answer each other without any delay.
    let ping = Node { outbox: [(PointToPoint::route(), vec![7])].into(), ..Node::echo() };
    let error = restless([ping.clone(), Node::echo()], &PathConfig::default()).unwrap_err();
    assert_eq!(error.at, Instant::ZERO);
    assert_eq!(restless([ping, Node::echo()], &delay(1)), Ok(()));
    // An application that wakes itself without end.
    let mut network = network();
    network.set_step_limit(1000);
    let host = network.add_host("sleepless", Node::default());
    network.wake_at(host, Instant::ZERO, 0);
    let end = Instant::from_millis(1);
    let error = network.run_until(end, |cx, _| cx.wake_at(cx.host(), cx.now(), 0)).unwrap_err();
    assert_eq!(error, livelock("sleepless"));
}

#[test]
fn rearming_a_timer_per_packet_schedules_no_event() {
    let mut network = network();
    let source = Node::source(PointToPoint::route(), 10, MS, Instant::ZERO);
    let pair = PointToPoint::build(&mut network, [source, Node::rearming()], &delay(5)).unwrap();
    let mut most = 0;
    for second in 1..=20 {
        network.run_until(Instant::from_millis(second * 1000), |_, _| {}).unwrap();
        most = most.max(network.scheduled_events());
    }
    // Only the packets in flight: one per millisecond, for 5 ms each.
    assert!(most <= 6, "{most}");
    assert!(network.packets_in_flight().1 <= 6, "buffers are used again");
    assert_eq!(network.machine(pair.hosts[1]).expired(), 0);
}

#[test]
fn idle_hosts_cost_nothing() {
    let mut network = network();
    let hosts = |_| (0..2000).map(|_| Node::default());
    Dumbbell::build(&mut network, hosts(0), hosts(1), &delay(1), &delay(1)).unwrap();
    network.run_until(Instant::from_millis(3_600_000), |_, _| {}).unwrap();
    assert_eq!(network.stats().events, 0);
}

#[test]
fn a_network_that_cannot_be_is_refused() {
    let mut network: Network<Node> = network();
    let a = network.add_host("a", Node::default());
    let b = network.add_host("b", Node::default());
    let c = network.add_host("c", Node::default());
    let [na, nb] = [a, b].map(|host| network.host_node(host));
    let [one, two] = PointToPoint::ADDRESSES;
    assert_eq!(network.add_link(na, na, delay(1), delay(1)), Err(BuildError::Loop("a".into())));
    let bad = PathConfig { corrupt: 2.0, ..delay(1) };
    assert!(matches!(network.add_link(na, nb, delay(1), bad), Err(BuildError::Path(_))));
    let link = network.add_link(na, nb, delay(1), delay(1)).unwrap();
    network.add_address(a, one, link).unwrap();
    assert_eq!(network.add_address(b, one, link), Err(BuildError::AddressTaken(one)));
    let error = network.add_address(c, two, link).unwrap_err();
    assert_eq!(error, BuildError::NotAtLink { host: "c".into(), address: two });
}

#[test]
fn networks_and_paths_may_move_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Network<Node>>();
    is_send::<rexmit_netsim::path::PathModel>();
    is_send::<rexmit_netsim::path::Pipe<Vec<u8>>>();
}

#[test]
fn a_link_changes_at_its_time() {
    let mut network = network();
    let source = Node::source(PointToPoint::route(), 10, 100 * MS, Instant::from_millis(50));
    let pair = PointToPoint::build(&mut network, [source, Node::default()], &delay(5)).unwrap();
    let change = Instant::from_millis(150);
    network.change_path_at(pair.link, Direction::Forward, change, delay(9)).unwrap();
    assert_eq!(arrivals(&mut network, 300), [(55.0, 2), (159.0, 2), (259.0, 2)]);
}
