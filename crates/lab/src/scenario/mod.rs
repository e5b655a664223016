//! What one run does: a network, the flows over it, and how long.
//!
//! A [`Scenario`] is data. [`Scenario::catalogue`] says what a run of it measures, before anything
//! runs; [`execute`] runs it.

mod outcome;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use outcome::{Catalogue, Described, Distribution, MessageRow, RunOutcome, Series, Unit};

/// One run.
///
/// Words are those of people: times as `250ms` or `2h`, paths as netem has them (`delay 50ms loss
/// 5%`), traffic as `every 250ms size 100`, `application anarchy-online` or `trace bzflag-tcp`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How long messages are sent; what is still under way then may arrive.
    pub duration: String,
    /// What lies between the ends of all flows.
    pub network: NetworkSpec,
    /// Streams of messages, by their name.
    #[serde(default)]
    pub thin: BTreeMap<String, ThinFlow>,
}

/// The network of a scenario: one path in each direction, shared by all flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// From the senders of the flows to their receivers.
    pub forward: String,
    /// Back; as [`forward`](Self::forward) if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<String>,
}

/// A stream of messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinFlow {
    /// When it sends, and how much.
    pub traffic: String,
    /// The recovery profile of the sender.
    pub profile: String,
}

/// What is wrong with a scenario, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{path}: {what}")]
pub struct Problem {
    /// The field, with dots: `thin.game.traffic`.
    pub path: String,
    /// What is wrong with it, and what may stand there.
    pub what: String,
}

/// Why a run came to no result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ExecuteError {
    /// It cannot be run.
    #[error(transparent)]
    Scenario(#[from] Problem),
    /// It failed while it ran.
    #[error("the run failed: {0}")]
    Failed(String),
}

impl Scenario {
    /// Checks what the types cannot: names of profiles, bounds, traces that are to be had.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        Ok(())
    }

    /// What a run measures.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::default()
    }
}

/// Runs `scenario`; all randomness comes from `seed`.
///
/// # Errors
/// If it cannot be run, or fails.
pub fn execute(scenario: &Scenario, seed: u64) -> Result<RunOutcome, ExecuteError> {
    let _ = (scenario, seed);
    Err(ExecuteError::Failed("nothing runs yet".into()))
}
