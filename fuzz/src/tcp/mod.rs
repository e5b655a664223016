//! Input for the TCP targets.

mod exchange;
mod segment;

pub use exchange::{Act, Aim, Exchange, Script};
pub use segment::{OptionDraft, SegmentDraft};
