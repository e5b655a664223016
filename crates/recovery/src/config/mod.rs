//! A recovery configuration is a plain value: one field per mechanism, and named profiles that are
//! values of it.

#[cfg(test)]
mod tests;

use crate::{
    CmtConfig, CongestionControl, CopyBudget, Coupling, DelayedCopyConfig, LossDetection,
    ProbeConfig, RetransmissionDestination, RtoConfig, SpuriousConfig, ThinTest, TimerRestart,
};
pub use fields::Field;
pub use profiles::{PROFILES, TCP_PROFILES};
use rexmit_core::{config, words};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU8, NonZeroU32};
use std::time::Duration;

mod fields;
mod profiles;

config! {
    /// The loss recovery of a sender: a profile, such as [`interactive`](Self::interactive), whose fields may be
    /// changed. In a file a field that is not given is that of [`rfc9260`](Self::rfc9260).
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default = "RecoveryConfig::rfc9260", deny_unknown_fields)]
    pub struct RecoveryConfig {
        /// The retransmission timeout.
        pub rto: RtoConfig,
        /// What restarts the retransmission timer.
        pub timer_restart: TimerRestart,
        /// How a loss is detected.
        pub loss_detection: LossDetection,
        /// Missing reports that make a loss (RFC 9260 §7.2.4: 3); also DupThresh, the acknowledged
        /// units above a hole, or the duplicate acknowledgements, that do (RFC 6675 §2, RFC 5681 §3.2:
        /// 3).
        pub missing_reports: u8,
        /// How the congestion window grows and shrinks.
        pub congestion: CongestionControl,
        /// Max.Burst: data packets sent per opportunity; `None` is unlimited (RFC 9260 §6.1 D).
        #[serde(with = "words::or_off")]
        pub max_burst: Option<NonZeroU8>,
        /// Initial window in packets at most (RFC 9260 §7.2.1 and RFC 3390 §1: 4; RFC 6928 §2: 10).
        pub initial_window_packets: u32,
        /// Initial window in bytes at most, but two packets at least (RFC 9260 §7.2.1: 4404;
        /// RFC 3390 §1: 4380; RFC 6928 §2: 14600).
        pub initial_window_bytes: u32,
        /// After a timeout only one packet is in flight until something is acknowledged
        /// (RFC 9260 §7.2.1).
        pub single_packet_after_timeout: bool,
        /// A retransmission bundles other outstanding units that fit, though they are not judged
        /// lost (Petlund 2009 §3: the behaviour of lksctp).
        pub bundle_outstanding: bool,
        /// What says that a retransmission event was spurious: that nothing was lost.
        pub spurious: SpuriousConfig,
        /// After a spurious event the window goes back to where it was, by slow start, and after a
        /// spurious timeout the next round trip starts the timer's estimate anew (RR-SCTP §4.2,
        /// RFC 4015 §3.1). Without a detector there is nothing to undo.
        pub undo: bool,
        /// Additional mechanisms while a stream is thin.
        pub thin: ThinConfig as with_thin,
        /// What serves SCTP only.
        pub sctp: SctpConfig as with_sctp,
        /// What serves TCP only.
        pub tcp: TcpConfig as with_tcp,
    }
}

/// Why a [`RecoveryConfig`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRecovery(pub &'static str);

impl std::fmt::Display for InvalidRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidRecovery {}

impl RecoveryConfig {
    /// Checks the values once, so that they can be trusted from here on.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidRecovery> {
        let rto = &self.rto;
        let is_beyond_all = self.loss_detection.percentile().is_some_and(|percent| percent > 100);
        let is_coupled = self.sctp.cmt.coupling != Coupling::None;
        let checks = [
            (rto.min > rto.max, "RTO.Min is above RTO.Max"),
            (rto.initial > rto.max, "RTO.Initial is above RTO.Max"),
            (rto.initial.is_zero(), "RTO.Initial is zero"),
            (rto.max.is_zero(), "RTO.Max is zero"),
            (rto.granularity.is_zero(), "the clock granularity is zero"),
            (rto.alpha_inverse == 0 || rto.beta_inverse == 0, "1/alpha or 1/beta is zero"),
            (self.missing_reports == 0, "zero missing reports would make everything a loss"),
            (self.initial_window_packets == 0, "the initial window holds no packet"),
            (rto.min_variation > rto.max, "the variation's lower bound is above RTO.Max"),
            (is_beyond_all, "the percentile of reordering is above 100"),
            (
                is_coupled && !self.sctp.cmt.all_paths,
                "windows of paths not used at once are coupled",
            ),
            (
                is_coupled && self.congestion != CongestionControl::Rfc9260,
                "only windows of RFC 9260 can be coupled",
            ),
            (!self.thin.is_valid(), "a bound of the timers of thin streams is out of range"),
        ];
        match checks.iter().find(|(bad, _)| *bad) {
            Some((_, why)) => Err(InvalidRecovery(why)),
            None => Ok(()),
        }
    }
}

