//! `SCTP_AUTOCLOSE` (RFC 6458 §8.1.8): associations of one-to-many sockets that end when no data was sent or received
//! for a time.

use std::collections::BTreeSet;

use rexmit_core::Instant;

/// When associations are looked at: not before they may have been idle for their time.
#[derive(Debug, Default)]
pub(super) struct Autoclose(BTreeSet<(Instant, u32)>);

impl Autoclose {
    /// The next time at which an association is to be looked at.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Has an association looked at, at this time.
    pub(super) fn watch(&mut self, at: Instant, association: u32) {
        self.0.insert((at, association));
    }

    /// An association whose time to be looked at has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (at, _) = self.0.first()?;
        if *at > now {
            return None;
        }
        self.0.pop_first().map(|(_, association)| association)
    }
}
