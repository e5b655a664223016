//! Web clients and their server.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Fetch, Host, Transport, WebClients, WebLoad, WebServer, WebStats};
use rexmit_netsim::network::{Direction, Network, PointToPoint};
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::source::{WebClient, WebClientSource};
use rexmit_tcp::Endpoint as Tcp;

use crate::kit::{at, dumbbell_over, left, path, right, run, sctp, seconds, tcp};

type Files = std::vec::IntoIter<(Instant, usize)>;

fn files(files: &[(u64, usize)]) -> Files {
    let files = files.iter().map(|&(ms, bytes)| (Instant::from_millis(ms), bytes));
    files.collect::<Vec<_>>().into_iter()
}

/// The results of a client and its server.
struct Outcome {
    stats: WebStats,
    fetches: Vec<Fetch>,
    served: u64,
    broken: u64,
}

/// Lets one client fetch `asked`.
fn fetch<T: Transport>(
    endpoints: [T; 2],
    asked: &[(u64, usize)],
    path: &PathConfig,
    change: impl Fn(&mut WebLoad),
) -> Outcome {
    let [mut local, server] = PointToPoint::ADDRESSES.map(at);
    local.set_port(0);
    let mut load = WebLoad { keeps_fetches: true, ..WebLoad::new(local, server) };
    change(&mut load);
    let [of_client, of_server] = endpoints;
    let clients = WebClients::<T, _>::new(load, [files(asked)]);
    let machines = [Host::new(of_client, clients), Host::new(of_server, WebServer::<T>::new())];
    let mut network = Network::new(&Seed::from_u64(1));
    let hosts = PointToPoint::build(&mut network, machines, path).unwrap().hosts;
    run(&mut network, seconds(300));
    let clients = network.machine(hosts[0]).program::<WebClients<T, Files>>().unwrap();
    let server = network.machine(hosts[1]).program::<WebServer<T>>().unwrap();
    assert_eq!((clients.open_requests(), server.open_connections()), (0, 0));
    Outcome {
        stats: clients.stats().clone(),
        fetches: clients.fetches().to_vec(),
        served: server.served(),
        broken: server.broken(),
    }
}

fn tcps() -> [Tcp; 2] {
    [1, 2].map(|seed| tcp("tcp-sack", &Seed::from_u64(seed)))
}

#[test]
fn a_file_takes_a_handshake_a_request_and_its_own_time() {
    // 8 Mbit/s: a byte takes a microsecond.
    let path = path("delay 50ms rate 8mbit limit 1000");
    let outcome = fetch(tcps(), &[(1000, 1448), (5000, 50_000)], &path, |_| {});
    let stats = &outcome.stats;
    assert_eq!((stats.asked, stats.completed, outcome.served), (2, 2, 2));
    assert_eq!((stats.asked_bytes, stats.received_bytes), (51_448, 51_448));
    assert_eq!((stats.failed, stats.aborted, stats.refused, stats.damaged_pieces), (0, 0, 0, 0));
    let took = |n: usize| outcome.fetches[n].completed_at - outcome.fetches[n].asked_at;
    // SYN and SYN-ACK have 24 bytes of aligned options, the request and the file 12.
    assert_eq!(took(0), Duration::from_micros(4 * 50_000 + 64 + 64 + 352 + 1500));
    // 35 packets in two windows: one round trip more.
    let packets = 35 * 52 + 50_000;
    let least = Duration::from_micros(4 * 50_000 + packets);
    assert!((least..least + Duration::from_millis(250)).contains(&took(1)), "{:?}", took(1));
}

#[test]
fn files_come_over_sctp_too() {
    let endpoints = [1, 2].map(|seed| {
        // The client's port is in use: one association at a time.
        sctp(&Seed::from_u64(seed))
    });
    let path = path("delay 50ms rate 8mbit limit 1000");
    let outcome = fetch(endpoints, &[(0, 100), (5000, 200_000)], &path, |_| {});
    assert_eq!((outcome.stats.completed, outcome.served), (2, 2));
    assert_eq!(outcome.stats.received_bytes, 200_100);
}

