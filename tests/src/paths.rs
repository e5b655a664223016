//! The paths of random runs: each impairment alone and all together, changes, and outages.

use std::time::Duration;

use rexmit_core::{BitRate, Instant, Rng};
use rexmit_netsim::path::{BurstLoss, Delay, Jitter, Loss, PathConfig, QueueLimit, Reorder};

use crate::plan::pick;

/// Draws a path, and its changes within `duration_ms`.
pub fn draw(rng: &mut Rng, duration_ms: u64) -> Vec<(Instant, [PathConfig; 2])> {
    let mut paths = vec![(Instant::ZERO, pair(rng))];
    for _ in 0..pick(rng, &[0, 0, 1, 3]) {
        let at = Instant::from_millis(rng.below(duration_ms));
        let change = if rng.chance(0.4) { blackout(rng, &paths[0].1) } else { pair(rng) };
        paths.push((at, change));
    }
    paths.sort_by_key(|(at, _)| *at);
    paths
}

/// A path with outages, after each of which it is as `usual`.
#[must_use]
pub fn outages(
    rng: &mut Rng,
    duration_ms: u64,
    usual: &[PathConfig; 2],
) -> Vec<(Instant, [PathConfig; 2])> {
    let mut changes = Vec::new();
    for _ in 0..pick(rng, &[0, 1, 3]) {
        let from_ms = rng.below(duration_ms);
        let at = Instant::from_millis(from_ms);
        let back = at + Duration::from_millis(rng.below(duration_ms - from_ms));
        changes.extend([(at, blackout(rng, usual)), (back, usual.clone())]);
    }
    changes
}

/// The path at the end of the run, with some loss only.
#[must_use]
pub fn mild() -> PathConfig {
    PathConfig {
        delay: Delay::constant(Duration::from_millis(20)),
        loss: Loss { uniform: 0.02, ..Loss::default() },
        ..PathConfig::default()
    }
}

fn pair(rng: &mut Rng) -> [PathConfig; 2] {
    let there = direction(rng);
    if rng.chance(0.5) { [there.clone(), there] } else { [there, direction(rng)] }
}

/// An outage of one direction, or of both.
fn blackout(rng: &mut Rng, before: &[PathConfig; 2]) -> [PathConfig; 2] {
    let [there, back] = before.clone();
    let dark =
        |path: PathConfig| PathConfig { loss: Loss { uniform: 1.0, ..Loss::default() }, ..path };
    match rng.below(3) {
        0 => [dark(there), back],
        1 => [there, dark(back)],
        _ => [dark(there), dark(back)],
    }
}

fn direction(rng: &mut Rng) -> PathConfig {
    let mean = Duration::from_millis(pick(rng, &[0, 1, 10, 50, 150, 400]));
    let spread = Duration::from_millis(pick(rng, &[1, 10, 100]));
    let jitters = [
        Jitter::Constant,
        Jitter::Constant,
        Jitter::Uniform(spread),
        Jitter::Normal(spread),
        Jitter::Pareto(spread),
    ];
    PathConfig {
        delay: Delay { mean, jitter: pick(rng, &jitters) },
        keep_order: rng.chance(0.3),
        loss: Loss {
            uniform: pick(rng, &[0.0, 0.0, 0.01, 0.05, 0.2, 0.4]),
            burst: if rng.chance(0.2) { Some(burst(rng)) } else { None },
            ..Loss::default()
        },
        reorder: Reorder {
            probability: pick(rng, &[0.0, 0.0, 0.05, 0.5]),
            extra: Delay::constant(spread),
        },
        duplicate: pick(rng, &[0.0, 0.0, 0.05, 0.5]),
        corrupt: pick(rng, &[0.0, 0.0, 0.0, 0.05]),
        rate: pick(rng, &[None, None, BitRate::new(200_000), BitRate::new(5_000_000)]),
        queue: pick(rng, &[QueueLimit::Packets(5), QueueLimit::Packets(1000)]),
        ..PathConfig::default()
    }
}

fn burst(rng: &mut Rng) -> BurstLoss {
    let mean_bad = Duration::from_millis(pick(rng, &[5, 100, 1000]));
    pick(
        rng,
        &[
            BurstLoss::Packets { mean_loss: 0.1, mean_burst: 4.0 },
            BurstLoss::Time { mean_loss: 0.1, mean_bad },
        ],
    )
}
