//! A configuration as a list: every field by name, with its value and what it means.

use std::time::Duration;

use serde::Serialize;

use super::{RecoveryConfig, RtoConfig};
use crate::{
    CmtConfig, CongestionControl, CopyBudget, Coupling, LossDetection, RecoveryTimer, Reordering,
    RetransmissionDestination, SpacedCopies, SpuriousConfig, ThinConfig, ThinTest, TimerRestart,
};

/// One field of a [`RecoveryConfig`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Where it is, with dots.
    pub name: &'static str,
    /// Its value in words.
    pub value: String,
    /// What it means, in a line.
    pub meaning: &'static str,
}

fn field(name: &'static str, value: impl Words, meaning: &'static str) -> Field {
    Field { name, value: value.words(), meaning }
}

impl RecoveryConfig {
    /// Every field, in order. Names no field that does not exist, and leaves none out: that would not
    /// compile.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let Self {
            rto,
            timer_restart,
            loss_detection,
            missing_reports,
            reordering,
            limited_transmit,
            congestion,
            max_burst,
            initial_window_packets,
            initial_window_bytes,
            single_packet_after_timeout,
            bundle_outstanding,
            early_retransmit,
            retransmission_destination,
            potentially_failed_max_retrans,
            cmt,
            spurious,
            undo,
            setup_by_rtt,
            thin,
        } = self;
        let mut fields = rto.fields();
        fields.extend([
            field("timer_restart", *timer_restart, "what restarts the retransmission timer"),
            field("loss_detection", *loss_detection, "how acknowledgements tell a loss"),
            field("missing_reports", *missing_reports, "missing reports that make a loss"),
            field("reordering", *reordering, "how much reordering is borne before a loss is told"),
            field(
                "limited_transmit",
                *limited_transmit,
                "the first two duplicate acknowledgements let new data leave",
            ),
            field("congestion", *congestion, "how the congestion window grows and shrinks"),
            field("max_burst", Limit(u64::from(*max_burst)), "packets per opportunity to send"),
            field(
                "initial_window_packets",
                *initial_window_packets,
                "first window, packets at most",
            ),
            field("initial_window_bytes", *initial_window_bytes, "first window, bytes at most"),
            field(
                "single_packet_after_timeout",
                *single_packet_after_timeout,
                "after a timeout one packet in flight until something is acknowledged",
            ),
            field(
                "bundle_outstanding",
                *bundle_outstanding,
                "a retransmission takes along what is outstanding and fits",
            ),
            field(
                "early_retransmit",
                *early_retransmit,
                "Early Fast Retransmit after SRTT + RTTVAR while the window is not used up",
            ),
            field(
                "retransmission_destination",
                *retransmission_destination,
                "which of several paths a retransmission takes",
            ),
            field(
                "potentially_failed_max_retrans",
                *potentially_failed_max_retrans,
                "errors after which a path gets no data while another is active",
            ),
        ]);
        fields.extend(cmt.fields());
        fields.extend(spurious.fields());
        fields.push(field("undo", *undo, "the window goes back after a spurious event"));
        fields.push(field(
            "setup_by_rtt",
            *setup_by_rtt,
            "INIT and COOKIE ECHO are repeated after one and a half round trips, if known (SCTP)",
        ));
        fields.extend(thin.fields());
        fields
    }
}

impl RtoConfig {
    fn fields(&self) -> Vec<Field> {
        let Self { initial, min, max, alpha_inverse, beta_inverse, granularity, min_variation } =
            self;
        vec![
            field("rto.initial", *initial, "RTO.Initial: timeout before the first measurement"),
            field("rto.min", *min, "RTO.Min: its lower bound"),
            field("rto.max", *max, "RTO.Max: its upper bound, of the backoff, too"),
            field("rto.alpha_inverse", *alpha_inverse, "1 / RTO.Alpha: weight of the old SRTT"),
            field("rto.beta_inverse", *beta_inverse, "1 / RTO.Beta: weight of the old RTTVAR"),
            field("rto.granularity", *granularity, "RTTVAR where it would be zero"),
            field("rto.min_variation", *min_variation, "lower bound of 4 RTTVAR in the timeout"),
        ]
    }
}

