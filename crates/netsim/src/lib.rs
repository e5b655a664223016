//! A network in virtual time, and the traffic for it.
//!
//! - [`path`]: the impairments of one direction of a path, as a pure function of time, packet and
//!   seed. It depends on nothing else here, so that the real-time emulator uses the same code.
//! - [`network`]: the simulator: hosts that run any [`Machine`](rexmit_core::Machine), routers,
//!   links, captures, observers, statistics.
//! - [`capture`]: packets as files for Wireshark. It also depends on nothing else here.
//! - [`traffic`]: traces of application traffic, from files and captures.
//! - [`source`]: traffic sources: constant and variable rates, web clients, models of applications;
//!   and machines that send it over UDP.
//! - [`netem`] and [`units`]: text forms of paths and their values.
//!
//! This crate implements no transport protocol, reads no clock and opens no socket; the same seed
//! gives the same bytes.

pub mod capture;
mod draw;
pub mod netem;
pub mod network;
pub mod path;
pub mod source;
pub mod traffic;

pub use rexmit_core::words as units;
