//! Path configurations in the syntax of netem: `delay 50ms 10ms distribution normal loss 5%`.
//!
//! `burst`, `list` and `hold` are not netem's, and some options differ from netem's because the
//! model does:
//!
//! | words | meaning |
//! |---|---|
//! | `delay TIME [JITTER [distribution NAME]]` | `uniform`, `normal`, `pareto` as netem, or `exponential`; uniform by default |
//! | `loss [random] PERCENT` | as netem |
//! | `loss gemodel P R [1-H [1-K]]` | as netem; 100 % and 0 % by default |
//! | `loss burst PERCENT PACKETS` or `TIME` | mean loss and mean burst, or mean time in bursts |
//! | `loss list N,N,…` | exactly these packets, from 0 |
//! | `reorder PERCENT TIME [JITTER [distribution NAME]]` | this share of packets is delayed further by TIME (netem: is not delayed) |
//! | `hold N K` | packet N is delivered right after K later ones |
//! | `duplicate PERCENT`, `corrupt PERCENT`, `rate RATE` | as netem |
//! | `red MIN MAX [PERCENT [WEIGHT]] [ecn]` | random early detection: thresholds of the average queue in packets, probability of a drop at the upper one (10 %), weight of the newest length (0.002); with `ecn`, ECN-capable packets are marked instead |
//! | `fq_codel [target TIME] [interval TIME] [quantum BYTES] [flows N] [noecn]` | FQ-CoDel (RFC 8290): a queue per flow; defaults 5 ms, 100 ms, 1514, 1024 as in Linux; ECN-capable packets are marked unless `noecn`; `limit` is the limit of all queues |
//! | `limit N` or `limit SIZE` | packets or bytes that may wait for the rate |
//! | `ordered` | jitter does not reorder |
//!
//! `loss` may be repeated with another model; a packet is lost if any of them drops it. `hold` and
//! `loss list` may be repeated, every other option is refused when it is given again. `loss gemodel`
//! and `loss burst` are one model.

use std::iter::Peekable;
use std::str::{FromStr, SplitWhitespace};
use std::time::Duration;

use thiserror::Error;

use crate::path::{
    BurstLoss, ConfigError, Delay, FqCodel, Hold, Jitter, Loss, PathConfig, QueueLimit, Red,
    Reorder,
};
use crate::units::{self, UnitError};

/// An error in the text of a path.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum NetemError {
    /// An unexpected word.
    #[error("unknown word `{word}`: expected {expected}")]
    Unknown {
        /// The word.
        word: String,
        /// The expected values.
        expected: &'static str,
    },
    /// The text ends too early.
    #[error("after `{after}` something is missing: {expected}")]
    Missing {
        /// A word that requires another one after it.
        after: &'static str,
        /// The expected values.
        expected: &'static str,
    },
    /// An option that may be given only once was repeated.
    #[error("`{option}` is given twice, but may be given only once")]
    Twice {
        /// The option.
        option: &'static str,
    },
    /// An invalid quantity.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The described path is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Parses options as in the [module's table](self); an empty text is a perfect path.
///
/// ```
/// use rexmit_netsim::path::{Delay, PathConfig};
/// use std::time::Duration;
/// let config: PathConfig = "delay 50ms loss 5% rate 10mbit limit 100".parse()?;
/// assert_eq!(config.delay, Delay::constant(Duration::from_millis(50)));
/// # Ok::<(), rexmit_netsim::netem::NetemError>(())
/// ```
impl FromStr for PathConfig {
    type Err = NetemError;

    fn from_str(text: &str) -> Result<Self, NetemError> {
        Self::default().with_options(text)
    }
}

impl PathConfig {
    /// Applies further options, as in the [module's table](crate::netem); each replaces what the path has.
    ///
    /// # Errors
    /// As from parsing; an option may be given once in `text`.
    pub fn with_options(mut self, text: &str) -> Result<Self, NetemError> {
        let config = &mut self;
        let mut words = Words::new(text);
        while let Some(word) = words.rest.next() {
            if let Some(option) = ONCE.into_iter().find(|option| *option == word) {
                words.once(option)?;
            }
            match word {
                "delay" => config.delay = words.delay("delay")?,
                "loss" => words.loss(&mut config.loss)?,
                "reorder" => {
                    let probability = words.probability("reorder")?;
                    config.reorder = Reorder { probability, extra: words.delay("reorder")? };
                }
                "hold" => {
                    let packet = words.number("hold", "a packet number")?;
                    let by = words.number("hold", "a number of positions")?;
                    config.holds.push(Hold { packet, by });
                }
                "duplicate" => config.duplicate = words.probability("duplicate")?,
                "corrupt" => config.corrupt = words.probability("corrupt")?,
                "rate" => {
                    let rate = words.value("rate", "a rate such as 10mbit")?;
                    config.rate = Some(units::parse_rate(rate)?);
                }
                "limit" => config.queue = words.value("limit", "packets or a size")?.parse()?,
                "red" => config.red = Some(words.red()?),
                "fq_codel" => config.fq_codel = Some(words.fq_codel()?),
                "ordered" => config.keep_order = true,
                _ => return Err(unknown(word, CLAUSES)),
            }
        }
        self.validate()?;
        Ok(self)
    }
}

