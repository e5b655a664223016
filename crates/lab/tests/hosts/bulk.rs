//! Bulk transfers.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Bulk, BulkSender, Host, Sink, Transport};
use rexmit_netsim::network::{Direction, Network, PointToPoint};
use rexmit_sctp::Endpoint as Sctp;
use rexmit_tcp::Endpoint as Tcp;

use crate::kit::{PORT, at, path, run, sctp, seconds, tcp, tcp_transfers};

/// Checks that a transfer arrives unchanged over a path with every impairment.
fn arrives_whole<T: Transport>(endpoint: impl Fn(&Seed) -> T) {
    const BYTES: u64 = 1_000_003;
    for number in 0..3 {
        let seed = Seed::from_u64(number);
        let [from, to] = PointToPoint::ADDRESSES.map(at);
        let bulk = Bulk { limit_bytes: Some(BYTES), ..Bulk::new(from, to) };
        let machines = [
            Host::new(endpoint(&seed.split("a")), BulkSender::<T>::new(bulk)),
            Host::new(endpoint(&seed.split("b")), Sink::<T>::new(Duration::from_secs(1))),
        ];
        let mut network = Network::new(&seed);
        let path = path("delay 30ms 5ms loss 2% reorder 2% 20ms duplicate 1% corrupt 0.5%");
        let hosts = PointToPoint::build(&mut network, machines, &path).unwrap().hosts;
        run(&mut network, seconds(600));
        let sender = network.machine(hosts[0]).program::<BulkSender<T>>().unwrap();
        let sink = network.machine(hosts[1]).program::<Sink<T>>().unwrap();
        assert!(sender.is_finished() && !sender.is_broken());
        assert_eq!((sender.sent_bytes(), sink.goodput().total_bytes()), (BYTES, BYTES));
        assert_eq!((sink.accepted(), sink.finished(), sink.broken()), (1, 1, 0));
        assert_eq!(sink.damaged_pieces(), 0);
    }
}

#[test]
fn data_given_to_tcp_arrives_completely() {
    for profile in ["tcp-sack", "tcp-newreno", "tcp-cubic"] {
        arrives_whole(|seed| tcp(profile, seed));
    }
}

#[test]
fn data_given_to_sctp_arrives_completely() {
    arrives_whole(sctp);
}

#[test]
fn no_message_is_before_the_start_or_after_the_stop() {
    let seed = Seed::from_u64(4);
    let (mut network, dumbbell) = tcp_transfers("tcp-sack", &seed, 1, |_, bulk| {
        bulk.start = seconds(5);
        bulk.stop = seconds(15);
    });
    run(&mut network, seconds(60));
    let sink = network.machine(dumbbell.right[0]).program::<Sink<Tcp>>().unwrap();
    let (first, last) = sink.goodput().span().unwrap();
    // The first byte after a handshake; the last ones from a buffer of 1 MiB.
    assert_eq!(first.as_nanos() / 1_000_000_000, 5);
    assert!(seconds(15) < last && last < seconds(18), "{last:?}");
    let sender = network.machine(dumbbell.left[0]).program::<BulkSender<Tcp>>().unwrap();
    assert!(sender.is_finished());
    assert_eq!(sender.sent_bytes(), sink.goodput().total_bytes());
}

#[test]
fn a_missing_peer_breaks_the_transfer() {
    let seed = Seed::from_u64(5);
    let [from, to] = PointToPoint::ADDRESSES.map(at);
    let mut elsewhere = to;
    elsewhere.set_port(PORT + 1);
    let machines = [
        Host::new(tcp("tcp-sack", &seed), BulkSender::<Tcp>::new(Bulk::new(from, elsewhere))),
        Host::new(tcp("tcp-sack", &seed), Sink::<Tcp>::new(Duration::ZERO)),
    ];
    let mut network = Network::new(&seed);
    let hosts = PointToPoint::build(&mut network, machines, &path("delay 1ms")).unwrap().hosts;
    run(&mut network, seconds(1));
    assert!(network.machine(hosts[0]).program::<BulkSender<Tcp>>().unwrap().is_broken());
}

