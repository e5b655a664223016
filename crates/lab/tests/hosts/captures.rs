//! Captures of hosts with different transports, and reproducibility: a run is a function of its seed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rexmit_core::{Instant, Route, Seed};
use rexmit_lab::hosts::{
    Bulk, BulkSender, Datagrams, Host, Sink, Thin, ThinPlan, ThinReceiver, ThinSender, WebClients,
    WebLoad, WebServer,
};
use rexmit_netsim::network::{Direction, SharedBuffer, TapPoint};
use rexmit_netsim::source::{ConstantRate, UdpSender, UdpSink, WebClient};

use crate::kit::{dumbbell, left, right, run, sctp, seconds, tcp};

/// The capture at the entry of a bottleneck between TCP, SCTP, web and UDP hosts, for some seconds.
fn mixed(number: u64) -> Vec<u8> {
    let seed = Seed::from_u64(number);
    let part = |name: &str| seed.split(name);
    let every_100_ms = (0..50).map(|n| (Instant::from_millis(100 * n), 100));
    let plan = ThinPlan::new(every_100_ms, Instant::FAR_FUTURE);
    let web = WebClient { mean_interval: Duration::from_millis(50), ..WebClient::default() };
    let load = WebLoad::new(left(3), right(3));
    let clients = (0..3).map(|n| web.source(&part(&format!("client {n}"))).unwrap());
    let mut udp_from = left(2);
    udp_from.set_port(5004);
    let senders = vec![
        Host::new(tcp("tcp-cubic", &part("a")), BulkSender::new(Bulk::new(left(0), right(0)))),
        Host::new(sctp(&part("b")), ThinSender::new(Thin::new(left(1), right(1)), plan.clone())),
        Host::new(
            Datagrams::new(None),
            ThinSender::new(Thin::new(udp_from, right(2)), plan.clone()),
        ),
        Host::new(tcp("tcp-sack", &part("c")), WebClients::new(load, clients)),
    ];
    let receivers = vec![
        Host::new(tcp("tcp-cubic", &part("d")), Sink::new(Duration::from_secs(1))),
        Host::new(sctp(&part("e")), ThinReceiver::new(plan.clone())),
        Host::new(Datagrams::new(Some(crate::kit::PORT)), ThinReceiver::new(plan)),
        Host::new(tcp("tcp-sack", &part("f")), WebServer::new()),
    ];
    let (mut network, dumbbell) = dumbbell(&seed, senders, receivers);
    let capture = SharedBuffer::default();
    let points = [TapPoint::Entry(dumbbell.bottleneck, Direction::Forward)];
    let tap = network.tap(&points, capture.clone()).unwrap();
    run(&mut network, seconds(10));
    network.finish_tap(tap).unwrap();
    capture.bytes()
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let capture = mixed(1);
    assert!(capture.len() > 1_000_000, "{}", capture.len());
    assert_eq!(hash(&mixed(1)), hash(&capture));
    assert_ne!(hash(&mixed(2)), hash(&capture));
}

#[test]
fn the_udp_machines_of_the_simulator_are_hosts_too() {
    let rate = ConstantRate { stop: seconds(5), ..ConstantRate::default() };
    let source = rate.source(&Seed::from_u64(1)).unwrap();
    let mut from = left(0);
    from.set_port(5004);
    let sender = UdpSender::new(Route { local: from, remote: right(0) }, source, 1472);
    let machines = [vec![Host::of(sender)], vec![Host::of(UdpSink::new(from))]];
    let [here, there] = machines;
    let (mut network, dumbbell) = dumbbell(&Seed::from_u64(1), here, there);
    run(&mut network, seconds(10));
    let sink = network.machine(dumbbell.right[0]).program::<UdpSink>().expect("it is there");
    // 56 packets of 1000 bytes a second.
    assert_eq!((sink.stats().numbered, sink.stats().bytes), (5 * 56, 5 * 56_000));
    assert_eq!(network.machine(dumbbell.left[0]).ip_protocol(), 17);
}

#[test]
fn every_host_shows_its_own_protocol() {
    // An IPv4 header begins with its version and length; the protocol and the source follow.
    let capture = mixed(3);
    for (host, protocol) in [(0_u8, 6), (1, 132), (2, 17), (3, 6)] {
        let source = [10, 64, 0, host + 1];
        let headers = capture.windows(20).filter(|ip| ip[0] == 0x45 && ip[12..16] == source);
        let protocols: Vec<u8> = headers.map(|ip| ip[9]).collect();
        assert!(protocols.len() >= 50, "host {host}: {}", protocols.len());
        assert!(protocols.iter().all(|&found| found == protocol), "host {host}");
    }
}
