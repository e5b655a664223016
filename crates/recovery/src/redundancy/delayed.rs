//! Delayed copies: redundant copies in packets of their own, sent some time after the original or its retransmission.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use rexmit_core::Instant;

use crate::outstanding::PacketNumber;

/// At most this many copies are planned per path.
const MAX_PLANNED: usize = 64;

/// A copy to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) at: Instant,
    pub(super) unit: u64,
    /// The packet that contained the unit: no copy is needed if the unit was sent in another packet since.
    pub(super) packet: PacketNumber,
    /// Copies that are to follow, and the time between two.
    pub(super) left: u8,
    pub(super) spacing: Duration,
    /// How much earlier it may be sent beside another copy.
    pub(super) early: Duration,
}

/// The delayed copies of a path.
#[derive(Debug, Default)]
pub(super) struct DelayedCopies {
    /// Planned copies, in order of time.
    planned: VecDeque<Planned>,
    /// Copies that may be sent now.
    pub(super) ready: VecDeque<Planned>,
    /// When the last new units are to be copied if no new unit follows, and these units.
    last: Option<(Instant, Range<u64>)>,
}

impl DelayedCopies {
    pub(super) fn plan(&mut self, planned: Planned) {
        if self.planned.len() < MAX_PLANNED {
            let place = self.planned.partition_point(|known| known.at <= planned.at);
            self.planned.insert(place, planned);
        }
    }

    /// Called when new `units` were sent, to be copied at `at` (if at all) unless new data follows.
    pub(super) fn plan_last(&mut self, at: Option<Instant>, units: Range<u64>) {
        self.last = at.map(|at| (at, units));
    }

    pub(super) const fn has_last(&self) -> bool {
        self.last.is_some()
    }

    /// When the next copy is due; far in the future if none is planned.
    pub(super) fn next(&self) -> Instant {
        let planned = self.planned.front().map_or(Instant::FAR_FUTURE, |planned| planned.at);
        self.last.as_ref().map_or(planned, |(at, _)| planned.min(*at))
    }

    /// The last new units, if their copies are due.
    pub(super) fn take_last(&mut self, now: Instant) -> Option<Range<u64>> {
        self.last.take_if(|(at, _)| *at <= now).map(|(_, units)| units)
    }

    /// The next planned copy that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Planned> {
        let is_due = self.planned.front().is_some_and(|planned| planned.at <= now);
        if is_due { self.planned.pop_front() } else { None }
    }

    /// A planned copy that may be sent beside others now.
    pub(super) fn take_early(&mut self, now: Instant) -> Option<Planned> {
        let is_early = |planned: &Planned| planned.at - planned.early <= now;
        self.planned.remove(self.planned.iter().position(is_early)?)
    }
}
