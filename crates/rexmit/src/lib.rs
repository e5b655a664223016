//! Reliable transport.

pub mod clock;
pub mod emulator;
mod error;

pub use error::BindError;
