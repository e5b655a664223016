//! The same seed gives the same bytes.

use std::time::Duration;

use rexmit_core::{BitRate, Instant, Seed};
use rexmit_netsim::network::{Direction, Network, PointToPoint, SharedBuffer, TapPoint};
use rexmit_netsim::path::{BurstLoss, Delay, Jitter, Loss, PathConfig, Reorder};

use crate::machines::Node;

/// A capture of two sources over a path with every impairment.
fn capture(seed: u64) -> Vec<u8> {
    let ms = Duration::from_millis;
    let path = PathConfig {
        delay: Delay { mean: ms(50), jitter: Jitter::Pareto(ms(10)) },
        loss: Loss {
            uniform: 0.02,
            burst: Some(BurstLoss::Time { mean_loss: 0.05, mean_bad: ms(40) }),
            ..Loss::default()
        },
        reorder: Reorder {
            probability: 0.05,
            extra: Delay { mean: ms(5), jitter: Jitter::Normal(ms(1)) },
        },
        duplicate: 0.05,
        corrupt: 0.05,
        rate: BitRate::new(1_000_000),
        ..PathConfig::default()
    };
    let there = PointToPoint::route();
    let machines = [there, there.reversed()]
        .map(|route| Node::source(route, 100, Duration::from_micros(2500), Instant::ZERO));
    let mut network = Network::new(&Seed::from_u64(seed));
    let pair = PointToPoint::build(&mut network, machines, &path).unwrap();
    let buffer = SharedBuffer::default();
    let points = [
        TapPoint::Host(pair.hosts[1]),
        TapPoint::Entry(pair.link, Direction::Forward),
        TapPoint::Exit(pair.link, Direction::Backward),
    ];
    let tap = network.tap(&points, buffer.clone()).unwrap();
    network.run_until(Instant::from_millis(20_000), |_, _| {}).unwrap();
    network.finish_tap(tap).unwrap();
    buffer.bytes()
}

#[test]
fn the_same_seed_gives_the_same_capture() {
    let first = capture(42);
    assert!(first.len() > 1_000_000, "{}", first.len());
    assert!(first == capture(42));
    assert!(first != capture(43));
}
