//! The window after a spurious event. See [`crate::undo`].

use rexmit_core::Instant;
use rexmit_core::trace::{Detector, SendCause, TraceEvent, Tracer};

use super::LossRecovery;
use crate::spurious::events::Event;
use crate::undo::{AfterSpurious, Resumed, restore};

impl<P> LossRecovery<P> {
    /// `event` of `path` was spurious, as `by` told.
    pub(super) fn undo(&mut self, path: u8, event: &Event, by: Detector, tracer: &mut Tracer<'_>) {
        let flight = self.ledger.flight(path).bytes;
        let p = self.path_mut(path);
        if event.kind == SendCause::Timeout {
            let since = event.resent_at.unwrap_or(Instant::ZERO);
            if let Some(scrutiny) = &mut p.scrutiny {
                let after = AfterSpurious { since, rtt: event.before.rtt };
                scrutiny.after_spurious = Some(after);
            }
        }
        let is_early = by != Detector::Duplicates;
        let resumed = is_early.then_some(Resumed { flight, acked: p.ack.bytes });
        if !restore(&mut p.window, &event.before, resumed) {
            return;
        }
        self.statistics.spurious_events.undone += 1;
        let window = self.window(path);
        let (cwnd, ssthresh) = (window.cwnd(), window.ssthresh());
        tracer.emit(|| TraceEvent::Undone { path, cwnd, ssthresh });
        self.trace_window(path, tracer);
    }
}
