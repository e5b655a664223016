//! Links with FQ-CoDel (RFC 8290, RFC 8289) between simple machines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit_core::{Ecn, Instant, Route, Seed};
use rexmit_netsim::network::{
    Direction, DropCause, Dumbbell, HostId, LinkStats, Network, ObservedPacket, Occurrence,
    PacketObserver, PacketStep, SharedBuffer, TapPoint,
};
use rexmit_netsim::path::{LossCause, PathConfig};

use crate::machines::Node;

/// The simulated time.
const SECONDS: u64 = 20;

/// A flow over the bottleneck: a packet of `len` bytes of IP each `gap`.
#[derive(Clone, Copy)]
struct Flow {
    len: usize,
    gap: Duration,
    ecn: Ecn,
}

/// A packet of 1500 bytes each millisecond, which alone fills the link.
const GREEDY: Flow = Flow { len: 1500, gap: Duration::from_millis(1), ecn: Ecn::NotEct };

/// What arrived of a flow.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Arrived {
    bytes: usize,
    marked: usize,
    /// The longest time between packets in the second half of the run.
    longest_gap: Duration,
    last: Option<Instant>,
}

/// What arrived of each flow over a link of 12 Mbit/s with this queue, the counters of the link, and a capture.
fn run(flows: &[Flow], queue: &str) -> (Vec<Arrived>, LinkStats, Vec<u8>) {
    let senders = (0..).zip(flows).map(|(n, flow)| {
        let route = Route {
            local: (Dumbbell::left_address(n), 5000).into(),
            remote: (Dumbbell::right_address(n), 5000).into(),
        };
        Node { ecn: flow.ecn, ..Node::source(route, flow.len - 28, flow.gap, Instant::ZERO) }
    });
    let receivers = flows.iter().map(|_| Node::default());
    let bottleneck: PathConfig = format!("rate 12mbit delay 10ms {queue}").parse().unwrap();
    let mut network = Network::new(&Seed::from_u64(1));
    let access = PathConfig::default();
    let dumbbell = Dumbbell::build(&mut network, senders, receivers, &access, &bottleneck).unwrap();
    let buffer = SharedBuffer::default();
    let entry = TapPoint::Entry(dumbbell.bottleneck, Direction::Forward);
    let tap = network.tap(&[entry], buffer.clone()).unwrap();
    let mut arrived = vec![Arrived::default(); flows.len()];
    let number = |host: HostId| dumbbell.right.iter().position(|&right| right == host);
    network
        .run_until(Instant::from_millis(SECONDS * 1000), |context, occurrence| {
            let (Some(flow), Occurrence::Event(received)) = (number(context.host()), occurrence)
            else {
                return;
            };
            let of = &mut arrived[flow];
            of.bytes += flows[flow].len;
            of.marked += usize::from(received.ecn == Ecn::Ce);
            if context.now() > Instant::from_millis(SECONDS * 500)
                && let Some(last) = of.last
            {
                of.longest_gap = of.longest_gap.max(context.now() - last);
            }
            of.last = Some(context.now());
        })
        .unwrap();
    network.finish_tap(tap).unwrap();
    let stats = network.link_stats(dumbbell.bottleneck, Direction::Forward);
    (arrived, stats, buffer.bytes())
}

#[test]
fn flows_get_equal_rates_whatever_the_size_and_number_of_their_packets() {
    let small = Flow { len: 300, gap: Duration::from_micros(50), ..GREEDY };
    let (fair, stats, _) = run(&[GREEDY, small, GREEDY], "fq_codel limit 300");
    // The link carries 30 MB in the time.
    let total: usize = fair.iter().map(|of| of.bytes).sum();
    assert!(total > 29_900_000, "the link is never idle: {total}");
    for of in &fair {
        assert!(of.bytes.abs_diff(10_000_000) < 100_000, "{fair:?}");
    }
    assert_eq!(stats.path.offered, stats.path.passed + stats.path.lost() + stats.path.aqm.queued);
    let (unfair, ..) = run(&[GREEDY, small, GREEDY], "limit 300");
    assert!(unfair.iter().any(|of| of.bytes < 5_000_000), "{unfair:?}");
}

#[test]
fn a_sparse_flow_waits_for_no_more_than_the_packet_in_transmission() {
    let sparse = Flow { len: 100, gap: Duration::from_millis(20), ..GREEDY };
    let gap = |queue| {
        let (arrived, ..) = run(&[GREEDY, GREEDY, sparse], queue);
        let (bytes, longest) = (arrived[2].bytes, arrived[2].longest_gap);
        (bytes, longest - sparse.gap)
    };
    let (bytes, fair) = gap("fq_codel limit 300");
    // One packet is in transmission when the sparse one arrives, for up to 1 ms.
    assert!(fair <= Duration::from_millis(1), "{fair:?}");
    assert!(bytes >= 99_000, "none is lost: {bytes}");
    let (bytes, _) = gap("limit 300");
    assert!(bytes < 99_000, "a full queue drops packets of sparse flows, too");
}

