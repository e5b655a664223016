//! The basis of all crates of rexmit: virtual time, serial numbers, range sets, timers, tables of
//! connections, seeded randomness, checksums, the trace event schema and the [`Machine`] trait.
//!
//! This crate reads no clock, opens no socket, and uses no randomness other than from given seeds.
//!
//! The feature `serde` lets the crate `serde` write and read [`Instant`], [`BitRate`] and what traces consist of, and adds
//! the functions of [`millis`] and [`words`] for fields of configurations. The feature `settings` adds the module `settings`: changes
//! of a configuration as text.

pub mod checksum;
mod config;
mod machine;
pub mod millis;
mod range_set;
pub mod rng;
pub mod serial;
#[cfg(feature = "settings")]
pub mod settings;
pub mod table;
mod time;
mod timer_table;
pub mod trace;
mod units;
pub mod words;

pub use machine::{Ecn, Machine, Route};
pub use range_set::RangeSet;
pub use rng::{Rng, Seed};
pub use time::Instant;
pub use timer_table::{TimerKey, TimerTable};
pub use units::BitRate;
