//! Which packets are lost: uniformly, in bursts, or by number.

use rexmit_core::{Instant, Rng, Seed};

use super::{BurstLoss, Loss, LossCause};
use crate::draw::exponential;

/// Largest number of state changes that are simulated; after a longer silence, the state is drawn
/// from the stationary distribution, which is equivalent.
const MAX_STAYS: f64 = 100_000.0;

/// The state of the loss processes of one path.
#[derive(Clone, Debug)]
pub(super) struct LossProcess {
    uniform: f64,
    uniform_rng: Rng,
    burst: Option<(BurstLoss, Chain)>,
    burst_rng: Rng,
    packets: Vec<u64>,
    next_listed: usize,
}

impl LossProcess {
    pub(super) fn new(config: &Loss, seed: &Seed, now: Instant) -> Self {
        let mut process = Self {
            uniform: 0.0,
            uniform_rng: seed.split("loss.uniform").rng(),
            burst: None,
            burst_rng: seed.split("loss.burst").rng(),
            packets: Vec::new(),
            next_listed: 0,
        };
        process.reconfigure(config, now);
        process
    }

    /// Replaces the parameters. A burst process whose parameters do not change continues in its
    /// state.
    pub(super) fn reconfigure(&mut self, config: &Loss, now: Instant) {
        self.uniform = config.uniform;
        if self.burst.as_ref().map(|(burst, _)| *burst) != config.burst {
            let rng = &mut self.burst_rng;
            self.burst = config.burst.map(|burst| (burst, Chain::new(burst, rng, now)));
        }
        self.packets.clone_from(&config.packets);
        self.packets.sort_unstable();
        self.next_listed = 0;
    }

    /// Whether packet `number`, offered at `now`, is lost. Numbers and times are ascending.
    pub(super) fn judge(&mut self, number: u64, now: Instant) -> Option<LossCause> {
        // Each process advances with each packet, whatever the result of the others.
        let uniform = self.uniform_rng.chance(self.uniform);
        let burst = match &mut self.burst {
            Some((_, chain)) => chain.draw(&mut self.burst_rng, now),
            None => false,
        };
        let listed = self.take_listed(number);
        match (listed, burst, uniform) {
            (true, ..) => Some(LossCause::Listed),
            (_, true, _) => Some(LossCause::Burst),
            (_, _, true) => Some(LossCause::Uniform),
            _ => None,
        }
    }

    fn take_listed(&mut self, number: u64) -> bool {
        while self.packets.get(self.next_listed).is_some_and(|&listed| listed < number) {
            self.next_listed += 1;
        }
        self.packets.get(self.next_listed) == Some(&number)
    }
}

/// The state of a burst process.
#[derive(Clone, Debug)]
enum Chain {
    PerPacket {
        is_bad: bool,
        to_bad: f64,
        to_good: f64,
        /// Probability of loss in the good and in the bad state.
        loss: [f64; 2],
    },
    InTime {
        is_bad: bool,
        /// End of the stay in the current state.
        until: Instant,
        /// Mean stay in the good and in the bad state, in nanoseconds.
        mean_stay: [f64; 2],
    },
}

impl Chain {
    /// Creates the chain with a state drawn from the stationary distribution.
    fn new(burst: BurstLoss, rng: &mut Rng, now: Instant) -> Self {
        match burst {
            BurstLoss::Packets { mean_loss, mean_burst } => {
                let to_good = 1.0 / mean_burst;
                let to_bad = to_good * mean_loss / (1.0 - mean_loss);
                let is_bad = rng.chance(mean_loss);
                Self::PerPacket { is_bad, to_bad, to_good, loss: [0.0, 1.0] }
            }
            BurstLoss::Gemodel { to_bad, to_good, loss_in_bad, loss_in_good } => {
                let sum = to_bad + to_good;
                let is_bad = rng.chance(if sum > 0.0 { to_bad / sum } else { 0.0 });
                Self::PerPacket { is_bad, to_bad, to_good, loss: [loss_in_good, loss_in_bad] }
            }
            BurstLoss::Time { mean_loss, mean_bad } => {
                let bad = mean_bad.as_nanos() as f64;
                let good = bad * (1.0 - mean_loss) / mean_loss;
                let mean_stay = [good, bad];
                let is_bad = rng.chance(mean_loss);
                // Stays are memoryless: the rest of a stay has the same distribution as a whole one.
                let until = now + exponential(rng, mean_stay[usize::from(is_bad)]);
                Self::InTime { is_bad, until, mean_stay }
            }
        }
    }

    fn draw(&mut self, rng: &mut Rng, now: Instant) -> bool {
        match self {
            Self::PerPacket { is_bad, to_bad, to_good, loss } => {
                let p = loss[usize::from(*is_bad)];
                let is_lost = p >= 1.0 || rng.chance(p);
                if rng.chance(if *is_bad { *to_good } else { *to_bad }) {
                    *is_bad = !*is_bad;
                }
                is_lost
            }
            Self::InTime { is_bad, until, mean_stay } => {
                let [good, bad] = *mean_stay;
                let silence = (now - *until).as_nanos() as f64;
                if silence > MAX_STAYS * (good + bad) {
                    *is_bad = rng.chance(bad / (good + bad));
                    *until = now + exponential(rng, mean_stay[usize::from(*is_bad)]);
                }
                while *until <= now && *until < Instant::FAR_FUTURE {
                    *is_bad = !*is_bad;
                    *until += exponential(rng, mean_stay[usize::from(*is_bad)]);
                }
                *is_bad
            }
        }
    }
}
