//! Thin streams over any transport: the planned messages of an application, and the latency of
//! each.

mod plan;
mod receiver;
mod sender;
mod window;

pub use plan::{PlannedMessage, ThinPlan};
pub use receiver::{Gauge, Layer, ThinReceiver};
pub use sender::{Thin, ThinSender};
pub use window::ThinRecord;
