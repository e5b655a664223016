//! The formulas against independently computed values, and against random simulation.

use rexmit_core::{Instant, Rng, Seed};

use super::*;

const DELAY: Duration = Duration::from_millis(50);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn quantiles(strategy: Strategy, loss: LossModel) -> [u64; 3] {
    let bound = Bound::new(strategy, DELAY, loss);
    [0.99, 0.999, 0.9999].map(|quantile| bound.quantile(quantile).as_millis() as u64)
}

/// The table of the model for 5 % and an RTT of 100 ms, worked out by hand from pᵏ.
#[test]
fn quantiles_at_five_percent() {
    let uniform = LossModel::Uniform(0.05);
    assert_eq!(quantiles(Strategy::Reactive, uniform), [150, 250, 350]);
    assert_eq!(quantiles(Strategy::Doubled, uniform), [150, 150, 250]);
    let bundled = |interval| quantiles(Strategy::Bundled { interval: ms(interval) }, uniform);
    assert_eq!(bundled(50), [100, 150, 200]);
    assert_eq!(bundled(100), [150, 250, 350]);
    assert_eq!(bundled(250), [150, 250, 300]);
    let once = |interval| quantiles(Strategy::BundledOnce { interval: ms(interval) }, uniform);
    assert_eq!(once(50), [100, 150, 200]);
    assert_eq!(
        once(49),
        [99, 197, 246],
        "no ACK is due after two intervals: the third has the copy"
    );
    assert_eq!(once(30), [80, 170, 200]);
    assert_eq!(once(250), bundled(250), "packets of their own are sooner");
    let bursts = LossModel::Bursts { share: 0.05, mean_bad: ms(100) };
    assert_eq!(quantiles(Strategy::Reactive, bursts), [250, 550, 750]);
}

#[test]
fn extra_packets_are_those_of_the_geometric_series() {
    let p: f64 = 0.05;
    let extra = |strategy| Bound::new(strategy, DELAY, LossModel::Uniform(p)).extra_packets;
    let near = |value: f64, exact: f64| assert!((value - exact).abs() < 1e-7, "{value} {exact}");
    near(extra(Strategy::Reactive), p / (1.0 - p));
    near(extra(Strategy::Doubled), 2.0 * p / (1.0 - p * p));
    near(extra(Strategy::Bundled { interval: ms(50) }), 0.0);
    // Packets of their own 100 and 200 ms after the first; later ones are a billionth of the rest.
    let alone = p + p * p;
    let sparse = extra(Strategy::Bundled { interval: ms(250) });
    assert!((alone..alone + 2.0 * p.powi(4)).contains(&sparse), "{sparse}");
}

#[test]
fn copies_at_once_gain_nothing_in_a_burst() {
    let bursts = LossModel::Bursts { share: 0.05, mean_bad: ms(30) };
    let of = |strategy| Bound::new(strategy, DELAY, bursts).steps;
    assert_eq!(of(Strategy::Doubled), of(Strategy::Reactive));
}

#[test]
fn a_link_that_loses_everything_has_a_bound_that_ends() {
    let bound = Bound::new(Strategy::Doubled, DELAY, LossModel::Uniform(1.0));
    assert!(bound.steps.len() <= MAX_COPIES);
    assert!(bound.quantile(0.5) > Duration::from_secs(100));
}

/// A link that alternates between good and bad states of exponentially distributed length.
struct Turns {
    is_bad: bool,
    until: Instant,
    mean_stay: [Duration; 2],
}

impl Turns {
    fn new(share: f64, mean_bad: Duration) -> Self {
        let mean_stay = [mean_bad.mul_f64((1.0 - share) / share), mean_bad];
        Self { is_bad: true, until: Instant::ZERO, mean_stay }
    }

    fn is_bad(&mut self, rng: &mut Rng, now: Instant) -> bool {
        while self.until <= now {
            self.is_bad = !self.is_bad;
            let stay = self.mean_stay[usize::from(self.is_bad)].mul_f64(-(1.0 - rng.unit()).ln());
            self.until += stay;
        }
        self.is_bad
    }
}

/// Simulates messages far apart: the shares slower than each latency, and the packets of their own per message, for
/// `copies`.
fn by_chance(strategy: Strategy, loss: LossModel, messages: u32, seed: u64) -> (Vec<f64>, f64) {
    let mut rng = Seed::from_u64(seed).rng();
    let mut turns = match loss {
        LossModel::Bursts { share, mean_bad } => Some(Turns::new(share, mean_bad)),
        LossModel::Uniform(_) => None,
    };
    let (mut beyond, mut extra) = (vec![0_u32; 6], 0_u32);
    for message in 0..messages {
        let begin = Instant::from_millis(u64::from(message) * 5_000);
        let (mut arrived, mut round) = (None, 0);
        // A round: the copies that are transmitted before the fate of any of them is known.
        while arrived.is_none() {
            for copy in sent_in_round(strategy, round) {
                let at = begin + copy;
                let is_lost = match &mut turns {
                    Some(turns) => turns.is_bad(&mut rng, at),
                    None => rng.chance(loss.share()),
                };
                arrived = arrived.or((!is_lost).then_some(copy + DELAY));
                extra += u32::from(!matches!(strategy, Strategy::Bundled { .. }));
            }
            round += 1;
        }
        let latency = arrived.expect("it has arrived");
        for (n, beyond) in beyond.iter_mut().enumerate() {
            *beyond += u32::from(latency > latency_of(strategy, n));
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(messages);
    (beyond.into_iter().map(share).collect(), share(extra) - 1.0)
}

/// When copies are sent, as explicit lists: two per round if doubled, one every 50 ms if bundled.
fn sent_in_round(strategy: Strategy, round: u32) -> Vec<Duration> {
    match strategy {
        Strategy::Doubled if round > 0 => vec![ms(100) * round; 2],
        Strategy::Reactive | Strategy::Doubled => vec![ms(100) * round],
        Strategy::Bundled { .. } | Strategy::BundledOnce { .. } => vec![ms(50) * round],
    }
}

fn latency_of(strategy: Strategy, step: usize) -> Duration {
    sent_in_round(strategy, step as u32)[0] + DELAY
}

#[test]
fn the_formulas_are_what_chance_gives() {
    const MESSAGES: u32 = 200_000;
    let bursts = |bad| LossModel::Bursts { share: 0.1, mean_bad: ms(bad) };
    let strategies =
        [Strategy::Reactive, Strategy::Doubled, Strategy::Bundled { interval: ms(50) }];
    for (seed, loss) in [LossModel::Uniform(0.2), bursts(30), bursts(100)].into_iter().enumerate() {
        for strategy in strategies {
            let bound = Bound::new(strategy, DELAY, loss);
            let (beyond, extra) = by_chance(strategy, loss, MESSAGES, seed as u64);
            for (step, measured) in bound.steps.iter().zip(beyond) {
                let deviation = (step.beyond * (1.0 - step.beyond) / f64::from(MESSAGES)).sqrt();
                let away = (measured - step.beyond).abs();
                assert!(away <= 5.0 * deviation, "{strategy:?} {loss:?}: {measured} {step:?}");
            }
            if !matches!(strategy, Strategy::Bundled { .. }) {
                let away = (extra - bound.extra_packets).abs();
                assert!(away <= 0.03 * extra, "{strategy:?} {loss:?}: {extra} {bound:?}");
            }
        }
    }
}
