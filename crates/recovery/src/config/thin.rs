//! Loss recovery while a stream is thin.

use std::num::NonZeroU32;
use std::time::Duration;

use rexmit_core::{config, words};
use serde::{Deserialize, Serialize};

use super::{ThinSctpConfig, ThinTcpConfig};
use crate::{CopyBudget, DelayedCopyConfig, ProbeConfig, ThinTest};

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
        sctp: ThinSctpConfig { sack_immediately: true, heartbeat_samples: true },
        tcp: ThinTcpConfig { no_delay: true },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_no_mechanism() {
        assert_eq!(ThinConfig::default(), ThinConfig::OFF);
        assert!(!ThinConfig::OFF.is_any() && ThinConfig::M1_TO_M4.is_any());
    }

    #[test]
    fn a_queue_of_more_than_a_minute_is_refused() {
        let yielding = |seconds| ThinConfig {
            queue_delay_limit: Some(Duration::from_secs(seconds)),
            ..ThinConfig::INTERACTIVE
        };
        assert!(yielding(60).is_valid() && !yielding(61).is_valid());
    }
}
