//! The C API of rexmit: SCTP over UDP with the recovery of thin streams, for C and C++.
//!
//! `include/rexmit.h` is generated from this crate; `docs/c.md` shows how to use it. There are two ways to
//! use `rexmit_endpoint`:
//!
//! - *Sans-IO*: packets, events and time go in and out by calls; the program owns the sockets and the loop.
//! - *Event loop* (Linux): `rexmit_endpoint_bind` gives the endpoint a UDP socket and one descriptor to poll.
//!
//! | module | contents |
//! |---|---|
//! | `status` | results of calls, and the boundary that catches panics |
//! | `config` | `rexmit_config` |
//! | `settings` | its settings of recovery, SACKs, paths and messages that are too large |
//! | `encryption` | the identity of an endpoint, and the peers that it trusts |
//! | `address` | `rexmit_address` |
//! | `endpoint` | `rexmit_endpoint`, and the sans-IO calls |
//! | `association` | calls on an association |
//! | `event` | `rexmit_event` |
//! | `message` | messages in and out |
//! | `statistics` | counters |
//! | `socket` | the UDP socket of the event loop |
//! | `version` | the version of the library |

// The items are public for C alone.
#![allow(unreachable_pub, reason = "what C sees is exported by its symbol")]
#![allow(non_camel_case_types, reason = "the names are those of the header")]

mod address;
mod association;
mod config;
mod encryption;
mod endpoint;
mod event;
mod message;
mod settings;
#[cfg(target_os = "linux")]
mod socket;
mod statistics;
mod status;
mod version;
