//! In steady operation, no memory is allocated per packet.

use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_netsim::network::{Network, ObservedPacket, PacketObserver, PacketStep, PointToPoint};
use rexmit_netsim::path::{PathConfig, PathModel};
use rexmit_netsim::source::{
    self, Application, Bursts, ConstantRate, UdpSender, UdpSink, VariableRate, WebClient,
};

/// A path with every impairment, except that packets are held back rarely, which may allocate.
const PATH: &str = "delay 50ms 5ms distribution normal loss 5% loss burst 5% 3 reorder 5% 5ms \
                    duplicate 1% corrupt 1% rate 100mbit limit 100";

#[test]
fn offering_a_packet_allocates_nothing() {
    let config: PathConfig = PATH.parse().unwrap();
    let mut model = PathModel::new(config, &Seed::from_u64(1)).unwrap();
    let mut now = Instant::ZERO;
    let mut offer = |count| {
        for _ in 0..count {
            now += Duration::from_micros(80);
            model.offer(now, 1500);
        }
    };
    offer(10_000);
    assert_eq!(allocation_counter::measure(|| offer(10_000)).count_total, 0);
}

/// Sends a packet every millisecond, and discards what it receives.
struct Source {
    route: Route,
    next: Instant,
    is_due: bool,
}

impl Machine for Source {
    type Event = ();

    fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {}

    fn handle_timeout(&mut self, now: Instant) {
        self.is_due = self.next <= now;
    }

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        self.next += Duration::from_millis(1);
        packet.clear();
        packet.extend_from_slice(&[0; 1200]);
        Some(self.route)
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

#[derive(Default)]
struct Counting(u64);

impl PacketObserver for Counting {
    fn observe(&mut self, _: Instant, packet: &ObservedPacket<'_>, _: PacketStep) {
        self.0 += packet.bytes.len() as u64;
    }
}

/// Also with an observer.
#[test]
fn carrying_a_packet_through_the_simulator_allocates_nothing() {
    carry(|_| {});
    carry(|network| network.add_observer(Counting::default()));
}

fn carry(set_up: impl Fn(&mut Network<Source>)) {
    let route = PointToPoint::route();
    let machines =
        [route, route.reversed()].map(|route| Source { route, next: Instant::ZERO, is_due: false });
    let mut network = Network::new(&Seed::from_u64(1));
    PointToPoint::build(&mut network, machines, &PATH.parse().unwrap()).unwrap();
    set_up(&mut network);
    let mut run = |end| network.run_until(Instant::from_millis(end), |_, _| {}).unwrap();
    // Long enough to reach the largest number of packets in flight.
    run(60_000);
    let allocations = allocation_counter::measure(|| run(70_000)).count_total;
    assert!(allocations < 20, "{allocations} for 20,000 packets");
}

#[test]
fn sources_allocate_nothing_per_packet() {
    let seed = Seed::from_u64(1);
    let bursts =
        Some(Bursts { mean_on: Duration::from_millis(100), mean_off: Duration::from_millis(100) });
    let mut route = PointToPoint::route();
    route.local.set_port(9);
    route.remote.set_port(9);
    let sources: [Box<dyn source::Source>; 4] = [
        Box::new(ConstantRate { jitter: 1.0, ..ConstantRate::default() }.source(&seed).unwrap()),
        Box::new(VariableRate { bursts, ..VariableRate::default() }.source(&seed).unwrap()),
        Box::new(WebClient::default().source(&seed).unwrap()),
        Box::new(Application::Casa.source(Instant::ZERO, &seed)),
    ];
    for source in sources {
        let mut sender = UdpSender::new(route, source, 1200);
        let mut sink = UdpSink::new(route.local);
        let mut packet = Vec::with_capacity(1200);
        let mut carry = || {
            for _ in 0..10_000 {
                let now = sender.poll_timeout().expect("it has no end");
                sender.handle_timeout(now);
                sender.poll_transmit(now, &mut packet).expect("it is time");
                sink.handle_input(now, route.reversed(), &packet);
            }
        };
        assert_eq!(allocation_counter::measure(&mut carry).count_total, 0);
        assert_eq!(sink.stats().missing, 0);
    }
}
