//! One direction of a path as a pure function of time, packet and its own random source.
//!
//! [`PathModel::offer`] says what becomes of a packet: lost, held back, or delivered once or more,
//! each at a time that is fixed from then on. It owns no packet and no clock, so the simulator
//! drives it in virtual time and the emulator in real time. A driver that wants the packets kept
//! for it uses [`Pipe`].
//!
//! A packet goes through the impairments in this order:
//!
//! 1. loss (uniform, bursts, listed packets): a lost packet takes no room and no rate;
//! 2. the drop-tail queue and the rate;
//! 3. one-way delay with its jitter, then the extra delay of random reordering;
//! 4. corruption, then duplication: the copy carries the damage, and draws a delay of its own;
//! 5. holding back by a number of positions.
//!
//! Every impairment draws from a random source of its own, the same number of times per packet
//! whatever the others do: switching jitter on leaves the pattern of losses as it was. Bursts that
//! are given in time happen at the same times whatever the traffic.

mod config;
mod delay;
mod fate;
mod hold;
mod loss;
mod model;
mod pipe;
mod queue;
mod stats;

pub use config::{BurstLoss, ConfigError, Hold, Loss, PathConfig, QueueLimit, Reorder};
pub use delay::{Delay, Jitter};
pub use fate::{Corruption, Deliveries, Delivery, Fate, LossCause, Outcome};
pub use model::PathModel;
pub use pipe::{Arrival, Pipe};
pub use stats::{ArrivalStats, PathStats};
