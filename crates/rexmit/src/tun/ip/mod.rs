//! IP headers around a protocol's packets: written for a [`Route`], and checked when they come in.
//!
//! Packets that are sent have DF set and are never fragmented; fragments that come in are dropped:
//! protocols of this crate find out what fits instead (RFC 8899, RFC 9293 §3.7.1).

mod filter;
mod header;

pub use filter::{IpStatistics, PacketFilter};
pub use header::{Header, HeaderConfig, HeaderError};
#[doc(no_inline)]
pub use rexmit_core::Route;
