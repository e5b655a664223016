//! Other implementations deliver every message once and without avoidable delay.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_lab::hosts::{Host, Layer, Thin, ThinPlan, ThinReceiver, ThinSender};
use rexmit_lab::measure::{LatencyDistribution, MessageRecord};
use rexmit_lab::rivals::{DcSctpProfile, QuinnProfile, Rival, RivalEndpoint, Role};
use rexmit_netsim::network::{Network, PointToPoint};

use crate::kit::{at, path, run, seconds};

const MESSAGES: u64 = 2000;
const INTERVAL_MS: u64 = 50;
const DELAY: Duration = Duration::from_millis(50);

const ALL: [Rival; 7] = [
    Rival::DcSctp(DcSctpProfile::Default),
    Rival::DcSctp(DcSctpProfile::Tuned),
    Rival::SctpProto,
    Rival::Kcp { is_tuned: false },
    Rival::Kcp { is_tuned: true },
    Rival::Quinn(QuinnProfile::Default),
    Rival::Quinn(QuinnProfile::Tuned),
];

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
struct Outcome {
    latencies: Vec<Option<Duration>>,
    out_of_order: u64,
    /// Packets and bytes of the sender.
    wire: [u64; 2],
}

impl Outcome {
    fn median(&self) -> Option<Duration> {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        latencies[latencies.len() / 2]
    }

    fn latency(&self) -> LatencyDistribution {
        let mut distribution = LatencyDistribution::new();
        self.latencies.iter().flatten().for_each(|&latency| distribution.record(latency));
        distribution
    }
}

/// A message of 100 bytes every 50 ms over 50 ms each way; asserts that each arrives once.
fn stream(rival: Rival, is_unordered: bool, loss: &str, seed: u64) -> Outcome {
    let what = format!("{rival:?}, unordered {is_unordered}, loss {loss}, seed {seed}");
    let seed = Seed::from_u64(seed);
    let end = |role, name| {
        RivalEndpoint::new(rival, role, is_unordered, &seed.split(name)).expect("valid settings")
    };
    let source = (0..MESSAGES).map(|n| (Instant::from_millis(n * INTERVAL_MS), 100));
    let plan = ThinPlan::new(source, Instant::FAR_FUTURE);
    let [from, to] = PointToPoint::ADDRESSES.map(at);
    let thin = Thin { stays_open: true, waits_for_connection: true, ..Thin::new(from, to) };
    let sender = ThinSender::<RivalEndpoint>::new(thin, plan.clone());
    let receiver = ThinReceiver::<RivalEndpoint>::new(plan);
    let machines = [
        Host::new(end(Role::Connects, "sender"), sender),
        Host::new(end(Role::Accepts, "receiver"), receiver),
    ];
    let mut network = Network::new(&seed);
    let path = path(&format!("delay 50ms loss {loss}"));
    let hosts = PointToPoint::build(&mut network, machines, &path).unwrap().hosts;
    run(&mut network, seconds(MESSAGES * INTERVAL_MS / 1000 + 60));
    let wire = network.host_stats(hosts[0]);
    let receiver = network.machine(hosts[1]).program::<ThinReceiver<RivalEndpoint>>().unwrap();
    assert_eq!(receiver.delivered(), MESSAGES, "{what}");
    assert_eq!((receiver.duplicates(), receiver.damaged()), (0, 0), "{what}");
    let records = receiver.records(Layer::Application, 0);
    Outcome {
        latencies: records.iter().map(MessageRecord::latency).collect(),
        out_of_order: receiver.out_of_order(),
        wire: [wire.packets_out, wire.bytes_out],
    }
}

#[test]
fn everything_arrives_once_over_a_lossy_link() {
    for rival in ALL {
        let ordered = stream(rival, false, "5%", 1);
        assert_eq!(ordered.out_of_order, 0, "{rival:?}");
        assert_eq!(ordered.median(), Some(DELAY), "{rival:?}");
        assert!(ordered.wire[0] > MESSAGES, "{rival:?} retransmits lost messages");
        if rival.has_unordered() {
            let unordered = stream(rival, true, "5%", 1);
            assert!(unordered.out_of_order > 0, "{rival:?}: later messages do not wait");
            assert_eq!(unordered.median(), Some(DELAY), "{rival:?}");
            let mean = |outcome: &Outcome| outcome.latency().mean();
            assert!(mean(&unordered) < mean(&ordered), "{rival:?}");
        }
    }
}

#[test]
fn without_loss_nothing_waits() {
    for rival in ALL {
        let outcome = stream(rival, false, "0%", 1);
        let late = outcome.latencies.iter().filter(|latency| **latency != Some(DELAY)).count();
        assert_eq!(late, 0, "{rival:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    for rival in ALL {
        let again = stream(rival, rival.has_unordered(), "5%", 7);
        assert_eq!(stream(rival, rival.has_unordered(), "5%", 7), again, "{rival:?}");
        assert_ne!(stream(rival, rival.has_unordered(), "5%", 8), again, "{rival:?}");
    }
}

/// No message follows the last one, so only the timer can detect its loss.
#[test]
fn a_lone_lost_message_takes_the_timer_of_its_rival() {
    // Which packet has it depends on what else the rival sends.
    let longest = |rival| {
        let one_lost = |n| stream(rival, true, &format!("list {n}"), 3);
        let latencies = (MESSAGES..MESSAGES + 10).flat_map(|n| one_lost(n).latencies);
        latencies.max().flatten().unwrap()
    };
    assert!(longest(ALL[0]) >= Duration::from_millis(450), "RTO.min is 400 ms");
    assert!(longest(ALL[1]) < Duration::from_millis(300), "RTO.min is 120 ms");
}
