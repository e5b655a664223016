//! Loss recovery over the packets that were sent.
//!
//! This crate decides which data is lost and when it is retransmitted; it knows no wire format, no socket and no clock. A
//! protocol numbers what it sends in *units* (SCTP: a DATA chunk, numbered by its unwrapped TSN; TCP: a segment's worth of the
//! stream, numbered in the order of first sending). It asks [`LossRecovery`] what goes into the next packet, and hands it
//! acknowledgements and time. The crate `rexmit-congestion` has the windows of paths, and `rexmit-deadline` plans the copies of
//! data with a deadline. With the feature `serde`, the crate `serde` can read and write configurations, and write statistics.
//!
//! | module | owns |
//! |---|---|
//! | `recovery` | [`LossRecovery`]: the steps of processing an ACK, a timer expiry and a packet |
//! | `outstanding` | every unit and packet that is outstanding, and their state |
//! | `paths` | each path's window, timer and reachability; which one data takes |
//! | `fast_recovery` | the current fast recovery |
//! | `loss` | loss detection: missing reports, scoreboard, duplicate acknowledgements, RACK |
//! | `probe` | the probe timer of thin streams |
//! | `redundancy` | redundant copies, bundled or delayed, and their budget |
//! | `spurious` | detection of spurious retransmissions, and undo |
//! | `thin` | whether a stream is thin, and what is done while it is |
//! | `state` | the state that all mechanisms read |
//! | `config` | the mechanisms as values, and the named profiles |

mod config;
mod fast_recovery;
mod loss;
mod outstanding;
mod paths;
mod probe;
mod recovery;
mod redundancy;
mod spurious;
mod state;
mod statistics;
mod thin;

use rexmit_core::trace::SendCause;

pub use config::{
    BundlingConfig, CmtConfig, CopyBudget, Coupling, DelayedCopyConfig, FIELDS, InvalidRecovery,
    LossDetection, PROFILES, ProbeConfig, RecoveryConfig, Reordering, RetransmissionCopies,
    RetransmissionDestination, SctpConfig, SpuriousConfig, SpuriousResponse, TCP_PROFILES,
    TcpConfig, ThinConfig, ThinSctpConfig, ThinTcpConfig, ThinTest,
};
pub use outstanding::{Flight, LOG_CAPACITY, NewUnit, Outstanding, Unit, UnitState};
pub use paths::{Path, PathState, Paths, Reach};
pub use probe::{Share, Unanswered};
pub use recovery::{
    Abandoned, Ack, AckError, AckOutcome, CongestionEcho, LossRecovery, Next, OpenPacket,
    PathChange, PathEvent, PathFigures, RttSource, SetupEvent, Skipped, T3Event, Timeout,
    TimeoutKind, Written,
};
pub use redundancy::{BundleRoom, SharedSpending};
pub use rexmit_congestion::{
    CongestionControl, CongestionWindow, Echo, RtoConfig, RtoTimer, RttEstimator, RttSample,
    TimerRestart,
};
pub use rexmit_deadline::{Deadline, Due};
pub use state::PeerWindow;
pub use statistics::{ByCause, PathCounters, RecoveryStatistics, ReorderingState, SpuriousEvents};
pub use thin::{GroupLimit, MAX_GROUPS, Thinness};

/// The part of this crate that `rexmit-sctp` and `rexmit-tcp` export again: configurations, statistics and
/// the types in them. The rest is for implementations of protocols.
pub mod public {
    pub use crate::{
        BundlingConfig, ByCause, CmtConfig, CongestionControl, CopyBudget, Coupling, Deadline,
        DelayedCopyConfig, FIELDS, InvalidRecovery, LossDetection, MAX_GROUPS, PROFILES,
        PathCounters, PathState, ProbeConfig, RecoveryConfig, RecoveryStatistics, Reordering,
        ReorderingState, RetransmissionCopies, RetransmissionDestination, RtoConfig, RttSample,
        SctpConfig, SpuriousConfig, SpuriousEvents, SpuriousResponse, TCP_PROFILES, TcpConfig,
        ThinConfig, ThinSctpConfig, ThinTcpConfig, ThinTest, Thinness, TimerRestart,
    };
}