impl CmtConfig {
    fn fields(&self) -> Vec<Field> {
        let Self {
            all_paths,
            split_fast_retransmit,
            cwnd_update,
            delayed_ack,
            split_buffer,
            avoid_blocking,
            coupling,
        } = self;
        vec![
            field("cmt.all_paths", *all_paths, "new data over every active path at once"),
            field(
                "cmt.split_fast_retransmit",
                *split_fast_retransmit,
                "SFR: only later data of the same path report data missing",
            ),
            field(
                "cmt.cwnd_update",
                *cwnd_update,
                "CUC: windows grow by what is acknowledged of their own path",
            ),
            field(
                "cmt.delayed_ack",
                *delayed_ack,
                "DAC: gaps do not hurry acknowledgements, which tell what they stand for",
            ),
            field(
                "cmt.split_buffer",
                *split_buffer,
                "no path takes more than its part of the peer's buffer",
            ),
            field(
                "cmt.avoid_blocking",
                *avoid_blocking,
                "no slower path takes what keeps faster ones waiting for the peer's buffer",
            ),
            field(
                "cmt.coupling",
                *coupling,
                "whether the windows of all paths together are as aggressive as one",
            ),
        ]
    }
}

impl SpuriousConfig {
    fn fields(&self) -> Vec<Field> {
        let Self { duplicates, eifel, f_rto } = self;
        vec![
            field(
                "spurious.duplicates",
                *duplicates,
                "a retransmission event is spurious when all its copies are reported as duplicates",
            ),
            field(
                "spurious.eifel",
                *eifel,
                "so it is when an acknowledgement echoes an older timestamp (TCP)",
            ),
            field(
                "spurious.f_rto",
                *f_rto,
                "F-RTO: new data after a timeout, and what is acknowledged then, tell",
            ),
        ]
    }
}

impl ThinConfig {
    fn fields(&self) -> Vec<Field> {
        let Self {
            test,
            rto_min,
            restart_by_age,
            linear_timeouts,
            first_indication,
            max_bundle_packets,
            max_bundle_bytes,
            loss_hiding,
            no_delay,
            sack_immediately,
            heartbeat_samples,
            duplicate_samples,
            recovery_timer,
            spaced_copies,
            copy_budget,
            yield_to_queue,
        } = self;
        let mut fields = vec![
            field("thin.test", *test, "how a thin stream is told"),
            field("thin.rto_min", *rto_min, "M1: RTO.Min while thin"),
            field(
                "thin.restart_by_age",
                *restart_by_age,
                "M2: the timer runs from when the oldest packet in flight left",
            ),
            field(
                "thin.linear_timeouts",
                *linear_timeouts,
                "M3: timeouts over the same data that do not double the next one",
            ),
            field(
                "thin.first_indication",
                *first_indication,
                "M4: one missing report makes a loss",
            ),
            field(
                "thin.max_bundle_packets",
                *max_bundle_packets,
                "packets before, of which a packet with new data carries copies",
            ),
            field(
                "thin.max_bundle_bytes",
                Limit(u64::from(*max_bundle_bytes)),
                "bytes of data in a packet that carries copies",
            ),
            field(
                "thin.loss_hiding",
                *loss_hiding,
                "a loss that a copy repaired is not answered as congestion",
            ),
            field("thin.no_delay", *no_delay, "Nagle's algorithm is off (TCP)"),
            field("thin.sack_immediately", *sack_immediately, "the I bit: acknowledge at once"),
            field(
                "thin.heartbeat_samples",
                *heartbeat_samples,
                "a HEARTBEAT measures the round trip where an acknowledgement cannot",
            ),
            field(
                "thin.duplicate_samples",
                *duplicate_samples,
                "a duplicate report tells the round trip of what left twice",
            ),
        ];
        fields.extend(recovery_timer.fields());
        fields.extend(spaced_copies.fields());
        fields.extend(copy_budget.fields());
        fields.push(field(
            "thin.yield_to_queue",
            OrOff(Some(*yield_to_queue).filter(|delay| !delay.is_zero())),
            "a queue that delays by so much stops copies on purpose and lets repetitions back off, and what \
             is new wait for the next acknowledgement after one; less takes its part of the budget",
        ));
        fields
    }
}

