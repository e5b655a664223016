//! The routes of packets.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rexmit_core::{Instant, Route, Seed};
use rexmit_netsim::network::{Direction, HostId, LinkId, Network, Occurrence, PointToPoint};
use rexmit_netsim::path::{Delay, PathConfig};

use crate::machines::Node;

fn delay(ms: u64) -> PathConfig {
    PathConfig { delay: Delay::constant(Duration::from_millis(ms)), ..PathConfig::default() }
}

fn route(local: &str, remote: &str) -> Route {
    let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
    Route { local: address(local), remote: address(remote) }
}

/// Two hosts with two addresses each, over two routers: 10 ms and 30 ms away.
///
/// ```text
///      10.1.0.1 ── r1 ── 10.1.0.2
///   a                             b
///      10.2.0.1 ── r2 ── 10.2.0.2
/// ```
struct Multihomed {
    network: Network<Node>,
    hosts: [HostId; 2],
    /// a–r1, r1–b, a–r2, r2–b.
    links: [LinkId; 4],
}

fn multihomed(join_routers: bool) -> Multihomed {
    let mut network = Network::new(&Seed::from_u64(1));
    let [a, b] = ["a", "b"].map(|name| network.add_host(name, Node::default()));
    let [na, nb] = [a, b].map(|host| network.host_node(host));
    let [r1, r2] = ["r1", "r2"].map(|name| network.add_router(name).into());
    let mut link = |from, to, ms| network.add_link(from, to, delay(ms), delay(ms)).unwrap();
    let links = [link(na, r1, 5), link(r1, nb, 5), link(na, r2, 15), link(r2, nb, 15)];
    if join_routers {
        link(r1, r2, 100);
    }
    for (host, address, link) in [
        (a, "10.1.0.1", links[0]),
        (b, "10.1.0.2", links[1]),
        (a, "10.2.0.1", links[2]),
        (b, "10.2.0.2", links[3]),
    ] {
        network.add_address(host, address.parse().unwrap(), link).unwrap();
    }
    Multihomed { network, hosts: [a, b], links }
}

/// Sends a packet from a. Returns the time of its arrival at b, in milliseconds, and its source.
fn deliver(setup: &mut Multihomed, route: Route) -> Option<(u64, IpAddr)> {
    let begin = setup.network.now();
    setup.network.machine_mut(setup.hosts[0]).outbox.push_back((route, vec![1]));
    let mut seen = None;
    setup
        .network
        .run_until(begin + Duration::from_secs(1), |cx, occurrence| {
            let Occurrence::Event(received) = occurrence else { return };
            let ms = (cx.now() - begin).as_millis() as u64;
            seen = Some((ms, received.route.remote.ip()));
        })
        .unwrap();
    seen
}

#[test]
fn packets_are_sent_over_the_link_of_their_local_address() {
    let mut setup = multihomed(false);
    let from = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut send = |local, remote| deliver(&mut setup, route(local, remote));
    assert_eq!(send("10.1.0.1", "10.1.0.2"), Some((10, from("10.1.0.1"))));
    assert_eq!(send("10.2.0.1", "10.2.0.2"), Some((30, from("10.2.0.1"))));
    assert_eq!(send("0.0.0.0", "10.1.0.2"), Some((10, from("10.1.0.1"))), "chosen by the network");
    assert_eq!(send("0.0.0.0", "10.2.0.2"), Some((30, from("10.2.0.1"))));
    assert_eq!(send("10.1.0.1", "10.2.0.2"), None, "the routers are not joined");
    assert_eq!(send("10.1.0.1", "10.9.9.9"), None);
    assert_eq!(send("10.1.0.1", "::1"), None);
    let host = setup.hosts[0];
    assert_eq!(setup.network.host_stats(host).unsendable, 3);

    let mut joined = multihomed(true);
    let seen = deliver(&mut joined, route("10.1.0.1", "10.2.0.2"));
    assert_eq!(seen, Some((5 + 100 + 15, from("10.1.0.1"))));
}

