//! The simulator: times, topologies, routes, taps, and machines that misbehave.

mod behaviour;
mod determinism;
mod ecn;
mod fq_codel;
mod machines;
mod observers;
mod routes;
mod taps;
mod threads;
mod topologies;
