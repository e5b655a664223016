//! Application traffic: traces of messages and their times, read from files, replayed, and
//! summarized in statistics; and captures, packet by packet.

mod capture;
pub mod connections;
pub mod frames;
mod input;
pub mod packet;
mod rows;
pub mod sctp_chunks;
pub mod stats;
pub mod trace;
