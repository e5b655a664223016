//! One direction of a path as a pure function of time, packet and its own random source.
//!
//! [`PathModel::offer`] decides whether a packet is lost, held back, or delivered once or more, and
//! fixes the times of delivery. The model stores no packets and reads no clock, so the simulator
//! uses it in virtual time and the emulator in real time. [`Pipe`] also stores the packets. With [`FqCodel`], the fate
//! of a packet depends on those that come after it: it waits, and [`PathModel::poll_departure`] decides when the link
//! becomes free.
//!
//! The impairments are applied in this order:
//!
//! 1. loss (uniform, bursts, listed packets): a lost packet occupies neither the queue nor the
//!    link;
//! 2. random early detection and the drop-tail queue, or FQ-CoDel; and the rate;
//! 3. one-way delay with its jitter, then the extra delay of random reordering;
//! 4. corruption, then duplication: the copy carries the damage, and has an independent delay;
//! 5. holding back by a number of positions.
//!
//! Every impairment has its own random source, from which it draws the same number of values per packet, independent of
//! the other impairments: enabling jitter does not change the pattern of losses. Bursts in continuous time occur at the
//! same times for any traffic.

mod codel;
mod config;
mod delay;
mod departures;
mod fair_queue;
mod fate;
mod fq_codel;
mod hold;
mod loss;
mod model;
mod offered;
mod pipe;
mod queue;
mod red;
mod stats;

pub use rexmit_core::BitRate;

pub use config::{BurstLoss, ConfigError, Hold, Loss, PathConfig, QueueLimit, Reorder};
pub use delay::{Delay, Jitter};
pub use fate::{Corruption, Deliveries, Delivery, Fate, LossCause, Outcome};
pub use fq_codel::FqCodel;
pub use model::PathModel;
pub use offered::{Offered, flow_key, header_ports};
pub use pipe::{Arrival, Pipe};
pub use red::Red;
pub use stats::{AqmStats, ArrivalStats, PathStats};
