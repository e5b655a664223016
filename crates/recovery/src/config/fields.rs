//! A configuration as a list: the name, value and meaning of every field.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use std::time::Duration;

use serde::Serialize;

use super::{RecoveryConfig, RtoConfig};
use crate::{
    CmtConfig, CongestionControl, CopyBudget, Coupling, Deadline, DelayedCopyConfig, LossDetection,
    ProbeConfig, Reordering, RetransmissionDestination, RttSample, SctpConfig, SpuriousConfig,
    TcpConfig, ThinConfig, ThinSctpConfig, ThinTcpConfig, ThinTest, TimerRestart,
};

/// One field of a [`RecoveryConfig`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The path of the field, with dots: `thin.probe_timer`.
    pub name: &'static str,
    /// The value, as text.
    pub value: String,
    /// The meaning of the field, in one line.
    pub meaning: &'static str,
}

/// Lists the fields of a configuration, in order. A field that does not exist, or one left out, does not
/// compile. `= expression` lists the fields of a part instead.
macro_rules! fields {
    ($of:expr => $kind:ident, $prefix:literal { $($name:ident $(= $part:expr)?, $($meaning:literal)?;)* }) => {{
        let $kind { $($name),* } = $of;
        [$(fields!(@ $prefix, $name, $(= $part)? $($meaning)?)),*].concat()
    }};
    (@ $prefix:literal, $name:ident, = $part:expr) => {
        $part($name)
    };
    (@ $prefix:literal, $name:ident, $meaning:literal) => {
        vec![Field {
            name: concat!($prefix, stringify!($name)),
            value: $name.words(),
            meaning: $meaning,
        }]
    };
}

impl RecoveryConfig {
    /// Every field, in order.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        fields!(self => Self, "" {
            rto = fields_of_rto, ;
            timer_restart, "what restarts the retransmission timer";
            loss_detection, "how a loss is detected, and the reordering tolerated";
            missing_reports, "missing reports, or duplicate ACKs, after which a packet is lost";
            congestion, "how the congestion window grows and shrinks";
            max_burst, "packets per opportunity to send";
            initial_window_packets, "initial window, packets at most";
            initial_window_bytes, "initial window, bytes at most";
            single_packet_after_timeout,
                "after a timeout one packet in flight until something is acknowledged";
            bundle_outstanding, "a retransmission bundles other outstanding data that fits";
            spurious = fields_of_spurious, ;
            undo, "the window is restored after a spurious retransmission";
            thin = fields_of_thin, ;
            sctp = fields_of_sctp, ;
            tcp = fields_of_tcp, ;
        })
    }
}

fn fields_of_sctp(sctp: &SctpConfig) -> Vec<Field> {
    fields!(sctp => SctpConfig, "sctp." {
        retransmission_destination, "which of several paths a retransmission takes";
        potentially_failed_max_retrans,
            "errors after which a path gets no data while another is active";
        lowest_tail, "new data takes the path with the lowest tail latency; idle paths are probed, once a second at most";
        cmt = fields_of_cmt, ;
        setup_by_rtt,
            "INIT and COOKIE ECHO are retransmitted after one and a half round trips, if known";
    })
}

fn fields_of_tcp(tcp: &TcpConfig) -> Vec<Field> {
    fields!(tcp => TcpConfig, "tcp." {
        limited_transmit, "new data may be sent on each of the first two duplicate ACKs";
        eifel, "retransmissions are spurious when an ACK echoes an older timestamp";
    })
}

fn fields_of_rto(rto: &RtoConfig) -> Vec<Field> {
    fields!(rto => RtoConfig, "rto." {
        initial, "RTO.Initial: timeout before the first measurement";
        min, "RTO.Min: lower bound of the timeout";
        max, "RTO.Max: upper bound of the timeout, also when it backs off";
        alpha_inverse, "1 / RTO.Alpha: weight of the old SRTT";
        beta_inverse, "1 / RTO.Beta: weight of the old RTTVAR";
        granularity, "value of RTTVAR where it would be zero";
        min_variation, "lower bound of 4 RTTVAR in the timeout";
        sample, "which of the packets that an ACK acknowledges gives the RTT sample";
    })
}

fn fields_of_cmt(cmt: &CmtConfig) -> Vec<Field> {
    fields!(cmt => CmtConfig, "sctp.cmt." {
        all_paths, "new data is sent over every active path at once";
        split_fast_retransmit, "SFR: only later data of the same path reports data missing";
        cwnd_update, "CUC: windows grow by what is acknowledged of their own path";
        delayed_ack, "DAC: a gap makes no ACK due at once, and ACKs report how many packets they cover";
        split_buffer, "no path uses more than its share of the peer's buffer";
        avoid_blocking, "a slower path sends no data that would make faster ones wait for the peer's buffer";
        coupling, "whether the windows of all paths together are as aggressive as one";
    })
}

