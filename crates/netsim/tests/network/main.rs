//! The simulator: times, topologies, routes, taps, and what it does with bad machines.

mod behaviour;
mod determinism;
mod machines;
mod observers;
mod routes;
mod taps;
mod topologies;
