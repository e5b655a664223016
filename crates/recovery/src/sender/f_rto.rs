//! F-RTO on a path: what leaves while a timeout is under examination. See [`crate::spurious::f_rto`].

use rexmit_core::Instant;
use rexmit_core::trace::{Detector, Tracer};

use super::LossRecovery;
use super::ack::Progress;
use crate::spurious::f_rto::{FRto, Told};

impl<P> LossRecovery<P> {
    /// T3-rtx of `path` expired. It is not examined during a recovery, nor before the units of the last
    /// one are acknowledged, unless the timer expired again over the same (RFC 5682 §3.1 step 1). Nor
    /// is it where another path takes what is sent again, whose acknowledgement may overtake those of
    /// the originals: see also [`send_elsewhere`](Self::send_elsewhere).
    pub(super) fn begin_f_rto(&mut self, path: u8, is_repeated: bool) {
        if !self.config.spurious.f_rto || self.chooses_late() {
            return;
        }
        let is_open = self.recover.is_some_and(|recover| self.cumulative() < recover)
            || self.path(path).recovery_exit().is_some();
        let was_repeating = self.path(path).f_rto() == FRto::Repeating;
        let may_begin = !is_open || (is_repeated && was_repeating);
        self.path_mut(path).set_f_rto(if may_begin { FRto::Repeating } else { FRto::Off });
    }

    /// Whether F-RTO asks if there is new data: told by [`tell_new`](Self::tell_new) before the next
    /// acknowledgement is handed over.
    #[must_use]
    pub fn asks_for_new(&self) -> bool {
        self.config.spurious.f_rto && self.paths.iter().any(|path| path.f_rto() == FRto::Repeating)
    }

    /// Whether there is new data that could leave.
    pub fn tell_new(&mut self, has_new: bool) {
        if let Some(doubts) = &mut self.doubts {
            doubts.has_new = has_new;
        }
    }

    /// Whether what is judged lost has to leave before anything new: always, but for F-RTO.
    #[must_use]
    pub fn must_resend_first(&self) -> bool {
        self.has_lost() && !self.paths.iter().any(|path| path.f_rto().prefers_new())
    }

    /// Whether F-RTO holds back what is judged lost on `path`: all but the first packet, until it is
    /// decided.
    pub(super) fn holds_back(&self, path: u8) -> bool {
        let p = self.path(path);
        match p.f_rto() {
            FRto::Off => false,
            FRto::Repeating => !p.may_resend_now,
            FRto::Probing { .. } => true,
        }
    }

    pub(super) fn advance_f_rto(
        &mut self,
        now: Instant,
        path: u8,
        progress: &Progress,
        tracer: &mut Tracer<'_>,
    ) {
        let highest_sent = self.next_unit() - 1;
        let has_new = self.doubts.as_ref().is_some_and(|doubts| doubts.has_new);
        let Some(scrutiny) = &mut self.path_mut(path).scrutiny else { return };
        let told = Told {
            advanced_to: progress.outcome.has_advanced.then_some(progress.cumulative),
            highest_newly_acked: progress.highest_newly_acked,
            has_acked_original: scrutiny.has_acked_original,
            highest_sent,
            has_new,
        };
        if scrutiny.f_rto.on_ack(told) {
            self.on_spurious(now, path, Detector::FRto, tracer);
        }
    }
}
