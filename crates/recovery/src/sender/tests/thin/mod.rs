//! The mechanisms for thin streams, each alone: at which instant it acts, and that it does not when
//! its switch is off or the stream is thick (Petlund 2009 §5).

mod changing_path;
mod crossing;
mod early;
mod failover;
mod first_indication;
mod linear;
mod pace;
mod queueing;
mod recovery_timer;
mod redundancy;
mod spaced;
mod timer;

use std::time::Duration;

use super::{FULL, Sender};
use crate::{RecoveryConfig, ThinConfig};

/// Small: many fit the first window.
const SMALL: u32 = 100;

impl Sender {
    fn thin(thin: ThinConfig) -> Self {
        Self::with(|config| config.thin = thin)
    }

    /// One round trip of 100 ms is measured: unit 1. SRTT + 4 · RTTVAR is 300 ms after it.
    fn measured(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut s = Self::with(change);
        s.push(&[SMALL]);
        s.at(100).ack(1, &[]);
        s
    }

    fn is_thin(&self) -> bool {
        self.recovery.is_thin(0)
    }
}
