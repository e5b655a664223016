//! The laboratory: simulated hosts, scenarios, what measures them, and what is possible at best.
//!
//! A [`scenario`] is data; executed, it is [`hosts`] on a network of `rexmit_netsim`, under meters. The
//! hosts carry our transports, or [what others would use](rivals). [`bound`] says what is possible.
//! Nothing here opens a socket or reads a clock: what runs in real time is described in plain terms
//! ([`connections`], [`link`], [`load`]) and run by a driver with sockets.
//!
//! Who runs something to compare it hands in what they saw as a [`measure::Run`]: a record per
//! message, the trace of the sender, the packets on the wire. [`measure::RunResult`] is what remains
//! of a run, [`measure::Comparison`] several of them side by side. [`table`] prints a comparison on
//! a terminal, [`finding`] says it in a sentence, and serde writes it as JSON.

pub mod bound;
pub mod connections;
pub mod finding;
pub mod hosts;
pub mod link;
pub mod load;
pub mod measure;
pub mod rivals;
pub mod scenario;
pub mod table;
pub mod timesequence;
pub mod traffic;
pub mod two_paths;
