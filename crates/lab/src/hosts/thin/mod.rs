//! Thin streams: what an application means to send and when, over any transport, and how long each
//! message took.

mod plan;
mod receiver;
mod sender;
mod window;

pub use plan::{PlannedMessage, ThinPlan};
pub use receiver::{Gauge, Layer, ThinReceiver};
pub use sender::{Thin, ThinSender};
pub use window::ThinRecord;
