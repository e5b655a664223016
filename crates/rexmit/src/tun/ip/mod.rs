//! IP headers of a protocol's packets: written for a [`Route`], and checked on received packets.
//!
//! Packets are sent with DF set and never fragmented, and received fragments are dropped: the protocols of
//! this crate keep their packets small enough (RFC 8899, RFC 9293 §3.7.1).

mod filter;
mod header;

pub use filter::{IpStatistics, PacketFilter};
pub use header::{Header, HeaderConfig, HeaderError};
#[doc(no_inline)]
pub use rexmit_core::Route;
