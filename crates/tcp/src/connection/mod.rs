//! One connection: its state and the table of what a segment does. The procedures of RFC 9293 have
//! a file each.

mod context;

pub(crate) use context::{Context, Identity, Negotiated, Surroundings};