config! {
    /// Of SCTP: several paths, and the setup. The default is RFC 9260.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SctpConfig {
        /// Which of several paths a retransmission takes.
        pub retransmission_destination: RetransmissionDestination,
        /// PotentiallyFailed.Max.Retrans: errors in a row beyond which a path gets no data while
        /// another is active, though it is not given up (RFC 7829 §3.2, which recommends 0). `None`
        /// leaves it at RFC 9260 §8.2.
        pub potentially_failed_max_retrans: Option<u32>,
        /// Using all paths at once.
        pub cmt: CmtConfig,
        /// INIT and COOKIE ECHO are repeated after one and a half round trips, doubling up to the RTO, where
        /// the round-trip time is known from this setup or from an association before: a lost first packet
        /// does not cost RTO.Initial. The setup is not given up sooner: the repetitions that the RTO would
        /// have, follow. A path that became longer costs spurious ones.
        pub setup_by_rtt: bool,
    }
}

config! {
    const
    /// Of TCP. The default has neither.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct TcpConfig {
        /// The first two duplicate acknowledgements let a new unit leave each, beyond the window
        /// (RFC 3042 §2). Only for a peer without SACK: with a scoreboard what is acknowledged above a
        /// hole is no longer in flight, so the window allows a new unit in its place in any case
        /// (RFC 6675 §5 step 3).
        pub limited_transmit: bool,
        /// Eifel detection: a recovery episode was spurious if the first acknowledgement echoes a timestamp older
        /// than the retransmission's (RFC 3522).
        pub eifel: bool,
    }
}

config! {
    const
    /// Of SCTP while a stream is thin.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ThinSctpConfig {
        /// Ask the peer to acknowledge without delay (the I bit, RFC 7053).
        pub sack_immediately: bool,
        /// When an acknowledgement cannot tell the round-trip time because of a retransmission, measure
        /// it by a HEARTBEAT, one per timeout at most.
        pub heartbeat_samples: bool,
        /// Each stream that is used is thin or not by its own packets in flight, whatever others fill the window with: it
        /// is singled out, with these mechanisms, up to 31 of them; further ones are judged together. New data of a
        /// thin stream may exceed the window, and the pacing rate, by a packet.
        pub by_stream: bool,
    }
}

impl ThinSctpConfig {
    /// Neither.
    pub const OFF: Self =
        Self { sack_immediately: false, heartbeat_samples: false, by_stream: false };
}

config! {
    const
    /// Of TCP while a stream is thin.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ThinTcpConfig {
        /// Small segments do not wait for what is unacknowledged (Nagle's algorithm off).
        pub no_delay: bool,
        /// A stream is thin only while its segments in flight carry so many bytes at most in the mean; `None` is any
        /// size (Petlund 2008 §2: segments far smaller than the MSS).
        #[serde(with = "words::or_off")]
        pub max_segment_bytes: Option<NonZeroU32>,
    }
}

impl ThinTcpConfig {
    /// Nagle's algorithm as it is, and segments of any size.
    pub const OFF: Self = Self { no_delay: false, max_segment_bytes: None };

    /// Nagle's algorithm off, and segments of half an MSS of 1460 bytes at most: two of them fit in one.
    pub const PETLUND_2008: Self = Self { no_delay: true, max_segment_bytes: NonZeroU32::new(730) };
}

