//! The round-trip time of a path, the retransmission timeout made from it, and T3-rtx.

mod ack_delay;
mod config;
mod estimator;
mod rto;
mod t3;

pub use config::{RtoConfig, RttSample, TimerRestart};
pub use estimator::RttEstimator;
pub use rto::RtoTimer;
pub(crate) use t3::{Running, T3};
