//! What serves one of the two protocols only; the other ignores it.

use rexmit_core::config;
use serde::{Deserialize, Serialize};

use crate::{CmtConfig, RetransmissionDestination};

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
    }
}

impl ThinSctpConfig {
    /// Neither.
    pub const OFF: Self = Self { sack_immediately: false, heartbeat_samples: false };
}

config! {
    const
    /// Of TCP while a stream is thin.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct ThinTcpConfig {
        /// Small segments do not wait for what is unacknowledged (Nagle's algorithm off).
        pub no_delay: bool,
    }
}

impl ThinTcpConfig {
    /// Nagle's algorithm as it is.
    pub const OFF: Self = Self { no_delay: false };
}
