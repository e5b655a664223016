//! The configuration of a path.

use std::time::Duration;

use rexmit_core::BitRate;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Delay, FqCodel, Red};
use crate::units;

/// The configuration of one direction of a path. The default is a perfect path: no delay, no loss,
/// no limit.
///
/// This struct and its parts are not `non_exhaustive`: they are written as literals, as here, and a new kind of impairment
/// is a change that users of the model are to see. With `..PathConfig::default()` a new field does not break a literal.
///
/// ```
/// use rexmit_netsim::path::{Delay, Loss, PathConfig};
/// use std::time::Duration;
/// let config = PathConfig {
///     delay: Delay::constant(Duration::from_millis(50)),
///     loss: Loss { uniform: 0.05, ..Loss::default() },
///     ..PathConfig::default()
/// };
/// assert_eq!(config.validate(), Ok(()));
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathConfig {
    /// One-way delay, from the end of the queue to the other side.
    pub delay: Delay,
    /// Whether packets keep their order although their delays differ: a packet then waits for the
    /// previous one. Off by default, as in netem, where jitter reorders packets.
    pub keep_order: bool,
    /// Which packets are lost.
    pub loss: Loss,
    /// Packets that are delayed further, so that later ones overtake them.
    pub reorder: Reorder,
    /// Packets that are held back until a number of later ones have passed.
    pub holds: Vec<Hold>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that one bit of a packet, anywhere in it, is flipped.
    pub corrupt: f64,
    /// Rate of the link; `None`: transmission takes no time, and packets never wait.
    pub rate: Option<BitRate>,
    /// Limit of the queue in front of the link. Without a rate, no packet waits.
    pub queue: QueueLimit,
    /// Random early detection: packets are dropped before the queue is full. `None`: only when it is full.
    pub red: Option<Red>,
    /// A queue per flow, managed by CoDel, instead of one queue. `None`: one queue.
    pub fq_codel: Option<FqCodel>,
    /// The largest packet, in bytes of IP; a larger one is lost without a report. `None`: no limit.
    pub mtu: Option<usize>,
}

impl PathConfig {
    /// No packet arrives sooner after it was offered; zero where that depends on the packets.
    pub(crate) fn least_delay(&self) -> Duration {
        if self.holds.is_empty() { self.delay.least() } else { Duration::ZERO }
    }
}

/// Which packets are lost: those selected by any of the three fields. Packets are counted from 0 in
/// the order in which they are offered.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// Probability of loss, independent for each packet.
    pub uniform: f64,
    /// Losses in bursts.
    pub burst: Option<BurstLoss>,
    /// The numbers of packets that are lost.
    pub packets: Vec<u64>,
}

/// Losses in bursts: a Markov chain with a good and a bad state (Gilbert–Elliott).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BurstLoss {
    /// The chain makes one step per packet; the bad state loses every packet, the good state none.
    Packets {
        /// Share of packets lost in the long run.
        mean_loss: f64,
        /// Mean number of packets lost in a row.
        mean_burst: f64,
    },
    /// The chain runs in continuous time, independently of packets (continuous-time Gilbert); the
    /// bad state loses every packet, the good state none.
    Time {
        /// Share of time in the bad state in the long run.
        mean_loss: f64,
        /// Mean length of a stay in the bad state; at least [`BurstLoss::MIN_MEAN_BAD`].
        #[serde(with = "units::duration")]
        mean_bad: Duration,
    },
    /// The chain of netem's `gemodel`, with one step per packet.
    Gemodel {
        /// Probability of going from good to bad (netem's `p`).
        to_bad: f64,
        /// Probability of going from bad to good (netem's `r`).
        to_good: f64,
        /// Probability of loss in the bad state (netem's `1-h`; 1 in the Gilbert model).
        loss_in_bad: f64,
        /// Probability of loss in the good state (netem's `1-k`; 0 in the Gilbert model).
        loss_in_good: f64,
    },
}

impl BurstLoss {
    /// Bounds the work per packet, because every change of state of the continuous-time chain is
    /// simulated.
    pub const MIN_MEAN_BAD: Duration = Duration::from_micros(100);
}