/// The options that a path has once; those of `loss` are checked by model.
const ONCE: [&str; 9] =
    ["delay", "reorder", "duplicate", "corrupt", "rate", "limit", "red", "fq_codel", "ordered"];

/// The words that may follow `fq_codel`.
const FQ_CODEL: [&str; 6] = ["target", "interval", "quantum", "flows", "ecn", "noecn"];

const CLAUSES: &str =
    "delay, loss, reorder, hold, duplicate, corrupt, rate, limit, red, fq_codel or ordered";

/// Parses the arguments of `loss` as in the [module's table](self).
impl FromStr for Loss {
    type Err = NetemError;

    fn from_str(text: &str) -> Result<Self, NetemError> {
        let mut loss = Self::default();
        let mut words = Words::new(text);
        words.loss(&mut loss)?;
        match words.rest.next() {
            Some(word) => Err(unknown(word, "nothing more")),
            None => Ok(loss),
        }
    }
}

/// Parses a plain number as packets, and a size such as `64kb` as bytes.
impl FromStr for QueueLimit {
    type Err = NetemError;

    fn from_str(text: &str) -> Result<Self, NetemError> {
        match text.parse() {
            Ok(packets) => Ok(Self::Packets(packets)),
            Err(_) => Ok(Self::Bytes(units::parse_size(text)?)),
        }
    }
}

impl Jitter {
    /// The distribution with the netem name `name` and the spread `spread`.
    ///
    /// # Errors
    /// [`NetemError::Unknown`] for another name.
    pub fn from_name(name: &str, spread: Duration) -> Result<Self, NetemError> {
        match name {
            "constant" => Ok(Self::Constant),
            "uniform" => Ok(Self::Uniform(spread)),
            "normal" => Ok(Self::Normal(spread)),
            "pareto" => Ok(Self::Pareto(spread)),
            "exponential" => Ok(Self::Exponential(spread)),
            _ => Err(unknown(name, "constant, uniform, normal, pareto or exponential")),
        }
    }
}

