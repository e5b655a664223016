//! A recovery configuration is a plain value: one field per mechanism, and named profiles that are values of it.

#[cfg(test)]
mod tests;

use crate::{CongestionControl, Deadline, RtoConfig, TimerRestart};
pub use choices::{
    CmtConfig, Coupling, LossDetection, Reordering, RetransmissionDestination, SpuriousConfig,
    SpuriousResponse, ThinTest,
};
pub use copies::{BundlingConfig, CopyBudget, DelayedCopyConfig, RetransmissionCopies};
pub use fields::FIELDS;
pub use probe::ProbeConfig;
pub use profiles::{PROFILES, TCP_PROFILES};
use rexmit_congestion::WindowConfig;
use rexmit_core::config;
use rexmit_core::trace::Detector;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

mod choices;
mod copies;
mod fields;
mod probe;
mod profiles;

config! {
    /// The loss recovery of a sender: a profile, such as [`interactive`](Self::interactive), whose fields may
    /// be changed. Fields that a file leaves out are those of [`rfc9260`](Self::rfc9260), whose values stand at the fields.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
    #[cfg_attr(feature = "serde", serde(default = "RecoveryConfig::rfc9260", deny_unknown_fields))]
    pub struct RecoveryConfig {
        /// The retransmission timeout.
        pub rto: RtoConfig,
        /// Which events restart the retransmission timer.
        pub timer_restart: TimerRestart,
        /// How a loss is detected.
        pub loss_detection: LossDetection,
        /// The number of missing reports after which a chunk is declared lost (RFC 9260 §7.2.4: 3). In TCP,
        /// DupThresh: acknowledged segments above a hole, or duplicate ACKs (RFC 6675 §2, RFC 5681 §3.2: 3).
        /// RACK tolerates no reordering once it is reached (RFC 8985 §6.2), and it is the `pttfr` of
        /// [`ThinTest::PacketsInFlight`]: so every detector uses it.
        pub missing_reports: u8,
        /// How the congestion window grows and shrinks.
        pub congestion: CongestionControl,
        /// Max.Burst: the most data packets sent per opportunity to send; `None` is unlimited (RFC 9260 §6.1 D: 4).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub max_burst: Option<NonZeroU8>,
        /// The initial window, in packets at most (RFC 9260 §7.2.1 and RFC 3390 §1: 4; RFC 6928 §2: 10).
        pub initial_window_packets: u32,
        /// The initial window, in bytes at most, but at least two packets (RFC 9260 §7.2.1: 4404; RFC 3390
        /// §1: 4380; RFC 6928 §2: 14600).
        pub initial_window_bytes: u32,
        /// Whether only one packet is in flight after a timeout until an ACK arrives (RFC 9260 §7.2.1).
        pub single_packet_after_timeout: bool,
        /// Whether a retransmission bundles other outstanding units that fit, although they are not declared
        /// lost (Petlund 2009 §3: the behaviour of lksctp).
        pub bundle_outstanding: bool,
        /// How spurious recovery episodes are detected, that is, episodes in which nothing was lost, and
        /// whether they are undone.
        pub spurious: SpuriousConfig,
        /// Additional mechanisms while a stream is thin.
        pub thin: ThinConfig as with_thin,
        /// Settings of SCTP only.
        pub sctp: SctpConfig as with_sctp,
        /// Settings of TCP only.
        pub tcp: TcpConfig as with_tcp,
    }
}

/// Why a [`RecoveryConfig`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRecovery(pub &'static str);

impl std::fmt::Display for InvalidRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidRecovery {}

impl RecoveryConfig {
    /// The window of a path before its first packet.
    pub(crate) const fn window(&self) -> WindowConfig {
        WindowConfig {
            control: self.congestion,
            initial_packets: self.initial_window_packets,
            initial_bytes: self.initial_window_bytes,
        }
    }

    /// Whether an episode that `detector` finds spurious is undone.
    pub(crate) fn undoes(&self, detector: Detector) -> bool {
        let response = match detector {
            Detector::Duplicates => self.spurious.duplicates,
            Detector::FRto => self.spurious.f_rto,
            Detector::Timestamps => self.tcp.eifel,
            _ => None,
        };
        response == Some(SpuriousResponse::Undo)
    }

