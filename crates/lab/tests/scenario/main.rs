//! The measurements of runs of scenarios.

mod deadlines;
mod exact;
mod kernel;
mod laws;
mod memory;
mod refused;
mod rivals;
mod two_networks;

use rexmit_lab::scenario::{RunOutcome, Scenario, execute};
use serde_json::Value;

/// The scenario of this JSON.
fn scenario(json: Value) -> Scenario {
    serde_json::from_value(json).expect("a scenario")
}

/// The quantities that a run of the scenario measures.
fn run(json: Value, seed: u64) -> RunOutcome {
    execute(&scenario(json), seed).expect("it runs")
}
