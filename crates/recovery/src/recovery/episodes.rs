//! Spurious retransmissions: duplicate reports, recovery episodes that an ACK proves spurious, and what is undone.

use rexmit_core::trace::{Detector, SendCause, TraceEvent};

use super::ack::Acknowledging;
use crate::spurious::Acknowledged;
use crate::{Echo, LossRecovery};

impl<P> Acknowledging<'_, '_, '_, P> {
    pub(super) fn on_duplicate(&mut self, unit: u64) {
        let LossRecovery { state, probe, spurious, .. } = &mut *self.recovery;
        if unit >= state.outstanding.next_unit() {
            return;
        }
        spurious.iter_mut().for_each(|it| it.on_duplicate());
        let Some(explained) = state.outstanding.on_duplicate_report(unit) else {
            if state.outstanding.history().remembers(unit) {
                self.on_unexplained_duplicate();
            }
            return;
        };
        self.answers_duplicate |= !explained.is_bundled;
        if explained.cause == SendCause::Redundant {
            return state.outstanding.history().settle_delivered(unit);
        }
        state.statistics.spurious.count(explained.cause);
        let first = state.outstanding.first_transmission(unit);
        if explained.cause == SendCause::Probe
            && let Some(first) = first
        {
            state.statistics.acks_missed += u64::from(probe.on_spurious(self.now, first));
        }
        // A peer that may delay ACKs says the same of one that was lost.
        let asks = state.groups.config(0).sctp.sack_immediately;
        let is_probe = explained.cause == SendCause::Probe && asks;
        let repeats = state.outstanding.repeats_mut(unit);
        let round_trip = repeats.and_then(|repeats| repeats.take_rtt_sample(is_probe));
        // The ACK was certain when it came: its round trip is known, and a second sample would not look like an outlier.
        let is_known = first.is_some_and(|first| first.is_answered);
        if is_probe
            && !is_known
            && let Some((path, rtt)) = round_trip
        {
            probe.on_late_ack(path, rtt);
        }
        state.outstanding.history().settle_delivered(unit);
        if let Some((path, rtt)) = round_trip {
            self.recovery.on_round_trip(self.now, path, rtt, self.tracer);
        }
        let packet = explained.packet.0;
        self.tracer.emit(|| TraceEvent::PacketSpurious { packet });
        let LossRecovery { state, loss, spurious, .. } = &mut *self.recovery;
        let (Some(episode), Some(spurious)) = (explained.episode, spurious) else { return };
        let (path, cumulative) = (episode.path, state.outstanding.cumulative());
        // A probe that was early says nothing of reordering.
        if explained.cause != SendCause::Probe {
            loss.widen_window(path, cumulative, state.outstanding.next_unit() - 1);
        }
        let needed = match explained.needed {
            0 => loss.needed_so_far(unit, state),
            needed => needed,
        };
        if spurious.on_reported(episode)
            && let Some(tolerance) = &mut loss.tolerance
        {
            tolerance.on_report(path, explained.cause, needed);
        }
        if spurious.detect_by_duplicates(path, state) {
            self.on_spurious(path, Detector::Duplicates);
        }
        self.recovery.loss.trace_threshold(path, self.tracer);
    }

    pub(super) fn on_unexplained_duplicate(&mut self) {
        let LossRecovery { state, spurious, .. } = &mut *self.recovery;
        state.statistics.spurious_events.unexplained_duplicates += 1;
        let next = state.outstanding.next_unit();
        spurious.iter_mut().for_each(|it| it.on_unexplained_duplicate(next));
    }

    /// Decides open episodes as spurious, if the ACK allows it. Only if episodes are recorded at all.
    pub(super) fn detect_spurious_episodes(&mut self, has_new: bool, echo: Option<Echo>) {
        if let Some(tolerance) = &mut self.recovery.loss.tolerance {
            tolerance.on_delivered(self.outcome.newly_acked);
        }
        let ack = Acknowledged {
            advanced_to: self.outcome.has_advanced.then_some(self.range.cumulative),
            highest_newly_acked: self.range.highest_newly_acked,
            has_new,
            echo,
        };
        for path in self.recovery.state.paths.numbers() {
            let LossRecovery { state, spurious: Some(spurious), .. } = &mut *self.recovery else {
                return;
            };
            if let Some(by) = spurious.detect(path, &ack, state) {
                self.on_spurious(path, by);
            }
            self.recovery.loss.trace_threshold(path, self.tracer);
        }
        self.recovery.spurious.iter_mut().for_each(|it| it.end_ack());
    }

    fn on_spurious(&mut self, path: u8, by: Detector) {
        let spurious = self.recovery.spurious.as_mut();
        let Some(episode) = spurious.and_then(|it| it.settle(path)) else { return };
        let kind = episode.kind;
        self.recovery.state.statistics.spurious_events.count(kind, by);
        self.tracer.emit(|| TraceEvent::EventSpurious { path, kind, by });
        if by != Detector::Duplicates {
            self.resume(path);
        }
        self.leave_spurious_recovery(path, kind);
        let acked = self.paths.get(usize::from(path)).map_or(0, |ack| ack.bytes);
        let LossRecovery { state, loss, spurious, .. } = &mut *self.recovery;
        if let Some(tolerance) = &mut loss.tolerance {
            tolerance.on_spurious(self.now, path, &episode, state);
        }
        if state.config.undoes(by)
            && let Some(spurious) = spurious
            && spurious.undo(path, &episode, by, acked, state)
        {
            state.statistics.spurious_events.undone += 1;
            let window = &state.paths[path].window;
            let (cwnd, ssthresh) = (window.cwnd(), window.ssthresh());
            self.tracer.emit(|| TraceEvent::Undone { path, cwnd, ssthresh });
            state.trace_window(path, self.tracer);
        }
    }

    /// Returns the units declared lost that were last sent over `path` to flight, because the episode that
    /// declared them lost was spurious (RFC 4015 §3.1 step 8, RFC 5682 §4).
    fn resume(&mut self, path: u8) {
        let awaiting: Vec<u64> = self.recovery.state.outstanding.awaiting(path).collect();
        for number in awaiting {
            let LossRecovery { state, loss, probe, .. } = &mut *self.recovery;
            if let Some(moved) = state.outstanding.return_lost(number) {
                state.stop_t3_if_idle(moved.from);
                if moved.was_idle && state.paths[moved.to].reach.errors() == 0 {
                    probe.on_moved_to(moved.to);
                }
            }
            loss.on_returned(number);
            loss.on_in_flight_again(number, state);
        }
        let state = &mut self.recovery.state;
        state.paths[path].gate.is_single_packet = false;
        state.settle_gates();
    }

    /// Ends the recovery of a spurious episode, because nothing was lost in it: the next loss begins a new one.
    fn leave_spurious_recovery(&mut self, path: u8, kind: SendCause) {
        let LossRecovery { state, loss, spurious, .. } = &mut *self.recovery;
        if !state.outstanding.on(path).is_awaiting() {
            state.fast_recovery.leave_on_path(path);
        }
        let is_other_open = spurious.as_ref().is_some_and(|it| it.has_open_fast_retransmit());
        let is_recovering = state.fast_recovery.is_on() || loss.duplicates.is_recovering();
        let is_timeout = kind == SendCause::Timeout && !is_recovering;
        let has_lost = || state.outstanding.has_lost() || loss.duplicates.is_recovering();
        if is_timeout || (!is_other_open && !has_lost()) {
            state.fast_recovery.forget();
        }
    }
}
