//! Sources over UDP, through the simulator.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Machine, Route, Seed};
use rexmit_netsim::network::{Direction, Network, PointToPoint};
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::source::{
    Application, ConstantRate, HEADER_BYTES, SinkStats, UdpSender, UdpSink, VariableRate,
};
use rexmit_netsim::traffic::trace::{Flow, Message, Sender, Trace};

type Any = Box<dyn Machine<Event = Infallible>>;

fn route() -> Route {
    let [a, b] = PointToPoint::ADDRESSES;
    Route { local: SocketAddr::new(a, 4000), remote: SocketAddr::new(b, 4001) }
}

fn constant(megabits: u64, packet_bytes: usize, stop_ms: u64) -> ConstantRate {
    ConstantRate {
        rate: BitRate::new(megabits * 1_000_000).unwrap(),
        packet_bytes,
        stop: Instant::from_millis(stop_ms),
        ..ConstantRate::default()
    }
}

enum Node<S> {
    Sender(UdpSender<S>),
    Sink(UdpSink),
}

impl<S: Iterator<Item = (Instant, usize)>> Node<S> {
    fn either(&mut self) -> &mut dyn Machine<Event = Infallible> {
        match self {
            Self::Sender(sender) => sender,
            Self::Sink(sink) => sink,
        }
    }
}

impl<S: Iterator<Item = (Instant, usize)>> Machine for Node<S> {
    type Event = Infallible;
    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.either().handle_input(now, route, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.either().handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.either().poll_transmit(now, packet)
    }
    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Sender(sender) => sender.poll_timeout(),
            Self::Sink(sink) => sink.poll_timeout(),
        }
    }
}

/// Runs a source. Returns the packets sent, the counters of the sink, and the packets lost.
fn carry<S>(source: S, packet_bytes: usize, path: &str) -> (u64, SinkStats, u64)
where
    S: Iterator<Item = (Instant, usize)>,
{
    let sender = UdpSender::new(route(), source, packet_bytes);
    let sink = UdpSink::new(route().local);
    let mut network = Network::new(&Seed::from_u64(1));
    let machines = [Node::Sender(sender), Node::Sink(sink)];
    let pair = PointToPoint::build(&mut network, machines, &path.parse().unwrap()).unwrap();
    network.run_until(Instant::FAR_FUTURE, |_, _| {}).unwrap();
    let [Node::Sender(sender), Node::Sink(sink)] = pair.hosts.map(|host| network.machine(host))
    else {
        panic!("as they were added");
    };
    let lost = network.link_stats(pair.link, Direction::Forward).path.lost();
    (sender.packets(), *sink.stats(), lost)
}

#[test]
fn the_sink_counts_losses_and_delays() {
    let source = constant(1, 1000, 100_000).source(&Seed::from_u64(1)).unwrap();
    // 1028 bytes take 1.028 ms.
    let (sent, sink, lost) = carry(source, 1500, "delay 20ms loss 5% rate 8mbit");
    assert_eq!((sent, sink.packets + lost, sink.bytes), (12_500, sent, sink.packets * 1000));
    assert!((500..750).contains(&lost), "{lost}");
    assert_eq!((sink.numbered, sink.missing), (sink.packets, lost), "the last one arrives");
    assert_eq!((sink.duplicates, sink.reordered, sink.damaged, sink.other_senders), (0, 0, 0, 0));
    let delay = sink.delay;
    assert_eq!((delay.count, delay.min, delay.max), (sink.packets, delay.mean(), delay.mean()));
    assert_eq!(delay.mean(), Duration::from_micros(21_028));
}

#[test]
fn the_sink_distinguishes_duplicates_reordering_and_damage_from_loss() {
    let source = constant(1, 100, 10_000).source(&Seed::from_u64(1)).unwrap();
    let (sent, sink, _) = carry(source, 1500, "delay 20ms reorder 10% 5ms duplicate 10%");
    assert_eq!((sink.numbered, sink.missing), (sent, 0));
    assert_eq!(sink.duplicates, sink.packets - sent);
    assert!(sink.duplicates > 1000 && sink.reordered > 1000, "{sink:?}");
    let source = constant(1, HEADER_BYTES, 10_000).source(&Seed::from_u64(1)).unwrap();
    let (sent, sink, _) = carry(source, 1500, "corrupt 100%");
    assert_eq!((sink.packets, sink.damaged, sink.numbered), (sent, sent, 0));
}

