//! The figures of a run, and the comparison of several runs. The JSON of [`Comparison`] is a public
//! format.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_sctp::recovery::ByCause;
use serde::{Deserialize, Serialize};

use super::{
    Ccdf, Counters, LatencyDistribution, LatencySummary, MessageRecord, Recording, millis,
};
use crate::timesequence::TimeSequence;

/// The version of the JSON format; it changes when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// The data of one run, collected by a driver.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The recovery profile.
    pub profile: String,
    /// A description of the profile in a sentence; may be empty.
    pub about: String,
    /// When the run began, on the driver's clock. Times in reports are relative to it.
    pub started: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Every message that the application intended to send, delivered or not.
    pub messages: Vec<MessageRecord>,
    /// The cost.
    pub counters: Counters,
    /// The sender's trace; if it is empty, there is no graph of the worst stall.
    pub trace: Recording,
}

impl Run {
    /// Computes the figures of the run.
    #[must_use]
    pub fn outcome(&self) -> ProfileOutcome {
        let mut distribution = LatencyDistribution::new();
        let mut nanos = Vec::with_capacity(self.messages.len());
        for latency in self.messages.iter().filter_map(MessageRecord::latency) {
            distribution.record(latency);
            nanos.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        }
        let messages = self.messages.len() as u64;
        let undelivered = messages - nanos.len() as u64;
        let Counters { retransmissions, spurious, packets, wire_bytes } = self.counters;
        let payload_bytes = self.messages.iter().map(|m| u64::from(m.payload_bytes)).sum();
        ProfileOutcome {
            profile: self.profile.clone(),
            about: self.about.clone(),
            duration: self.ended - self.started,
            messages,
            undelivered,
            latency: distribution.summary(),
            retransmissions,
            spurious,
            packets,
            wire_bytes,
            payload_bytes,
            wire_bytes_per_payload_byte: ratio(wire_bytes, payload_bytes),
            ccdf: Some(Ccdf::new(&mut nanos, undelivered)),
            worst_stall: TimeSequence::of_worst_stall(self),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The figures of one run: a row of the table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProfileOutcome {
    /// The recovery profile.
    pub profile: String,
    /// A description of the profile in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The duration of the run; `duration_ms` in JSON.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Number of messages that the application intended to send.
    pub messages: u64,
    /// Number of messages that were not delivered before the run ended.
    pub undelivered: u64,
    /// Latency of the delivered messages; `null` if no message was delivered.
    pub latency: Option<LatencySummary>,
    /// Data units retransmitted, by cause.
    pub retransmissions: ByCause,
    /// Data units retransmitted spuriously, by cause.
    pub spurious: ByCause,
    /// Packets on the wire, of any kind.
    pub packets: u64,
    /// Bytes on the wire, headers included.
    pub wire_bytes: u64,
    /// Bytes of all messages.
    pub payload_bytes: u64,
    /// Bytes on the wire per byte of payload; `null` without payload.
    pub wire_bytes_per_payload_byte: Option<f64>,
    /// The latency curve; removed by [`Comparison::without_curves`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ccdf: Option<Ccdf>,
    /// The trace around the highest latency, if it was recorded; removed by
    /// [`Comparison::without_curves`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_stall: Option<TimeSequence>,
}

/// A setting of the run, as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameter {
    /// The name of the setting.
    pub name: String,
    /// The value of the setting, with the unit.
    pub value: String,
}

/// Runs of the same traffic over the same network under several profiles.
///
/// As JSON (times in milliseconds, names ending in `_ms`; sizes in bytes):
///
/// ```
/// use rexmit_core::Instant;
/// use rexmit_lab::measure::{Comparison, MessageRecord, Run};
/// let message = MessageRecord {
///     connection: 0,
///     stream: 0,
///     sequence: 0,
///     payload_bytes: 100,
///     intended: Instant::from_millis(10),
///     delivered: Some(Instant::from_millis(60)),
///     transmissions: Some(1),
/// };
/// let mut run = Run { profile: "rfc9260".into(), messages: vec![message], ..Run::default() };
/// run.ended = Instant::from_millis(1000);
/// run.counters.on_wire(2, 240);
/// let comparison = Comparison::new("A demo", 1).with("loss", "5 %").with_run(&run);
/// let json = serde_json::to_value(comparison.without_curves())?;
/// assert_eq!(json, serde_json::json!({
///     "schema": 1,
///     "title": "A demo",
///     "version": env!("CARGO_PKG_VERSION"),
///     "seed": 1,
///     "parameters": [{ "name": "loss", "value": "5 %" }],
///     "runs": [{
///         "profile": "rfc9260",
///         "duration_ms": 1000.0,
///         "messages": 1,
///         "undelivered": 0,
///         "latency": {
///             "p50_ms": 50.0, "p90_ms": 50.0, "p99_ms": 50.0, "p99.9_ms": 50.0,
///             "max_ms": 50.0, "mean_ms": 50.0,
///         },
///         "retransmissions": {
///             "timeout": 0, "fast_retransmit": 0, "early": 0, "bundled": 0, "window_probe": 0,
///             "redundant": 0, "probe": 0,
///         },
///         "spurious": {
///             "timeout": 0, "fast_retransmit": 0, "early": 0, "bundled": 0, "window_probe": 0,
///             "redundant": 0, "probe": 0,
///         },
///         "packets": 2,
///         "wire_bytes": 240,
///         "payload_bytes": 100,
///         "wire_bytes_per_payload_byte": 2.4,
///     }],
/// }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// A title in one line.
    pub title: String,
    /// The version of rexmit that ran it.
    pub version: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// The settings, in the order in which the report shows them.
    pub parameters: Vec<Parameter>,
    /// The runs; the first is the baseline of the comparison.
    pub runs: Vec<ProfileOutcome>,
}

impl Comparison {
    /// A comparison by this version of rexmit, without parameters and runs.
    #[must_use]
    pub fn new(title: impl Into<String>, seed: u64) -> Self {
        Self {
            schema: SCHEMA,
            title: title.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            seed,
            parameters: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push(Parameter { name: name.into(), value: value.into() });
        self
    }

    /// Adds a run.
    #[must_use]
    pub fn with_run(mut self, run: &Run) -> Self {
        self.runs.push(run.outcome());
        self
    }

    /// The figures without curves, for the JSON on a terminal.
    #[must_use]
    pub fn without_curves(&self) -> Self {
        let mut figures = self.clone();
        for run in &mut figures.runs {
            run.ccdf = None;
            run.worst_stall = None;
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64, intended_ms: u64, delivered_ms: Option<u64>) -> MessageRecord {
        MessageRecord {
            connection: 0,
            stream: 0,
            sequence,
            payload_bytes: 100,
            intended: Instant::from_millis(intended_ms),
            delivered: delivered_ms.map(Instant::from_millis),
            transmissions: None,
        }
    }

    #[test]
    fn a_run_is_measured_from_intended_sending_and_hides_no_undelivered_message() {
        let mut run = Run {
            started: Instant::from_millis(5000),
            ended: Instant::from_millis(8000),
            messages: vec![
                message(0, 5000, Some(5050)),
                message(1, 5250, Some(6400)),
                message(2, 5500, None),
                message(3, 5750, Some(5850)),
            ],
            ..Run::default()
        };
        run.counters.on_wire(7, 1100);
        let result = run.outcome();
        let latency = result.latency.unwrap();
        assert_eq!(latency.max, Duration::from_millis(1150));
        assert_eq!(latency.mean, Duration::from_nanos(1_300_000_000 / 3));
        assert_eq!((result.messages, result.undelivered, result.packets), (4, 1, 7));
        assert_eq!(result.duration, Duration::from_secs(3));
        assert_eq!(result.payload_bytes, 400);
        assert_eq!(result.wire_bytes_per_payload_byte, Some(2.75));
        assert_eq!(result.ccdf.unwrap().share, [1.0, 0.75, 0.5]);
    }

    #[test]
    fn a_run_of_nothing_has_neither_latency_nor_price() {
        let result = Run::default().outcome();
        assert_eq!(result.latency, None);
        assert_eq!(result.wire_bytes_per_payload_byte, None);
        assert_eq!(result.worst_stall, None);
    }

    #[test]
    fn json_reads_back_as_it_was() {
        let messages = vec![message(0, 0, Some(50)), message(1, 250, Some(1530))];
        let run = Run { profile: "thin".into(), messages, ..Run::default() };
        let comparison = Comparison::new("t", 7).with("RTT", "100 ms").with_run(&run);
        let json = serde_json::to_string(&comparison).unwrap();
        assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), comparison);
    }
}
