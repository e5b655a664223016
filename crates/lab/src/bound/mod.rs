//! The physical bound: message latency if the sender learns everything as early as possible.
//!
//! The model: a message every T over a one-way delay D, RTT = 2·D. A packet is lost with probability
//! p, or in bursts; acknowledgements are not lost, links have no queue and delays do not vary. A
//! sender learns of a loss exactly one RTT after the copy that was lost, and sends the next at once.
//!
//! | [`Strategy`] | copies leave at | latency with k copies lost | extra packets per message |
//! |---|---|---|---|
//! | [`Reactive`](Strategy::Reactive) | 0, RTT, 2·RTT, … | D + k·RTT | Σ P(k lost), k ≥ 1: p/(1−p) |
//! | [`Doubled`](Strategy::Doubled) | 0, then two every RTT | D + ⌈k/2⌉·RTT | 2·Σ P(2k−1 lost): 2·p/(1−p²) |
//! | [`Bundled`](Strategy::Bundled) | 0, in each of the next messages, and one RTT after the last copy | the times of the copies | 0 while T < RTT |
//!
//! With losses that do not depend on each other, P(k lost) = pᵏ. In bursts (a continuous-time Gilbert
//! process, bad a share π of the time and for B in the mean), the copies are lost if it is bad at all
//! their times t₁ … t_k: P = π·Π c(tᵢ₊₁ − tᵢ) with c(d) = π + (1−π)·exp(−d/(B·(1−π))).
//!
//! No sender beats [`Reactive`](Strategy::Reactive) without packets that may turn out to be spurious,
//! or other packets to take copies along.

//!
//! [`least_packets`] is what acknowledgements that are lost, too, make of the least packets;
//! [`Bound::in_order`] what delivery in order makes of the latency.

mod order;
mod packets;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use packets::least_packets;

/// How packets are lost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossModel {
    /// Each with this probability, whatever happens to others.
    Uniform(f64),
    /// All of them in bad times.
    Bursts {
        /// The share of time that is bad: π.
        share: f64,
        /// Mean duration of a bad state: B.
        mean_bad: Duration,
    },
}

impl LossModel {
    /// The probability that a packet is lost.
    #[must_use]
    pub const fn share(self) -> f64 {
        match self {
            Self::Uniform(share) | Self::Bursts { share, .. } => share,
        }
    }

    /// The probability that a packet is lost `gap` after one that was: c(`gap`).
    #[must_use]
    pub fn again(self, gap: Duration) -> f64 {
        match self {
            Self::Uniform(share) => share,
            Self::Bursts { share, mean_bad } => {
                let rate = gap.as_secs_f64() / (mean_bad.as_secs_f64() * (1.0 - share));
                share + (1.0 - share) * (-rate).exp()
            }
        }
    }
}

/// Which copies of a message leave, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// One whenever the one before must have been lost.
    Reactive,
    /// As reactive, but two at once instead of one.
    Doubled,
    /// A copy in each of the next messages too, for as long as it is not known to have arrived.
    Bundled {
        /// The time between two messages: T.
        interval: Duration,
    },
}

/// A latency, and how many messages take longer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// The latency.
    pub latency: Duration,
    /// The probability that a message takes longer.
    pub beyond: f64,
}

/// The distribution of latency of a strategy.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// Latencies ascending; the last is beyond all but [`NEGLIGIBLE`] of the messages.
    pub steps: Vec<Step>,
    /// Packets over the one of each message, per message.
    pub extra_packets: f64,
}

/// A probability that is taken for none.
pub const NEGLIGIBLE: f64 = 1e-9;
/// Copies of a message at most: of a link that loses nearly everything the bound is cut short.
const MAX_COPIES: usize = 10_000;

/// A copy on its way.
#[derive(Clone, Copy)]
struct Copy {
    at: Duration,
    /// Whether it is a packet of its own.
    is_packet: bool,
}

impl Bound {
    /// The bound of `strategy` over `delay` one way, twice that around.
    #[must_use]
    pub fn new(strategy: Strategy, delay: Duration, loss: LossModel) -> Self {
        let rtt = 2 * delay;
        let mut steps = Vec::<Step>::new();
        let (mut extra_packets, mut all_lost) = (0.0, 1.0);
        let mut before: Option<Copy> = None;
        for copy in strategy.copies(rtt).take(MAX_COPIES) {
            if copy.is_packet && before.is_some() {
                // It is sent if it is known by then that those before were lost.
                extra_packets += steps.last().map_or(1.0, |known| {
                    if known.latency == delay + copy.at {
                        all_lost_before(&steps)
                    } else {
                        known.beyond
                    }
                });
            }
            all_lost *= match before {
                None => loss.share(),
                Some(before) => loss.again(copy.at - before.at),
            };
            let latency = delay + copy.at;
            match steps.last_mut().filter(|last| last.latency == latency) {
                Some(last) => last.beyond = all_lost,
                None => steps.push(Step { latency, beyond: all_lost }),
            }
            before = Some(copy);
            if all_lost < NEGLIGIBLE {
                break;
            }
        }
        Self { steps, extra_packets }
    }

    /// The latency that the share `quantile` of the messages does not exceed.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let enough = |step: &&Step| step.beyond <= 1.0 - quantile + NEGLIGIBLE;
        let step = self.steps.iter().find(enough).or(self.steps.last());
        step.map_or(Duration::ZERO, |step| step.latency)
    }
}

/// The probability that all copies before those of the last step were lost.
fn all_lost_before(steps: &[Step]) -> f64 {
    steps.len().checked_sub(2).map_or(1.0, |before| steps[before].beyond)
}

impl Strategy {
    /// The copies of a message that is sent at 0, all those before having been lost.
    fn copies(self, rtt: Duration) -> impl Iterator<Item = Copy> {
        let mut last = Duration::ZERO;
        let mut next_message = match self {
            Self::Bundled { interval } => Some(interval),
            Self::Reactive | Self::Doubled => None,
        };
        let first = Copy { at: Duration::ZERO, is_packet: true };
        let mut twin = None;
        let later = std::iter::from_fn(move || {
            if let Some(twin) = twin.take() {
                return Some(twin);
            }
            let known_lost = last + rtt;
            let copy = match (&mut next_message, self) {
                (Some(message), Self::Bundled { interval }) if *message <= known_lost => {
                    let at = *message;
                    *message += interval;
                    Copy { at, is_packet: false }
                }
                _ => Copy { at: known_lost, is_packet: true },
            };
            last = copy.at;
            twin = (self == Self::Doubled).then_some(copy);
            Some(copy)
        });
        std::iter::once(first).chain(later)
    }
}
