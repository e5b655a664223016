//! `SCTP_AUTOCLOSE` (RFC 6458 §8.1.8): associations of one-to-many sockets that end when no data was sent or received
//! for a time.

use std::collections::BTreeSet;

use rexmit_core::Instant;

use super::Engine;

/// When associations are looked at: not before they may have been idle for their time.
#[derive(Debug, Default)]
pub(super) struct Autoclose(BTreeSet<(Instant, u32)>);

impl Autoclose {
    /// The next time at which an association is to be looked at.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (at, _) = self.0.first()?;
        if *at > now {
            return None;
        }
        self.0.pop_first().map(|(_, association)| association)
    }
}

impl Engine {
    /// Begins to watch an association that was established, if its socket asks for it.
    pub(super) fn begin_autoclose(&mut self, association: u32) {
        let now = self.now;
        let Some(known) = self.associations.get_mut(&association) else { return };
        let socket = known.socket.and_then(|number| self.sockets.get(&number));
        let Some(socket) = socket.filter(|socket| !socket.is_one_to_one()) else { return };
        known.autoclose = socket.settings.autoclose();
        known.last_used = now;
        if let Some(time) = known.autoclose {
            self.autoclose.0.insert((now + time, association));
        }
    }

    /// Ends associations that were idle for their time.
    pub(super) fn close_idle(&mut self) {
        while let Some(association) = self.autoclose.take_due(self.now) {
            let Some(known) = self.associations.get(&association) else { continue };
            let Some(time) = known.autoclose else { continue };
            let idle_at = known.last_used + time;
            if idle_at > self.now {
                self.autoclose.0.insert((idle_at, association));
            } else {
                self.shut_down(association);
            }
        }
    }
}
