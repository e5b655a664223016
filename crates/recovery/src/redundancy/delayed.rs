//! Delayed copies: redundant copies in packets of their own, sent some time after the original or its retransmission.

use std::collections::VecDeque;
use std::ops::Range;

use rexmit_core::Instant;
use rexmit_deadline::Copies;

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
    /// Copies that are to follow, at which distance, and how much earlier each of them and this one may be sent beside another copy.
    pub(super) left: Copies,
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

    /// The next planned copy that is due, or that may be sent beside one that is ready.
    pub(super) fn take_next(&mut self, now: Instant) -> Option<Planned> {
        let has_ready = !self.ready.is_empty();
        let is_next = |it: &Planned| it.at <= now || (has_ready && it.at - it.left.early <= now);
        self.planned.remove(self.planned.iter().position(is_next)?)
    }
}
