//! Probing a closed window (RFC 9293 §3.8.6.1) and what is held back against silly windows
//! (§3.8.6.2.1).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_recovery::{TimeoutKind, UnitState};

use super::outbound::{Outbound, PATH, Probe};
use super::{Connection, Context, Timer};

/// The override timeout of RFC 9293 §3.8.6.2.1 (0.1 to 1 s): how long a small window that is open
/// may hold back what is pushed.
const OVERRIDE: Duration = Duration::from_millis(500);

impl Connection {
    /// Arms the timer of the probe when the window alone holds back what could be sent, with
    /// nothing outstanding whose acknowledgement could open it.
    pub(super) fn watch_window(&mut self, cx: &Context<'_>) {
        let nagles = self.nagles();
        let out = &mut self.out;
        let is_held_back = out.recovery.is_empty()
            && self.state.may_send_data()
            && out.has_unsent()
            && out.next_len(nagles, out.segment_bytes).is_none();
        if !is_held_back {
            out.probe_is_due = false;
            self.timers.stop(Timer::Persist);
        } else if !out.probe_is_due && !self.timers.is_armed(Timer::Persist) {
            let rto = out.recovery.timer(PATH).rto();
            let wait = if out.usable_window() > 0 { OVERRIDE.min(rto) } else { rto };
            self.timers.arm(Timer::Persist, cx.now + wait);
        }
    }

    /// The probe of a closed window was answered: taken, or refused. Refused by a window that has
    /// opened since, it leaves again at once. A window update that left before the probe arrived
    /// says nothing about it: it comes sooner than a round trip, with no refusal before it.
    pub(super) fn check_probe(&mut self, cx: &mut Context<'_>) {
        let out = &mut self.out;
        let is_closed = out.is_window_closed_to_oldest();
        out.is_closed_window_confirmed |= is_closed;
        let Some(probe) = &mut out.probe else { return };
        let state = out.recovery.unit(probe.unit).map(rexmit_recovery::Unit::state);
        if !matches!(state, Some(UnitState::InFlight | UnitState::Lost(_))) {
            out.probe = None;
            out.recovery.on_window_opened(PATH);
            return;
        }
        let round_trip = out.recovery.timer(PATH).rtt().srtt().unwrap_or_default();
        if is_closed {
            probe.is_refused = true;
        } else if probe.is_refused || cx.now - probe.sent_at >= round_trip {
            let unit = probe.unit;
            out.probe = None;
            // Nothing but the probe is outstanding, and its timer has its back-off.
            out.recovery.stop_timer(PATH);
            out.recovery.on_window_opened(PATH);
            out.recovery.on_probe_refused(unit, &mut cx.tracer());
        }
    }

    /// Tells loss recovery what the expiry of its timer means; returns whether the peer had shown
    /// meanwhile that it is there and its window closed, and whether the timeout grew: one that did
    /// not is no sign of a dead peer by itself.
    pub(super) fn on_timeout_kind(&mut self, cx: &mut Context<'_>, path: u8) -> (bool, bool) {
        let out = &mut self.out;
        let is_probing = out.is_window_closed_to_oldest();
        let kind = if is_probing { TimeoutKind::WindowProbe } else { TimeoutKind::Loss };
        let has_backed_off = out.recovery.on_timeout(path, kind, &mut cx.tracer());
        let is_confirmed = std::mem::take(&mut out.is_closed_window_confirmed);
        if let Some(probe) = &mut out.probe {
            probe.sent_at = cx.now;
            probe.is_refused = false;
        }
        (is_probing && is_confirmed, has_backed_off)
    }
}

impl Outbound {
    /// Whether what is outstanding longest is beyond what the peer takes.
    fn is_window_closed_to_oldest(&self) -> bool {
        self.oldest().is_some_and(|piece| piece.end() > self.window_end)
    }

    /// A new unit leaves, beyond the window.
    pub(super) fn on_probe_sent(&mut self, now: Instant, unit: u64) {
        self.probe_is_due = false;
        self.is_closed_window_confirmed = false;
        self.probe = Some(Probe { unit, sent_at: now, is_refused: false });
        self.recovery.on_probe_sent(unit);
    }
}
