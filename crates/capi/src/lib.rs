//! The C API of rexmit: SCTP over UDP with the recovery of thin streams, for C and C++.
//!
//! `include/rexmit.h` is generated from this crate; `docs/c.md` shows how to use it. There are two faces on one type,
//! `rexmit_endpoint`:
//!
//! - *Sans-IO*: packets, events and time go in and out by calls; the program owns the sockets and the loop.
//! - *Event loop* (Linux): `rexmit_endpoint_bind` gives the endpoint a UDP socket and one descriptor to poll.
//!
//! | file | what is in it |
//! |---|---|
//! | `status` | results of calls, and the border that no panic crosses |
//! | `config` | `rexmit_config` |
//! | `encryption` | who an endpoint is, and whom it trusts |
//! | `address` | `rexmit_address` |
//! | `endpoint` | `rexmit_endpoint`, and the sans-IO calls |
//! | `association` | what an application does with an association |
//! | `event` | `rexmit_event` |
//! | `message` | messages in and out |
//! | `statistics` | counters |
//! | `socket` | the UDP socket of the event loop |

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
#[cfg(target_os = "linux")]
mod socket;
mod statistics;
mod status;
