//! Input and output of the detectors.

use crate::outstanding::{Outstanding, Unit};

/// The state of all units after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRange {
    pub(crate) cumulative: u64,
    pub(crate) has_advanced: bool,
    /// The highest unit that was acknowledged before.
    pub(crate) highest_before: u64,
    pub(crate) highest_in_blocks: u64,
    pub(crate) highest_newly_acked: Option<u64>,
    pub(crate) lowest_newly_acked: Option<u64>,
    /// DAC: how often units are reported that were sent before all that is newly acknowledged.
    pub(crate) reports: u16,
}

/// Units that are lost, and whether a scoreboard's recovery begins.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) lost: Vec<u64>,
    pub(crate) begins_recovery: bool,
}

pub(super) fn may_be_fast_retransmitted<P>(outstanding: &Outstanding<P>, unit: u64) -> bool {
    outstanding.unit(unit).is_some_and(Unit::may_be_fast_retransmitted)
}
