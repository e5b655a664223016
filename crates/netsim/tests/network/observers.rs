//! The packet events that observers receive.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit_core::{Instant, Route, Seed};
use rexmit_netsim::network::{
    Direction, DropCause, Dumbbell, HostId, LinkId, Network, ObservedPacket, PacketObserver,
    PacketStep, PointToPoint, RouterId,
};
use rexmit_netsim::path::{LossCause, PathConfig};

use crate::machines::Node;

/// A step in milliseconds, with the packet's number, its first byte and its size on the wire.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Told {
    ms: f64,
    id: u64,
    first: u8,
    wire_bytes: usize,
    is_damaged: bool,
    step: PacketStep,
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Told>>>);

impl PacketObserver for Listener {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        self.0.lock().unwrap().push(Told {
            ms: now.as_nanos() as f64 / 1e6,
            id: packet.id.0,
            first: packet.bytes[0],
            wire_bytes: packet.wire_bytes,
            is_damaged: packet.is_damaged,
            step,
        });
    }
}

impl Listener {
    fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn steps(&self) -> Vec<(f64, u64, PacketStep)> {
        self.take().iter().map(|reported| (reported.ms, reported.id, reported.step)).collect()
    }
}

fn run(network: &mut Network<Node>, ms: u64) {
    network.run_until(Instant::from_millis(ms), |_, _| {}).unwrap();
}

