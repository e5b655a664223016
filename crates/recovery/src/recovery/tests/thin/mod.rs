//! The mechanisms for thin streams, each alone: at which instant it acts, and that it does not when
//! its switch is off or the stream is thick (Petlund 2009 §5).

mod beside;
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

use rexmit_core::trace::Tracer;

use super::{FULL, Sender};
use crate::{RecoveryConfig, RttSource, ThinConfig};

/// A small unit: many fit the initial window.
const SMALL: u32 = 100;

impl Sender {
    fn thin(thin: ThinConfig) -> Self {
        Self::with(|config| config.thin = thin)
    }

    /// A sender with one RTT sample of 100 ms, of unit 1, so that SRTT + 4 · RTTVAR is 300 ms.
    fn measured(change: impl FnOnce(&mut RecoveryConfig)) -> Self {
        let mut s = Self::with(change);
        s.push(&[SMALL]);
        s.at(100).ack(1, &[]);
        s
    }

    /// Sends a packet with a new unit of [`SMALL`] and the copies bundled with it, and returns the units.
    pub(super) fn push_with_copies(&mut self, is_contiguous: bool) -> Vec<u64> {
        self.push_with_copies_beside(SMALL, is_contiguous)
    }

    /// Reports the round trip `rtt` of a HEARTBEAT over `path`.
    fn heartbeat(&mut self, path: u8, rtt: Duration) {
        self.recovery.on_rtt_sample(self.now, path, rtt, RttSource::Heartbeat, &mut Tracer::off());
    }

    fn set_thin(&mut self, thin: ThinConfig) {
        self.recovery.set_thin(Some(0), thin).expect("there is such a group");
    }

    fn is_thin(&self) -> bool {
        self.recovery.thinness(0).is_thin
    }
}
