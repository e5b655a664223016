//! Recovery episodes in which nothing was lost: how they are detected, what is undone, and what is learned
//! (RR-SCTP §4, RFC 3708, 3522, 4015, 5682, 8985).

mod adaptive;
mod copies;
mod duplicates;
mod eifel;
mod f_rto;
mod paths;
mod rack;
mod simulated;
mod undo;

use super::fast_recovery::wide;
use super::{BASE, FULL, Sender};
use crate::{RecoveryConfig, SpuriousConfig, SpuriousEvents};

impl Sender {
    /// With this profile but without Max.Burst, a window of 20 packets, and a round trip of 100 ms
    /// measured by unit 1.
    fn measured_with(profile: &str) -> Self {
        Self::wide(RecoveryConfig::profile(profile).expect("a profile"))
    }

    fn wide(config: RecoveryConfig) -> Self {
        let mut s = Self::with(|it| *it = RecoveryConfig { max_burst: None, ..config });
        s.push(&[FULL]);
        s.at(100).ack(1, &[]);
        s.recovery.state.paths[0].window = wide(20);
        s
    }

    /// Detection and undo by duplicate reports alone: a fixed threshold.
    fn detecting() -> Self {
        let spurious = SpuriousConfig::DUPLICATES;
        Self::wide(RecoveryConfig { spurious, ..RecoveryConfig::rfc9260() })
    }

    /// `count` acknowledgements one by one: all from `missing + 1` to `last` have arrived in the end.
    fn overtake(&mut self, missing: u64, last: u64) {
        for end in missing + 1..=last {
            self.ack(missing - 1, &[(missing + 1, end)]);
        }
    }

    fn events(&self) -> SpuriousEvents {
        self.recovery.statistics().spurious_events
    }

    fn threshold(&self) -> u16 {
        self.recovery.path_figures(0).reordering.missing_reports
    }
}
