//! The wire format of TCP (RFC 9293 §3.1): parsing and writing of segments, without state.

mod checksum;
mod options;
mod segment;
#[cfg(test)]
mod tests;

pub(crate) use checksum::between;
pub use checksum::{Sum, pseudo_header};
pub use options::{MAX_OPTIONS_LEN, MAX_SACK_BLOCKS, Options, SackBlocks, Timestamps};
pub use segment::{Flags, HEADER_LEN, Header, ParseError, Segment};
