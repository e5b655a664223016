//! Timers: T3-rtx (RFC 9260 §6.3.2, §6.3.3; RFC 6298 §5), the probe timer and delayed copies of thin streams,
//! RACK, and Early Fast Retransmit.

use std::sync::Arc;

use rexmit_congestion::TimedOut;
use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::LossRecovery;
use super::diversity::review_paths;
use crate::RetransmissionDestination;
use crate::loss::expired_early;
use crate::outstanding::{PacketNumber, Unit};
use crate::probe::{MOST_TRANSMISSIONS, Round, Share, Unanswered};
use crate::redundancy::{ProbeAction, SharedSpending};

/// The meaning of an expiry of T3-rtx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutKind {
    /// Data was lost.
    Loss,
    /// The peer's window is closed and its probe was not accepted: no sign of congestion (RFC 9260 §6.1 A).
    WindowProbe,
}

/// An event other than the loss of data that starts, stops or changes T3-rtx of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum T3Event {
    /// A FORWARD-TSN has to be retransmitted until it is acknowledged: the timer is started if it does not run.
    Needed,
    /// The timer is stopped.
    NotNeeded,
    /// A packet without data (INIT, HEARTBEAT, …) was not answered in time: the timeout doubles.
    Unanswered,
    /// The backoff is reset: the timer expired before the timeout of the packet that it was for, or over a
    /// probe of a window that is open again, which backs off by itself (RFC 9293 §3.8.6.1).
    BackoffOver,
}

/// An expiry of T3-rtx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout {
    /// The path whose timer expired.
    pub path: u8,
    /// Whether the timeout doubled. A linear timeout (of a thin stream) does not, and is not counted as an
    /// error of the path: otherwise a thin stream would give up in a fraction of the usual time.
    pub has_backed_off: bool,
}

impl<P> LossRecovery<P> {
    /// When the earliest timer expires.
    #[must_use]
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        // Asked with every packet, most of the time of one path.
        let next = match self.state.paths.count() {
            1 => self.next_timeout_of(0),
            count => (0..count).map(|path| self.next_timeout_of(path)).min()?,
        };
        (next < Instant::FAR_FUTURE).then_some(next)
    }

    #[inline]
    fn next_timeout_of(&self, path: u8) -> Instant {
        let probe = self.probe.deadline(path).min(self.redundancy.deadline(path));
        let next = self.loss.deadline(path).min(probe);
        let paced = self.state.paths[path].window.paced_until();
        let next = paced.map_or(next, |paced| next.min(paced));
        self.state.t3_deadline(path).map_or(next, |t3| next.min(t3))
    }

    /// Handles all timers that have expired, but at most one T3-rtx, whose expiry means `kind`. Call it until
    /// it returns `None`, and again when [`next_timeout`](Self::next_timeout) is reached: that may be at
    /// once, because units declared lost may make a stream thin, whose other packets are then due.
    pub fn on_timeout(
        &mut self,
        now: Instant,
        kind: TimeoutKind,
        tracer: &mut Tracer<'_>,
    ) -> Option<Timeout> {
        let mut expiry = Expiry { recovery: self, now, tracer };
        expiry.expire_all_but_t3();
        review_paths(expiry.recovery, now);
        let path = expiry.due_t3()?;
        let has_backed_off = expiry.expire_t3(path, kind);
        Some(Timeout { path, has_backed_off })
    }

    /// Handles an event that concerns T3-rtx of `path`, other than the loss of data.
    pub fn on_t3_event(&mut self, now: Instant, path: u8, event: T3Event) {
        let config = Arc::clone(&self.state.config);
        let p = &mut self.state.paths[path];
        match event {
            T3Event::Needed if !p.t3.is_running() => self.arm_t3(now, path),
            T3Event::Needed => {}
            T3Event::NotNeeded => p.t3.stop(),
            T3Event::Unanswered => p.timer.on_timeout(&config.rto),
            T3Event::BackoffOver => p.timer.forget_backoff(&config.rto),
        }
    }
}

