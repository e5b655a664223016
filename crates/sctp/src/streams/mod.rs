//! Streams: the send queue, the schedulers, and reassembly of received messages.
//!
//! This module knows no packets, paths or losses. [`SendQueue`] turns messages into fragments, to which the association
//! assigns TSNs; [`Reassembly`] takes the pieces of received DATA or I-DATA chunks, each TSN once, and gives messages
//! in delivery order (RFC 9260 §6.5, §6.6, §6.9, RFC 8260).
//!
//! A stream needs no memory before its first message. The cost of an operation does not depend on the number of streams
//! negotiated or of messages waiting.

mod message_lists;
mod reassembly;
mod scheduler;
mod send_queue;
#[cfg(test)]
mod tests;

pub(crate) use reassembly::{DroppedMessage, Piece, Reassembly, ReassemblyError, ReassemblyLimits};
pub use scheduler::{DEFAULT_PRIORITY, Scheduling};
pub(crate) use send_queue::{BegunExpiry, Fragment, SendQueue};
