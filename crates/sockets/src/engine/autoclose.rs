//! `SCTP_AUTOCLOSE` (RFC 6458 §8.1.8): ends associations of one-to-many sockets without data for a configured time.

use std::collections::BTreeSet;

use rexmit_core::Instant;

/// When to check associations: the earliest time at which each may have been idle for its limit.
#[derive(Debug, Default)]
pub(super) struct Autoclose(BTreeSet<(Instant, u32)>);

impl Autoclose {
    /// The next time at which an association is checked.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Schedules a check of an association at this time.
    pub(super) fn watch(&mut self, at: Instant, association: u32) {
        self.0.insert((at, association));
    }

    /// Returns an association that is to be checked now.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (at, _) = self.0.first()?;
        if *at > now {
            return None;
        }
        self.0.pop_first().map(|(_, association)| association)
    }
}
