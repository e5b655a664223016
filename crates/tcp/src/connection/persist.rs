//! Probing a closed window (RFC 9293 §3.8.6.1), and data held back to avoid silly windows (§3.8.6.2.1).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;
use rexmit_recovery::{T3Event, Timeout, TimeoutKind, UnitState};

use super::outbound::{Outbound, PATH, Probe};
use super::{Connection, Context, Timer};

/// The override timeout of RFC 9293 §3.8.6.2.1 (0.1 to 1 s): how long pushed data may wait for a small window
/// to grow.
const OVERRIDE: Duration = Duration::from_millis(500);

impl Connection {
    /// Arms the persist timer if only the peer's window prevents sending, and no data is outstanding whose ACK could
    /// open it.
    pub(super) fn watch_window(&mut self, cx: &Context<'_>) {
        let nagles = self.out.nagles(self.config.nagle);
        let out = &mut self.out;
        let is_held_back = out.recovery.outstanding().is_empty()
            && self.state.may_send_data()
            && out.has_unsent()
            && out.next_len(nagles, out.segment_bytes).is_none();
        if !is_held_back {
            out.probing.is_due = false;
            self.timers.stop(Timer::Persist);
        } else if !out.probing.is_due && !self.timers.is_armed(Timer::Persist) {
            let rto = out.recovery.paths()[PATH].timer().rto();
            let wait = if out.usable_window() > 0 { OVERRIDE.min(rto) } else { rto };
            self.timers.arm(Timer::Persist, cx.now + wait);
        }
    }
}

impl Outbound {
    /// Called when the probe of a closed window was answered, that is, accepted or refused. If it was refused and the
    /// window is open now, it is retransmitted at once. A window update that arrives less than a round trip after the
    /// probe, without an earlier refusal, is no answer: it was sent before the probe arrived.
    pub(super) fn check_probe(&mut self, now: Instant, tracer: &mut Tracer<'_>) {
        let is_closed = self.is_window_closed_to_oldest();
        self.probing.is_closed_confirmed |= is_closed;
        let Some(probe) = &mut self.probing.sent else { return };
        let state = self.recovery.outstanding().unit(probe.unit).map(rexmit_recovery::Unit::state);
        if !matches!(state, Some(UnitState::InFlight | UnitState::Lost(_))) {
            self.probing.sent = None;
            self.recovery.on_t3_event(now, PATH, T3Event::BackoffOver);
            return;
        }
        let round_trip = self.recovery.paths()[PATH].timer().rtt().srtt().unwrap_or_default();
        if is_closed {
            probe.is_refused = true;
        } else if probe.is_refused || now - probe.sent_at >= round_trip {
            let unit = probe.unit;
            self.probing.sent = None;
            // Only the probe is outstanding, and the persist timer has its own backoff.
            self.recovery.on_t3_event(now, PATH, T3Event::NotNeeded);
            self.recovery.on_t3_event(now, PATH, T3Event::BackoffOver);
            self.recovery.on_probe_refused(unit, tracer);
        }
    }

    /// Expires the timers of loss recovery that are due. If the retransmission timer was among them, returns
    /// its expiry, and whether an ACK since the last expiry had confirmed that the peer's window is closed:
    /// then the peer is alive, and the expiry counts as no failure while the application has the connection
    /// open.
    pub(super) fn expire_recovery(
        &mut self,
        now: Instant,
        tracer: &mut Tracer<'_>,
    ) -> Option<(Timeout, bool)> {
        let is_probing = self.is_window_closed_to_oldest();
        let kind = if is_probing { TimeoutKind::WindowProbe } else { TimeoutKind::Loss };
        let timeout = self.recovery.on_timeout(now, kind, tracer)?;
        let is_confirmed = std::mem::take(&mut self.probing.is_closed_confirmed);
        if let Some(probe) = &mut self.probing.sent {
            probe.sent_at = now;
            probe.is_refused = false;
        }
        Some((timeout, is_probing && is_confirmed))
    }

    /// Whether the oldest outstanding data is beyond the peer's window.
    fn is_window_closed_to_oldest(&self) -> bool {
        self.oldest().is_some_and(|piece| piece.end() > self.window.end)
    }

    /// Called when a new unit is sent beyond the window, as a probe.
    pub(super) fn on_probe_sent(&mut self, now: Instant, unit: u64) {
        self.probing.is_due = false;
        self.probing.is_closed_confirmed = false;
        self.probing.sent = Some(Probe { unit, sent_at: now, is_refused: false });
    }
}
