//! Application traffic: traces of what applications sent and when, read from files, replayed, and
//! described in numbers.

mod capture;

mod packet;
mod rows;
pub mod stats;
pub mod trace;