#[test]
fn one_greedy_flow_fills_the_bottleneck() {
    for profile in ["tcp-sack", "tcp-newreno", "tcp-cubic"] {
        let (mut network, dumbbell) = tcp_transfers(profile, &Seed::from_u64(6), 1, |_, _| {});
        run(&mut network, seconds(120));
        let sink = network.machine(dumbbell.right[0]).program::<Sink<Tcp>>().unwrap();
        let rate = sink.goodput().bits_per_second(seconds(20), seconds(120));
        // Of 1500 bytes on the wire 1448 are payload.
        let most = 10e6 * 1448.0 / 1500.0;
        assert!(0.9 * most < rate && rate <= most * 1.001, "{profile}: {rate}");
        let stats = network.link_stats(dumbbell.bottleneck, Direction::Forward);
        assert!(stats.path.lost_queue > 0, "greedy flows find the end of the queue");
    }
}

#[test]
fn greedy_flows_share_the_bottleneck_fairly() {
    const FLOWS: u32 = 8;
    for profile in ["tcp-sack", "tcp-cubic"] {
        let seed = Seed::from_u64(7);
        let (mut network, dumbbell) = tcp_transfers(profile, &seed, FLOWS, |n, bulk| {
            bulk.start = Instant::from_millis(100 * u64::from(n));
        });
        run(&mut network, seconds(600));
        let rates = dumbbell.right.iter().map(|&host| {
            let sink = network.machine(host).program::<Sink<Tcp>>().unwrap();
            sink.goodput().bits_per_second(seconds(20), seconds(600))
        });
        let rates: Vec<f64> = rates.collect();
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        let jain = sum * sum / (f64::from(FLOWS) * squares);
        assert!(jain > 0.9, "{profile}: {jain} of {rates:?}");
        assert!(sum > 0.9 * 10e6 * 1448.0 / 1500.0, "{profile}: {sum}");
    }
}

#[test]
fn sctp_and_tcp_share_a_network() {
    let seed = Seed::from_u64(8);
    let sinks = |n: u32| {
        let seed = seed.split(&format!("right {n}"));
        let bin = Duration::from_secs(1);
        if n == 0 {
            Host::new(tcp("tcp-sack", &seed), Sink::new(bin))
        } else {
            Host::new(sctp(&seed), Sink::new(bin))
        }
    };
    let senders = |n: u32| {
        let seed = seed.split(&format!("left {n}"));
        let bulk = Bulk::new(crate::kit::left(n), crate::kit::right(n));
        if n == 0 {
            Host::new(tcp("tcp-sack", &seed), BulkSender::new(bulk))
        } else {
            Host::new(sctp(&seed), BulkSender::new(bulk))
        }
    };
    let (mut network, dumbbell) =
        crate::kit::dumbbell(&seed, (0..2).map(senders).collect(), (0..2).map(sinks).collect());
    run(&mut network, seconds(200));
    let of_tcp = network.machine(dumbbell.right[0]).program::<Sink<Tcp>>().unwrap();
    let of_sctp = network.machine(dumbbell.right[1]).program::<Sink<Sctp>>().unwrap();
    let rate =
        |goodput: &rexmit_lab::hosts::Goodput| goodput.bits_per_second(seconds(20), seconds(200));
    let (tcp, sctp) = (rate(of_tcp.goodput()), rate(of_sctp.goodput()));
    assert!(tcp + sctp > 0.85 * 10e6, "{tcp} and {sctp}");
    assert!(tcp.min(sctp) > 1e6, "neither starves: {tcp} and {sctp}");
    assert_eq!(of_tcp.damaged_pieces() + of_sctp.damaged_pieces(), 0);
}