/// Random reordering: some packets get an additional delay.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reorder {
    /// Probability that a packet is delayed further.
    pub probability: f64,
    /// The additional delay of such a packet. [`PathConfig::keep_order`] does not apply to it.
    pub extra: Delay,
}

/// Holds packet number `packet` back by `by` positions: it is delivered right after `by` packets
/// that were offered after it. Lost packets do not count; if fewer packets follow, it is never
/// delivered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The packet's number, from 0.
    pub packet: u64,
    /// The number of positions; at least 1.
    pub by: u32,
}

/// Limit of the queue (drop-tail). The packet in transmission does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// At most this many packets.
    Packets(usize),
    /// At most this many bytes.
    Bytes(usize),
}

impl Default for QueueLimit {
    /// 1000 packets, as netem's `limit`.
    fn default() -> Self {
        Self::Packets(1000)
    }
}

/// Why a [`PathConfig`] is invalid.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A probability is not between 0 and 1.
    #[error("{field} is {value}, but a probability lies between 0 and 1")]
    NotAProbability {
        /// The field's name.
        field: &'static str,
        /// The value that was given.
        value: f64,
    },
    /// The mean loss is 0 or 1, which is impossible with bursts.
    #[error("the mean loss of bursts is {0}, but must lie between 0 and 1, both excluded")]
    NoBursts(f64),
    /// The mean burst is too short for the mean loss.
    #[error("bursts of {mean_burst} packets are too short for that loss: at least {least}")]
    BurstTooShort {
        /// The given mean burst, in packets.
        mean_burst: f64,
        /// The shortest possible one.
        least: f64,
    },
    /// The mean stay in the bad state is below [`BurstLoss::MIN_MEAN_BAD`].
    #[error("a mean bad time of {0:?} is too short: at least 100us")]
    BadTimeTooShort(Duration),
    /// A packet is to be held back by 0 positions.
    #[error("packet {0} is to be held back by 0 positions: at least 1")]
    ZeroHold(u64),
    /// A rate of zero bits per second.
    #[error("a rate of 0 delivers nothing: leave the rate out for no limit")]
    ZeroRate,
    /// Random early detection without a rate, and so without a queue.
    #[error("random early detection needs a rate: without one, no packet waits")]
    RedWithoutRate,
    /// The thresholds of random early detection are not in order.
    #[error(
        "the thresholds of random early detection are {min} and {max}: the second must be larger"
    )]
    RedThresholds {
        /// The lower threshold, in packets.
        min: f64,
        /// The upper threshold, in packets.
        max: f64,
    },
    /// FQ-CoDel without a rate, and so without a queue.
    #[error("fq_codel needs a rate: without one, no packet waits")]
    FqCodelWithoutRate,
    /// Random early detection together with FQ-CoDel.
    #[error("red and fq_codel exclude each other: a path has one queue discipline")]
    TwoDisciplines,
    /// The interval of CoDel is zero.
    #[error("an interval of 0 drops every packet that waits: about the largest round-trip time")]
    ZeroInterval,
    /// The quantum of FQ-CoDel is below [`FqCodel::MIN_QUANTUM`] or above [`FqCodel::MAX_QUANTUM`].
    #[error("a quantum of {0} bytes: it lies between 256 and 1048576")]
    Quantum(usize),
    /// The number of queues of FQ-CoDel is zero or above [`FqCodel::MAX_FLOWS`].
    #[error("{0} queues: the number lies between 1 and 65536")]
    NumberOfFlows(usize),
    /// A delay or its spread is longer than [`PathConfig::MAX_DELAY`].
    #[error("a delay of {0:?} is too long: at most 100 days")]
    DelayTooLong(Duration),
}

impl PathConfig {
    /// The longest supported delay and spread: 100 days.
    pub const MAX_DELAY: Duration = Duration::from_secs(100 * 86_400);

    /// Whether the path marks ECN-capable packets.
    #[must_use]
    pub fn marks_packets(&self) -> bool {
        self.red.is_some_and(|red| red.ecn) || self.fq_codel.is_some_and(|it| it.ecn)
    }

