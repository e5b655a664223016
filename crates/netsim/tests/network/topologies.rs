//! The predefined topologies: reachability, delays and routes.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit_core::{Instant, Route, Seed};
use rexmit_netsim::network::{
    Direction, DualDumbbell, Dumbbell, DumbbellPaths, HostId, Network, Occurrence, PointToPoint,
    SharedBuffer, TapPoint,
};
use rexmit_netsim::path::{PathConfig, QueueLimit};

use crate::machines::Node;

fn way(local: IpAddr, remote: IpAddr) -> Route {
    Route { local: SocketAddr::new(local, 0), remote: SocketAddr::new(remote, 0) }
}

/// All arrivals until the network is idle: host, time in microseconds, sender.
fn arrivals(network: &mut Network<Node>) -> Vec<(HostId, u64, IpAddr)> {
    let mut seen = Vec::new();
    network
        .run_until(Instant::FAR_FUTURE, |cx, occurrence| {
            let Occurrence::Event(received) = occurrence else { return };
            seen.push((cx.host(), cx.now().as_nanos() / 1000, received.route.remote.ip()));
        })
        .unwrap();
    seen
}

#[test]
fn a_dumbbell_has_room_for_hundreds() {
    const PAIRS: u32 = 400;
    let mut network = Network::new(&Seed::from_u64(1));
    // Each host sends to its counterpart, and to the one after that.
    let left = (0..PAIRS).map(|n| {
        let local = Dumbbell::left_address(n);
        let remotes = [n, (n + 1) % PAIRS].map(Dumbbell::right_address);
        let outbox = remotes.map(|remote| (way(local, remote), vec![0; 980])).into();
        Node { outbox, ..Node::default() }
    });
    let right = (0..PAIRS).map(|_| Node::default());
    let access: PathConfig = "delay 5ms".parse().unwrap();
    let shared: PathConfig = "delay 45ms rate 8mbit".parse().unwrap();
    let dumbbell = Dumbbell::build(&mut network, left, right, &access, &shared).unwrap();
    let mut seen = arrivals(&mut network);
    assert_eq!(seen.len(), 800);
    // One packet a millisecond, in the order of the hosts.
    assert!(seen.iter().zip(1..).all(|(arrival, n)| arrival.1 == 55_000 + n * 1000), "{seen:?}");
    seen.sort_unstable_by_key(|&(host, ..)| host);
    for (n, pair) in (0..PAIRS).zip(seen.chunks(2)) {
        assert!(pair.iter().all(|arrival| arrival.0 == dumbbell.right[n as usize]));
        let mut senders = pair.iter().map(|arrival| arrival.2).collect::<Vec<_>>();
        senders.sort_unstable();
        let mut expected = [n, (n + PAIRS - 1) % PAIRS].map(Dumbbell::left_address);
        expected.sort_unstable();
        assert_eq!(senders, expected);
    }
}

/// Every host on the left sends a packet of 1000 bytes on the wire to its counterpart on the right.
fn dual(network: &mut Network<Node>, paths: &[DumbbellPaths; 2]) -> DualDumbbell {
    let sender = Node {
        outbox: [0, 1].map(|path| (DualDumbbell::route(path), vec![0; 980])).into(),
        ..Node::default()
    };
    let background = [0, 1].map(|path| {
        let left = (0..DualDumbbell::BACKGROUND_HOSTS).map(|n| {
            let local = DualDumbbell::left_address(path, n);
            Node::sending(way(local, DualDumbbell::right_address(path, n)), &[0; 980])
        });
        let right = (0..DualDumbbell::BACKGROUND_HOSTS).map(|_| Node::default());
        [left.collect(), right.collect()]
    });
    DualDumbbell::build(network, [sender, Node::default()], background, paths).unwrap()
}

#[test]
fn a_dual_dumbbell_has_two_paths_that_do_not_meet() {
    let mut network = Network::new(&Seed::from_u64(1));
    let dual = dual(&mut network, &Default::default());
    let seen = arrivals(&mut network);
    // 80 µs on each edge link, and 0.8 ms for each of the six on the shared one.
    for path in [0, 1] {
        let on_path: Vec<_> = seen
            .iter()
            .filter(|(_, _, from)| {
                *from == DualDumbbell::sender_address(path)
                    || (0..5).any(|n| *from == DualDumbbell::left_address(path, n))
            })
            .collect();
        let times: Vec<_> = on_path.iter().map(|arrival| arrival.1).collect();
        assert_eq!(times, [1, 2, 3, 4, 5, 6].map(|n| 55_000 + 2 * 80 + n * 800));
        assert_eq!(on_path[0].0, dual.receiver);
        let hosts: Vec<_> = on_path[1..].iter().map(|arrival| arrival.0).collect();
        assert_eq!(hosts, dual.dumbbells[path].right);
        let shared = network.link_stats(dual.dumbbells[path].bottleneck, Direction::Forward);
        assert_eq!(shared.path.offered, 6);
        let own = network.link_stats(dual.receiver_access[path], Direction::Backward);
        assert_eq!(own.arrivals.delivered, 1);
    }
    // No host forwards from one to the other.
    let crossed = way(DualDumbbell::sender_address(0), DualDumbbell::receiver_address(1));
    network.machine_mut(dual.sender).outbox.push_back((crossed, vec![0]));
    assert_eq!(arrivals(&mut network), []);
    assert_eq!(network.stats().no_route + network.host_stats(dual.sender).unsendable, 1);
}

#[test]
fn queues_and_delays_of_a_dual_dumbbell_are_settable() {
    let mut network = Network::new(&Seed::from_u64(1));
    let mut paths = <[DumbbellPaths; 2]>::default();
    assert_eq!(paths[0].bottleneck.queue, QueueLimit::Packets(50));
    paths[1].bottleneck.queue = QueueLimit::Packets(2);
    paths[1].access.delay.mean = Duration::from_millis(1);
    let dual = dual(&mut network, &paths);
    assert_eq!(arrivals(&mut network).len(), 12 - 3, "one is sent, two wait");
    let shared = network.link_stats(dual.dumbbells[1].bottleneck, Direction::Forward);
    assert_eq!((shared.path.lost_queue, shared.path.max_queue_packets), (3, 2));
}

#[test]
fn packets_carry_the_protocol_number_of_the_host_that_sends_them() {
    let mut network = Network::new(&Seed::from_u64(1));
    let route = PointToPoint::route();
    let mut in_udp = route;
    in_udp.remote.set_port(9);
    let tcp = Node { outbox: [(route, vec![0]), (in_udp, vec![0])].into(), ..Node::default() };
    let machines = [tcp, Node::sending(route.reversed(), &[0])];
    let pair = PointToPoint::build(&mut network, machines, &PathConfig::default()).unwrap();
    network.set_ip_protocol(pair.hosts[0], 6);
    let buffer = SharedBuffer::default();
    let tap = network.tap(&[TapPoint::Host(pair.hosts[1])], buffer.clone()).unwrap();
    arrivals(&mut network);
    network.finish_tap(tap).unwrap();
    let bytes = buffer.bytes();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        seen.push((packet.data[15], packet.data[9])); // end of the source address, protocol
    }
    seen.sort_unstable();
    assert_eq!(seen, [(1, 6), (1, 17), (2, 132)]);
}
