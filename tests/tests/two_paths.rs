//! `interactive-multipath` over two networks: what a dead path costs, which path retransmissions take where losses
//! coincide and where they do not, what probes of an idle path cost, and that new data does not flap.
//!
//! A message is sent every 100 ms, unordered. Both paths have a round trip of 110 ms, so that a retransmission takes 165 ms
//! and the margin of the probe timer.

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::{
    Context, Direction, DualDumbbell, DumbbellPaths, Network, Occurrence,
};
use rexmit_netsim::path::{Delay, Loss, PathConfig};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
};

const INTERVAL_MS: u64 = 100;
/// Sent before: it warms the estimates up.
const FIRST_MS: u64 = 1_000;
/// One round trip and a half, and a margin for jitter that the tests do not have.
const REPAIRED_MS: u64 = 165 + 15;
/// The same after the loss of the retransmission.
const REPAIRED_TWICE_MS: u64 = REPAIRED_MS + 110;

/// Both networks of a run.
struct Plan {
    paths: [PathConfig; 2],
    /// When which network loses everything: from, until.
    dark: Vec<(usize, u64, u64)>,
    messages: u64,
}

#[derive(Default)]
struct Seen {
    sender: Option<AssociationId>,
    /// The latency of each message, in milliseconds.
    latencies_ms: Vec<Option<u64>>,
    /// The changes of the path of new data.
    moved: Vec<(u64, u8)>,
    /// The packets that the sender sent over each network.
    packets: [u64; 2],
}

fn constant() -> PathConfig {
    PathConfig { delay: Delay::constant(Duration::from_millis(45)), ..PathConfig::default() }
}

fn with_loss(share: f64) -> PathConfig {
    PathConfig { loss: Loss { uniform: share, ..Loss::default() }, ..constant() }
}

fn end(addresses: [std::net::IpAddr; 2], seed: u64) -> Endpoint {
    let config = EndpointConfig::default()
        .accept(true)
        .addresses(addresses.to_vec())
        .association(Arc::new(AssociationConfig::interactive_multipath()));
    Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
}

impl Plan {
    fn run(&self, seed: u64) -> Seen {
        let mut network = Network::new(&Seed::from_u64(seed));
        let ends = [
            end([0, 1].map(DualDumbbell::sender_address), 2 * seed),
            end([0, 1].map(DualDumbbell::receiver_address), 2 * seed + 1),
        ];
        let access = PathConfig {
            delay: Delay::constant(Duration::from_millis(5)),
            ..PathConfig::default()
        };
        let paths = self
            .paths
            .clone()
            .map(|bottleneck| DumbbellPaths { bottleneck, access: access.clone() });
        let topology =
            DualDumbbell::build(&mut network, ends, Default::default(), &paths).expect("valid");
        let links = topology.dumbbells.map(|dumbbell| dumbbell.bottleneck);
        for &(path, from, until) in &self.dark {
            let usual = self.paths[path].clone();
            let dark = PathConfig { loss: Loss { uniform: 1.0, ..Loss::default() }, ..constant() };
            for way in [Direction::Forward, Direction::Backward] {
                for (at, config) in [(from, &dark), (until, &usual)] {
                    let at = Instant::from_millis(at);
                    network.change_path_at(links[path], way, at, config.clone()).expect("valid");
                }
            }
        }
        network.wake_at(topology.sender, Instant::ZERO, 0);
        for number in 0..self.messages {
            network.wake_at(topology.sender, Instant::from_millis(sent_ms(number)), number + 1);
        }
        let mut seen = Seen { latencies_ms: vec![None; self.messages as usize], ..Seen::default() };
        let app = |context: &mut Context<'_, Endpoint>, occurrence| seen.on(context, occurrence);
        let end = Instant::from_millis(sent_ms(self.messages) + 5_000);
        network.run_until(end, app).expect("no livelock");
        seen.packets = links.map(|it| network.link_stats(it, Direction::Forward).path.offered);
        seen
    }
}

fn sent_ms(number: u64) -> u64 {
    FIRST_MS + number * INTERVAL_MS
}

