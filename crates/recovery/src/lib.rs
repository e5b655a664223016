//! Loss recovery over a ledger of sent packets.
//!
//! This crate decides what is lost and when to send it again; it knows no wire format, no socket
//! and no clock. A protocol numbers what it sends in *units* (SCTP: a DATA chunk, numbered by its
//! unwrapped TSN; TCP: a segment's worth of the stream, numbered in the order of first sending) and
//! asks [`LossRecovery`] what may leave; it tells it what was acknowledged and when the timer ran
//! out.
//!
//! | file | idea |
//! |---|---|
//! | `rtt`, `rto_timer` | round-trip time and the timeout made from it |
//! | `ledger` | every packet sent: when, where, with what, and what became of it |
//! | `loss::threshold` | missing reports and the threshold that turns them into a loss |
//! | `loss::scoreboard` | what lies below enough acknowledged units is lost (RFC 6675) |
//! | `loss::adaptive` | a threshold that follows the reordering of the path (RR-SCTP) |
//! | `loss::rack` | the reordering window of RACK: loss by time (RFC 8985) |
//! | `loss::duplicates` | duplicate acknowledgements of a peer without SACK (RFC 6582) |
//! | `loss::early` | Early Fast Retransmit of FreeBSD |
//! | `recovery_timer` | how long the answer to a packet of a thin stream is waited for |
//! | `redundancy` | copies sent on purpose with new data, and the losses that they repair |
//! | `spaced_copies` | copies sent on purpose in packets of their own |
//! | `budget` | what copies on purpose may cost |
//! | `queueing` | how much a queue on the path adds to the time that answers take |
//! | `thin` | whether a stream is thin, and what is done while it is |
//! | `congestion` | the window of a path: what its algorithms share |
//! | `congestion::{rfc9260, newreno, cubic}` | one algorithm each |
//! | `destination` | which path works, and which of several data take |
//! | `spurious` | retransmission events in which nothing was lost: what tells them |
//! | `undo` | what is restored after one |
//! | `sender` | the three entry points that put these together: sent, acknowledged, timed out |
//! | `config` | the mechanisms as values, and the named profiles |

mod budget;
mod config;
mod congestion;
mod destination;
mod ledger;
mod loss;
mod queueing;
mod recovery_timer;
mod redundancy;
mod rto_timer;
mod rtt;
mod sender;
mod spaced_copies;
mod spurious;
mod statistics;
mod thin;
mod undo;

pub use budget::CopyBudget;
pub use config::{Field, InvalidRecovery, PROFILES, RecoveryConfig, RtoConfig, TCP_PROFILES};
pub use congestion::{Acked, CongestionControl, CongestionWindow, Coupling, TimedOut};
pub use destination::{
    CmtConfig, FailureLimits, PathState, Reach, RetransmissionDestination, TIMEOUT_MEMORY,
};
pub use ledger::{EndedUnit, Fate, Flight, Ledger, PacketNumber, SentPacket};
pub use loss::threshold::MissingReports;
pub use loss::{LossDetection, Reordering};
pub use recovery_timer::RecoveryTimer;
pub use rto_timer::{RtoTimer, TimerRestart};
pub use rtt::RttEstimator;
pub use sender::{
    AckError, AckOutcome, BundleRoom, GroupLimit, LossRecovery, MAX_GROUPS, TimeoutKind, Unit,
    UnitState,
};
pub use spaced_copies::SpacedCopies;
pub use spurious::{DISTRUST_UNITS, LOG_CAPACITY, SpuriousConfig};
pub use statistics::{ByCause, PathCounters, RecoveryStatistics, ReorderingState, SpuriousEvents};
pub use thin::{ThinConfig, ThinInputs, ThinTest, Thinness};
