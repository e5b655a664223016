//! Losses: units that are declared lost, by whichever mechanism, and the recovery that begins.

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::LossRecovery;
use crate::ThinConfig;
use crate::outstanding::Unit;
use crate::state::Moves;

impl<P> LossRecovery<P> {
    /// Declares `unit`, which is in flight, lost. Returns the path that it was outstanding on.
    pub(super) fn declare_lost(
        &mut self,
        unit: u64,
        cause: SendCause,
        tracer: &mut Tracer<'_>,
    ) -> Option<u8> {
        let lost = self.state.outstanding.lose(unit, cause)?;
        // With a probe the receiver refused it; the network lost nothing.
        self.state.count_lost(&lost, cause != SendCause::WindowProbe);
        if let Some(packet) = lost.packet {
            tracer.emit(|| TraceEvent::PacketLost { packet: packet.0, cause });
        }
        let is_measured = |thin: &ThinConfig| thin.ack_delay_samples || thin.probe_timer.is_some();
        if self.state.groups.has_mechanisms
            && lost.is_first_transmission
            && !lost.is_copied
            && let Some(sent_at) = lost.sent_at
            && is_measured(self.state.groups.config(lost.group))
            && self.state.is_thin(lost.group)
        {
            self.state.outstanding.measure_first_transmission(unit, lost.sent_over, sent_at);
        }
        self.loss.on_declared_lost(unit);
        if !self.state.paths.is_one() {
            let moves = self.state.move_unit(unit, self.state.destination(lost.path, false));
            self.on_moves(moves);
        }
        Some(lost.path)
    }

    /// Declares the units in flight on `path` lost that are meant. Visits each unit above the cumulative
    /// acknowledgement once. Returns how many are lost.
    pub(super) fn lose_flight(
        &mut self,
        path: u8,
        cause: SendCause,
        is_meant: impl Fn(&Unit<P>) -> bool,
        tracer: &mut Tracer<'_>,
    ) -> u64 {
        let mut lost = 0;
        let outstanding = &self.state.outstanding;
        for number in outstanding.cumulative() + 1..outstanding.next_unit() {
            let unit = self.state.outstanding.unit(number);
            if unit.is_some_and(|unit| unit.path == path && unit.is_in_flight() && is_meant(unit)) {
                self.declare_lost(number, cause, tracer);
                lost += 1;
            }
        }
        self.state.outstanding.forget_ended();
        lost
    }

    pub(super) fn on_moves(&mut self, moves: Moves) {
        for path in self.state.paths.numbers() {
            if moves.left & (1 << path) != 0 {
                self.spurious.iter_mut().for_each(|it| it.end_f_rto(path));
                self.probe.renew(path, &self.state);
            }
            // With errors both paths may be dead, and each expiry of T3-rtx would begin another silence.
            if moves.begun & (1 << path) != 0 && self.state.paths[path].reach.errors() == 0 {
                self.probe.on_moved_to(path);
            }
        }
    }

    /// Called when a fast retransmit begins on `path`: reduces its window.
    pub(super) fn reduce_window(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let kind = SendCause::FastRetransmit;
        let Self { state, spurious, .. } = self;
        spurious.iter_mut().for_each(|it| it.begin(path, kind, state));
        if self.state.outstanding.on(path).is_awaiting() {
            tracer.emit(|| TraceEvent::RetransmissionEvent { path, kind });
        } else {
            // What it is about was retransmitted in the recovery before.
            self.spurious.iter_mut().for_each(|it| it.cancel(path));
        }
        self.state.reduce_window(path);
        self.state.trace_window(path, tracer);
    }

    /// Called when a unit on `path` was declared lost because time has passed (RACK). Returns whether a
    /// recovery of the whole association begins.
    pub(super) fn recover_by_time(&mut self, path: u8, tracer: &mut Tracer<'_>) -> bool {
        if self.state.fast_recovery.is_on_path(path) {
            self.state.retransmit_now(path);
            return false;
        }
        let is_split = self.state.splits_fast_retransmit();
        if is_split {
            self.state.begin_path_recovery(path);
        }
        self.reduce_window(path, tracer);
        !is_split
    }

    /// Declares units lost that were sent long enough before something that has arrived (RACK). Returns how many.
    pub(super) fn detect_by_time(&mut self, now: Instant, tracer: &mut Tracer<'_>) -> u64 {
        let (mut newly_lost, mut begins) = (0, false);
        for path in self.state.paths.numbers() {
            let due = self.loss.expired_by_time(now, path, &self.state, &self.probe);
            let before = newly_lost;
            for packet in due {
                for unit in self.state.outstanding.in_flight_in(packet) {
                    self.declare_lost(unit, SendCause::FastRetransmit, tracer);
                    newly_lost += 1;
                }
            }
            begins |= newly_lost > before && self.recover_by_time(path, tracer);
        }
        if begins {
            self.state.begin_recovery();
        }
        newly_lost
    }
}