impl Seen {
    fn on(
        &mut self,
        context: &mut Context<'_, Endpoint>,
        occurrence: Occurrence<(AssociationId, Event)>,
    ) {
        let now = context.now();
        let now_ms = now.as_nanos() / 1_000_000;
        let endpoint = context.machine();
        match occurrence {
            Occurrence::Wake(0) => {
                let id = endpoint.connect(now, DualDumbbell::route(0), 5000).expect("valid");
                self.sender = Some(id);
            }
            Occurrence::Wake(number) => {
                let message =
                    OutboundMessage::new(0, vec![0; 100]).ppid(number as u32 - 1).unordered(true);
                endpoint.send(now, self.sender.expect("it has connected"), message).expect("room");
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = endpoint.receive(now, id) {
                    let number = message.ppid as usize;
                    let known = self.latencies_ms[number].replace(now_ms - sent_ms(number as u64));
                    assert_eq!(known, None, "{number} arrived twice");
                }
            }
            Occurrence::Event((id, Event::DataPathChanged { path, .. })) => {
                assert_eq!(Some(id), self.sender, "the receiver sends no data");
                self.moved.push((now_ms, path));
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    }

    /// The highest latency of the messages sent from `from` until `until`, in milliseconds.
    fn most_ms(&self, from: u64, until: u64) -> u64 {
        let latencies = (0..).map(sent_ms).zip(&self.latencies_ms);
        let those = latencies.filter(|(at, _)| (from..until).contains(at));
        those.map(|(_, latency)| latency.expect("it arrived")).max().expect("there are some")
    }
}

/// The first path dies for three seconds, and for good later. The first messages on it are repaired over the other path,
/// the next ones take that at once.
#[test]
fn the_death_of_a_path_costs_no_message_more_than_a_retransmission_over_the_other() {
    let plan = Plan {
        paths: [constant(), constant()],
        dark: vec![(0, 20_000, 23_000), (1, 50_000, 1_000_000)],
        messages: 800,
    };
    let seen = plan.run(1);
    assert_eq!(seen.most_ms(8_000, 20_000 - INTERVAL_MS), 55, "nothing was lost");
    let cost = seen.most_ms(0, 100_000);
    assert!((165..REPAIRED_MS).contains(&cost), "{cost}");
    // Of three messages the ACK is missing, the last of which is known 110 ms after it was sent.
    assert!(seen.most_ms(20_400, 50_000 - INTERVAL_MS) == 55, "{:?}", seen.moved);
    let [(first, 1), (second, 0)] = seen.moved[..] else { panic!("{:?}", seen.moved) };
    assert!((20_200..20_400).contains(&first) && (50_200..50_400).contains(&second));
}

/// Data lost on the first path would be lost on the second 100 ms later, while the first works again: with the first losses
/// that is not known, then retransmissions stay on the first path. Where the second loses nothing they take that.
#[test]
fn retransmissions_take_the_path_whose_losses_do_not_coincide() {
    let cycle = |number: u64| 10_000 + number * 1_300;
    let first = |at| (0, at, at + INTERVAL_MS / 2);
    let second = |at| (1, at + INTERVAL_MS / 2, at + 500);
    let run = |is_correlated: bool| {
        let both = |number| {
            let at = cycle(number) - 20; // The message at that time is in it.
            [Some(first(at)), is_correlated.then_some(second(at))]
        };
        let plan = Plan {
            paths: [constant(), constant()],
            dark: (0..60).flat_map(both).flatten().collect(),
            messages: 900,
        };
        plan.run(2)
    };
    let (correlated, independent) = (run(true), run(false));
    let most = |seen: &Seen, from, until| seen.most_ms(cycle(from), cycle(until));
    let cost = most(&independent, 0, 10);
    assert!((165..REPAIRED_MS).contains(&cost), "{cost}: another path from the first loss on");
    let at_first = most(&correlated, 0, 10);
    assert!((REPAIRED_MS..REPAIRED_TWICE_MS).contains(&at_first), "{at_first}");
    assert!(most(&correlated, 40, 60) < REPAIRED_MS, "{}", most(&correlated, 40, 60));
    assert!(correlated.moved.is_empty(), "the second is worse");
    assert!(
        matches!(independent.moved[..], [(_, 1)]),
        "{:?}: the second is better",
        independent.moved
    );
}

/// A percent of the packets while it works, and a small packet per second at most if it does not; without traffic none but
/// the heartbeats of RFC 9260, which are 30 s and an RTO apart.
#[test]
fn probes_of_an_idle_path_cost_a_percent_or_a_packet_a_second() {
    let plan = |messages, dark: &[_]| {
        Plan { paths: [constant(), constant()], dark: dark.to_vec(), messages }.run(3).packets[1]
    };
    let of_protocol = 2 * (100 / 30 + 1); // Those of the sender, and its answers to the receiver's.
    let probes = plan(1_100, &[]) - plan(100, &[]);
    assert!((9..=10 + of_protocol).contains(&probes), "{probes} in 100 s");
    let dead = (1, 10_000, 1_000_000);
    let probes = plan(1_100, &[dead]) - plan(100, &[dead]);
    assert!((90..=100 + of_protocol).contains(&probes), "{probes} in 100 s");
    assert!(plan(1, &[]) <= 4, "nothing is sent");
}

/// Equal paths with losses; and one that is better by less than the hysteresis.
#[test]
fn new_data_does_not_flap_between_paths_that_are_alike() {
    let mut moved = 0;
    for seed in 0..5 {
        let plan =
            Plan { paths: [with_loss(0.03), with_loss(0.03)], dark: Vec::new(), messages: 1_200 };
        moved += plan.run(10 + seed).moved.len();
    }
    assert!(moved <= 5 * 6, "{moved} in ten minutes: at most one in twenty seconds");
    let slower = |ms: u64| PathConfig {
        delay: Delay::constant(Duration::from_millis(45 + ms)),
        ..PathConfig::default()
    };
    let run = |ms| Plan { paths: [slower(ms), constant()], dark: Vec::new(), messages: 600 }.run(4);
    assert_eq!(run(4).moved, [], "a tenth longer");
    let moved = run(40).moved;
    let [(at, 1)] = moved[..] else { panic!("far longer: {moved:?}") };
    assert!(at < 15_000, "{at}");
}
