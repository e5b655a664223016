//! A network in virtual time, and the traffic for it.
//!
//! - [`path`]: what one direction of a path does to packets, as a pure function of time, packet
//!   and seed. It stands alone, so that the real-time emulator uses the very same.
//! - [`network`]: the simulator: hosts that run any [`Machine`](rexmit_core::Machine), routers,
//!   links, captures, observers, statistics.
//! - [`capture`]: packets as files for Wireshark. It stands alone too.
//! - [`traffic`]: traces of what applications sent, from files and captures.
//! - [`source`]: what sends: constant and variable rates, web clients, models of applications;
//!   and the machines that carry it over UDP.
//! - [`netem`] and [`units`]: paths and their values as people write them.
//!
//! Nothing here knows a protocol, a clock or a socket, and the same seed gives the same bytes.

pub mod capture;
mod draw;
pub mod netem;
pub mod network;
pub mod path;
pub mod source;
pub mod traffic;

pub use rexmit_core::words as units;
