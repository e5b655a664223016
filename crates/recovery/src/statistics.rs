//! The counters of a sender.

use std::ops::AddAssign;

use rexmit_core::trace::{Detector, SendCause};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Transmissions after the first, counted by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct ByCause {
    /// T3-rtx (the retransmission timer) expired.
    pub timeout: u64,
    /// Fast retransmit: missing reports, duplicate ACKs, or RACK.
    pub fast_retransmit: u64,
    /// Outstanding data bundled with another retransmission.
    pub bundled: u64,
    /// Probes of a closed receive window.
    pub window_probe: u64,
    /// Early Fast Retransmit.
    #[cfg_attr(feature = "serde", serde(default))]
    pub early: u64,
    /// Redundant copies, bundled with new data or alone. They are not retransmissions.
    #[cfg_attr(feature = "serde", serde(default))]
    pub redundant: u64,
    /// The probe timer of a thin stream expired.
    #[cfg_attr(feature = "serde", serde(default))]
    pub probe: u64,
}

impl ByCause {
    /// The number of all retransmissions, without redundant copies.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let by_time = self.timeout + self.early + self.probe;
        by_time + self.fast_retransmit + self.bundled + self.window_probe
    }

    /// The retransmissions of each cause, in the order of the fields. Redundant copies are not among them.
    #[must_use]
    pub const fn retransmissions(&self) -> [(SendCause, u64); 6] {
        // Lists every field, so that a new one cannot be forgotten.
        let Self { timeout, fast_retransmit, bundled, window_probe, early, redundant: _, probe } =
            *self;
        [
            (SendCause::Timeout, timeout),
            (SendCause::FastRetransmit, fast_retransmit),
            (SendCause::Bundled, bundled),
            (SendCause::WindowProbe, window_probe),
            (SendCause::Early, early),
            (SendCause::Probe, probe),
        ]
    }

    /// Counts a unit that was sent because of `cause`; new data is not counted.
    pub const fn count(&mut self, cause: SendCause) {
        let Some(counter) = self.counter(cause) else { return };
        *counter += 1;
    }

    const fn counter(&mut self, cause: SendCause) -> Option<&mut u64> {
        Some(match cause {
            SendCause::Timeout => &mut self.timeout,
            SendCause::FastRetransmit => &mut self.fast_retransmit,
            SendCause::Bundled => &mut self.bundled,
            SendCause::WindowProbe => &mut self.window_probe,
            SendCause::Early => &mut self.early,
            SendCause::Redundant => &mut self.redundant,
            SendCause::Probe => &mut self.probe,
            // New data; a test checks that every other cause has a counter.
            _ => return None,
        })
    }
}

/// Counters of one path of an association's sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct PathCounters {
    /// Packets sent that carried data.
    pub packets: u64,
    /// Packets declared lost; probes of a closed window are not.
    pub packets_lost: u64,
    /// Packets sent whose first content was a retransmission.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
}

/// Recovery episodes in which nothing was lost, as far as the sender detected them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
#[non_exhaustive]
pub struct SpuriousEvents {
    /// Episodes that a fast retransmit began; each lasts until fast recovery ends.
    pub fast_retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// How many of both kinds were detected by duplicate reports.
    pub by_duplicates: u32,
    /// How many were detected by timestamps (Eifel, RFC 3522).
    pub by_timestamps: u32,
    /// How many were detected by F-RTO (RFC 5682).
    pub by_f_rto: u32,
    /// How many were undone, so that the window is restored.
    pub undone: u32,
    /// Duplicate reports of data that was sent only once: the network duplicated it.
    pub unexplained_duplicates: u32,
}

impl SpuriousEvents {
    pub(crate) const fn count(&mut self, kind: SendCause, by: Detector) {
        match kind {
            SendCause::Timeout => self.timeouts += 1,
            _ => self.fast_retransmits += 1,
        }
        match by {
            Detector::Duplicates => self.by_duplicates += 1,
            Detector::Timestamps => self.by_timestamps += 1,
            Detector::FRto => self.by_f_rto += 1,
            _ => {}
        }
    }

    /// The number of all spurious episodes.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.fast_retransmits + self.timeouts
    }
}

/// The reordering tolerated on a path now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct ReorderingState {
    /// The number of missing reports, or of units acknowledged above, after which a unit is declared lost.
    pub missing_reports: u16,
    /// `pef`, 0 to 1: the share of reordered packets that the threshold is to save from a spurious
    /// retransmission. Zero if the threshold is fixed.
    pub percentile: f64,
    /// The largest threshold that any late packet needed lately, accurate to 1/16; zero if none was late.
    pub extent: u16,
}

/// Counters of one association's sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct RecoveryStatistics {
    /// Packets sent that carried data.
    pub packets: u64,
    /// Packets declared lost; probes of a closed window are not.
    pub packets_lost: u64,
    /// Packets sent whose first content was a retransmission.
    pub retransmission_packets: u64,
    /// Units sent for the first time.
    pub new_units: u64,
    /// Units retransmitted.
    pub retransmitted: ByCause,
    /// Units retransmitted that a duplicate report proved spurious.
    pub spurious: ByCause,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Bytes of units that were copied redundantly.
    pub redundant_bytes: u64,
    /// Units copied redundantly in packets of their own.
    pub delayed_copies: u64,
    /// Delayed copies that the budget, or a queue on the path, denied, and packets with new data for which it
    /// allowed no copies.
    pub copies_denied: u64,
    /// Spurious retransmissions by the probe timer of packets that had arrived in time, as far as can be
    /// detected: their ACK was lost.
    pub acks_missed: u64,
    /// Packets lost whose data a redundant copy delivered.
    pub packets_repaired: u64,
    /// How often a stream with mechanisms for thin streams became thin or thick.
    pub thin_changes: u64,
    /// Spurious recovery episodes, if the profile detects them.
    pub spurious_events: SpuriousEvents,
}

impl RecoveryStatistics {
    /// The fraction of packets declared lost (Petlund 2009 §5.2, `lossrate`).
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { self.packets_lost as f64 / self.packets as f64 }
    }
}

/// Adds the counts of several associations. Names every field, so that none is left out.
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
        let repeated = sent.iter().filter(|(cause, _)| !matches!(cause, New | Redundant));
        let mut listed = counts.retransmissions().to_vec();
        listed.sort_by_key(|(_, times)| *times);
        assert!(listed.iter().eq(repeated), "{listed:?}");
        for &cause in SendCause::ALL {
            let has_counter = ByCause::default().counter(cause).is_some();
            assert_eq!(has_counter, cause != New, "{cause:?}");
        }
    }
}
