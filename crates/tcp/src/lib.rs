//! TCP (RFC 9293) as a state machine: bytes and time in, bytes and events out.

mod config;
mod connection;
mod endpoint;
mod error;
mod event;
mod statistics;
mod stream;
pub mod wire;
