//! Probes of a window that is closed (RFC 9260 §6.1 A).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;
use rexmit_recovery::{Unit, UnitState};

use super::super::context::Recovery;
use super::super::timers::Deadline;

/// The time of the next probe of a closed window, and the chunk that was sent as one.
#[derive(Debug)]
pub(super) struct WindowProbe {
    /// Whether a chunk that does not fit the window may be sent now.
    is_due: bool,
    timer: Deadline,
    outstanding: Option<Outstanding>,
}

/// The chunk that probes a closed window.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    tsn: u64,
    user_bytes: u64,
    /// When the probe was last sent.
    sent_at: Instant,
    /// Whether a SACK arrived since, with the window still closed.
    is_refused: bool,
}

impl WindowProbe {
    pub(super) const fn new() -> Self {
        Self { is_due: false, timer: Deadline::OFF, outstanding: None }
    }

    pub(super) const fn timer(&self) -> Deadline {
        self.timer
    }

    /// Called when the timer expired: the next probe is due.
    pub(super) const fn on_timer(&mut self) {
        self.timer = Deadline::OFF;
        self.is_due = true;
    }

    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Arms the timer if the window prevents sending (`is_held_back`) and no data is outstanding whose SACK could open
    /// it (RFC 9260 §6.1 A).
    pub(super) fn watch(&mut self, now: Instant, is_held_back: bool, rto: Duration) {
        if !is_held_back {
            self.is_due = false;
            self.timer = Deadline::OFF;
        } else if !self.is_due && !self.timer.is_armed() {
            self.timer = Deadline::at(now + rto);
        }
    }

    /// Called when the chunk `tsn` is sent for the first time as a probe.
    pub(super) const fn on_sent(&mut self, now: Instant, tsn: u64, user_bytes: u64) {
        self.is_due = false;
        self.outstanding = Some(Outstanding { tsn, user_bytes, sent_at: now, is_refused: false });
    }

    /// Whether the probe is in flight, and a window of `a_rwnd` bytes is still closed to it.
    pub(super) fn is_outstanding(&self, a_rwnd: u64) -> bool {
        self.outstanding.is_some_and(|probe| probe.user_bytes > a_rwnd)
    }

    /// Called when the probe is retransmitted; returns whether the peer had answered it.
    pub(super) fn on_repeated(&mut self, now: Instant) -> bool {
        let Some(probe) = &mut self.outstanding else { return false };
        probe.sent_at = now;
        std::mem::take(&mut probe.is_refused)
    }

    pub(super) const fn forget(&mut self) {
        self.outstanding = None;
    }

    /// Called for a SACK that advertises `a_rwnd` bytes, which accepts or refuses the probe. If the probe was refused
    /// and the window is open now, it is retransmitted at once. A SACK that arrives less than a round trip after the
    /// probe, without an earlier refusal, was sent before the probe arrived: it is a window update and no answer.
    pub(super) fn on_sack(
        &mut self,
        now: Instant,
        a_rwnd: u64,
        recovery: &mut Recovery,
        tracer: &mut Tracer<'_>,
    ) {
        let is_closed = self.is_outstanding(a_rwnd);
        let Some(probe) = &mut self.outstanding else { return };
        let state = recovery.outstanding().unit(probe.tsn).map(Unit::state);
        if !matches!(state, Some(UnitState::InFlight | UnitState::Lost(_))) {
            self.outstanding = None;
            return;
        }
        let path = recovery.paths().data_path();
        let round_trip = recovery.paths()[path].timer().rtt().srtt().unwrap_or_default();
        if is_closed {
            probe.is_refused = true;
        } else if probe.is_refused || now - probe.sent_at >= round_trip {
            recovery.on_probe_refused(probe.tsn, tracer);
            self.outstanding = None;
        }
    }
}