impl RecoveryTimer {
    fn fields(&self) -> Vec<Field> {
        let Self { is_on, min_margin, late_per_mille, silence } = self;
        vec![
            field(
                "thin.recovery_timer.is_on",
                *is_on,
                "what is not acknowledged as soon as answers take leaves again, each copy of it, too; \
                 a lost acknowledgement may cost a needless copy",
            ),
            field(
                "thin.recovery_timer.min_margin",
                *min_margin,
                "least time beyond the mean of answers: less finds losses sooner, and some that are none",
            ),
            field(
                "thin.recovery_timer.late_per_mille",
                u32::from(*late_per_mille),
                "packets in a thousand that may be repeated though their answer is under way; \
                 with fewer every loss waits longer where there is jitter",
            ),
            field(
                "thin.recovery_timer.silence",
                *silence,
                "after so long without an acknowledgement only T3-rtx repeats, and backs off",
            ),
        ]
    }
}

impl SpacedCopies {
    fn fields(&self) -> Vec<Field> {
        let Self { of_retransmissions, interval, of_last_after } = self;
        vec![
            field(
                "thin.spaced_copies.of_retransmissions",
                *of_retransmissions,
                "copies that follow each retransmission, less those that left with new data since: a second \
                 loss costs no round trip, each retransmission a packet more",
            ),
            field("thin.spaced_copies.interval", *interval, "time between these"),
            field(
                "thin.spaced_copies.of_last_after",
                OrOff(*of_last_after),
                "what nothing new follows for so long leaves twice: its loss costs no round trip, \
                 each such message a packet more",
            ),
        ]
    }
}

impl CopyBudget {
    fn fields(&self) -> Vec<Field> {
        let Self { packets_percent, bytes_percent } = self;
        vec![
            field(
                "thin.copy_budget.packets_percent",
                Limit((*packets_percent).into()),
                "packets of nothing but copies on purpose, in percent of those with new data",
            ),
            field(
                "thin.copy_budget.bytes_percent",
                Limit((*bytes_percent).into()),
                "bytes copied on purpose, in percent of new ones; what no answer can have come to is left \
                 out first",
            ),
        ]
    }
}

/// A value as a person reads it.
trait Words {
    fn words(self) -> String;
}

/// Zero is no limit.
struct Limit(u64);

/// Nothing is off.
struct OrOff(Option<Duration>);

impl Words for OrOff {
    fn words(self) -> String {
        self.0.map_or_else(|| "off".into(), Words::words)
    }
}

impl Words for Limit {
    fn words(self) -> String {
        if self.0 == 0 { "unlimited".into() } else { self.0.to_string() }
    }
}

impl Words for bool {
    fn words(self) -> String {
        if self { "on".into() } else { "off".into() }
    }
}

impl Words for u8 {
    fn words(self) -> String {
        self.to_string()
    }
}

impl Words for u32 {
    fn words(self) -> String {
        self.to_string()
    }
}

impl Words for Option<u32> {
    fn words(self) -> String {
        self.map_or_else(|| "off".into(), Words::words)
    }
}

impl Words for RetransmissionDestination {
    fn words(self) -> String {
        match self {
            Self::Same => "the same",
            Self::Alternate => "another after a timeout",
            Self::Elsewhere => "another",
            Self::Asap => "as soon as possible",
            Self::LossRate => "lowest loss rate",
            Self::Cwnd => "largest window",
            Self::Ssthresh => "largest threshold",
            Self::Csi => "csi",
        }
        .into()
    }
}