    /// As [`validate`](Self::validate), and that SCTP can detect losses as configured.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate_for_sctp(&self) -> Result<(), InvalidRecovery> {
        match self.loss_detection {
            LossDetection::MissingReports { .. } | LossDetection::Rack => self.validate(),
            LossDetection::DuplicateAcks => Err(InvalidRecovery(
                "SCTP has no duplicate ACKs to count: use missing_reports or rack",
            )),
            LossDetection::Scoreboard { .. } => Err(InvalidRecovery(
                "the scoreboard is of TCP with SACK: use missing_reports or rack",
            )),
        }
    }

    /// As [`validate`](Self::validate), and that TCP can detect losses as configured.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate_for_tcp(&self) -> Result<(), InvalidRecovery> {
        match self.loss_detection {
            LossDetection::MissingReports { .. } => Err(InvalidRecovery(
                "missing reports are of SCTP: use scoreboard, duplicate_acks or rack",
            )),
            _ => self.validate(),
        }
    }

    /// Checks that all values are within their ranges and fit together. Endpoints call it once, through the
    /// check of their protocol, and trust the values afterwards.
    ///
    /// # Errors
    /// The first violation found.
    pub fn validate(&self) -> Result<(), InvalidRecovery> {
        let rto = &self.rto;
        let is_beyond_all = self.loss_detection.percentile().is_some_and(|percent| percent > 100);
        let is_coupled = self.sctp.cmt.is_some_and(|cmt| cmt.coupling.is_some());
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
    /// Settings of SCTP only: multihoming and the handshake. The default is RFC 9260.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct SctpConfig {
        /// The path over which data is retransmitted to a multihomed peer.
        pub retransmission_destination: RetransmissionDestination,
        /// PotentiallyFailed.Max.Retrans: after more consecutive errors than this a path is potentially
        /// failed, and gets no data while another path is active (RFC 7829 §3.2, which recommends 0). `None`
        /// disables the state: a path works until Path.Max.Retrans (RFC 9260 §8.2).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub potentially_failed_max_retrans: Option<u32>,
        /// Whether new data takes the path with the lowest tail latency, of the round trips and losses measured on each,
        /// instead of the primary one. Paths without new data are probed while a stream is thin and sends: with every
        /// hundredth packet, and once a second at most. A path that loses three packets in a row gets no new data;
        /// otherwise the data changes to a path that was better by a sixth for three seconds. With `cmt`, new data takes all
        /// paths; probes and retransmissions are as without.
        pub lowest_tail: bool,
        /// Concurrent multipath transfer: how all paths are used at once; `None` uses one path at a time.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::table_or_off"))]
        pub cmt: Option<CmtConfig>,
        /// Whether INIT and COOKIE ECHO are retransmitted after one and a half round trips, doubling up to the RTO,
        /// if the round trip time is known from this handshake or an earlier association: a lost packet then does not
        /// cost RTO.Initial. The number of retransmissions at the RTO stays the same, so the handshake is not given
        /// up sooner. If the path has become longer, some retransmissions are spurious.
        pub setup_by_rtt: bool,
    }
}

impl SctpConfig {
    /// Whether any path is chosen by what is measured on all of them.
    pub(crate) fn compares_paths(&self) -> bool {
        let destination = self.retransmission_destination;
        self.lowest_tail || destination == RetransmissionDestination::LeastCorrelated
    }
}

config! {
    const
    /// Settings of TCP only. All are off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct TcpConfig {
        /// Limited transmit: each of the first two duplicate ACKs allows a new unit to be sent beyond the window (RFC
        /// 3042 §2). It matters only for a peer without SACK: with a scoreboard, data acknowledged above a hole is no
        /// longer in flight, so that the window itself allows a new unit (RFC 6675 §5 step 3).
        pub limited_transmit: bool,
        /// Eifel detection: a recovery episode was spurious if the first acknowledgement echoes a timestamp older
        /// than the retransmission's (RFC 3522). What follows from that; `None` is off.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub eifel: Option<SpuriousResponse>,
    }
}

