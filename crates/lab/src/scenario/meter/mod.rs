//! Meters of a run, in memory that does not grow with the run.

mod messages;
mod nth;
mod paths;
mod probe;
mod rate;
mod thinned;
mod trace;
mod traffic;

pub(super) use messages::{MessageMeter, SharedMeter};
pub(super) use nth::NthRetransmission;
pub(super) use paths::{PathTally, PathsTrace};
pub(super) use probe::Probe;
pub(super) use rate::RateMeter;
pub(super) use thinned::Thinned;
pub(super) use trace::{SenderTally, SenderTrace};
pub(super) use traffic::TrafficMeter;
