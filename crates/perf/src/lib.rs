//! Load and measurement on real sockets, in real time.
//!
//! [`load`] generates load between two programs. [`realtime`] compares recovery profiles: it
//! replays the messages of a trace over a link that this machine emulates. [`execute`] runs
//! scenarios of the laboratory, on real sockets or in a [`kernel`] if the scenario asks for them.
//!
//! The measurements ([`rexmit_lab::measure`]) and the plan of a run ([`rexmit_lab::connections`])
//! are those of the laboratory.

pub mod kernel;
pub mod listening;
pub mod load;
pub mod realtime;

use rexmit_lab::scenario::{ExecuteError, RunOutcome, Scenario, execute_on};

use realtime::RealSockets;

/// Runs `scenario`. All randomness comes from `seed`, except in a run on real sockets, which also
/// depends on the operating system's scheduling.
///
/// # Errors
/// If the scenario cannot be run, or the run fails.
pub fn execute(scenario: &Scenario, seed: u64) -> Result<RunOutcome, ExecuteError> {
    execute_on(&RealSockets, scenario, seed)
}
