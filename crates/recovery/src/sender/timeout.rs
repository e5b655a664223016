//! The retransmission timer T3-rtx (RFC 9260 §6.3.2, §6.3.3; RFC 6298 §5).

use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::{LossRecovery, UnitState};
use crate::TimedOut;
use crate::spurious::events::Events;
use crate::spurious::f_rto::FRto;

/// What an expiry of T3-rtx means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutKind {
    /// Something was lost.
    Loss,
    /// The peer's window is closed and the probe of it was not taken: no sign of congestion
    /// (RFC 9260 §6.1 A).
    WindowProbe,
}

impl<P> LossRecovery<P> {
    /// When the earliest T3-rtx, or timer of Early Fast Retransmit, of RACK or of thin streams, expires.
    #[must_use]
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        let mut next = Instant::FAR_FUTURE;
        for (path, index) in self.paths.iter().zip(0..) {
            next = next.min(path.early);
            if let Some(watch) = &path.watch {
                next = next.min(watch.deadline);
            }
            if let Some(t3) = &path.t3 {
                let is_standard = t3.only().is_some() || self.is_surely_thick();
                let expires = if is_standard { Some(t3.standard) } else { self.t3_deadline(index) };
                next = next.min(expires.unwrap_or(next));
            }
        }
        (next < Instant::FAR_FUTURE).then_some(next)
    }

    /// The path whose T3-rtx is due at `now`, if one is.
    #[must_use]
    pub fn due_path(&self, now: Instant) -> Option<u8> {
        (0..self.paths.len() as u8).find(|&path| self.t3_deadline(path).is_some_and(|at| at <= now))
    }

    /// Starts T3-rtx of `path` though no unit left over it (a FORWARD-TSN did).
    pub fn start_timer(&mut self, now: Instant, path: u8) {
        if self.path(path).t3.is_none() {
            self.arm_t3(now, path);
        }
    }

    /// Stops T3-rtx of `path`.
    pub fn stop_timer(&mut self, path: u8) {
        self.path_mut(path).t3 = None;
    }

    /// T3-rtx of `path` expired: back off, collapse the window, and judge everything in flight on
    /// the path lost (E1, E2; E3 follows when the packet is built).
    ///
    /// Returns whether it backed off. A linear timeout did not, and is no sign of a dead peer by
    /// itself: if it counted as one, a thin stream would be given up in a fraction of the time.
    pub fn on_timeout(&mut self, path: u8, kind: TimeoutKind, tracer: &mut Tracer<'_>) -> bool {
        let config = Arc::clone(&self.config);
        self.statistics.timeouts += 1;
        // A fast recovery that outlived the timeout would freeze the window.
        self.fast_recovery_exit = None;
        // What duplicates tell to have left the network is not in flight, though it is outstanding.
        let flight_size = self.outstanding_bytes.saturating_sub(self.duplicates.departed());
        self.duplicates.clear();
        self.beyond_window = 0;
        let cause = match kind {
            TimeoutKind::Loss => SendCause::Timeout,
            TimeoutKind::WindowProbe => SendCause::WindowProbe,
        };
        if kind == TimeoutKind::Loss {
            self.examine_timeout(path, tracer);
            self.recover = Some(self.next_unit() - 1);
        }
        let is_linear = kind == TimeoutKind::Loss && self.takes_linear_timeout(path);
        self.remember_timeout(path);
        self.couple_windows();
        let p = self.path_mut(path);
        if let Some(known) = &mut p.concurrent {
            known.counters.timeouts += 1;
        }
        p.set_recovery_exit(None);
        p.t3 = None;
        if !is_linear {
            p.timer.on_timeout(&config.rto);
        }
        if kind == TimeoutKind::Loss {
            let is_repeated = std::mem::replace(&mut p.timed_out, p.earliest) == p.earliest;
            p.window.on_timeout(TimedOut { flight_size, is_repeated });
            p.is_after_timeout = config.single_packet_after_timeout;
        }
        let rto = self.rto(path);
        tracer.emit(|| TraceEvent::RetransmissionTimeout { path, rto });
        self.lose_flight(path, cause, tracer);
        if !self.path(path).is_awaiting() {
            self.path_mut(path).events().into_iter().for_each(Events::clear);
        } else if kind == TimeoutKind::Loss {
            tracer.emit(|| TraceEvent::RetransmissionEvent { path, kind: cause });
        }
        self.leave_elsewhere(path);
        self.trace_window(path, tracer);
        self.arm_early(path);
        self.renew_overdue(path);
        self.watch_thinness(tracer);
        !is_linear
    }

    /// Before the timeout changes anything: whether it could have been spared, and what to go back to
    /// if it proves spurious.
    fn examine_timeout(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let p = self.path(path);
        let is_repeated = p.timed_out == p.earliest;
        self.learn_from_timeout(path, tracer);
        self.begin_event(path, SendCause::Timeout);
        self.begin_f_rto(path, is_repeated);
    }

    /// Whether this timeout does not double the next one: while thin, up to a bound for the same
    /// unit, so that a dead path is not hammered (Petlund 2009 §5.3).
    fn takes_linear_timeout(&mut self, path: u8) -> bool {
        let group = self.group_of_earliest(path);
        let bound = self.groups.of(group).thin.linear_timeouts;
        if bound == 0 {
            return false;
        }
        let is_thin = self.is_thin(group);
        let p = self.path_mut(path);
        if p.timed_out != p.earliest {
            p.linear_timeouts = 0;
        }
        let is_linear = is_thin && p.linear_timeouts < bound;
        p.linear_timeouts += u8::from(is_linear);
        is_linear
    }

    /// The peer's window is open again: the probes of it have doubled a timeout that is not theirs
    /// alone (RFC 9293 §3.8.6.1 has them back off by themselves).
    pub fn on_window_opened(&mut self, path: u8) {
        self.forget_backoff(path);
    }

    /// What was last waited for was not waited for as long as the timeout says, so that this is not to
    /// double: the backoff of `path` is over.
    pub fn forget_backoff(&mut self, path: u8) {
        let config = Arc::clone(&self.config);
        self.path_mut(path).timer.forget_backoff(&config.rto);
    }

    /// Something other than a unit was not answered in time (INIT, HEARTBEAT, …): back off.
    pub fn back_off(&mut self, path: u8) {
        let config = Arc::clone(&self.config);
        self.path_mut(path).timer.on_timeout(&config.rto);
    }

    /// The setup begins again: what left with it over `path` has to leave again.
    pub fn on_setup_again(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        self.lose_flight(path, SendCause::Timeout, tracer);
        self.path_mut(path).set_f_rto(FRto::Off); // It left with the setup, and so it leaves again.
        self.stop_timer(path);
    }

    /// `unit` has just left though the peer's window is closed: that it is not acknowledged tells
    /// nothing, so that it is left to T3-rtx ([`TimeoutKind::WindowProbe`]).
    pub fn on_probe_sent(&mut self, unit: u64) {
        if let Some(unit) = self.unit_mut(unit) {
            unit.is_probe = true;
        }
    }

    /// Judges `unit` lost because the window that refused it is open again.
    pub fn on_probe_refused(&mut self, unit: u64, tracer: &mut Tracer<'_>) {
        let Some(u) = self.unit_mut(unit) else { return };
        u.is_probe = false;
        if u.state == UnitState::InFlight {
            self.mark_lost(unit, SendCause::WindowProbe, tracer);
            let path = self.unit(unit).map_or(0, |u| u.path);
            self.path_mut(path).may_resend_now = true;
        }
    }

    /// Judges everything in flight on `path` lost. Passes over what is not cumulatively
    /// acknowledged once.
    pub(super) fn lose_flight(&mut self, path: u8, cause: SendCause, tracer: &mut Tracer<'_>) {
        for unit in self.first..self.next_unit() {
            let is_in_flight =
                |u: &super::Unit<P>| u.path == path && u.state == UnitState::InFlight;
            if self.unit(unit).is_some_and(is_in_flight) {
                self.mark_lost(unit, cause, tracer);
            }
        }
        self.ledger.forget_ended();
    }
}
