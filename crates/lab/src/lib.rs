//! The laboratory: what a run measured, and how it is told.
//!
//! A driver (virtual time or real sockets) hands in what it saw as a [`measure::Run`]: a record per
//! message, the trace of the sender, the packets on the wire. [`measure::RunResult`] is what remains
//! of a run, [`measure::Comparison`] several of them side by side. [`table`] prints a comparison on
//! a terminal, [`report`] writes it as one HTML file, and serde as JSON; all three say the same.
//! What a [`study`] has found is written by [`study_report`]: an HTML file per study, and an index.
//!
//! Nothing there knows how a run was made. [`realtime`] makes runs on real sockets, [`load`] makes
//! load between two programs, [`hosts`] are what runs in a simulated network, [`rivals`] what others
//! would use there instead.

pub mod bound;
pub mod finding;
pub mod hosts;
pub mod load;
pub mod measure;
mod page;
pub mod realtime;
pub mod report;
pub mod results;
pub mod rivals;
pub mod runner;
pub mod scenario;
pub mod store;
pub mod studies;
pub mod study;
pub mod study_report;
pub mod table;
pub mod timesequence;
pub mod traffic;
pub mod two_paths;