#[test]
fn a_sink_discards_old_numbers_without_losing_count() {
    // As in the packet of a sender.
    let packet = |number: u64| {
        let mut sender =
            UdpSender::new(route(), constant(1, 20, 9000).source(&seed()).unwrap(), 20);
        let mut bytes = Vec::new();
        for _ in 0..=number {
            sender.poll_transmit(Instant::FAR_FUTURE, &mut bytes).unwrap();
        }
        bytes
    };
    let mut sink = UdpSink::new(route().local);
    let last = UdpSink::MEMORY + 10;
    for number in [0, 3, last, last, 3, 1] {
        sink.handle_input(Instant::FAR_FUTURE, route().reversed(), &packet(number));
    }
    sink.handle_input(Instant::FAR_FUTURE, route(), &packet(5));
    let stats = sink.stats();
    // The second 3 is too late to be recognized as a duplicate and counts as new, as does 1, which is new.
    assert_eq!((stats.numbered, stats.duplicates, stats.reordered), (5, 1, 2));
    assert_eq!((stats.missing, stats.other_senders, stats.packets), (last + 1 - 5, 1, 6));
    // Arrival flags of old numbers do not count for new ones.
    sink.handle_input(Instant::FAR_FUTURE, route().reversed(), &packet(UdpSink::MEMORY + 3));
    assert_eq!(sink.stats().duplicates, 1);
}

fn seed() -> Seed {
    Seed::from_u64(1)
}

#[test]
fn large_frames_are_sent_in_several_packets() {
    let (start, stop) = (Instant::from_millis(40), Instant::from_millis(4000));
    let frames = VariableRate { start, stop, ..VariableRate::default() };
    let expected: Vec<_> = frames.source(&seed()).unwrap().collect();
    let mut sender = UdpSender::new(route(), frames.source(&seed()).unwrap(), 1200);
    let mut packet = Vec::new();
    for (at, bytes) in expected {
        assert_eq!(sender.poll_timeout(), Some(at));
        assert_eq!(sender.poll_transmit(at - Duration::from_nanos(1), &mut packet), None);
        let mut lens = Vec::new();
        while sender.poll_transmit(at, &mut packet) == Some(route()) {
            lens.push(packet.len());
        }
        assert_eq!(lens.iter().sum::<usize>(), bytes);
        assert_eq!(lens.len(), bytes.div_ceil(1200));
        assert!(lens[..lens.len() - 1].iter().all(|&len| len == 1200));
    }
    assert_eq!(sender.poll_timeout(), None);
}

#[test]
fn any_trace_can_be_replayed() {
    let rows = "trace,flow_id,direction,time_us,payload_bytes\n\
                game,4,c2s,1000,30\ngame,4,c2s,2500,3000\ngame,4,s2c,2600,1\n";
    let trace = Trace::from_bytes("game.csv", rows.as_bytes()).unwrap();
    let start = Instant::from_millis(10);
    let flow: Flow = trace.flows[0].clone();
    assert_eq!(flow.client[1], Message { at: Duration::from_micros(2500), bytes: 3000 });
    let owned = flow.clone().into_replay(Sender::Client, start);
    assert!(flow.replay(Sender::Client, start).eq(owned.clone()));
    let (sent, sink, _) = carry(owned, 1400, "delay 1ms");
    assert_eq!((sent, sink.packets, sink.bytes, sink.missing), (4, 4, 3030, 0));
    let server = flow.into_replay(Sender::Server, start);
    assert_eq!(server.collect::<Vec<_>>(), [(start + Duration::from_micros(2600), 1)]);
}

#[test]
fn machines_of_every_source_fit_into_one_network() {
    let thin = Application::Skype.source(Instant::ZERO, &seed());
    let thin = thin.take_while(|&(at, _)| at < Instant::from_millis(10_000));
    let machines: [Any; 2] = [
        Box::new(UdpSender::new(route(), thin, 1400)),
        Box::new(UdpSender::new(
            route().reversed(),
            constant(1, 1000, 10_000).source(&seed()).unwrap(),
            1400,
        )),
    ];
    let mut network = Network::new(&seed());
    let pair = PointToPoint::build(&mut network, machines, &PathConfig::default()).unwrap();
    network.run_until(Instant::FAR_FUTURE, |_, _| {}).unwrap();
    let [a, b] = pair.hosts.map(|host| *network.host_stats(host));
    assert_eq!((a.packets_in, b.packets_in), (1250, a.packets_out));
}

#[test]
#[should_panic(expected = "UDP needs a port")]
fn a_route_without_ports_is_no_udp() {
    let source = constant(1, 1000, 10).source(&seed()).unwrap();
    let _ = UdpSender::new(PointToPoint::route(), source, 1400);
}
