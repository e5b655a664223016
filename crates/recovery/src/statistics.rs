//! The counters of a sender.

use std::ops::AddAssign;

use rexmit_core::trace::{Detector, SendCause};
use serde::{Deserialize, Serialize};

/// A count for each cause of sending something again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByCause {
    /// The retransmission timer expired.
    pub timeout: u64,
    /// Missing reports.
    pub fast_retransmit: u64,
    /// Bundled with another retransmission.
    pub bundled: u64,
    /// A probe of a closed window.
    pub window_probe: u64,
    /// Early Fast Retransmit.
    #[serde(default)]
    pub early: u64,
    /// Copies sent redundantly, bundled with new data or alone: not retransmissions.
    #[serde(default)]
    pub redundant: u64,
    /// The recovery timer of a thin stream.
    #[serde(default)]
    pub probe: u64,
}

impl ByCause {
    /// All retransmissions together, without redundant copies.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let by_time = self.timeout + self.early + self.probe;
        by_time + self.fast_retransmit + self.bundled + self.window_probe
    }

    /// Adds one unit that was sent because of `cause`; new data are no repetition.
    pub const fn count(&mut self, cause: SendCause) {
        match cause {
            SendCause::New => {}
            SendCause::Timeout => self.timeout += 1,
            SendCause::FastRetransmit => self.fast_retransmit += 1,
            SendCause::Bundled => self.bundled += 1,
            SendCause::WindowProbe => self.window_probe += 1,
            SendCause::Early => self.early += 1,
            SendCause::Redundant => self.redundant += 1,
            SendCause::Probe => self.probe += 1,
        }
    }
}

/// Counters of one path of an association's sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathCounters {
    /// Packets sent that carried data.
    pub packets: u64,
    /// Packets declared lost; probes of a closed window are not.
    pub packets_lost: u64,
    /// Of the packets, those that began with something retransmitted.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
}

/// Retransmission events in which nothing was lost, as far as the sender found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpuriousEvents {
    /// Fast retransmits, with all until fast recovery ended.
    pub fast_retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Of both, those that duplicate reports told.
    pub by_duplicates: u32,
    /// Those that timestamps told.
    pub by_timestamps: u32,
    /// Those that F-RTO told.
    pub by_f_rto: u32,
    /// Those after which the window was set to go back to where it was.
    pub undone: u32,
    /// Duplicate reports that no copy of ours explains: the network's.
    pub unexplained_duplicates: u32,
}

impl SpuriousEvents {
    /// Adds one event that `kind` began.
    pub(crate) const fn count(&mut self, kind: SendCause, by: Detector) {
        match kind {
            SendCause::Timeout => self.timeouts += 1,
            _ => self.fast_retransmits += 1,
        }
        match by {
            Detector::Duplicates => self.by_duplicates += 1,
            Detector::Timestamps => self.by_timestamps += 1,
            Detector::FRto => self.by_f_rto += 1,
        }
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.fast_retransmits + self.timeouts
    }
}

/// How much reordering the sender bears on a path now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReorderingState {
    /// Missing reports, or units acknowledged above, that make a loss.
    pub missing_reports: u16,
    /// The fraction of reordered packets that this is to spare a retransmission; zero where it does
    /// not follow the path.
    pub percentile: f64,
    /// The most that a late packet needed lately, to within 1/16; zero if none was late.
    pub extent: u16,
}

/// Counters of one association's sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecoveryStatistics {
    /// Packets sent that carried data.
    pub packets: u64,
    /// Packets declared lost; probes of a closed window are not.
    pub packets_lost: u64,
    /// Of the packets, those that began with something retransmitted.
    pub retransmission_packets: u64,
    /// Units sent for the first time.
    pub new_units: u64,
    /// Units retransmitted.
    pub retransmitted: ByCause,
    /// Of these, the ones that a duplicate report proved spurious.
    pub spurious: ByCause,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Bytes of units that were copied redundantly.
    pub redundant_bytes: u64,
    /// Of the units copied redundantly, those in packets of their own.
    pub delayed_copies: u64,
    /// Copies in packets of their own that the budget, or a queue on the path, did not allow, and
    /// packets with new data for which it allowed no copies.
    pub copies_denied: u64,
    /// Spurious retransmissions by the recovery timer whose packet had arrived in time, as far as
    /// can be told: its acknowledgement was lost.
    pub acks_missed: u64,
    /// Packets whose loss such a copy repaired.
    pub packets_repaired: u64,
    /// How often a stream with thin mechanisms went from thin to thick or back.
    pub thin_changes: u64,
    /// Retransmission events that were spurious, where the profile looks for them.
    pub spurious_events: SpuriousEvents,
}

impl RecoveryStatistics {
    /// The fraction of packets declared lost (Petlund 2009 §5.2, `lossrate`).
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { self.packets_lost as f64 / self.packets as f64 }
    }
}

/// The counts of several associations together. Names every field, so that none is forgotten.
macro_rules! sums {
    ($($counts:ident { $($field:ident)* })*) => {$(
        impl AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                let Self { $($field),* } = other;
                $(self.$field += $field;)*
            }
        }
    )*};
}

sums! {
    ByCause { timeout fast_retransmit bundled window_probe early redundant probe }
    SpuriousEvents {
        fast_retransmits timeouts by_duplicates by_timestamps by_f_rto undone unexplained_duplicates
    }
    RecoveryStatistics {
        packets packets_lost retransmission_packets new_units retransmitted spurious timeouts fast_recoveries
        redundant_bytes delayed_copies copies_denied acks_missed packets_repaired thin_changes spurious_events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_count_and_new_data_has_none() {
        use SendCause::{
            Bundled, Early, FastRetransmit, New, Probe, Redundant, Timeout, WindowProbe,
        };
        let mut counts = ByCause::default();
        let sent = [
            (New, 100),
            (Timeout, 3),
            (FastRetransmit, 5),
            (Bundled, 7),
            (WindowProbe, 11),
            (Early, 13),
            (Redundant, 200),
            (Probe, 17),
        ];
        for (cause, times) in sent {
            (0..times).for_each(|_| counts.count(cause));
        }
        let expected = ByCause {
            timeout: 3,
            fast_retransmit: 5,
            bundled: 7,
            window_probe: 11,
            early: 13,
            redundant: 200,
            probe: 17,
        };
        assert_eq!(counts, expected);
        assert_eq!(counts.total(), 56, "redundant copies are not retransmissions");
    }
}
