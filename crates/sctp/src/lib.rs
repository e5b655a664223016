//! placeholder

mod message;
#[cfg_attr(not(test), expect(dead_code, reason = "the association is not written yet"))]
#[expect(unused_imports, reason = "the association is not written yet")]
mod streams;
pub mod wire;

pub use message::{InboundMessage, MessageId, OutboundMessage, Reliability};
pub use streams::Scheduling;
