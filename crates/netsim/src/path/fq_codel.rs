//! The configuration of FQ-CoDel (RFC 8290).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConfigError, PathConfig};
use crate::units;

/// The configuration of FQ-CoDel: a queue per flow, served by deficit round robin (RFC 8290), each managed by CoDel
/// (RFC 8289).
///
/// The limit of all queues together is [`PathConfig::queue`]; beyond it, the flow with the most bytes loses packets from the
/// head of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FqCodel {
    /// The queueing delay up to which no packet is dropped (TARGET). Default 5 ms.
    #[serde(with = "units::duration")]
    pub target: Duration,
    /// The time for which the delay must be above the target before a packet is dropped, and the base of the time between drops
    /// (INTERVAL): about the largest round-trip time. Default 100 ms.
    #[serde(with = "units::duration")]
    pub interval: Duration,
    /// Bytes of one flow that are sent before the next flow's turn. Default 1514.
    pub quantum: usize,
    /// Number of queues, to which flows are assigned by a hash. Default 1024.
    pub flows: usize,
    /// Whether ECN-capable packets are marked instead of dropped by CoDel. Default true, as in Linux.
    pub ecn: bool,
}

impl Default for FqCodel {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            quantum: 1514,
            flows: 1024,
            ecn: true,
        }
    }
}

impl FqCodel {
    /// The smallest quantum, in bytes, as in Linux: with a smaller one, a packet takes many rounds.
    pub const MIN_QUANTUM: usize = 256;
    /// The largest quantum, in bytes: a flow sends that many before the next.
    pub const MAX_QUANTUM: usize = 1 << 20;
    /// The largest number of queues.
    pub const MAX_FLOWS: usize = 65_536;

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Self { target, interval, quantum, flows, .. } = *self;
        if let Some(&long) = [target, interval].iter().find(|&&time| time > PathConfig::MAX_DELAY) {
            return Err(ConfigError::DelayTooLong(long));
        }
        if interval.is_zero() {
            return Err(ConfigError::ZeroInterval);
        }
        if !(Self::MIN_QUANTUM..=Self::MAX_QUANTUM).contains(&quantum) {
            return Err(ConfigError::Quantum(quantum));
        }
        if !(1..=Self::MAX_FLOWS).contains(&flows) {
            return Err(ConfigError::NumberOfFlows(flows));
        }
        Ok(())
    }
}
