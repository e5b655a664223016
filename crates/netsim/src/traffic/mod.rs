//! Application traffic: traces of messages and their times, read from files, replayed, and
//! summarized in statistics.

mod capture;

mod packet;
mod rows;
pub mod stats;
pub mod trace;
