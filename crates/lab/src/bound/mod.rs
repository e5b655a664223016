//! Theoretical bounds: the message latency of a sender that detects every loss as early as
//! possible.
//!
//! The model: a message every T over a one-way delay D, RTT = 2·D. A packet is lost with
//! probability p, or in bursts; acknowledgements are not lost, links have no queue and delays do
//! not vary. A sender detects the loss of a copy exactly one RTT after sending it, and sends the
//! next copy at once.
//!
//! | [`Strategy`] | copies are sent at | latency with k copies lost | extra packets per message |
//! |---|---|---|---|
//! | [`Reactive`](Strategy::Reactive) | 0, RTT, 2·RTT, … | D + k·RTT | Σ P(k lost), k ≥ 1: p/(1−p) |
//! | [`Doubled`](Strategy::Doubled) | 0, then two every RTT | D + ⌈k/2⌉·RTT | 2·Σ P(2k−1 lost): 2·p/(1−p²) |
//! | [`Bundled`](Strategy::Bundled) | 0, in each of the next messages, and one RTT after the last copy | the times of the copies | 0 while T < RTT |
//! | [`BundledOnce`](Strategy::BundledOnce) | 0, in the next message, and in each message an RTT or more later; one RTT after the last copy | the times of the copies | 0 while T < RTT |
//!
//! With independent losses, P(k lost) = pᵏ. In bursts (a continuous-time Gilbert process that is in
//! the bad state for a share π of the time, with a mean stay of B), k copies are lost if the state
//! is bad at all their times t₁ … t_k: P = π·Π c(tᵢ₊₁ − tᵢ) with c(d) = π +
//! (1−π)·exp(−d/(B·(1−π))).
//!
//! No sender has lower latency than [`Reactive`](Strategy::Reactive) unless it sends packets that
//! may be spurious, or bundles copies with other packets.

//!
//! [`least_cost`] and [`least_cost_in_bursts`] compute the least packets or bytes with which a deadline can be met with a given probability, and
//! [`least_late`] the best probability at any cost; [`least_packets`] computes the minimum number of packets if
//! acknowledgements can also be lost; [`Bound::in_order`] the latency of ordered delivery.

mod bursts;
mod deadline;
mod order;
mod packets;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use bursts::least_cost_in_bursts;
pub use deadline::{Deadline, Messages, PlanCost, Prices, least_cost, least_late};
pub use packets::least_packets;

/// A model of packet loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossModel {
    /// Independent losses with this probability.
    Uniform(f64),
    /// Every packet is lost in the bad state, none in the good state.
    Bursts {
        /// The share of time in the bad state: π.
        share: f64,
        /// Mean stay in the bad state: B.
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

    /// The probability that a packet is lost if one was lost `gap` earlier: c(`gap`).
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

/// When copies of a message are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// One copy as soon as the loss of the previous one is certain.
    Reactive,
    /// As [`Reactive`](Self::Reactive), but two copies at once from the second transmission on.
    Doubled,
    /// As [`Reactive`](Self::Reactive), and a copy in each of the next messages until the message
    /// is known to have arrived.
    Bundled {
        /// The time between two messages: T.
        interval: Duration,
    },
    /// A copy in the next message; further ones only in messages that are sent when the ACK of the first
    /// transmission is due, one RTT after it, or later.
    BundledOnce {
        /// The time between two messages: T.
        interval: Duration,
    },
}

/// A latency, and the share of messages that take longer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// The latency.
    pub latency: Duration,
    /// The probability that a message takes longer.
    pub beyond: f64,
}

/// The latency distribution of a strategy.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// Latencies in ascending order; at most a share of [`NEGLIGIBLE`] of the messages take longer
    /// than the last one.
    pub steps: Vec<Step>,
    /// Additional packets per message, besides the first one.
    pub extra_packets: f64,
}

/// A probability that is treated as zero.
pub const NEGLIGIBLE: f64 = 1e-9;
/// Largest number of copies of a message; it truncates the bound for links that lose nearly
/// everything.
const MAX_COPIES: usize = 10_000;

/// One time at which a message is sent.
#[derive(Clone, Copy)]
struct Sending {
    at: Duration,
    /// Whether the copy is sent in a packet of its own.
    is_packet: bool,
}

impl Bound {
    /// The bound of `strategy` with the one-way delay `delay`; the RTT is twice that.
    #[must_use]
    pub fn new(strategy: Strategy, delay: Duration, loss: LossModel) -> Self {
        let rtt = 2 * delay;
        let mut steps = Vec::<Step>::new();
        let (mut extra_packets, mut all_lost) = (0.0, 1.0);
        let mut before: Option<Sending> = None;
        for copy in strategy.copies(rtt).take(MAX_COPIES) {
            if copy.is_packet && before.is_some() {
                // It is sent if all earlier copies are known to be lost by then.
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
    /// The copies of a message that is sent at time 0, assuming that all earlier copies are lost.
    fn copies(self, rtt: Duration) -> impl Iterator<Item = Sending> {
        let mut last = Duration::ZERO;
        let mut next_message = match self {
            Self::Bundled { interval } | Self::BundledOnce { interval } => Some(interval),
            Self::Reactive | Self::Doubled => None,
        };
        let first = Sending { at: Duration::ZERO, is_packet: true };
        let mut twin = None;
        let later = std::iter::from_fn(move || {
            if let Some(twin) = twin.take() {
                return Some(twin);
            }
            let known_lost = last + rtt;
            let copy = match (&mut next_message, self) {
                (Some(message), Self::Bundled { interval } | Self::BundledOnce { interval })
                    if *message <= known_lost =>
                {
                    let at = *message;
                    *message += interval;
                    let is_once = matches!(self, Self::BundledOnce { .. });
                    while is_once && *message < rtt && !interval.is_zero() {
                        *message += interval;
                    }
                    Sending { at, is_packet: false }
                }
                _ => Sending { at: known_lost, is_packet: true },
            };
            last = copy.at;
            twin = (self == Self::Doubled).then_some(copy);
            Some(copy)
        });
        std::iter::once(first).chain(later)
    }
}