#[test]
fn a_client_aborts_after_its_timeout() {
    let path = path("delay 50ms rate 80kbit limit 1000");
    let asked = [(0, 100), (1000, 100_000)];
    let outcome = fetch(tcps(), &asked, &path, |load| {
        load.file_timeout = Some(Duration::from_secs(2));
    });
    let stats = &outcome.stats;
    assert_eq!((stats.asked, stats.completed, stats.aborted, stats.failed), (2, 1, 1, 0));
    assert!((1000..100_000).contains(&stats.received_bytes), "{stats:?}");
    assert_eq!(outcome.broken, 1, "the server sees a reset");
}

#[test]
fn requests_beyond_the_limit_are_refused_and_counted() {
    let path = path("delay 50ms");
    let at_once = [(0, 1000), (0, 1000), (0, 1000), (1000, 1000)];
    let outcome = fetch(tcps(), &at_once, &path, |load| load.max_open = 2);
    let stats = &outcome.stats;
    assert_eq!((stats.asked, stats.completed, stats.refused, outcome.served), (4, 3, 1, 3));
}

#[test]
fn a_server_that_does_not_listen_fails_every_request() {
    let mut endpoints = tcps();
    endpoints[1].stop_listening(crate::kit::PORT);
    let outcome = fetch(endpoints, &[(0, 10), (10, 10)], &path("delay 1ms"), |_| {});
    assert_eq!((outcome.stats.asked, outcome.stats.failed), (2, 2));
}

/// The load of the studies, offered to `bottleneck`, for ten minutes.
fn load(bottleneck: &PathConfig) -> (WebStats, u64) {
    const CLIENTS: u32 = 81;
    let seed = Seed::from_u64(3);
    let web = WebClient { stop: seconds(600), ..WebClient::default() };
    let sources = (0..CLIENTS).map(|n| web.source(&seed.split(&format!("client {n}"))).unwrap());
    let clients = WebClients::<Tcp, _>::new(WebLoad::new(left(0), right(0)), sources);
    let machines = [
        vec![Host::new(tcp("tcp-sack", &seed.split("clients")), clients)],
        vec![Host::new(tcp("tcp-sack", &seed.split("server")), WebServer::<Tcp>::new())],
    ];
    let [here, there] = machines;
    let (mut network, dumbbell) = dumbbell_over(bottleneck, &seed, here, there);
    run(&mut network, seconds(900));
    let clients = network.machine(dumbbell.left[0]);
    let clients = clients.program::<WebClients<Tcp, WebClientSource>>().unwrap();
    let link = network.link_stats(dumbbell.bottleneck, Direction::Backward);
    (clients.stats().clone(), link.arrivals.delivered_bytes)
}

#[test]
fn the_offered_load_is_what_the_parameters_say() {
    // Ten times as fast as the load: every file comes.
    let (stats, wire_bytes) = load(&path("delay 45ms rate 100mbit limit 1000"));
    let requests = 81.0 * 600.0 / 0.655;
    // 5 standard deviations of a Poisson number.
    assert!((stats.asked as f64 - requests).abs() < 5.0 * requests.sqrt(), "{}", stats.asked);
    // Sizes have a heavy tail: the mean of 74,000 varies by 15 % or so.
    let rate = stats.asked_bytes as f64 * 8.0 / 600.0;
    let expected = 81.0 * 9200.0 * 8.0 / 0.655;
    assert!((rate / expected - 1.0).abs() < 0.3, "{rate} of {expected}");
    assert_eq!((stats.completed, stats.received_bytes), (stats.asked, stats.asked_bytes));
    assert_eq!((stats.failed, stats.aborted, stats.refused, stats.damaged_pieces), (0, 0, 0, 0));
    let overhead = wire_bytes as f64 / stats.asked_bytes as f64;
    assert!((1.03..1.15).contains(&overhead), "{overhead}");
}

#[test]
fn an_overloaded_link_loses_packets_but_no_file() {
    let (stats, _) = load(&path("delay 45ms rate 10mbit limit 100"));
    assert_eq!((stats.completed, stats.received_bytes), (stats.asked, stats.asked_bytes));
    assert_eq!((stats.failed, stats.damaged_pieces), (0, 0));
    assert!(stats.completion.quantile(0.99) > Duration::from_secs(1));
}
