//! Tests of `rtt`.

mod ack_delay;
mod estimator;
mod rto;
mod t3;
