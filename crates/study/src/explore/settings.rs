//! The settings, and whether they are valid.

use rexmit_core::{Instant, Seed};
use rexmit_lab::load::BUNDLED;
use rexmit_lab::scenario::Traffic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::limits::{CONTROLS, Control, MAX_MESSAGES, MAX_PAYLOAD_BYTES, MAX_SEEDS};
use crate::advice::{Candidate, every_candidate};
use crate::mistake::Mistakes;

/// One stream of messages, one link that is the same in both directions, and the systems that are compared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// When messages are sent.
    pub rhythm: Rhythm,
    /// Time between two messages in milliseconds; unused with a trace.
    pub interval_ms: f64,
    /// Bytes of a message; unused with a trace.
    pub size: u32,
    /// Whether messages are delivered in order.
    pub ordered: bool,
    /// Round-trip time in milliseconds, half of it in each direction.
    pub rtt_ms: f64,
    /// Standard deviation of the delay of each direction, in milliseconds.
    pub jitter_ms: f64,
    /// Packets lost in each direction, in percent.
    pub loss_percent: f64,
    /// Mean duration of a burst of losses in milliseconds; 0: losses are independent. Unused without loss.
    pub burst_ms: f64,
    /// Rate of each direction in kbit/s; 0: unlimited.
    pub rate_kbit: u32,
    /// Length of the queue in packets; unused if the rate is unlimited.
    pub queue: u32,
    /// Seconds in which messages are sent.
    pub duration_s: u32,
    /// Runs of each system.
    pub seeds: u32,
    /// The names of the [`systems`] that are compared.
    pub systems: Vec<String>,
}

/// When messages are sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rhythm {
    /// At constant intervals.
    Every,
    /// At random intervals: a Poisson process.
    Poisson,
    /// The messages that the servers of an embedded trace sent.
    Trace(String),
}

/// Why settings are not valid.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A number out of its limits.
    #[error(
        "{label} is {value} {unit}, but must be from {least} to {most} {unit}, in steps of {step}"
    )]
    Number {
        /// The label of the setting.
        label: &'static str,
        /// The value that was given.
        value: f64,
        /// The unit of the value.
        unit: &'static str,
        /// The least value.
        least: f64,
        /// The largest value.
        most: f64,
        /// The distance of two values.
        step: f64,
    },
    /// Too many runs of a system, or none.
    #[error("{0} runs of each system: there must be 1 to {MAX_SEEDS}")]
    Seeds(u32),
    /// No such trace.
    #[error("there is no trace `{0}`: choose one of {1}")]
    Trace(String, String),
    /// Nothing to compare.
    #[error("no system is selected: select at least one")]
    NoSystem,
    /// An unknown system.
    #[error("there is no system `{0}`, or this program was built without it")]
    System(String),
    /// The same system again.
    #[error("the system `{0}` is listed twice")]
    Twice(String),
    /// A system that delivers in order only.
    #[error("{0} delivers messages in order only: choose ordered delivery, or leave it out")]
    Ordered(String),
    /// There are more messages than the server computes for one question.
    #[error(
        "{0} messages in all runs together, but there may be {MAX_MESSAGES}: choose a shorter duration, fewer runs, or fewer systems"
    )]
    Messages(u64),
    /// More payload than the server computes for one question.
    #[error(
        "{} MB of payload in all runs together, but there may be {}: choose smaller or fewer messages, fewer runs, or fewer systems",
        .0 / 1_000_000, MAX_PAYLOAD_BYTES / 1_000_000
    )]
    Payload(u64),
    /// The laboratory refuses them.
    #[error("{0}")]
    Study(#[from] Mistakes),
}

/// The systems that can be compared, in the order of the page.
pub fn systems() -> impl Iterator<Item = &'static Candidate> {
    every_candidate()
}

impl Default for Settings {
    /// A game: 100 bytes every 50 ms, unordered, over 100 ms of round-trip time with 5 % loss.
    fn default() -> Self {
        let systems =
            ["rfc9260", "thin", "interactive", "interactive-bundling", "interactive-redundant"];
        Self {
            rhythm: Rhythm::Every,
            interval_ms: 50.0,
            size: 100,
            ordered: false,
            rtt_ms: 100.0,
            jitter_ms: 0.0,
            loss_percent: 5.0,
            burst_ms: 0.0,
            rate_kbit: 0,
            queue: 100,
            duration_s: 300,
            seeds: 3,
            systems: systems.map(Into::into).to_vec(),
        }
    }
}

impl Settings {
    /// Checks everything that needs no simulation.
    ///
    /// # Errors
    /// The first problem.
    pub fn validate(&self) -> Result<(), SettingsError> {
        CONTROLS.iter().try_for_each(|control| self.check_number(control))?;
        if !(1..=MAX_SEEDS).contains(&self.seeds) {
            return Err(SettingsError::Seeds(self.seeds));
        }
        if let Rhythm::Trace(name) = &self.rhythm
            && BUNDLED.iter().all(|bundled| bundled.name != name)
        {
            let known: Vec<_> = BUNDLED.iter().map(|bundled| bundled.name).collect();
            return Err(SettingsError::Trace(name.clone(), known.join(", ")));
        }
        self.chosen()?;
        let (messages, payload_bytes) = self.work_of_run();
        let runs = self.systems.len() as u64 * u64::from(self.seeds);
        match (messages * runs, payload_bytes * runs) {
            (messages, _) if messages > MAX_MESSAGES => Err(SettingsError::Messages(messages)),
            (_, bytes) if bytes > MAX_PAYLOAD_BYTES => Err(SettingsError::Payload(bytes)),
            _ => Ok(()),
        }
    }

    fn check_number(&self, control: &Control) -> Result<(), SettingsError> {
        let &Control { label, unit, least, most, step, .. } = control;
        let value = (control.value)(self);
        // Multiples are compared as texts of the same digits: a thousandth has no exact form.
        let is_multiple = step >= 1.0 || format!("{value:.3}").parse() == Ok(value);
        match (least..=most).contains(&value) && is_multiple {
            true => Ok(()),
            false => Err(SettingsError::Number { label, value, unit, least, most, step }),
        }
    }

    /// The selected systems.
    pub(super) fn chosen(&self) -> Result<Vec<&'static Candidate>, SettingsError> {
        let mut chosen: Vec<&'static Candidate> = Vec::new();
        for name in &self.systems {
            let known = systems().find(|system| system.label == name);
            let system = known.ok_or_else(|| SettingsError::System(name.clone()))?;
            if chosen.contains(&system) {
                return Err(SettingsError::Twice(name.clone()));
            }
            if !self.ordered && system.is_ordered_only() {
                return Err(SettingsError::Ordered(name.clone()));
            }
            chosen.push(system);
        }
        if chosen.is_empty() { Err(SettingsError::NoSystem) } else { Ok(chosen) }
    }

    /// The number of messages of a run and their bytes, counted no further than is needed to refuse them.
    pub(super) fn work_of_run(&self) -> (u64, u64) {
        let end = Instant::from_millis(u64::from(self.duration_s) * 1000);
        let traffic = self.traffic().parse::<Traffic>().ok();
        let source = traffic.and_then(|traffic| traffic.source(&Seed::from_u64(1)).ok());
        let within = source.into_iter().flatten().take_while(|(at, _)| *at < end);
        let counted = within.take(MAX_MESSAGES as usize + 1);
        counted.fold((0, 0), |(messages, bytes), (_, size)| (messages + 1, bytes + size as u64))
    }
}
