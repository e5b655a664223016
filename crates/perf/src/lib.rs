//! Load and measurement on real sockets, in real time.
//!
//! [`load`] makes load between two programs. [`realtime`] makes comparisons: the messages of a trace
//! over a link that this machine emulates. [`execute`] runs scenarios of the laboratory, on real sockets
//! if that is what they say.
//!
//! Measurements are the laboratory's ([`rexmit_lab::measure`]), and so is the plan of a run
//! ([`rexmit_lab::connections`]).

pub mod load;
pub mod realtime;

use rexmit_lab::scenario::{ExecuteError, RunOutcome, Scenario, execute_on};

use realtime::RealSockets;

/// Runs `scenario`; all randomness comes from `seed`, but for that of a run on real sockets.
///
/// # Errors
/// If it cannot be run, or fails.
pub fn execute(scenario: &Scenario, seed: u64) -> Result<RunOutcome, ExecuteError> {
    execute_on(&RealSockets, scenario, seed)
}