struct Words<'a> {
    rest: Peekable<SplitWhitespace<'a>>,
    /// The options that may be given once, as far as they were given.
    given: Vec<&'static str>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.split_whitespace().peekable(), given: Vec::new() }
    }

    /// Returns an error if `option` was given before.
    fn once(&mut self, option: &'static str) -> Result<(), NetemError> {
        if self.given.contains(&option) {
            return Err(NetemError::Twice { option });
        }
        self.given.push(option);
        Ok(())
    }

    fn value(
        &mut self,
        after: &'static str,
        expected: &'static str,
    ) -> Result<&'a str, NetemError> {
        self.rest.next().ok_or(NetemError::Missing { after, expected })
    }

    /// The next word if it is a value and not a keyword.
    fn further_value(&mut self) -> Option<&'a str> {
        self.rest.next_if(|word| word.starts_with(|first: char| first.is_ascii_digit()))
    }

    fn probability(&mut self, after: &'static str) -> Result<f64, NetemError> {
        Ok(units::parse_probability(self.value(after, "a share such as 5%")?)?)
    }

    fn number<T: FromStr>(
        &mut self,
        after: &'static str,
        expected: &'static str,
    ) -> Result<T, NetemError> {
        let word = self.value(after, expected)?;
        word.parse().map_err(|_| unknown(word, expected))
    }

    fn red(&mut self) -> Result<Red, NetemError> {
        let expected = "a number of packets";
        let mut red = Red::new(self.number("red", expected)?, self.number("red", expected)?);
        if let Some(probability) = self.further_value() {
            red.probability = units::parse_probability(probability)?;
        }
        if let Some(weight) = self.further_value() {
            red.weight = weight.parse().map_err(|_| unknown(weight, "a weight such as 0.002"))?;
        }
        red.ecn = self.rest.next_if_eq(&"ecn").is_some();
        Ok(red)
    }

    fn fq_codel(&mut self) -> Result<FqCodel, NetemError> {
        let mut config = FqCodel::default();
        while let Some(option) = self.rest.next_if(|word| FQ_CODEL.contains(word)) {
            match option {
                "target" => {
                    let target = self.value("target", "a time such as 5ms")?;
                    config.target = units::parse_duration(target)?;
                }
                "interval" => {
                    let interval = self.value("interval", "a time such as 100ms")?;
                    config.interval = units::parse_duration(interval)?;
                }
                "quantum" => config.quantum = self.number("quantum", "a number of bytes")?,
                "flows" => config.flows = self.number("flows", "a number of queues")?,
                _ => config.ecn = option == "ecn",
            }
        }
        Ok(config)
    }

    fn delay(&mut self, after: &'static str) -> Result<Delay, NetemError> {
        let mean = units::parse_duration(self.value(after, "a time such as 50ms")?)?;
        let Some(spread) = self.further_value() else { return Ok(Delay::constant(mean)) };
        let spread = units::parse_duration(spread)?;
        let name = match self.rest.next_if_eq(&"distribution") {
            Some(_) => self.value("distribution", "uniform, normal, pareto or exponential")?,
            None => "uniform",
        };
        Ok(Delay { mean, jitter: Jitter::from_name(name, spread)? })
    }

    fn loss(&mut self, loss: &mut Loss) -> Result<(), NetemError> {
        match self.value("loss", "a share such as 5%, gemodel, burst or list")? {
            "random" => {
                self.once("loss random")?;
                loss.uniform = self.probability("random")?;
            }
            "gemodel" => {
                self.once("loss burst")?;
                loss.burst = Some(self.gemodel()?);
            }
            "burst" => {
                self.once("loss burst")?;
                loss.burst = Some(self.burst()?);
            }
            "list" => {
                for number in self.value("list", "packet numbers such as 3,5")?.split(',') {
                    let number = number.parse().map_err(|_| unknown(number, "a packet number"))?;
                    loss.packets.push(number);
                }
            }
            share => {
                self.once("loss random")?;
                loss.uniform = units::parse_probability(share)?;
            }
        }
        Ok(())
    }

    fn gemodel(&mut self) -> Result<BurstLoss, NetemError> {
        let to_bad = self.probability("gemodel")?;
        let to_good = self.probability("gemodel")?;
        let mut further = |default| match self.further_value() {
            Some(word) => units::parse_probability(word),
            None => Ok(default),
        };
        let (loss_in_bad, loss_in_good) = (further(1.0)?, further(0.0)?);
        Ok(BurstLoss::Gemodel { to_bad, to_good, loss_in_bad, loss_in_good })
    }

    fn burst(&mut self) -> Result<BurstLoss, NetemError> {
        let mean_loss = self.probability("burst")?;
        let length = self.value("burst", "packets such as 3, or a time such as 100ms")?;
        match length.parse() {
            Ok(mean_burst) => Ok(BurstLoss::Packets { mean_loss, mean_burst }),
            Err(_) => Ok(BurstLoss::Time { mean_loss, mean_bad: units::parse_duration(length)? }),
        }
    }
}