#[test]
fn routes_by_hand_come_first() {
    let mut setup = multihomed(false);
    let local = "10.1.0.1".parse().ok();
    let remote = "10.2.0.2".parse().unwrap();
    setup.network.set_route(local, remote, setup.links[2], Direction::Forward);
    let seen = deliver(&mut setup, route("10.1.0.1", "10.2.0.2"));
    assert_eq!(seen.unwrap().0, 30);
}

#[test]
fn a_loop_of_routes_ends_at_the_hop_limit() {
    let mut network = Network::new(&Seed::from_u64(1));
    let host = network.add_host("a", Node::sending(route("10.0.0.1", "10.0.0.9"), b"x"));
    let node = network.host_node(host);
    let [x, y] = ["x", "y"].map(|name| network.add_router(name).into());
    let access = network.add_link(node, x, delay(0), delay(0)).unwrap();
    let ring = network.add_link(x, y, delay(0), delay(0)).unwrap();
    network.add_address(host, PointToPoint::ADDRESSES[0], access).unwrap();
    let remote = "10.0.0.9".parse().unwrap();
    network.set_route(None, remote, ring, Direction::Forward);
    network.set_route(None, remote, ring, Direction::Backward);
    network.run_until(Instant::from_millis(1), |_, _| {}).unwrap();
    assert_eq!(network.stats().hop_limit_exceeded, 1);
    // The first of 64 links is the one to x.
    let stats = [Direction::Forward, Direction::Backward]
        .map(|direction| network.link_stats(ring, direction).path.offered);
    assert_eq!(stats, [32, 31]);
    assert_eq!(network.packets_in_flight().0, 0);
}

#[test]
fn a_router_without_a_route_drops_and_counts() {
    let mut network = Network::new(&Seed::from_u64(1));
    let host = network.add_host("a", Node::sending(route("10.0.0.1", "10.0.0.9"), b"x"));
    let node = network.host_node(host);
    let router = network.add_router("r");
    let link = network.add_link(node, router.into(), delay(1), delay(1)).unwrap();
    network.add_address(host, PointToPoint::ADDRESSES[0], link).unwrap();
    network.run_until(Instant::from_millis(10), |_, _| {}).unwrap();
    assert_eq!(network.stats().no_route, 1);
}

#[test]
fn too_large_a_packet_is_not_sent() {
    let mut network = Network::new(&Seed::from_u64(1));
    let sender = Node::sending(PointToPoint::route(), &vec![0; 65_508]);
    let pair = PointToPoint::build(&mut network, [sender, Node::default()], &delay(1)).unwrap();
    network.run_until(Instant::from_millis(10), |_, _| {}).unwrap();
    assert_eq!(network.host_stats(pair.hosts[0]).unsendable, 1);
    assert_eq!(network.packets_in_flight().0, 0);
}

#[test]
fn a_router_may_route_by_source() {
    // Two links from the router to b: one of 5 ms, and one of 50 ms for packets from a2 only.
    let mut network = Network::new(&Seed::from_u64(1));
    let hosts = ["a", "b"].map(|name| network.add_host(name, Node::default()));
    let [a, b] = hosts.map(|host| network.host_node(host));
    let router = network.add_router("r").into();
    let access = network.add_link(a, router, delay(1), delay(1)).unwrap();
    let near = network.add_link(router, b, delay(5), delay(5)).unwrap();
    let far = network.add_link(router, b, delay(50), delay(50)).unwrap();
    let [a1, a2, b1] = ["10.0.0.1", "10.0.0.2", "10.0.1.1"];
    for (host, address, link) in [(0, a1, access), (0, a2, access), (1, b1, near)] {
        network.add_address(hosts[host], address.parse().unwrap(), link).unwrap();
    }
    network.set_route(a2.parse().ok(), b1.parse().unwrap(), far, Direction::Forward);
    let mut setup = Multihomed { network, hosts, links: [access, near, far, far] };
    let mut ms = |from| deliver(&mut setup, route(from, b1)).map(|(ms, _)| ms);
    assert_eq!([ms(a1), ms(a2), ms(a1)], [Some(6), Some(51), Some(6)]);
    // From the next run on, all packets take it.
    setup.network.set_route(None, b1.parse().unwrap(), far, Direction::Forward);
    assert_eq!(deliver(&mut setup, route(a1, b1)).unwrap().0, 51);
}