#[test]
fn every_step_of_every_packet_is_observed_in_order() {
    let mut network = Network::new(&Seed::from_u64(1));
    let route = PointToPoint::route();
    let sender = Node { outbox: (0..3).map(|n| (route, vec![n; 30])).collect(), ..Node::default() };
    let path = "delay 5ms loss list 1 hold 0 1".parse().unwrap();
    let pair = PointToPoint::build(&mut network, [sender, Node::echo()], &path).unwrap();
    let listener = Listener::default();
    network.add_observer(listener.clone());
    run(&mut network, 100);
    let [here, there] = pair.hosts;
    let link = pair.link;
    let lost = |direction| {
        let cause = LossCause::Listed;
        PacketStep::Dropped(DropCause::Link { link, direction, cause })
    };
    let sent = |host: HostId| PacketStep::Sent { host };
    let received = |host: HostId| PacketStep::Received { host };
    let reported = listener.take();
    assert!(reported.iter().all(|reported| reported.wire_bytes == 50));
    // The echoes of 2 and 0 are 3 and 4. On the way back, too, the first is held until one has
    // passed, and the second is lost.
    let firsts: Vec<_> = reported.iter().map(|reported| (reported.id, reported.first)).collect();
    assert!(firsts.iter().all(|pair| [(0, 0), (1, 1), (2, 2), (3, 2), (4, 0)].contains(pair)));
    let steps: Vec<_> =
        reported.iter().map(|reported| (reported.ms, reported.id, reported.step)).collect();
    let expected = [
        (0.0, 0, sent(here)),
        (0.0, 1, sent(here)),
        (0.0, 1, lost(Direction::Forward)),
        (0.0, 2, sent(here)),
        (5.0, 2, received(there)),
        (5.0, 3, sent(there)),
        (5.0, 0, received(there)),
        (5.0, 4, sent(there)),
        (5.0, 4, lost(Direction::Backward)),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn a_duplicated_packet_keeps_its_number_and_corruption_is_reported() {
    let mut network = Network::new(&Seed::from_u64(1));
    let sender = Node::sending(PointToPoint::route(), &[0; 30]);
    let path = PathConfig { duplicate: 1.0, corrupt: 1.0, ..PathConfig::default() };
    let pair = PointToPoint::build(&mut network, [sender, Node::default()], &path).unwrap();
    let listener = Listener::default();
    network.add_observer(listener.clone());
    run(&mut network, 1);
    let reported = listener.take();
    assert!(reported.iter().all(|reported| reported.id == 0));
    let reported: Vec<_> =
        reported.iter().map(|reported| (reported.step, reported.is_damaged)).collect();
    let received = PacketStep::Received { host: pair.hosts[1] };
    let doubled = PacketStep::Duplicated { link: pair.link, direction: Direction::Forward };
    let sent = PacketStep::Sent { host: pair.hosts[0] };
    assert_eq!(reported, [(sent, false), (doubled, false), (received, true), (received, true)]);
}

type SetUp = fn(&mut Network<Node>, RouterId, [LinkId; 2]);

/// The events of the single packet of a host next to a router and another host.
fn end_of(remote: &str, bytes: usize, set_up: SetUp) -> PacketStep {
    let remote = SocketAddr::new(remote.parse().unwrap(), 0);
    let [here, there] = PointToPoint::ADDRESSES;
    let route = Route { local: SocketAddr::new(here, 0), remote };
    let mut network = Network::new(&Seed::from_u64(1));
    let a = network.add_host("a", Node::sending(route, &vec![1; bytes]));
    let b = network.add_host("b", Node::default());
    let router = network.add_router("r");
    let mut link = |host: HostId| {
        let (node, path) = (network.host_node(host), PathConfig::default);
        network.add_link(node, router.into(), path(), path()).unwrap()
    };
    let links = [link(a), link(b)];
    network.add_address(a, here, links[0]).unwrap();
    network.add_address(b, there, links[1]).unwrap();
    set_up(&mut network, router, links);
    let listener = Listener::default();
    network.add_observer(listener.clone());
    run(&mut network, 1);
    let steps = listener.steps();
    assert_eq!((steps.len(), steps[0].2), (2, PacketStep::Sent { host: a }));
    steps[1].2
}

#[test]
fn unsendable_packets_are_observed_as_sent_and_dropped() {
    let is_dropped = |step, cause| assert_eq!(step, PacketStep::Dropped(cause));
    is_dropped(end_of("::1", 1, |_, _, _| {}), DropCause::Unsendable);
    is_dropped(end_of("10.0.0.2", 65_508, |_, _, _| {}), DropCause::Unsendable);
    is_dropped(end_of("10.9.9.9", 1, |_, _, _| {}), DropCause::NoRoute);
    let to_b = |network: &mut Network<Node>, _: RouterId, links: [LinkId; 2]| {
        network.set_route(None, "10.9.9.9".parse().unwrap(), links[1], Direction::Backward);
    };
    is_dropped(end_of("10.9.9.9", 1, to_b), DropCause::Misdelivered);
    // The router forwards to a second router, which forwards back to it.
    let in_a_ring = |network: &mut Network<Node>, router: RouterId, _: [LinkId; 2]| {
        let other = network.add_router("s").into();
        let path = PathConfig::default;
        let ring = network.add_link(router.into(), other, path(), path()).unwrap();
        let remote = "10.9.9.9".parse().unwrap();
        network.set_route(None, remote, ring, Direction::Forward);
        network.set_route(None, remote, ring, Direction::Backward);
    };
    is_dropped(end_of("10.9.9.9", 1, in_a_ring), DropCause::HopLimit);
}

/// Every packet and every duplicate has exactly one final event.
#[test]
fn every_sent_or_duplicated_packet_is_received_or_dropped() {
    for seed in 1..6 {
        let mut network = Network::new(&Seed::from_u64(seed));
        let address = |address| SocketAddr::new(address, 0);
        let sources = (0..3).map(|n| {
            let [local, remote] = [Dumbbell::left_address(n), Dumbbell::right_address(n)];
            let route = Route { local: address(local), remote: address(remote) };
            Node::source(route, 500, Duration::from_millis(2), Instant::ZERO)
        });
        let shared =
            "delay 5ms 2ms loss 5% reorder 2% 10ms duplicate 5% corrupt 5% rate 5mbit limit 9";
        let access = "delay 1ms loss 1% duplicate 2%".parse().unwrap();
        let sinks = (0..3).map(|_| Node::default());
        let shared = shared.parse().unwrap();
        let dumbbell = Dumbbell::build(&mut network, sources, sinks, &access, &shared).unwrap();
        let listener = Listener::default();
        network.add_observer(listener.clone());
        run(&mut network, 5000);
        let reported = listener.take();
        let mut under_way = BTreeMap::new();
        let (mut sent, mut received, mut queue) = (0, 0, 0);
        for reported in &reported {
            let count = under_way.entry(reported.id).or_insert(0_i32);
            match reported.step {
                PacketStep::Sent { .. } => {
                    assert_eq!((*count, reported.id), (0, sent), "numbers are given in order");
                    sent += 1;
                    *count += 1;
                }
                PacketStep::Duplicated { .. } => *count += 1,
                PacketStep::Received { host } => {
                    received += u64::from(dumbbell.right.contains(&host));
                    *count -= 1;
                }
                PacketStep::Dropped(cause) => {
                    queue += u64::from(matches!(
                        cause,
                        DropCause::Link { link, cause: LossCause::Queue, .. } if link == dumbbell.bottleneck
                    ));
                    *count -= 1;
                }
            }
            if *count == 0 {
                under_way.remove(&reported.id);
            }
        }
        let still: i32 = under_way.values().sum();
        assert_eq!(still as usize, network.packets_in_flight().0);
        let hosts =
            |hosts: &[HostId]| hosts.iter().map(|&host| *network.host_stats(host)).collect();
        let (left, right): (Vec<_>, Vec<_>) = (hosts(&dumbbell.left), hosts(&dumbbell.right));
        assert_eq!(sent, left.iter().map(|host| host.packets_out).sum::<u64>());
        assert_eq!(received, right.iter().map(|host| host.packets_in).sum::<u64>());
        let bottleneck = network.link_stats(dumbbell.bottleneck, Direction::Forward);
        assert_eq!(queue, bottleneck.path.lost_queue);
        assert!(queue > 100 && bottleneck.path.duplicated > 50, "{queue}");
    }
}