impl Unanswered {
    /// Delays the probes of `recovery` that are due and may wait, if most connections of the endpoint are
    /// unanswered. To be called before [`LossRecovery::on_timeout`].
    pub fn put_off<P>(&self, now: Instant, recovery: &mut LossRecovery<P>) {
        if !self.is_common(now) {
            return;
        }
        for path in recovery.state.paths.numbers() {
            if recovery.probe.put_off(now, path, self.at_a_time(), self.longest(now)) {
                recovery.probe.renew(path, &recovery.state);
            }
        }
    }

    /// Updates the counts from `recovery`: whether its packets are unanswered, and how many ACKs came in
    /// time. To be called after any call that may change that.
    #[inline]
    pub fn enter<P>(&mut self, now: Instant, recovery: &mut LossRecovery<P>, share: &mut Share) {
        recovery.probe.report(now, self, share);
    }
}

impl SharedSpending {
    /// Exchanges what `recovery` has spent on copies for this shared sum. The endpoint calls it before and after each call.
    pub fn swap<P>(&mut self, recovery: &mut LossRecovery<P>) {
        std::mem::swap(&mut self.0, &mut recovery.redundancy.spending);
    }
}

/// The timers of an association at one time.
pub(super) struct Expiry<'a, 't, 's, P> {
    pub(super) recovery: &'a mut LossRecovery<P>,
    pub(super) now: Instant,
    pub(super) tracer: &'t mut Tracer<'s>,
}

