//! Measurements: latency per message, and cost.
//!
//! Latency counts from the time at which the application intended to send, not from the time at
//! which the transport accepted the message, so that the waiting time of a blocked sender is
//! included.

mod ccdf;
mod copies;
mod counters;
mod latency;
mod message;
mod recorder;
mod result;

pub use rexmit_core::millis;

pub use ccdf::Ccdf;
pub use copies::{
    CopyLedger, CopyObserver, CopyStatistics, EventStatistics, KindStatistics, PerCause,
    RetransmissionStatistics, SpuriousClasses,
};
pub use counters::Counters;
pub use latency::{LatencyDistribution, LatencySummary};
pub use message::MessageRecord;
pub use recorder::{DEFAULT_EVENT_LIMIT, Recorder, Recording, TimedEvent};
pub use result::{Comparison, Parameter, ProfileOutcome, Run, SCHEMA};