#[test]
fn capable_packets_are_marked_and_others_dropped() {
    let capable = Flow { ecn: Ecn::Ect0, ..GREEDY };
    // Two flows of 8 Mbit/s over 12 Mbit/s, without a limit that is reached.
    let gap = Duration::from_micros(1500);
    let flows = [Flow { gap, ..GREEDY }, Flow { gap, ..capable }];
    let (arrived, stats, _) = run(&flows, "fq_codel limit 100000");
    let aqm = stats.path.aqm;
    assert!(aqm.lost_codel > 50 && aqm.lost_codel == stats.path.lost(), "{aqm:?}");
    assert!(aqm.marked > 50 && arrived[0].marked == 0, "{aqm:?}");
    // Up to 11 packets are on the link.
    assert!((aqm.marked as usize).abs_diff(arrived[1].marked) <= 11, "{aqm:?}");
    let (arrived, stats, _) = run(&flows, "fq_codel noecn limit 100000");
    assert_eq!((stats.path.aqm.marked, arrived[1].marked), (0, 0));
    assert!(stats.path.aqm.lost_codel > aqm.lost_codel);
}

#[test]
fn an_overloaded_queue_drops_from_the_flow_that_overloads_it() {
    let heavy = Flow { gap: Duration::from_micros(300), ..GREEDY };
    let light = Flow { gap: Duration::from_millis(3), ..GREEDY };
    let (arrived, stats, _) = run(&[heavy, light], "fq_codel limit 50");
    assert!(stats.path.lost_queue > 10_000 && stats.path.max_queue_packets <= 50, "{stats:?}");
    assert!(arrived[1].bytes >= 1500 * (SECONDS as usize * 1000 / 3 - 10), "it loses none");
}

#[test]
fn an_idle_link_sends_at_once_and_paces_by_its_rate() {
    let slow = Flow { gap: Duration::from_millis(40), ..GREEDY };
    let (arrived, stats, _) = run(&[slow], "fq_codel limit 0");
    assert_eq!((stats.path.lost(), stats.path.max_queue_packets), (0, 0));
    assert_eq!(arrived[0].longest_gap, slow.gap);
    let (arrived, ..) = run(&[GREEDY], "fq_codel");
    assert_eq!(arrived[0].longest_gap, GREEDY.gap);
}

#[test]
fn the_same_seed_gives_the_same_capture() {
    let small = Flow { len: 300, gap: Duration::from_micros(70), ecn: Ecn::Ect0 };
    let path = "fq_codel limit 200 loss 1% duplicate 1% corrupt 1%";
    let [first, second] = [(), ()].map(|()| run(&[GREEDY, small, GREEDY], path));
    assert!(first.2.len() > 1_000_000 && first == second);
    let captured = |text: &[u8]| first.2.windows(text.len()).any(|window| window == text);
    assert!(captured(b"lost: no room in the queue") && captured(b"lost: uniform"));
}

/// Counts drops by CoDel, and all packets that are neither received nor dropped.
#[derive(Default)]
struct Balance {
    under_way: i64,
    codel: u64,
    out: Arc<Mutex<(i64, u64)>>,
}

impl PacketObserver for Balance {
    fn observe(&mut self, _: Instant, _: &ObservedPacket<'_>, step: PacketStep) {
        self.under_way += match step {
            PacketStep::Sent { .. } | PacketStep::Duplicated { .. } => 1,
            PacketStep::Received { .. } | PacketStep::Dropped(_) => -1,
        };
        let codel =
            matches!(step, PacketStep::Dropped(DropCause::Link { cause: LossCause::Codel, .. }));
        self.codel += u64::from(codel);
        *self.out.lock().unwrap() = (self.under_way, self.codel);
    }
}

/// Every impairment, and changes of the discipline while packets wait.
#[test]
fn no_packet_is_forgotten() {
    let mut network = Network::new(&Seed::from_u64(1));
    let route = |n| Route {
        local: (Dumbbell::left_address(n), 0).into(),
        remote: (Dumbbell::right_address(n), 0).into(),
    };
    let node = |n| Node::source(route(n), 1480, Duration::from_micros(1300), Instant::ZERO);
    let path = |queue: &str| {
        let path = format!(
            "rate 12mbit {queue} delay 10ms 5ms loss 1% duplicate 2% reorder 1% 5ms hold 70 9 hold 900 3"
        );
        path.parse::<PathConfig>().unwrap()
    };
    let fair = path("fq_codel limit 100000");
    let dumbbell = Dumbbell::build(
        &mut network,
        [node(0), node(1)],
        [Node::default(), Node::default()],
        &PathConfig::default(),
        &fair,
    )
    .unwrap();
    let out = Arc::default();
    network.add_observer(Balance { out: Arc::clone(&out), ..Balance::default() });
    let link = dumbbell.bottleneck;
    for (seconds, path) in
        [(2, path("limit 50")), (3, fair.clone()), (5, path("fq_codel flows 8")), (7, path(""))]
    {
        let at = Instant::from_millis(1000 * seconds);
        network.change_path_at(link, Direction::Forward, at, path).unwrap();
    }
    network.run_until(Instant::from_millis(8000), |_, _| {}).unwrap();
    let stats = network.link_stats(link, Direction::Forward).path;
    assert_eq!(stats.offered, stats.passed + stats.held + stats.aqm.queued + stats.lost());
    assert!(stats.aqm.lost_codel > 10 && stats.aqm.queued == 0 && stats.lost_queue > 0);
    let (under_way, codel) = *out.lock().unwrap();
    assert_eq!(codel, stats.aqm.lost_codel);
    assert_eq!(under_way, network.packets_in_flight().0 as i64);
    // Those on the link and in its queue of 1000.
    assert!(under_way < 1100, "{under_way}");
}
