//! A network in virtual time.
//!
//! [`path`] is the model of one direction of a path; it stands alone, so that the real-time
//! emulator uses the very same. [`units`] reads its values as people write them.

pub mod network;
pub mod path;
pub mod units;
