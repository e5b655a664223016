//! Input for the TCP targets.

mod exchange;
mod segment;

pub use exchange::{Act, Aim, Exchange, Handling, Script, Traffic};
pub use segment::{OptionDraft, SegmentDraft};