config! {
    const
    /// Mechanisms of SCTP only, while a stream is thin. All are off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct ThinSctpConfig {
        /// Whether DATA chunks ask the peer to acknowledge without delay (the I bit, RFC 7053).
        pub sack_immediately: bool,
        /// Whether a HEARTBEAT measures the round trip when the ACK of retransmitted data cannot; at most one per timeout.
        pub heartbeat_samples: bool,
        /// Whether each stream is thin or not by its own packets in flight, whatever other streams have in
        /// flight. Up to 31 streams get a group of their own when they are first used; all further streams
        /// share one. New data of a thin stream may exceed the window, and the pacing rate, by a packet.
        pub by_stream: bool,
    }
}

impl ThinSctpConfig {
    /// No mechanism.
    pub const OFF: Self =
        Self { sack_immediately: false, heartbeat_samples: false, by_stream: false };
}

config! {
    const
    /// Mechanisms of TCP only, while a stream is thin. Off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct ThinTcpConfig {
        /// Whether small segments are sent while data is unacknowledged, that is, whether Nagle's algorithm is off.
        pub no_delay: bool,
        /// Whether a stream is also thin with any number of packets in flight if they have half an MSS of data or
        /// less on average (Petlund 2008 §2). Timers (§3.1) and `no_delay` look at the number alone.
        pub small_segments: bool,
    }
}

impl ThinTcpConfig {
    /// No mechanism: Nagle's algorithm stays on, and the size of segments does not matter.
    pub const OFF: Self = Self { no_delay: false, small_segments: false };

    /// Nagle's algorithm off, and streams of small segments are thin.
    pub const PETLUND_2008: Self = Self { no_delay: true, small_segments: true };
}

config! {
    const
    /// The mechanisms of a sender while a stream is thin, one per field. All are off by default ([`OFF`](Self::OFF)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct ThinConfig {
        /// What makes a stream thin.
        pub test: ThinTest,
        /// M1: the lower bound of the retransmission timeout in place of RTO.Min (Petlund 2009 §5.2: 200 ms),
        /// above 0 and at most 60 s; `None` leaves RTO.Min.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::optional_duration"))]
        pub rto_min: Option<Duration>,
        /// M2: whether the retransmission timer runs from when the oldest unit in flight was last sent, so
        /// that none waits for more than one timeout (Petlund 2009 §5.2, RFC 7765).
        pub restart_by_age: bool,
        /// M3, T1: the number of timeouts over the same unit that do not double the timeout; later ones do.
        /// With `None`, every timeout doubles it (Petlund 2009 §5.3; Linux: 6).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub linear_timeouts: Option<NonZeroU8>,
        /// M4, T2: whether a unit is declared lost at the first missing report or duplicate ACK (Petlund 2009 §5.4).
        pub first_indication: bool,
        /// RDB: a packet with new data also carries copies of units in flight (Petlund 2008; Petlund 2009 §8); `None` is off.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::table_or_off"))]
        pub bundling: Option<BundlingConfig>,
        /// Whether the window is not reduced for a loss that a copy repaired, as in RDB as published: a bundled
        /// copy, a delayed one, or one that a deadline needed.
        pub loss_hiding: bool,
        /// Whether RTT samples include the ACK delay of the receiver, so that the retransmission timeout exceeds it. If most
        /// ACKs cover several packets, the sample is taken from the oldest of them, at which T3-rtx starts, not from the
        /// newest. And a duplicate report, which proves that both transmissions of a packet arrived, gives a sample of the
        /// first: Karn's algorithm forbids ambiguous samples, and this one is not. Off by default, on in `interactive`.
        pub ack_delay_samples: bool,
        /// The probe timer, which retransmits each packet that is not acknowledged in time (compare the PTO
        /// of RFC 9002 §6.2); `None` leaves losses to T3-rtx and missing reports.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::table_or_off"))]
        pub probe_timer: Option<ProbeConfig>,
        /// Redundant copies in packets of their own. Off by default.
        pub delayed_copies: DelayedCopyConfig,
        /// The budget of all redundant copies, bundled and delayed. Unlimited by default.
        pub copy_budget: CopyBudget,
        /// When messages must arrive that have no deadline of their own, and with which probability: the planner sends as
        /// many copies as that needs, within `copy_budget`, and late ones, too, unless the application gives them up. `None`
        /// by default.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::table_or_off"))]
        pub deadline: Option<Deadline>,
        /// The queueing delay, above 0 and at most 60 s, at which redundant copies stop; `None` ignores queues. With a
        /// shorter delay the budget of copies falls linearly, to zero at this delay. From this delay on, probes also
        /// double their timeout from the first unanswered one, and after each probe new data waits for the next ACK, to
        /// be sent together. A loss of 30 % of the packets stops copies as well, one of 40 % slows probes. A higher
        /// limit gives lower latency beside greedy senders, at their cost.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::optional_duration"))]
        pub queue_delay_limit: Option<Duration>,
        /// Mechanisms of SCTP only.
        pub sctp: ThinSctpConfig as with_sctp,
        /// Settings of TCP only.
        pub tcp: ThinTcpConfig as with_tcp,
    }
}

