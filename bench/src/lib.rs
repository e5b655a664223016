//! Measures rexmit against its rivals and its limits.
//!
//! Every figure is a ratio within one run on one machine: to another implementation with the same work at the same
//! time, or to a stated limit. Nothing here is a test, and no test depends on a time.

pub mod bulk;
pub mod cmt;
pub mod cost;
pub mod dumbbell;
pub mod idle;
pub mod latency;
pub mod loopback;
pub mod many;
pub mod mixed;
pub mod report;
pub mod sample;
pub mod shards;
pub mod simulation;
pub mod tcp;
pub mod web;
pub mod webrtc;

/// How often each contestant of a comparison runs.
pub const REPETITIONS: usize = 7;
