//! The settings of the probe timer.

use std::time::Duration;

use rexmit_core::{config, words};
use serde::{Deserialize, Serialize};

/// The least margin: a shorter one would probe more often than anything can be acknowledged.
const LEAST_MARGIN: Duration = Duration::from_micros(100);
/// The least silence: a shorter one would be that of the machine rather than of the path.
const LEAST_SILENCE: Duration = Duration::from_millis(10);
/// The longest margin and silence.
const MOST: Duration = Duration::from_secs(60);

config! {
    const
    /// The probe timer of a thin stream: each packet whose ACK does not come in time is retransmitted. It detects
    /// every loss, also of a retransmission, within a round trip and the margin; a lost ACK that no later one makes
    /// up for costs a spurious retransmission.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ProbeConfig {
        /// The least margin beyond the mean round trip, 0.1 ms to 60 s. A shorter one finds losses sooner, and
        /// takes late ACKs for losses where the samples do not show any. Where round trips vary more, the samples
        /// decide.
        #[serde(with = "words::duration")]
        pub min_margin: Duration,
        /// Of a thousand packets, how many may be retransmitted while their ACK is under way: half of these
        /// after their first transmission, half after a retransmission. Zero waits for the slowest of the 256
        /// samples remembered, which one in 257 exceeds.
        pub late_per_mille: u16,
        /// When nothing was acknowledged for this long, 10 ms to 60 s, and for four probe timeouts, the path is silent:
        /// one packet of outstanding data is sent per timeout, but not more often than every 100 ms, after ten
        /// seconds every second, and T3-rtx backs off as well. After eight rounds of probes without an ACK of a
        /// first transmission the timeout doubles with each.
        #[serde(with = "words::duration")]
        pub silence: Duration,
    }
}

impl ProbeConfig {
    /// A margin of at least 1.5 ms, one packet in a hundred retransmitted early, and a quarter of a second of
    /// silence.
    pub const DEFAULT: Self = Self {
        min_margin: Duration::from_micros(1500),
        late_per_mille: 10,
        silence: Duration::from_millis(250),
    };

    /// Whether the values make sense.
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