config! {
    const
    /// The loss recovery of a sender while a stream is thin: each field is a mechanism of its own, and
    /// the default has none of them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ThinConfig {
        /// How a thin stream is told.
        pub test: ThinTest,
        /// M1: the lower bound of the retransmission timeout instead of RTO.Min (Petlund 2009 §5.2:
        /// 200 ms).
        #[serde(with = "words::optional_duration")]
        pub rto_min: Option<Duration>,
        /// M2: the retransmission timer runs from when the oldest copy in flight left, so that none
        /// waits for more than one timeout (Petlund 2009 §5.2, RFC 7765).
        pub restart_by_age: bool,
        /// M3, T1: so many timeouts over the same unit do not double the timeout; those beyond do. Zero
        /// doubles from the first (Petlund 2009 §5.3; Linux: 6).
        pub linear_timeouts: u8,
        /// M4, T2: the first missing report, or duplicate acknowledgement, makes a loss (Petlund 2009
        /// §5.4).
        pub first_indication: bool,
        /// A packet with new data also carries data in flight of so many packets before it; zero
        /// carries none (Petlund 2008, RDB; Petlund 2009 §8).
        pub max_bundle_packets: u8,
        /// Bytes of units in a packet that bundles such copies, the new ones included; `None` is as many
        /// as fit.
        #[serde(with = "words::or_off")]
        pub max_bundle_bytes: Option<NonZeroU32>,
        /// A loss that a copy repaired is not answered as congestion: RDB as it was published.
        pub loss_hiding: bool,
        /// The retransmission timeout learns how long the receiver delays ACKs. If most ACKs are of several packets,
        /// the RTT sample is that of the oldest packet, from which T3-rtx runs, and not that of the newest. And a
        /// duplicate report, which proves that both transmissions of a packet arrived, gives the RTT of the first one:
        /// Karn's algorithm forbids ambiguous samples, and this one is not.
        pub ack_delay_samples: bool,
        /// Data without an ACK in time is retransmitted; `None` leaves that to T3-rtx and missing reports.
        pub probe_timer: Option<ProbeConfig>,
        /// Redundant copies in packets of their own.
        pub delayed_copies: DelayedCopyConfig,
        /// What redundant copies may cost, the bundled ones included.
        pub copy_budget: CopyBudget,
        /// A queue that delays packets by this much, at most 60 s, stops redundant copies, as does the loss of 30 %
        /// of the packets. With such a queue, or 40 % lost, probes double their timeout from the first one that
        /// is not acknowledged, and after each of them new data waits for the next ACK and is sent together. With a
        /// shorter queue copies take a share of their budget that falls linearly to zero at this delay. A longer
        /// one is faster beside greedy senders, at their cost. `None` ignores queues.
        #[serde(with = "words::optional_duration")]
        pub queue_delay_limit: Option<Duration>,
        /// What serves SCTP only.
        pub sctp: ThinSctpConfig as with_sctp,
        /// What serves TCP only.
        pub tcp: ThinTcpConfig as with_tcp,
    }
}

impl ThinConfig {
    /// No mechanism: the same sender, thin or not.
    pub const OFF: Self = Self {
        test: ThinTest::PacketsInFlight,
        rto_min: None,
        restart_by_age: false,
        linear_timeouts: 0,
        first_indication: false,
        max_bundle_packets: 0,
        max_bundle_bytes: None,
        loss_hiding: false,
        ack_delay_samples: false,
        probe_timer: None,
        delayed_copies: DelayedCopyConfig::OFF,
        copy_budget: CopyBudget::UNLIMITED,
        queue_delay_limit: None,
        sctp: ThinSctpConfig::OFF,
        tcp: ThinTcpConfig::OFF,
    };

    /// M1 to M4 with the values of the papers and of Linux; and RTT samples of delayed ACKs, without which the
    /// timeout would stay below the ACK delay of the receiver.
    pub const M1_TO_M4: Self = Self {
        rto_min: Some(Duration::from_millis(200)),
        restart_by_age: true,
        linear_timeouts: 6,
        first_indication: true,
        ack_delay_samples: true,
        ..Self::OFF
    };

    /// The recovery timer, for up to 16 packets in flight, with the round trips kept clean that it
    /// waits for; and M1 and M2 for T3-rtx, which only comes after it.
    pub const INTERACTIVE: Self = Self {
        test: ThinTest::Packets(16),
        rto_min: Some(Duration::from_millis(200)),
        restart_by_age: true,
        ack_delay_samples: true,
        probe_timer: Some(ProbeConfig::DEFAULT),
        queue_delay_limit: Some(Duration::from_millis(25)),
        sctp: ThinSctpConfig { sack_immediately: true, heartbeat_samples: true, by_stream: false },
        tcp: ThinTcpConfig { no_delay: true, ..ThinTcpConfig::OFF },
        ..Self::OFF
    };

    /// The same with copies: of all that is in flight and fits bundled with new data, and one of each
    /// retransmission. The budget allows for losses of a tenth each way, and for two copies
    /// of all that is new.
    pub(crate) const fn redundant(self) -> Self {
        let copies = DelayedCopyConfig { of_retransmissions: 1, ..DelayedCopyConfig::OFF };
        let copy_budget = CopyBudget::percent(20, 200);
        Self { max_bundle_packets: u8::MAX, delayed_copies: copies, copy_budget, ..self }
    }

    /// Whether the values make sense.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let is_rto_min_valid =
            self.rto_min.is_none_or(|min| !min.is_zero() && min <= Duration::from_secs(60));
        let is_queue_valid = self
            .queue_delay_limit
            .is_none_or(|limit| !limit.is_zero() && limit <= Duration::from_secs(60));
        is_rto_min_valid && is_queue_valid && self.probe_timer.is_none_or(|probe| probe.is_valid())
    }

    /// Whether any mechanism is on.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.rto_min.is_some()
            || self.restart_by_age
            || self.linear_timeouts > 0
            || self.first_indication
            || self.max_bundle_packets > 0
            || self.sctp.sack_immediately
            || self.sctp.heartbeat_samples
            || self.tcp.no_delay
            || self.ack_delay_samples
            || self.probe_timer.is_some()
            || self.delayed_copies.is_any()
    }
}
