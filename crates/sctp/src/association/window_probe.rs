//! Probes of a window that is closed (RFC 9260 §6.1 A).

use rexmit_core::Instant;
use rexmit_recovery::{Unit, UnitState};

use super::data_out::Outbound;
use super::{Association, Context, Timer};

/// The chunk that probes a closed window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    tsn: u64,
    user_bytes: u64,
    /// When it last left.
    sent_at: Instant,
    /// A SACK came since, and the window was still closed.
    is_refused: bool,
}

impl Probe {
    /// The chunk leaves for the first time.
    pub(super) const fn new(tsn: u64, user_bytes: u64, now: Instant) -> Self {
        Self { tsn, user_bytes, sent_at: now, is_refused: false }
    }
}

impl Outbound {
    /// Whether the window alone holds back what could be sent, with nothing outstanding whose
    /// acknowledgement could open it.
    fn is_held_back_by_window(&self) -> bool {
        self.recovery.is_empty()
            && self
                .queue
                .peek_len(self.max_fragment)
                .is_some_and(|len| len as u64 > self.peer_rwnd())
    }

    /// Whether the probe of a closed window is on its way, and the window still closed to it.
    pub(super) fn is_probing(&self) -> bool {
        self.probe.is_some_and(|probe| probe.user_bytes > self.peer_a_rwnd)
    }
}

impl Association {
    /// The probe of a closed window was answered: taken, or refused. Refused by a window that has
    /// opened since, it leaves again at once. A window update that left before the probe arrived
    /// says nothing about it: it comes sooner than a round trip, with no refusal before it.
    pub(super) fn check_probe(&mut self, cx: &mut Context<'_>) {
        let is_probing = self.out.is_probing();
        let recovery = &mut self.out.recovery;
        let Some(probe) = &mut self.out.probe else { return };
        let state = recovery.unit(probe.tsn).map(Unit::state);
        if !matches!(state, Some(UnitState::InFlight | UnitState::Lost(_))) {
            self.out.probe = None;
            return;
        }
        let path = recovery.data_path();
        let round_trip = recovery.timer(path).rtt().srtt().unwrap_or_default();
        if is_probing {
            probe.is_refused = true;
        } else if probe.is_refused || cx.now - probe.sent_at >= round_trip {
            recovery.on_probe_refused(probe.tsn, &mut cx.tracer());
            self.out.probe = None;
        }
    }

    /// Arms the timer of the window probe when the window holds back what could be sent, with
    /// nothing outstanding whose acknowledgement could open it (RFC 9260 §6.1 A).
    pub(super) fn watch_window(&mut self, cx: &Context<'_>) {
        if !self.state.may_send_data() || !self.out.is_held_back_by_window() {
            self.out.probe_is_due = false;
            self.timers.stop(Timer::WindowProbe);
        } else if !self.out.probe_is_due && !self.timers.is_armed(Timer::WindowProbe) {
            let recovery = &self.out.recovery;
            let rto = recovery.timer(recovery.data_path()).rto();
            self.timers.arm(Timer::WindowProbe, cx.now + rto);
        }
    }

    /// The probe leaves once more; returns whether the peer had answered it.
    pub(super) fn renew_probe(&mut self, now: Instant) -> bool {
        let Some(probe) = &mut self.out.probe else { return false };
        probe.sent_at = now;
        std::mem::take(&mut probe.is_refused)
    }
}
