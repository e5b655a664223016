//! placeholder

mod message;
#[expect(dead_code, unused_imports, reason = "the association is not written yet")]
mod streams;
pub mod wire;

pub use message::{InboundMessage, MessageId, OutboundMessage, Reliability};
pub use streams::Scheduling;