impl ThinConfig {
    /// No mechanism: a thin stream is treated as any other.
    pub const OFF: Self = Self {
        test: ThinTest::PacketsInFlight,
        rto_min: None,
        restart_by_age: false,
        linear_timeouts: None,
        first_indication: false,
        bundling: None,
        loss_hiding: false,
        ack_delay_samples: false,
        probe_timer: None,
        delayed_copies: DelayedCopyConfig::OFF,
        copy_budget: CopyBudget::UNLIMITED,
        deadline: None,
        queue_delay_limit: None,
        sctp: ThinSctpConfig::OFF,
        tcp: ThinTcpConfig::OFF,
    };

    /// M1 to M4 with the values of the papers and of Linux; and RTT samples of delayed ACKs, without which the
    /// timeout would stay below the ACK delay of the receiver.
    pub const M1_TO_M4: Self = Self {
        rto_min: Some(Duration::from_millis(200)),
        restart_by_age: true,
        linear_timeouts: NonZeroU8::new(6),
        first_indication: true,
        ack_delay_samples: true,
        ..Self::OFF
    };

    /// The mechanisms of the profile `interactive`: the probe timer for streams with up to 16 packets in
    /// flight, immediate ACKs and HEARTBEAT samples that keep its RTT samples accurate, and M1 and M2 for
    /// T3-rtx, which expires only after the probe timer.
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

    /// Adds data in flight that is bundled with new data. The budget is for one copy of all new data,
    /// and for a second one of a tenth of it, which at a loss of 5 % each way is not acknowledged within a round trip.
    pub(crate) const fn with_bundling(self) -> Self {
        let copy_budget = CopyBudget::percent(None, NonZeroU16::new(112));
        Self { bundling: Some(BundlingConfig::ALL), copy_budget, ..self }
    }

    /// Adds redundant copies: all data in flight that fits is bundled with new data, and each retransmission is sent
    /// twice. The budget is enough for a loss of 10 % each way, and for two copies of all new data.
    pub(crate) const fn redundant(self) -> Self {
        let bundling = Some(BundlingConfig::ALL);
        let copies = DelayedCopyConfig {
            of_retransmissions: Some(RetransmissionCopies::ONE),
            ..DelayedCopyConfig::OFF
        };
        let copy_budget = CopyBudget::percent(NonZeroU16::new(20), NonZeroU16::new(200));
        Self { bundling, delayed_copies: copies, copy_budget, ..self }
    }

    /// Whether all values are within their ranges.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let is_valid = |it: Duration| !it.is_zero() && it <= Duration::from_secs(60);
        [self.rto_min, self.queue_delay_limit].into_iter().flatten().all(is_valid)
            && self.probe_timer.is_none_or(|probe| probe.is_valid())
    }

    /// Whether any mechanism is on.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.rto_min.is_some()
            || self.restart_by_age
            || self.linear_timeouts.is_some()
            || self.first_indication
            || self.bundling.is_some()
            || self.sctp.sack_immediately
            || self.sctp.heartbeat_samples
            || self.tcp.no_delay
            || self.ack_delay_samples
            || self.probe_timer.is_some()
            || self.delayed_copies.is_any()
            || self.deadline.is_some()
    }
}