fn fields_of_spurious(spurious: &SpuriousConfig) -> Vec<Field> {
    fields!(spurious => SpuriousConfig, "spurious." {
        duplicates, "retransmissions are spurious when all of them are reported as duplicates";
        f_rto, "F-RTO: new data after a timeout shows whether it was spurious";
    })
}

fn fields_of_thin(thin: &ThinConfig) -> Vec<Field> {
    fields!(thin => ThinConfig, "thin." {
        test, "what makes a stream thin";
        rto_min, "M1: RTO.Min while thin";
        restart_by_age, "M2: the timer runs from when the oldest packet in flight was sent";
        linear_timeouts, "M3: timeouts over the same data that do not double the next one";
        first_indication, "M4: a packet is lost after one missing report";
        max_bundle_packets, "RDB: packets in flight of which a packet with new data bundles copies";
        max_bundle_bytes, "RDB: bytes of data in a packet that bundles copies";
        loss_hiding, "a loss that a copy repaired is not answered as congestion";
        ack_delay_samples, "RTT samples include the ACK delay of the receiver: of the oldest packet, and from duplicate reports";
        probe_timer = fields_of_probe_timer, ;
        delayed_copies = fields_of_delayed_copies, ;
        copy_budget = fields_of_copy_budget, ;
        deadline, "when messages must arrive, and with which probability: copies are sent as that needs, within the budget";
        queue_delay_limit,
            "queueing delay at which redundant copies stop and probes back off; below it copies take a \
             proportional part of their budget";
        sctp = fields_of_thin_sctp, ;
        tcp = fields_of_thin_tcp, ;
    })
}

fn fields_of_thin_sctp(sctp: &ThinSctpConfig) -> Vec<Field> {
    fields!(sctp => ThinSctpConfig, "thin.sctp." {
        sack_immediately, "the I bit asks the peer to acknowledge at once";
        heartbeat_samples, "a HEARTBEAT measures the RTT where an ACK is ambiguous";
        by_stream, "each stream is thin or not by its own packets in flight, beside others that fill the window";
    })
}

fn fields_of_thin_tcp(tcp: &ThinTcpConfig) -> Vec<Field> {
    fields!(tcp => ThinTcpConfig, "thin.tcp." {
        no_delay, "Nagle's algorithm is off";
        max_segment_bytes, "thin only with segments in flight of so many bytes at most in the mean";
    })
}

fn fields_of_probe_timer(probe: &Option<ProbeConfig>) -> Vec<Field> {
    let Some(probe) = probe else {
        let off = |field| Field { value: false.words(), ..field };
        return fields_of_probe_timer(&Some(ProbeConfig::DEFAULT)).into_iter().map(off).collect();
    };
    fields!(probe => ProbeConfig, "thin.probe_timer." {
        min_margin, "minimum of the probe timeout beyond the mean RTT: less detects losses sooner, with more spurious probes";
        late_per_mille,
            "packets in a thousand that may be retransmitted while their ACK is under way; with fewer \
             every loss waits longer where there is jitter";
        silence, "after this long without an ACK only T3-rtx retransmits, and backs off";
    })
}

fn fields_of_delayed_copies(copies: &DelayedCopyConfig) -> Vec<Field> {
    fields!(copies => DelayedCopyConfig, "thin.delayed_copies." {
        of_retransmissions,
            "copies that follow each retransmission, less those bundled since: a second loss costs no \
             round trip, each retransmission a packet more";
        interval, "time between these";
        of_last_after,
            "data that no new data follows for this long is sent twice: its loss costs no round trip, each \
             such message a packet more";
    })
}

fn fields_of_copy_budget(budget: &CopyBudget) -> Vec<Field> {
    fields!(budget => CopyBudget, "thin.copy_budget." {
        packets_percent, "packets of nothing but redundant copies, in percent of those with new data";
        bytes_percent,
            "bytes of redundant copies, in percent of new ones; data that no ACK can have reported yet is \
             left out first";
    })
}

/// A value as text for people.
trait Words {
    fn words(&self) -> String;
}

/// `None` is off: no such mechanism, or no limit.
impl<T: Words> Words for Option<T> {
    fn words(&self) -> String {
        self.as_ref().map_or_else(|| "off".into(), Words::words)
    }
}