impl<P> Expiry<'_, '_, '_, P> {
    /// Handles the expiry of all timers but T3-rtx.
    fn expire_all_but_t3(&mut self) {
        for path in self.recovery.state.paths.numbers() {
            let LossRecovery { state, probe, .. } = &mut *self.recovery;
            state.paths[path].window.release(self.now);
            if probe.put_off_late(self.now, path, state) {
                probe.renew(path, state);
            }
            let probe = probe.deadline(path);
            if probe.min(self.recovery.redundancy.deadline(path)) <= self.now {
                self.expire_probe(path);
            }
            if self.recovery.loss.deadline(path) > self.now {
                continue;
            }
            if self.recovery.loss.is_early() {
                self.retransmit_early(path);
            } else {
                self.recovery.detect_by_time(self.now, self.tracer);
                self.recovery.state.settle_gates();
                self.recovery.state.outstanding.forget_ended();
                self.recovery.state.trace_thinness(self.tracer);
            }
        }
    }

    fn expire_probe(&mut self, path: u8) {
        let LossRecovery { state, probe, redundancy, plan, .. } = &mut *self.recovery;
        state.statistics.copies_denied += redundancy.ready_copies(self.now, path, state, plan);
        if probe.probes_silent(self.now, path, state) {
            self.probe_silent(path);
        }
        let mut lost = 0;
        for round in Round::BOTH {
            let LossRecovery { state, probe, .. } = &mut *self.recovery;
            for (at, packet) in probe.take_expired(self.now, path, round, state) {
                if !self.waits_for_later_ack(path, packet, round) {
                    lost += self.lose_expired(packet, at);
                }
            }
        }
        if lost > 0 {
            self.retransmit_expired(path);
        }
        let LossRecovery { state, probe, .. } = &mut *self.recovery;
        probe.renew(path, state);
        self.recovery.state.trace_thinness(self.tracer);
    }

    /// Probes `path`, which is silent: everything in flight on it is declared lost, and one packet of that
    /// may be sent, however often it was sent before, with new data in it (SCTP).
    fn probe_silent(&mut self, path: u8) {
        let probed = self.recovery.state.groups.probed;
        let is_for_it = |unit: &Unit<P>| probed & (1 << unit.group()) != 0 && !unit.is_probe;
        let lost = self.recovery.lose_flight(path, SendCause::Probe, is_for_it, self.tracer);
        // After a timeout the window is as small as it gets.
        let has_timed_out = self.recovery.state.paths[path].timer.backoffs() > 0;
        if lost > 0 && !has_timed_out && self.recovery.recover_by_time(path, self.tracer) {
            self.recovery.state.begin_recovery();
        }
        let state = &mut self.recovery.state;
        state.paths[path].gate.is_single_packet = true;
        state.retransmit_now(path);
        state.settle_gates();
    }

    /// Puts the expiry of `packet` off if its retransmission may wait for the ACK of a later packet. Returns whether it may.
    fn waits_for_later_ack(&mut self, path: u8, packet: PacketNumber, round: Round) -> bool {
        let LossRecovery { state, probe, plan, .. } = &mut *self.recovery;
        if !plan.is_any() {
            return false;
        }
        let until = |number| {
            let unit = state.outstanding.unit(number)?;
            plan.waits_until(self.now, number, probe.ways(state, path, unit.group()))
        };
        let units = state.outstanding.in_flight_in(packet);
        let all: Option<Vec<Instant>> = units.into_iter().map(until).collect();
        let Some(until) = all.and_then(|all| all.into_iter().min()) else { return false };
        probe.wait(path, packet, round, until);
        true
    }

    /// Declares the data in flight in `packet`, sent at `at`, lost, unless enough copies were sent since.
    /// Returns how many units.
    fn lose_expired(&mut self, packet: PacketNumber, at: Instant) -> u64 {
        let (mut lost, mut is_beside_copies) = (0, false);
        for number in self.recovery.state.outstanding.in_flight_in(packet) {
            let LossRecovery { state, redundancy, .. } = &mut *self.recovery;
            let probed = state.groups.probed;
            let is_for_it = |unit: &Unit<P>| {
                let is_probed = probed & (1 << unit.group()) != 0 && !unit.is_probe;
                is_probed && unit.transmissions < MOST_TRANSMISSIONS
            };
            if !state.outstanding.unit(number).is_some_and(is_for_it) {
                continue;
            }
            match redundancy.action_on_expiry(number, at, state) {
                ProbeAction::Nothing { is_denied } => {
                    state.statistics.copies_denied += u64::from(is_denied);
                }
                ProbeAction::Retransmission { is_beside } => {
                    is_beside_copies |= is_beside;
                    self.recovery.declare_lost(number, SendCause::Probe, self.tracer);
                    lost += 1;
                }
            }
        }
        if is_beside_copies {
            self.recovery.redundancy.spending.on_packet_of_copies();
        }
        lost
    }

    /// Reduces the window once for everything outstanding, as after a fast retransmit. On a path with a queue of other traffic,
    /// where each small packet takes the place of a full-sized one, new data also waits for the next ACK, to be sent together.
    fn retransmit_expired(&mut self, path: u8) {
        let LossRecovery { state, probe, .. } = &mut *self.recovery;
        probe.count_round(self.now, path, state);
        state.outstanding.forget_ended();
        if self.recovery.recover_by_time(path, self.tracer) {
            self.recovery.state.begin_recovery();
        }
        let state = &mut self.recovery.state;
        if state.yields(path, state.group_of_earliest(path)) {
            state.paths[path].gate.is_single_packet = true;
        }
        state.settle_gates();
    }

    /// Early Fast Retransmit: what could have been acknowledged by now is declared lost; no slow start.
    fn retransmit_early(&mut self, path: u8) {
        let late = expired_early(self.now, path, &self.recovery.state);
        // The retransmitted packets are in flight again when the timer is started.
        let flight = self.recovery.state.outstanding.flight(path).bytes;
        for &packet in &late {
            for number in self.recovery.state.outstanding.in_flight_in(packet) {
                self.recovery.declare_lost(number, SendCause::Early, self.tracer);
            }
        }
        let state = &mut self.recovery.state;
        state.outstanding.forget_ended();
        if !late.is_empty() {
            let p = &mut state.paths[path];
            p.window.on_early_retransmit();
            p.gate.open_for_retransmission();
            state.settle_gates();
            state.trace_window(path, self.tracer);
        }
        let LossRecovery { state, loss, .. } = &mut *self.recovery;
        loss.restart_early(self.now, path, flight, state);
        state.trace_thinness(self.tracer);
    }

    /// The first path whose T3-rtx is due.
    fn due_t3(&self) -> Option<u8> {
        let state = &self.recovery.state;
        let is_due = |&path: &u8| state.t3_deadline(path).is_some_and(|at| at <= self.now);
        state.paths.numbers().find(is_due)
    }

    /// Called when T3-rtx of `path` expires: the timeout doubles, the window collapses, and everything in
    /// flight on the path is declared lost (E1, E2; E3 follows when the packet is sent).
    pub(super) fn expire_t3(&mut self, path: u8, kind: TimeoutKind) -> bool {
        let config = Arc::clone(&self.recovery.state.config);
        let LossRecovery { state, loss, .. } = &mut *self.recovery;
        state.statistics.timeouts += 1;
        // A fast recovery that outlived the timeout would freeze the window.
        state.fast_recovery.leave();
        // Data that duplicates show to be out of the network is not in flight, though it is outstanding.
        let flight_size = state.outstanding.bytes().saturating_sub(loss.duplicates.departed());
        loss.duplicates.clear();
        state.fast_recovery.forget_beyond_window();
        if kind == TimeoutKind::Loss {
            self.examine(path);
        }
        let is_linear = kind == TimeoutKind::Loss && self.count_linear(path);
        let state = &mut self.recovery.state;
        if config.sctp.retransmission_destination == RetransmissionDestination::Csi
            && let Some(at) = state.t3_deadline(path)
        {
            state.paths[path].remember_timeout(at);
        }
        state.couple_windows();
        state.fast_recovery.leave_on_path(path);
        let earliest = state.outstanding.on(path).earliest;
        let p = &mut state.paths[path];
        p.counters.timeouts += 1;
        p.t3.stop();
        if !is_linear {
            p.timer.on_timeout(&config.rto);
        }
        if kind == TimeoutKind::Loss {
            let is_repeated = p.t3.has_expired_over(earliest);
            p.t3.on_expired_over(earliest);
            p.window.on_timeout(TimedOut { flight_size, is_repeated });
            p.gate.is_single_packet =
                config.single_packet_after_timeout || self.recovery.probe.is_silent(path);
        }
        self.lose_path(path, kind);
        !is_linear
    }

    fn lose_path(&mut self, path: u8, kind: TimeoutKind) {
        let cause = match kind {
            TimeoutKind::Loss => SendCause::Timeout,
            TimeoutKind::WindowProbe => SendCause::WindowProbe,
        };
        let rto = self.recovery.state.rto(path);
        self.tracer.emit(|| TraceEvent::RetransmissionTimeout { path, rto });
        self.recovery.lose_flight(path, cause, |_| true, self.tracer);
        if !self.recovery.state.outstanding.on(path).is_awaiting() {
            self.recovery.spurious.iter_mut().for_each(|it| it.cancel(path));
        } else if kind == TimeoutKind::Loss {
            self.tracer.emit(|| TraceEvent::RetransmissionEvent { path, kind: cause });
        }
        let moves = self.recovery.state.move_timed_out(path);
        self.recovery.on_moves(moves);
        self.recovery.state.trace_window(path, self.tracer);
        self.recovery.renew_probe(path);
        self.recovery.state.trace_thinness(self.tracer);
    }

    /// Records, before T3-rtx changes anything, whether a lower reordering threshold would have avoided the
    /// timeout, and the state to restore if it proves spurious.
    fn examine(&mut self, path: u8) {
        let LossRecovery { state, loss, spurious, .. } = &mut *self.recovery;
        let earliest = state.outstanding.on(path).earliest;
        let is_repeated = state.paths[path].t3.has_expired_over(earliest);
        loss.on_timeout(path, state);
        loss.trace_threshold(path, self.tracer);
        if let Some(spurious) = spurious {
            spurious.begin(path, SendCause::Timeout, state);
            spurious.begin_f_rto(path, is_repeated, state);
        }
        state.fast_recovery.on_timeout(state.outstanding.next_unit() - 1);
    }

    /// Counts this timeout if it is linear: it does not double the next one (Petlund 2009 §5.3). Returns whether it is.
    fn count_linear(&mut self, path: u8) -> bool {
        let state = &mut self.recovery.state;
        let group = state.group_of_earliest(path);
        let Some(bound) = state.groups.config(group).linear_timeouts else { return false };
        let is_thin = state.has_few_packets(group);
        let earliest = state.outstanding.on(path).earliest;
        state.paths[path].t3.take_linear(earliest, is_thin, bound)
    }
}