fn unknown(word: &str, expected: &'static str) -> NetemError {
    NetemError::Unknown { word: word.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_core::BitRate;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn every_clause_sets_its_field() {
        let text = "delay 50ms 10ms distribution normal loss random 5% loss gemodel 1% 10% \
                    loss list 3,5 reorder 25% 3ms 1ms distribution exponential \
                    hold 7 2 duplicate 1% corrupt 0.5% rate 10mbit limit 64kb red 5 15 2% ordered";
        let expected = PathConfig {
            delay: Delay { mean: ms(50), jitter: Jitter::Normal(ms(10)) },
            keep_order: true,
            loss: Loss {
                uniform: 0.05,
                burst: Some(BurstLoss::Gemodel {
                    to_bad: 0.01,
                    to_good: 0.1,
                    loss_in_bad: 1.0,
                    loss_in_good: 0.0,
                }),
                packets: vec![3, 5],
            },
            reorder: Reorder {
                probability: 0.25,
                extra: Delay { mean: ms(3), jitter: Jitter::Exponential(ms(1)) },
            },
            holds: vec![Hold { packet: 7, by: 2 }],
            duplicate: 0.01,
            corrupt: 0.005,
            rate: BitRate::new(10_000_000),
            queue: QueueLimit::Bytes(65_536),
            red: Some(Red { probability: 0.02, ..Red::new(5.0, 15.0) }),
            fq_codel: None,
            mtu: None,
        };
        assert_eq!(text.parse(), Ok(expected));
        assert_eq!("".parse(), Ok(PathConfig::default()));
    }

    #[test]
    fn marking_is_asked_for_after_the_other_settings_of_red() {
        let red = |text: &str| {
            let path = format!("rate 1mbit red {text} limit 50").parse::<PathConfig>();
            path.map(|path| path.red.unwrap())
        };
        let marking = Red { ecn: true, ..Red::new(5.0, 15.0) };
        assert_eq!(red("5 15 ecn"), Ok(marking));
        assert_eq!(red("5 15 2% ecn"), Ok(Red { probability: 0.02, ..marking }));
        assert_eq!(red("5 15 2% 0.1 ecn"), Ok(Red { probability: 0.02, weight: 0.1, ..marking }));
        assert_eq!(red("5 15"), Ok(Red::new(5.0, 15.0)));
        assert!(red("5 15 ecn 2%").is_err());
    }

    #[test]
    fn fq_codel_takes_its_settings_in_any_order() {
        let path = |text: &str| format!("rate 1mbit {text}").parse::<PathConfig>();
        let fq_codel = |text: &str| path(text).map(|path| path.fq_codel);
        assert_eq!(fq_codel("fq_codel limit 50"), Ok(Some(FqCodel::default())));
        let all = FqCodel { target: ms(2), interval: ms(40), quantum: 300, flows: 16, ecn: false };
        let text = "fq_codel noecn flows 16 target 2ms quantum 300 interval 40ms";
        assert_eq!(fq_codel(text), Ok(Some(all)));
        let error = |text: &str| path(text).unwrap_err().to_string();
        assert_eq!(
            error("fq_codel target"),
            "after `target` something is missing: a time such as 5ms"
        );
        assert_eq!(
            error("red 5 15 fq_codel"),
            "red and fq_codel exclude each other: a path has one queue discipline"
        );
    }

    #[test]
    fn losses_stand_alone_too() {
        let burst = |text: &str| text.parse::<Loss>().map(|loss| loss.burst);
        let packets = BurstLoss::Packets { mean_loss: 0.05, mean_burst: 3.0 };
        assert_eq!(burst("burst 5% 3"), Ok(Some(packets)));
        let time = BurstLoss::Time { mean_loss: 0.05, mean_bad: ms(100) };
        assert_eq!(burst("burst 5% 100ms"), Ok(Some(time)));
        assert_eq!("5%".parse(), Ok(Loss { uniform: 0.05, ..Loss::default() }));
        assert_eq!("100".parse(), Ok(QueueLimit::Packets(100)));
    }

    #[test]
    fn errors_describe_the_mistake() {
        let error = |text: &str| text.parse::<PathConfig>().unwrap_err().to_string();
        assert_eq!(
            error("dealy 50ms"),
            "unknown word `dealy`: expected delay, loss, reorder, hold, duplicate, corrupt, \
             rate, limit, red, fq_codel or ordered"
        );
        assert_eq!(error("delay"), "after `delay` something is missing: a time such as 50ms");
        assert_eq!(error("delay 50"), "`50` needs one of the units ns, us, ms, s, min, h");
        assert_eq!(
            error("delay 50ms 5ms distribution gauss"),
            "unknown word `gauss`: expected constant, uniform, normal, pareto or \
             exponential"
        );
        assert_eq!(error("loss list 3,x"), "unknown word `x`: expected a packet number");
        assert_eq!(
            error("loss burst 75% 2"),
            "bursts of 2 packets are too short for that loss: at least 3"
        );
        assert!("5% 6%".parse::<Loss>().is_err());
    }

    #[test]
    fn refuses_an_option_that_would_replace_another() {
        let parse = |text: &str| text.parse::<PathConfig>().map_err(|error| error.to_string());
        let twice = |option| Err(format!("`{option}` is given twice, but may be given only once"));
        assert_eq!(parse("loss burst 5% 3 loss burst 0.02% 3s"), twice("loss burst"));
        assert_eq!(parse("loss burst 5% 3 loss gemodel 1% 10%"), twice("loss burst"));
        assert_eq!(parse("loss 5% delay 1ms loss random 3%"), twice("loss random"));
        assert_eq!(parse("delay 50ms loss 5% delay 60ms"), twice("delay"));
        let changed = parse("delay 50ms loss 5%").unwrap().with_options("loss 1%");
        assert_eq!(changed, parse("delay 50ms loss 1%").map_err(|_| unreachable!()));
        let several = parse("loss 5% loss burst 1% 3 loss list 3 loss list 5 hold 1 1 hold 2 2");
        assert_eq!(several.unwrap().loss.packets, [3, 5]);
    }
}
