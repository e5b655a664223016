//! When T3-rtx expires: a whole timeout after it was started, or what M1 and M2 make of it while the
//! stream is thin.
//!
//! A running timer keeps both deadlines, and which one counts is decided when it is looked at: a
//! stream that grows thick leaves the mechanisms at once.

use std::time::Duration;

use rexmit_core::Instant;

use super::{LossRecovery, UnitState};

/// A running T3-rtx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct T3 {
    /// When it was started last.
    started_at: Instant,
    /// When it expires.
    pub(super) standard: Instant,
    /// When it expires while the stream of the earliest unit outstanding is thin.
    thin: Instant,
}

impl T3 {
    /// When it expires, if that is the same thin or thick.
    #[inline]
    pub(super) fn only(&self) -> Option<Instant> {
        (self.standard == self.thin).then_some(self.standard)
    }
}

impl<P> LossRecovery<P> {
    /// The timeout of `path` as it applies now: that of its timer, or a shorter one while the stream
    /// of the earliest unit outstanding is thin (Petlund 2009 §5.2).
    #[must_use]
    pub fn rto(&self, path: u8) -> Duration {
        let group = self.group_of_earliest(path);
        let timer = &self.path(path).timer;
        match self.groups.of(group).thin.rto_min {
            Some(min) if self.is_thin(group) => timer.rto_within(min, &self.config.rto),
            _ => timer.rto(),
        }
    }

    /// When T3-rtx of `path` expires, as things are now.
    pub(super) fn t3_deadline(&self, path: u8) -> Option<Instant> {
        let t3 = self.path(path).t3?;
        let is_thin = t3.only().is_none() && self.is_thin(self.group_of_earliest(path));
        Some(if is_thin { t3.thin } else { t3.standard })
    }

    /// Starts T3-rtx of `path` anew.
    pub(super) fn arm_t3(&mut self, now: Instant, path: u8) {
        let standard = now + self.path(path).timer.rto();
        let thin = self.thin_deadline(now, path).unwrap_or(standard);
        self.path_mut(path).t3 = Some(T3 { started_at: now, standard, thin });
    }

    /// The mechanisms have changed: what runs expires by them.
    pub(super) fn renew_thin_deadlines(&mut self) {
        for path in 0..self.paths.len() as u8 {
            if let Some(t3) = self.path(path).t3 {
                let thin = self.thin_deadline(t3.started_at, path).unwrap_or(t3.standard);
                self.path_mut(path).t3 = Some(T3 { thin, ..t3 });
            }
        }
    }

    /// When a timer started at `start` expires while thin, if M1 or M2 is on.
    #[inline]
    fn thin_deadline(&self, start: Instant, path: u8) -> Option<Instant> {
        let thin = &self.groups.of(self.group_of_earliest(path)).thin;
        if thin.rto_min.is_none() && !thin.restart_by_age {
            return None;
        }
        let config = &self.config.rto;
        let rto = self.path(path).timer.rto_within(thin.rto_min.unwrap_or(config.min), config);
        // The recovery timer knows the age of each packet; this one waits until it has failed.
        if let Some(least) = self.patience_of_t3(path) {
            return Some(start + rto.max(least));
        }
        let oldest = self.oldest_in_flight(path).filter(|_| thin.restart_by_age);
        Some(oldest.unwrap_or(start) + rto)
    }

    /// When the oldest copy in flight on `path` left. Of a packet whose end is known, so that the
    /// ledger may have forgotten it, only the earliest unit is looked for.
    fn oldest_in_flight(&self, path: u8) -> Option<Instant> {
        let oldest = self.ledger.oldest_in_flight(path).map(|packet| packet.sent_at);
        let earliest = self
            .unit(self.path(path).earliest)
            .filter(|unit| unit.path == path && unit.state == UnitState::InFlight)
            .and_then(|unit| self.ledger.packet(unit.packet))
            .map(|packet| packet.sent_at);
        match (oldest, earliest) {
            (Some(oldest), Some(earliest)) => Some(oldest.min(earliest)),
            (oldest, earliest) => oldest.or(earliest),
        }
    }
}
