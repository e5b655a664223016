//! The settings of the probe timer.

use std::time::Duration;

use rexmit_core::config;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// The least value of `min_margin`: a shorter margin would probe more often than anything can be acknowledged.
const LEAST_MARGIN: Duration = Duration::from_micros(100);
/// The least value of `silence`: a shorter one would be a pause of the host rather than of the path.
const LEAST_SILENCE: Duration = Duration::from_millis(10);
/// The largest value of `min_margin` and `silence`.
const MOST: Duration = Duration::from_secs(60);

config! {
    const
    /// The probe timer of a thin stream: each packet that is not acknowledged in time is retransmitted. It detects every loss,
    /// also of a retransmission, after a round trip and the margin. A lost ACK that no later ACK makes up for costs a spurious
    /// retransmission. Off by default ([`ThinConfig::probe_timer`](crate::ThinConfig::probe_timer)).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct ProbeConfig {
        /// The least margin beyond the mean round trip, 0.1 ms to 60 s (default 1.5 ms). A shorter margin
        /// detects losses sooner, and retransmits more packets whose ACK is only late. If the round trips
        /// vary more than this, the margin follows the samples.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub min_margin: Duration,
        /// How many packets in a thousand may be retransmitted while their ACK is on its way: half of them
        /// after their first transmission, half after a retransmission. 0 to 999 (default 10). With zero the
        /// timeout is the slowest of the last 256 samples, which one packet in 257 exceeds.
        pub late_per_mille: u16,
        /// After this time without an ACK, 10 ms to 60 s (default 300 ms), and at least four probe timeouts,
        /// the path is silent: one packet of outstanding data, and new data (SCTP), is sent per timeout, but at most every 100 ms,
        /// and after ten seconds every second, while T3-rtx backs off as usual. Before that, from the ninth
        /// round of probes without an ACK of a first transmission, the timeout doubles with each round.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub silence: Duration,
    }
}

impl ProbeConfig {
    /// A margin of at least 1.5 ms, one packet in a hundred retransmitted early, silent after 300 ms.
    pub const DEFAULT: Self = Self {
        min_margin: Duration::from_micros(1500),
        late_per_mille: 10,
        silence: Duration::from_millis(300),
    };

    pub(crate) fn is_valid(&self) -> bool {
        self.late_per_mille < 1000
            && (LEAST_MARGIN..=MOST).contains(&self.min_margin)
            && (LEAST_SILENCE..=MOST).contains(&self.silence)
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_silence_that_is_no_time_or_no_end_is_refused() {
        for (silence, is_valid) in
            [(0, false), (9, false), (10, true), (60_000, true), (60_001, false)]
        {
            let timer = ProbeConfig { silence: MS(silence), ..ProbeConfig::DEFAULT };
            assert_eq!(timer.is_valid(), is_valid, "{silence} ms");
        }
    }
}
