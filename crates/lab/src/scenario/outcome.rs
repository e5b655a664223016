//! The named measurements of a run.
//!
//! Names are `FLOW.WHAT`: `game.latency.p99` is a quantity, `game.latency` its distribution,
//! `game.rto` a series.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// A number of things.
    Count,
    /// A share, from 0 to 1.
    Share,
    /// A quantity per quantity of the same kind.
    Ratio,
}

/// A name with its description.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Described {
    /// The name.
    pub name: String,
    /// The unit of the quantity.
    pub unit: Unit,
    /// A description in one line.
    pub about: String,
}

/// The names of everything that a run of a scenario measures.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Catalogue {
    /// Single numbers.
    pub quantities: Vec<Described>,
    /// Distributions; the unit is that of their values.
    pub distributions: Vec<Described>,
    /// Values over time; the unit is that of the values.
    pub series: Vec<Described>,
}

/// The measurements of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Single numbers. Undefined ones (such as the 99th percentile of no messages) are missing.
    pub quantities: BTreeMap<String, f64>,
    /// Distributions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub distributions: BTreeMap<String, Distribution>,
    /// Values over time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Series>,
    /// One row per message, if the scenario requests them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageRow>,
}

impl RunOutcome {
    /// The name of a measurement whose value is not a finite number, such as the mean of no values.
    /// JSON cannot represent such numbers.
    #[must_use]
    pub fn not_finite(&self) -> Option<&str> {
        let wrong = |values: &[f64]| !values.iter().all(|value| value.is_finite());
        let quantity = |(name, value): (_, &f64)| wrong(&[*value]).then_some(name);
        let distribution =
            |(name, distribution): (_, &Distribution)| wrong(&distribution.values).then_some(name);
        let series = |(name, series): (_, &Series)| {
            (wrong(&series.seconds) || wrong(&series.values)).then_some(name)
        };
        let name = self.quantities.iter().find_map(quantity);
        let name = name.or_else(|| self.distributions.iter().find_map(distribution));
        name.or_else(|| self.series.iter().find_map(series)).map(String::as_str)
    }
}

/// A distribution in bounded memory, which can be merged with others.
///
/// Ascending values and how often each occurred; values are rounded to a relative precision of one
/// in a thousand.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// The values, strictly ascending.
    pub values: Vec<f64>,
    /// The count of each value (or its weight, for example in bytes).
    pub counts: Vec<u64>,
}

/// Values over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Seconds since the run began, ascending.
    pub seconds: Vec<f64>,
    /// The values.
    pub values: Vec<f64>,
}

/// One message of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MessageRow {
    /// The flow.
    pub flow: String,
    /// The message's number in its connection.
    pub message: u64,
    /// Size of its payload in bytes.
    pub bytes: u32,
    /// When the application intended to send it, in seconds since the run began.
    pub intended_s: f64,
    /// Time from the intended sending to the arrival at the receiver's transport; `None` if it
    /// never arrived.
    pub transport_ms: Option<f64>,
    /// Time from the intended sending to the delivery to the application.
    pub application_ms: Option<f64>,
    /// Number of transmissions until it arrived, if measured.
    pub transmissions: Option<u32>,
}
