//! Retransmissions that were not needed: how they are told, and what is done then
//! (Barletta, Righetti, Veiga: RR-SCTP, §4).
//!
//! A *retransmission event* is an expiry of the retransmission timer, or a fast retransmit with all
//! that follow until fast recovery ends. Reordering and sudden changes of the round-trip time make
//! events in which nothing was lost: *spurious* ones. Three parts deal with them, each with a switch
//! of its own, on the sender's side alone and for each path by itself:
//!
//! | part | switch | where |
//! |---|---|---|
//! | detection: was the latest event spurious? | `spurious.{duplicates, eifel, f_rto}` | here, `sender::spurious`, `sender::f_rto` |
//! | undo: the window goes back to where it was | `undo` | `undo`, `sender::undo` |
//! | evidence: how much reordering to bear before a loss is told | `reordering` | `loss::adaptive`, `loss::rack`, `sender::{adaptive, rack}` |
//!
//! # Detection by duplicate reports
//! [`log`] is the list of what was sent again, each copy with the event that it left in. A duplicate
//! report clears a copy: one sent on purpose first, then one of an older event, last one of the
//! latest. When none of the latest event is left, and nothing waits to be sent again, every
//! original had arrived. A new event forgets the older ones' copies that the cumulative point has
//! passed: such units will not leave again, so they can say nothing about it. (They stay in the log
//! for the count of needless retransmissions, up to [`LOG_CAPACITY`].)
//!
//! If an event begins while the one before is open, and nothing of that was forgotten, both are kept
//! in mind: when every copy of both is reported, the window goes back to before the first of them
//! (a delay that outlasts several timeouts); when only those of the latest are, to before that one.
//!
//! ## Copies that nobody judged lost
//! What the sender copies on purpose (RDB, units bundled with a retransmission, a probe of a closed
//! window) is in the log, too, without an event: its report marks no event and proves no
//! duplication.
//!
//! ## A network that duplicates
//! A report that nothing explains means that the network makes copies (RFC 3708 §3 A.4), and then a
//! report for a unit sent again need not mean that its original had arrived. RFC 3708 stops
//! believing for good; here the open events are never proven by duplicates, nor is any that begins
//! within the next [`DISTRUST_UNITS`] units: where one packet in that many is duplicated, or more,
//! doubt never ends, and where fewer are, the chance that a retransmission is among them is less
//! than that.
//!
//! ## Several paths
//! An event is of the path that its units left over, wherever they leave again: what a second path
//! carries for the first proves, and undoes, the first one's. With SFR a path has a recovery of its own,
//! missing reports are those of its own later units, and so is the threshold that follows from them.
//! F-RTO examines a timeout only where the same path takes what is sent again.
//!
//! # The other detectors
//! [`eifel`] compares the timestamp that an acknowledgement echoes with that of the first
//! retransmission (RFC 3522); [`f_rto`] watches what is acknowledged after a timeout (RFC 5682).
//! Both see it before everything was sent again, so that what still waits for that goes back to the
//! units in flight. Whatever tells it first decides an event; it is decided once.

pub(crate) mod eifel;
pub(crate) mod events;
pub(crate) mod f_rto;
mod karn;
pub(crate) mod log;

use serde::{Deserialize, Serialize};

pub use log::LOG_CAPACITY;

/// After a duplicate report that nothing explains, events that begin within so many units are not
/// proven by duplicate reports.
pub const DISTRUST_UNITS: u64 = 1000;

/// What tells that a retransmission event was spurious. The default is none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpuriousConfig {
    /// Every copy is reported as a duplicate: the duplicate TSNs of a SACK, DSACK in TCP (RFC 3708;
    /// RR-SCTP §4.1).
    pub duplicates: bool,
    /// The first acknowledgement echoes a timestamp older than the retransmission's: TCP with
    /// timestamps (RFC 3522).
    pub eifel: bool,
    /// After a timeout new data leave before more is sent again, and what had left before is
    /// acknowledged (RFC 5682).
    pub f_rto: bool,
}

impl SpuriousConfig {
    /// No detector.
    pub const OFF: Self = Self { duplicates: false, eifel: false, f_rto: false };

    /// Whether any detector is on.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.duplicates || self.eifel || self.f_rto
    }
}
