//! One of two paths fails in the middle of a transfer: everything arrives exactly once, and how long
//! it stalls follows from the timers.
//!
//! A message is sent every 100 ms over a path of 55 ms each way. The first path fails at 5 s; the message of 4.9 s and
//! its acknowledgement have passed it. That SACK arrives at 5.010 s and restarts T3-rtx, which expires a second later
//! (RTO.Min).

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
const ROUND_TRIP_MS: u128 = 110;
const FIRST_MS: u64 = 1_000;
const MESSAGES: u32 = 800;

/// The results of the applications.
#[derive(Default)]
struct Seen {
    sender: Option<AssociationId>,
    /// When each message arrived.
    arrived: Vec<(u32, Instant)>,
    /// The times of changes of the data path, from the sender's events.
    moved: Vec<(Instant, u8)>,
}

fn paths() -> DumbbellPaths {
    let path = |ms| PathConfig {
        delay: Delay::constant(Duration::from_millis(ms)),
        ..PathConfig::default()
    };
    DumbbellPaths { bottleneck: path(45), access: path(5) }
}

fn end(addresses: [std::net::IpAddr; 2], association: &AssociationConfig, seed: u64) -> Endpoint {
    let config = EndpointConfig::default()
        .accept(true)
        .addresses(addresses.to_vec())
        .association(Arc::new(association.clone()));
    Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
}

/// Runs the transfer; the first path fails from 5 s until `until`.
fn transfer(association: &AssociationConfig, until: Option<Instant>) -> Seen {
    let mut network = Network::new(&Seed::from_u64(1));
    let ends = [
        end([0, 1].map(DualDumbbell::sender_address), association, 1),
        end([0, 1].map(DualDumbbell::receiver_address), association, 2),
    ];
    let topology =
        DualDumbbell::build(&mut network, ends, Default::default(), &[paths(), paths()]).unwrap();
    let shared = topology.dumbbells[0].bottleneck;
    let usual = paths().bottleneck;
    let dark = PathConfig { loss: Loss { uniform: 1.0, ..Loss::default() }, ..usual.clone() };
    for direction in [Direction::Forward, Direction::Backward] {
        network
            .change_path_at(shared, direction, Instant::from_millis(5_000), dark.clone())
            .unwrap();
        if let Some(until) = until {
            network.change_path_at(shared, direction, until, usual.clone()).unwrap();
        }
    }
    network.wake_at(topology.sender, Instant::ZERO, 0);
    for number in 0..MESSAGES {
        let at = Instant::from_millis(FIRST_MS + u64::from(number) * INTERVAL_MS);
        network.wake_at(topology.sender, at, u64::from(number) + 1);
    }
    let mut seen = Seen::default();
    let app = |context: &mut Context<'_, Endpoint>, occurrence| seen.on(context, occurrence);
    network.run_until(Instant::from_millis(200_000), app).unwrap();
    seen
}

impl Seen {
    fn on(
        &mut self,
        context: &mut Context<'_, Endpoint>,
        occurrence: Occurrence<(AssociationId, Event)>,
    ) {
        let now = context.now();
        let endpoint = context.machine();
        match occurrence {
            Occurrence::Wake(0) => {
                let id = endpoint.connect(now, DualDumbbell::route(0), 5000).unwrap();
                self.sender = Some(id);
            }
            Occurrence::Wake(number) => {
                let message = OutboundMessage::new(0, vec![0; 100]).ppid(number as u32 - 1);
                endpoint.send(now, self.sender.expect("it has connected"), message).unwrap();
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = endpoint.receive(now, id) {
                    self.arrived.push((message.ppid, now));
                }
            }
            Occurrence::Event((_, Event::DataPathChanged { path, .. })) => {
                self.moved.push((now, path));
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    }

    fn check_each_arrived_once_and_in_order(&self) {
        let numbers: Vec<u32> = self.arrived.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>());
    }

    /// The times in milliseconds in which nothing arrived, if they were longer than a round trip, which a window of one
    /// packet may cause.
    fn stalls_ms(&self) -> Vec<u128> {
        let gaps = self.arrived.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_millis());
        gaps.filter(|&gap| gap > ROUND_TRIP_MS).collect()
    }

    fn moved_ms(&self) -> Vec<(u64, u8)> {
        self.moved.iter().map(|&(at, path)| (at.as_nanos() / 1_000_000, path)).collect()
    }
}

fn association() -> AssociationConfig {
    AssociationConfig::rfc9260().sack_every(1).heartbeat_interval(None)
}

/// RFC 9260 §6.3.3, §8.2: the first path is inactive with its sixth timeout; each is twice the one before. After each
/// timeout, the data is delivered over the second path. Each stall has the length of its timeout; the first one is
/// longer by a round trip.
#[test]
fn standard_failover_stalls_for_six_timeouts() {
    let seen = transfer(&association(), None);
    seen.check_each_arrived_once_and_in_order();
    // Between the timeout and the next one a message is sent every 100 ms, the first of which
    // starts the next: it is sent 90 ms after the first timeout, and with the others thereafter.
    assert_eq!(seen.stalls_ms(), [1_110, 2_090, 4_000, 8_000, 16_000, 32_000]);
    assert_eq!(seen.moved_ms(), [(68_100, 1)]);
}

/// RFC 7829 §3.1: with the potentially failed state one timeout moves everything; the path is asked
/// after every timeout (at 6.01, 8.01, 12.01, 20.01 and 36.01 s), and data return with the answer
/// to the first question after it works again.
#[test]
fn potentially_failed_state_stalls_for_one_timeout() {
    let mut association = association();
    association.recovery.sctp.potentially_failed_max_retrans = Some(0);
    association.failure.heartbeat_interval = Some(Duration::from_secs(30));
    let seen = transfer(&association, Some(Instant::from_millis(30_000)));
    seen.check_each_arrived_once_and_in_order();
    assert_eq!(seen.stalls_ms(), [1_110]);
    assert_eq!(seen.moved_ms(), [(6_010, 1), (36_120, 0)]);
}
