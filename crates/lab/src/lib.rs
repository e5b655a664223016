//! The laboratory: simulated hosts, scenarios, measurements, and theoretical bounds.
//!
//! A [`scenario`] is data. Its execution builds a network of `rexmit_netsim` with [`hosts`] and
//! meters. The hosts use rexmit's transports, or [other implementations](rivals). [`bound`]
//! computes theoretical bounds. This crate opens no socket and reads no clock: runs in real time
//! are described as data ([`connections`], [`link`], [`load`]) and executed by a driver with
//! sockets, and hosts may be those of a [`kernel`].
//!
//! A driver reports each run as a [`measure::Run`]: a record per message, the trace of the sender,
//! the packets on the wire. [`measure::ProfileOutcome`] has the figures of a run,
//! [`measure::Comparison`] those of several runs. [`table`] prints a comparison on a terminal,
//! [`finding`] summarizes it in a sentence, and serde writes it as JSON.

pub mod analysis;
pub mod bound;
pub mod connections;
pub mod finding;
pub mod hosts;
pub mod kernel;
pub mod link;
pub mod load;
pub mod measure;
pub mod rivals;
pub mod scenario;
pub mod stalls;
pub mod table;
pub mod timesequence;
pub mod traffic;
pub mod two_paths;
