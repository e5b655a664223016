//! SCTP sockets (RFC 6458) for unmodified programs on a kernel without SCTP.
//!
//! [`transports`] chooses between UDP and IP. [`protocol`] defines the messages between the preloaded library and the
//! engine; [`engine`] owns the UDP socket and all SCTP state; `rexmit run` registers programs with it by [`client`].
//! The library itself is the crate `rexmit-preload`. ARCHITECTURE.md has the design, `docs/preload.md` the calls and
//! options that are served.
#![cfg(target_os = "linux")]

pub mod client;
pub mod engine;
pub mod protocol;
pub mod transports;
