//! What a sender counted.

use rexmit_core::trace::SendCause;
use serde::Serialize;

/// A count for each cause of sending something again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByCause {
    /// The retransmission timer expired.
    pub timeout: u64,
    /// Missing reports.
    pub fast_retransmit: u64,
    /// Taken along by another retransmission.
    pub bundled: u64,
    /// A probe of a closed window.
    pub window_probe: u64,
}

impl ByCause {
    /// All causes together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.timeout + self.fast_retransmit + self.bundled + self.window_probe
    }

    pub(crate) const fn count(&mut self, cause: SendCause) {
        match cause {
            SendCause::New => {}
            SendCause::Timeout => self.timeout += 1,
            SendCause::FastRetransmit => self.fast_retransmit += 1,
            SendCause::Bundled => self.bundled += 1,
            SendCause::WindowProbe => self.window_probe += 1,
        }
    }
}

/// Counters of one association's sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecoveryStatistics {
    /// Packets sent that carried data.
    pub packets: u64,
    /// Packets judged lost; probes of a closed window are not.
    pub packets_lost: u64,
    /// Units sent for the first time.
    pub new_units: u64,
    /// Units sent again.
    pub retransmitted: ByCause,
    /// Of these, the ones that a duplicate report proved needless.
    pub spurious: ByCause,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
}

impl RecoveryStatistics {
    /// The fraction of packets judged lost (Petlund 2009 §5.2, `lossrate`).
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { self.packets_lost as f64 / self.packets as f64 }
    }
}
