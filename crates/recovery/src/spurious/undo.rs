//! Undoing a spurious episode: the window is restored by slow start, never in a burst
//! (RR-SCTP §4.2), and the timeout on the safe side (RFC 4015 §3.1).

use std::time::Duration;

use rexmit_core::Instant;

use super::episodes::Before;
use crate::{CongestionWindow, RtoConfig};

/// The RTO after a spurious timeout: the first round trip measured after it restarts the estimate
/// anew, but not below what it was (RFC 4015 §3.1 step 11).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AfterSpurious {
    /// When the first spurious retransmission was sent.
    pub(crate) since: Instant,
    /// SRTT and RTTVAR before the timeout.
    pub(crate) rtt: Option<(Duration, Duration)>,
}

impl AfterSpurious {
    /// The lower bounds of SRTT and RTTVAR with `sample`.
    pub(crate) fn restart(&self, sample: Duration, config: &RtoConfig) -> (Duration, Duration) {
        let (srtt, rttvar) = self.rtt.unwrap_or_default();
        ((srtt + 2 * config.granularity).max(sample), rttvar.max(sample / 2))
    }
}

/// Data in flight when an episode proves spurious before everything was retransmitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumed {
    /// Bytes in flight.
    pub(crate) flight: u64,
    /// Bytes newly acknowledged.
    pub(crate) acked: u64,
}

/// Sets `window` up to go back to `before`: if it is smaller, slow start takes it there. With `resumed` it
/// first holds data in flight, and lets no more be sent at once than a first window does
/// (RFC 4015 §3.1 step 9). Returns whether anything changed.
pub(crate) fn restore(
    window: &mut CongestionWindow,
    before: &Before,
    resumed: Option<Resumed>,
) -> bool {
    let known = before.window.cwnd();
    if window.cwnd() >= known {
        return false;
    }
    let least = resumed.map_or(0, |Resumed { flight, acked }| flight + acked.min(window.initial()));
    window.undo(&before.window, least.min(known));
    true
}