    /// Validates the configuration.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        probability("loss.uniform", self.loss.uniform)?;
        probability("reorder.probability", self.reorder.probability)?;
        probability("duplicate", self.duplicate)?;
        probability("corrupt", self.corrupt)?;
        if let Some(burst) = &self.loss.burst {
            burst.validate()?;
        }
        if let Some(red) = &self.red {
            probability("red.probability", red.probability)?;
            probability("red.weight", red.weight)?;
            red.validate()?;
            if self.rate.is_none() {
                return Err(ConfigError::RedWithoutRate);
            }
        }
        if let Some(fq_codel) = &self.fq_codel {
            fq_codel.validate()?;
            if self.rate.is_none() {
                return Err(ConfigError::FqCodelWithoutRate);
            }
            if self.red.is_some() {
                return Err(ConfigError::TwoDisciplines);
            }
        }
        for delay in [&self.delay, &self.reorder.extra] {
            let longest = delay.mean.max(delay.jitter.spread());
            if longest > Self::MAX_DELAY {
                return Err(ConfigError::DelayTooLong(longest));
            }
        }
        if let Some(hold) = self.holds.iter().find(|hold| hold.by == 0) {
            return Err(ConfigError::ZeroHold(hold.packet));
        }
        if self.rate.is_some_and(|rate| rate.bits_per_second() == 0) {
            return Err(ConfigError::ZeroRate); // Possible by deserialization.
        }
        Ok(())
    }
}

impl BurstLoss {
    fn validate(&self) -> Result<(), ConfigError> {
        match *self {
            Self::Packets { mean_loss, mean_burst } => {
                bursts_possible(mean_loss)?;
                // Shorter bursts would require a transition probability above 1.
                let least = (mean_loss / (1.0 - mean_loss)).max(1.0);
                if !(mean_burst >= least && mean_burst.is_finite()) {
                    return Err(ConfigError::BurstTooShort { mean_burst, least });
                }
            }
            Self::Time { mean_loss, mean_bad } => {
                bursts_possible(mean_loss)?;
                if mean_bad < Self::MIN_MEAN_BAD {
                    return Err(ConfigError::BadTimeTooShort(mean_bad));
                }
                if mean_bad > PathConfig::MAX_DELAY {
                    return Err(ConfigError::DelayTooLong(mean_bad));
                }
            }
            Self::Gemodel { to_bad, to_good, loss_in_bad, loss_in_good } => {
                probability("to_bad", to_bad)?;
                probability("to_good", to_good)?;
                probability("loss_in_bad", loss_in_bad)?;
                probability("loss_in_good", loss_in_good)?;
            }
        }
        Ok(())
    }
}

fn probability(field: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::NotAProbability { field, value })
    }
}

