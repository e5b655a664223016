//! Thin streams: what an application means to send and when, over any transport, and how long each
//! message took.

mod plan;
mod receiver;
mod sender;

pub use plan::{PlannedMessage, ThinPlan};
pub use receiver::{Layer, ThinReceiver};
pub use sender::{Thin, ThinSender};
