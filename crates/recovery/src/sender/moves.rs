//! Paths that end, that begin in the place of one that ended, or that lead another way: what addresses
//! do that come and go during an association (RFC 5061).

use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};

use super::LossRecovery;
use super::path::Concurrent;
use crate::Reach;

impl<P> LossRecovery<P> {
    /// How many paths there are, those that were removed included.
    #[must_use]
    pub fn path_count(&self) -> u8 {
        self.paths.len() as u8
    }

    /// `path` is no more, and another one is there: what is in flight on it counts as lost and is sent
    /// again over others, one packet of it at once. If it was the primary path, the one that data take
    /// from now on is.
    pub fn remove_path(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        self.path_mut(path).reach = Reach::REMOVED;
        self.choose_paths();
        if self.primary == path {
            self.primary = self.data_path;
        }
        self.lose_way(path, tracer);
        let to = self.alternate_to(path);
        let p = self.path_mut(to);
        p.may_resend_now |= !p.lost.is_empty();
    }

    /// A path that is not confirmed takes the place of one that was removed.
    pub fn replace_path(&mut self, now: Instant, path: u8, pmdcs: u32) {
        let config = Arc::clone(&self.config);
        let p = self.path_mut(path);
        p.reach = Reach::UNCONFIRMED;
        p.renew(now, &config, pmdcs);
        if let Some(known) = &mut p.concurrent {
            // What left over the one before and is not acknowledged is still to leave these books.
            let (user_bytes, awaiting) = (known.user_bytes, known.awaiting);
            **known = Concurrent { user_bytes, awaiting, ..Concurrent::default() };
        }
    }

    /// `path` leads another way to the same peer from now on: what is in flight on it counts as lost,
    /// one packet of it is sent again at once, and what was measured is forgotten.
    pub fn redirect_path(&mut self, now: Instant, path: u8, pmdcs: u32, tracer: &mut Tracer<'_>) {
        let config = Arc::clone(&self.config);
        let is_confirmed = self.path(path).reach.is_confirmed();
        self.path_mut(path).reach = if is_confirmed { Reach::ACTIVE } else { Reach::UNCONFIRMED };
        self.choose_paths();
        self.lose_way(path, tracer);
        let p = self.path_mut(path);
        p.renew(now, &config, pmdcs);
        p.may_resend_now = !p.lost.is_empty();
    }

    /// The way that packets on `path` took is gone, and they with it.
    fn lose_way(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        // A fast recovery that outlived this would freeze the window.
        self.fast_recovery_exit = None;
        self.path_mut(path).set_recovery_exit(None);
        self.lose_flight(path, SendCause::Timeout, tracer);
        let p = self.path_mut(path);
        p.t3 = None;
        p.early = Instant::FAR_FUTURE;
        p.events().into_iter().for_each(crate::spurious::events::Events::clear);
        self.settle_resending();
        self.watch_thinness(tracer);
    }
}