impl Words for bool {
    fn words(&self) -> String {
        if *self { "on".into() } else { "off".into() }
    }
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Words for $number {
            fn words(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

numbers!(u8 u16 u32 NonZeroU8 NonZeroU16 NonZeroU32);

macro_rules! choices {
    ($($choice:ident { $($variant:ident $words:literal)* })*) => {$(
        impl Words for $choice {
            fn words(&self) -> String {
                match self { $(Self::$variant => $words),* }.into()
            }
        }
    )*};
}

choices! {
    RetransmissionDestination {
        Same "the same" Alternate "another after a timeout" Elsewhere "another" Asap "as soon as possible"
        LossRate "lowest loss rate" Cwnd "largest window" Ssthresh "largest threshold" Csi "csi"
        LeastCorrelated "least correlated"
    }
    RttSample { Newest "newest" Marked "marked" WithoutKarn "without Karn" }
    TimerRestart { OnResend "on resend" OnAdvance "on advance" }
    CongestionControl { Rfc9260 "rfc9260" NewReno "newreno" Cubic "cubic" PacedCubic "cubic, paced" Copa "copa" }
    Coupling { None "none" ResourcePoolingV2 "resource pooling v2" }
}

impl Words for Duration {
    fn words(&self) -> String {
        format!("{} ms", self.as_nanos() as f64 / 1e6)
    }
}

impl Words for Deadline {
    fn words(&self) -> String {
        format!("{} for {} %", self.within().words(), 100.0 * self.probability())
    }
}

impl Words for LossDetection {
    fn words(&self) -> String {
        match self {
            Self::MissingReports { reordering, early_retransmit } => {
                let early = if *early_retransmit { ", Early Fast Retransmit" } else { "" };
                format!("missing reports, {}{early}", reordering.words())
            }
            Self::Scoreboard { reordering } => format!("scoreboard, {}", reordering.words()),
            Self::DuplicateAcks => "duplicate ACKs".into(),
            Self::Rack => "RACK: by time".into(),
        }
    }
}

impl Words for Reordering {
    fn words(&self) -> String {
        match self {
            Self::Fixed => "fixed".into(),
            Self::Adaptive { percentile } => format!("adaptive, from {percentile} % of it"),
        }
    }
}

impl Words for ThinTest {
    fn words(&self) -> String {
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
            ("rto.min_variation", "0 ms", "10 ms"),
            ("thin.rto_min", "off", "200 ms"),
            ("thin.restart_by_age", "off", "on"),
            ("thin.linear_timeouts", "0", "6"),
            ("thin.first_indication", "off", "on"),
            ("thin.ack_delay_samples", "off", "on"),
        ];
        assert_eq!(differing, want);
    }

    #[test]
    fn the_interactive_profiles_have_these_fields() {
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
            ("loss_detection", "RACK: by time"),
            ("single_packet_after_timeout", "off"),
            ("spurious.duplicates", "on"),
            ("undo", "on"),
            ("thin.test", "up to 16 packets in flight"),
            ("thin.rto_min", "200 ms"),
            ("thin.restart_by_age", "on"),
            ("thin.ack_delay_samples", "on"),
            ("thin.probe_timer.min_margin", "1.5 ms"),
            ("thin.probe_timer.late_per_mille", "10"),
            ("thin.probe_timer.silence", "250 ms"),
            ("thin.queue_delay_limit", "25 ms"),
            ("thin.sctp.sack_immediately", "on"),
            ("thin.sctp.heartbeat_samples", "on"),
            ("thin.tcp.no_delay", "on"),
            ("sctp.setup_by_rtt", "on"),
        ];
        assert_eq!(differing("rfc9260", "interactive"), want(&interactive));
        let bundling =
            [("thin.max_bundle_packets", "255"), ("thin.copy_budget.bytes_percent", "112")];
        assert_eq!(differing("interactive", "interactive-bundling"), want(&bundling));
        let redundant = [
            ("thin.max_bundle_packets", "255"),
            ("thin.delayed_copies.of_retransmissions", "1"),
            ("thin.copy_budget.packets_percent", "20"),
            ("thin.copy_budget.bytes_percent", "200"),
        ];
        assert_eq!(differing("interactive", "interactive-redundant"), want(&redundant));
        let multipath =
            [("sctp.retransmission_destination", "least correlated"), ("sctp.lowest_tail", "on")];
        assert_eq!(differing("interactive", "interactive-multipath"), want(&multipath));
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> =
            RecoveryConfig::rfc9260().fields().iter().map(|field| field.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