fn bursts_possible(mean_loss: f64) -> Result<(), ConfigError> {
    if mean_loss > 0.0 && mean_loss < 1.0 { Ok(()) } else { Err(ConfigError::NoBursts(mean_loss)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Jitter;

    #[test]
    fn refuses_what_cannot_be() {
        let good = PathConfig::default();
        let burst = |burst| PathConfig {
            loss: Loss { burst: Some(burst), ..Loss::default() },
            ..good.clone()
        };
        assert_eq!(good.validate(), Ok(()));
        for value in [-0.1, 1.1, f64::NAN] {
            let error = PathConfig { duplicate: value, ..good.clone() }.validate();
            assert!(matches!(error, Err(ConfigError::NotAProbability { field: "duplicate", .. })));
        }
        let short = burst(BurstLoss::Packets { mean_loss: 0.75, mean_burst: 2.0 });
        assert_eq!(
            short.validate(),
            Err(ConfigError::BurstTooShort { mean_burst: 2.0, least: 3.0 })
        );
        let none = burst(BurstLoss::Packets { mean_loss: 0.0, mean_burst: 2.0 });
        assert_eq!(none.validate(), Err(ConfigError::NoBursts(0.0)));
        let brief =
            burst(BurstLoss::Time { mean_loss: 0.1, mean_bad: Duration::from_nanos(99_999) });
        assert!(matches!(brief.validate(), Err(ConfigError::BadTimeTooShort(_))));
        let hold = PathConfig { holds: vec![Hold { packet: 4, by: 0 }], ..good.clone() };
        assert_eq!(hold.validate(), Err(ConfigError::ZeroHold(4)));
        let long = PathConfig { delay: Delay::constant(Duration::MAX), ..good.clone() };
        assert_eq!(long.validate(), Err(ConfigError::DelayTooLong(Duration::MAX)));
        let rate = BitRate::new(1_000_000);
        let red = |red| PathConfig { red: Some(red), rate, ..good.clone() }.validate();
        assert_eq!(red(Red::new(5.0, 15.0)), Ok(()));
        for (min, max) in [(5.0, 5.0), (-1.0, 5.0), (5.0, f64::INFINITY), (f64::NAN, 5.0)] {
            assert!(matches!(red(Red::new(min, max)), Err(ConfigError::RedThresholds { .. })));
        }
        let unlimited = PathConfig { red: Some(Red::new(5.0, 15.0)), ..good.clone() };
        assert_eq!(unlimited.validate(), Err(ConfigError::RedWithoutRate));
        let weight = Red { weight: 1.5, ..Red::new(5.0, 15.0) };
        assert!(matches!(red(weight), Err(ConfigError::NotAProbability { .. })));
        let fq =
            |fq_codel| PathConfig { fq_codel: Some(fq_codel), rate, ..good.clone() }.validate();
        let default = FqCodel::default();
        assert_eq!(fq(default), Ok(()));
        let unlimited = PathConfig { fq_codel: Some(default), ..good.clone() };
        assert_eq!(unlimited.validate(), Err(ConfigError::FqCodelWithoutRate));
        let both = PathConfig { red: Some(Red::new(5.0, 15.0)), rate, ..unlimited };
        assert_eq!(both.validate(), Err(ConfigError::TwoDisciplines));
        let zero = FqCodel { interval: Duration::ZERO, ..default };
        assert_eq!(fq(zero), Err(ConfigError::ZeroInterval));
        let endless = FqCodel { target: Duration::MAX, ..default };
        assert_eq!(fq(endless), Err(ConfigError::DelayTooLong(Duration::MAX)));
        for quantum in [255, 1_048_577, usize::MAX] {
            assert_eq!(fq(FqCodel { quantum, ..default }), Err(ConfigError::Quantum(quantum)));
        }
        for flows in [0, 65_537] {
            assert_eq!(fq(FqCodel { flows, ..default }), Err(ConfigError::NumberOfFlows(flows)));
        }
        let stopped: PathConfig = serde_json::from_str(r#"{"rate": 0}"#).unwrap();
        assert_eq!(stopped.validate(), Err(ConfigError::ZeroRate));
    }

    #[test]
    fn survives_a_configuration_file() {
        let config = PathConfig {
            delay: Delay {
                mean: Duration::from_millis(50),
                jitter: Jitter::Normal(Duration::from_micros(1500)),
            },
            loss: Loss {
                burst: Some(BurstLoss::Time {
                    mean_loss: 0.05,
                    mean_bad: Duration::from_millis(100),
                }),
                packets: vec![3, 5],
                ..Loss::default()
            },
            holds: vec![Hold { packet: 1, by: 2 }],
            rate: BitRate::new(1_000_000),
            queue: QueueLimit::Bytes(64_000),
            red: Some(Red::new(5.0, 15.0)),
            fq_codel: Some(FqCodel { ecn: false, ..FqCodel::default() }),
            ..PathConfig::default()
        };
        let text = serde_json::to_string(&config).unwrap();
        assert!(text.contains(r#""mean":"50ms""#), "{text}");
        assert_eq!(serde_json::from_str::<PathConfig>(&text).unwrap(), config);
        assert!(serde_json::from_str::<PathConfig>(r#"{"los": {}}"#).is_err());
    }
}