impl Words for Duration {
    fn words(self) -> String {
        format!("{} ms", self.as_nanos() as f64 / 1e6)
    }
}

impl Words for Option<Duration> {
    fn words(self) -> String {
        self.map_or_else(|| "as rto.min".into(), Words::words)
    }
}

impl Words for TimerRestart {
    fn words(self) -> String {
        match self {
            Self::OnResend => "on resend",
            Self::OnAdvance => "on advance",
        }
        .into()
    }
}

impl Words for LossDetection {
    fn words(self) -> String {
        match self {
            Self::MissingReports => "missing reports",
            Self::Scoreboard => "scoreboard",
            Self::DuplicateAcks => "duplicate acknowledgements",
        }
        .into()
    }
}

impl Words for Reordering {
    fn words(self) -> String {
        match self {
            Self::Fixed => "missing reports as they are".into(),
            Self::Adaptive { percentile } => format!("adaptive, from {percentile} % of it"),
            Self::Rack => "RACK: by time".into(),
        }
    }
}

impl Words for CongestionControl {
    fn words(self) -> String {
        match self {
            Self::Rfc9260 => "rfc9260",
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
        }
        .into()
    }
}

impl Words for Coupling {
    fn words(self) -> String {
        match self {
            Self::None => "none",
            Self::ResourcePoolingV2 => "resource pooling v2",
        }
        .into()
    }
}

impl Words for ThinTest {
    fn words(self) -> String {
        match self {
            Self::PacketsInFlight => "packets in flight",
            Self::Linux => "as Linux",
            Self::Packets(most) => return format!("up to {most} packets in flight"),
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_value_shows_in_its_field_alone() {
        let (lksctp, thin) = ["lksctp", "thin"]
            .map(|name| RecoveryConfig::profile(name).expect("a profile").fields())
            .into();
        let differing: Vec<_> = lksctp
            .iter()
            .zip(&thin)
            .filter(|(a, b)| a != b)
            .map(|(a, b)| (a.name, &*a.value, &*b.value))
            .collect();
        let want = [
            ("thin.rto_min", "as rto.min", "200 ms"),
            ("thin.restart_by_age", "off", "on"),
            ("thin.linear_timeouts", "0", "6"),
            ("thin.first_indication", "off", "on"),
            ("thin.duplicate_samples", "off", "on"),
        ];
        assert_eq!(differing, want);
    }

    #[test]
    fn the_interactive_profiles_are_what_they_are() {
        let differing = |from, to| {
            let [from, to] =
                [from, to].map(|name| RecoveryConfig::profile(name).expect("a profile").fields());
            let differing = from.into_iter().zip(to).filter(|(a, b)| a != b);
            differing.map(|(_, b)| (b.name, b.value)).collect::<Vec<_>>()
        };
        let want = |fields: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            fields.iter().map(|&(name, value)| (name, value.to_owned())).collect()
        };
        let interactive = [
            ("reordering", "RACK: by time"),
            ("single_packet_after_timeout", "off"),
            ("spurious.duplicates", "on"),
            ("undo", "on"),
            ("setup_by_rtt", "on"),
            ("thin.test", "up to 16 packets in flight"),
            ("thin.rto_min", "200 ms"),
            ("thin.restart_by_age", "on"),
            ("thin.no_delay", "on"),
            ("thin.sack_immediately", "on"),
            ("thin.heartbeat_samples", "on"),
            ("thin.duplicate_samples", "on"),
            ("thin.recovery_timer.is_on", "on"),
            ("thin.yield_to_queue", "25 ms"),
        ];
        assert_eq!(differing("rfc9260", "interactive"), want(&interactive));
        let redundant = [
            ("thin.max_bundle_packets", "255"),
            ("thin.spaced_copies.of_retransmissions", "1"),
            ("thin.copy_budget.packets_percent", "20"),
            ("thin.copy_budget.bytes_percent", "200"),
        ];
        assert_eq!(differing("interactive", "interactive-redundant"), want(&redundant));
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> =
            RecoveryConfig::default().fields().iter().map(|field| field.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
