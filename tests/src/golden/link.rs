//! The paths of the golden set, by kind.

use std::time::Duration;

use rexmit_core::{BitRate, Instant, Rng};
use rexmit_netsim::path::{BurstLoss, Delay, Jitter, Loss, PathConfig, QueueLimit, Reorder};

use super::Kind;
use crate::plan::pick;

/// The two directions of a path from each time on; the first is at zero.
pub(super) type Schedule = Vec<(Instant, [PathConfig; 2])>;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A path of `kind`, both directions of it.
pub(super) fn draw(kind: Kind, rng: &mut Rng) -> [PathConfig; 2] {
    let one_way = Delay::constant(MS(pick(rng, &[10, 47, 50, 120])));
    let base = PathConfig { delay: one_way, ..PathConfig::default() };
    let there = match kind {
        Kind::Lossless => base,
        Kind::Lossy | Kind::TwoPaths | Kind::Restart => lossy(rng, base),
        Kind::Bursty => {
            PathConfig { loss: Loss { burst: Some(burst(rng)), ..Loss::default() }, ..base }
        }
        Kind::Reordering => PathConfig {
            reorder: Reorder {
                probability: pick(rng, &[0.01, 0.05, 0.2]),
                extra: Delay::constant(MS(pick(rng, &[5, 40, 200]))),
            },
            loss: Loss { uniform: pick(rng, &[0.0, 0.0, 0.02]), ..Loss::default() },
            duplicate: pick(rng, &[0.0, 0.0, 0.01]),
            ..base
        },
        Kind::Jittery => {
            let spread = MS(pick(rng, &[2, 10, 60]));
            let jitter = pick(
                rng,
                &[Jitter::Uniform(spread), Jitter::Normal(spread), Jitter::Pareto(spread)],
            );
            PathConfig {
                delay: Delay { jitter, ..one_way },
                keep_order: rng.chance(0.5),
                loss: Loss { uniform: pick(rng, &[0.0, 0.05]), ..Loss::default() },
                ..base
            }
        }
        Kind::Bottleneck | Kind::Random | Kind::RandomTwoPaths => PathConfig {
            rate: pick(
                rng,
                &[BitRate::new(200_000), BitRate::new(1_000_000), BitRate::new(5_000_000)],
            ),
            queue: QueueLimit::Packets(pick(rng, &[5, 20, 100])),
            ..base
        },
    };
    // Acknowledgements are lost, too, in half of the runs.
    let back = match rng.chance(0.5) {
        true => there.clone(),
        false => PathConfig { delay: there.delay, ..PathConfig::default() },
    };
    [there, back]
}

/// The path of a run, and its changes within `duration`.
pub(super) fn schedule(kind: Kind, rng: &mut Rng, duration: Duration) -> Schedule {
    let usual = draw(kind, rng);
    let mut schedule = vec![(Instant::ZERO, usual.clone())];
    let millis = duration.as_millis() as u64;
    let at = Instant::from_millis(millis / 4 + rng.below(millis / 4));
    let lasts = MS(pick(rng, &[80, 700, 4_000]));
    let change: Option<fn(PathConfig) -> PathConfig> = match kind {
        Kind::Lossless => None,
        Kind::TwoPaths if rng.chance(0.7) => Some(dark),
        // Timeouts in which nothing was lost.
        Kind::Reordering | Kind::Jittery if rng.chance(0.8) => Some(slow),
        _ => rng.chance(0.15).then_some(dark),
    };
    if let Some(change) = change {
        schedule.extend([(at, usual.clone().map(change)), (at + lasts, usual)]);
    }
    schedule
}

/// The path, on which all packets are lost.
fn dark(path: PathConfig) -> PathConfig {
    PathConfig { loss: Loss { uniform: 1.0, ..Loss::default() }, ..path }
}

/// A link whose delays exceed the timeouts, and keep the order of packets.
fn slow(path: PathConfig) -> PathConfig {
    let delay = Delay { mean: path.delay.mean + MS(1_300), ..path.delay };
    PathConfig { delay, keep_order: true, ..path }
}

fn lossy(rng: &mut Rng, base: PathConfig) -> PathConfig {
    let uniform = pick(rng, &[0.01, 0.02, 0.05, 0.1, 0.2, 0.3]);
    PathConfig { loss: Loss { uniform, ..Loss::default() }, ..base }
}

fn burst(rng: &mut Rng) -> BurstLoss {
    let mean_loss = pick(rng, &[0.02, 0.1]);
    let by_packets = BurstLoss::Packets { mean_loss, mean_burst: pick(rng, &[2.0, 5.0]) };
    let by_time = BurstLoss::Time { mean_loss, mean_bad: MS(pick(rng, &[30, 300])) };
    pick(rng, &[by_packets, by_time])
}
