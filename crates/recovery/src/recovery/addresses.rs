//! Paths that are added, fail, recover, are removed, or take another route (RFC 9260 §8, RFC 7829, RFC 5061).

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};

use super::LossRecovery;
use super::timeout::Expiry;
use super::timeout::T3Event;
use crate::paths::{FailureLimits, Path};
use crate::{CongestionWindow, PathCounters, PathState, Reach, TimeoutKind};

/// Evidence of whether a path works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathEvent {
    /// Data or a HEARTBEAT sent over the path was not acknowledged in time (RFC 9260 §8.2).
    Error {
        /// Path.Max.Retrans: with more consecutive errors the path is inactive.
        path_max_retrans: u32,
    },
    /// Something sent over the path was acknowledged.
    Answered {
        /// Whether what was acknowledged was sent over no other path.
        is_certain: bool,
    },
    /// A probe of the path with a random nonce was answered (RFC 9260 §5.4, §8.3).
    Probed,
    /// A probe of an idle path was not answered, which is no error of the path by itself.
    ProbeLost,
}

/// A change of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChange {
    /// The path is removed; another one exists, over which its outstanding data is retransmitted. If it was
    /// the primary path, the path that is chosen for data becomes primary.
    Removed,
    /// The path takes another route to the same peer: all measurements are reset.
    Redirected {
        /// The largest unit that its packets hold, with header and padding, in bytes.
        packet: u32,
    },
    /// The path becomes the primary path: new data is sent over it while it works.
    Primary,
    /// The packet size changes, and nothing else.
    Resized {
        /// The largest unit that its packets hold, with header and padding, in bytes.
        packet: u32,
    },
}

/// A step of the handshake, as far as it concerns loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupEvent {
    /// The handshake is complete: packets hold units of up to `packet` bytes, and the window is the initial
    /// one. If the handshake was retransmitted, the window is one packet, and without an RTT sample the
    /// timeout is 3 s (RFC 5681 §3.1, RFC 6298 §5.7).
    Done {
        /// The largest unit, with header and padding, in bytes.
        packet: u32,
        /// Whether a packet of the handshake was sent more than once.
        was_repeated: bool,
        /// The time from its latest transmission to the answer, if known: until data is acknowledged, the probe timer
        /// takes it for the round trip. It is too short if the answer was to an earlier transmission.
        answered_after: Option<Duration>,
    },
    /// The handshake timed out: data sent with it is lost, and the timeout doubles.
    TimedOut,
    /// The handshake begins again: data sent with it has to be retransmitted.
    Restarted,
}

impl<P> LossRecovery<P> {
    /// Adds the state of all mechanisms for a path.
    pub(super) fn add_path_state(&mut self) {
        self.state.outstanding.add_path();
        self.state.fast_recovery.set_paths(self.state.paths.count().into());
        self.loss.add_path(self.state.paths.count().into());
        if !self.state.paths.is_one() && self.state.config.sctp.compares_paths() {
            self.state.paths.compare();
        }
        if self.state.groups.probed != 0 {
            self.probe.enable(self.state.paths.count() - 1);
        }
        self.spurious.iter_mut().for_each(|it| it.add_path());
    }

    /// Adds an unconfirmed path, whose packets hold units of up to `packet` bytes, and returns its number. `removed` is
    /// the time and the number of a removed path whose number is used again; without one the number is new.
    ///
    /// # Panics
    /// With more than 64 paths; the protocol limits them far below.
    pub fn open_path(&mut self, removed: Option<(Instant, u8)>, packet: u32) -> u8 {
        let Some((now, path)) = removed else {
            let path = Path::new(&self.state.config, packet, Reach::UNCONFIRMED);
            let number = self.state.paths.add(path);
            self.add_path_state();
            return number;
        };
        self.renew_path(now, path, packet);
        self.loss.replace_path(path);
        self.state.fast_recovery.leave_on_path(path);
        let p = &mut self.state.paths[path];
        p.reach = Reach::UNCONFIRMED;
        p.counters = PathCounters::default();
        p.renew_multipath();
        path
    }

    /// Applies a change of `path`. If the path was removed or takes another route, declares the data in flight on it
    /// lost and allows one packet of it to be retransmitted at once; no other change declares anything lost.
    pub fn change_path(
        &mut self,
        now: Instant,
        path: u8,
        change: PathChange,
        tracer: &mut Tracer<'_>,
    ) {
        let is_confirmed = self.state.paths[path].reach.is_confirmed();
        self.state.paths[path].reach = match change {
            PathChange::Resized { packet } => {
                return self.state.paths[path].window.resize(self.state.config.window(), packet);
            }
            PathChange::Primary => {
                self.state.paths.set_primary(path);
                let moves = self.state.choose_paths();
                return self.on_moves(moves);
            }
            PathChange::Removed => Reach::REMOVED,
            PathChange::Redirected { .. } if is_confirmed => Reach::ACTIVE,
            PathChange::Redirected { .. } => Reach::UNCONFIRMED,
        };
        let moves = self.state.choose_paths();
        self.on_moves(moves);
        if change == PathChange::Removed && self.state.paths.primary() == path {
            let data_path = self.state.paths.data_path();
            self.state.paths.set_primary(data_path);
        }
        self.lose_route(path, tracer);
        if let PathChange::Redirected { packet } = change {
            self.renew_path(now, path, packet);
            self.state.paths[path].gate.close();
            self.retransmit_lost_now(path);
        } else {
            self.retransmit_lost_now(self.state.paths.alternate_to(path));
        }
    }

    fn retransmit_lost_now(&mut self, path: u8) {
        if self.state.outstanding.on(path).has_lost() {
            self.state.paths[path].gate.open_for_retransmission();
        }
    }

    /// Declares the packets in flight on `path` lost, because their route does not exist any more.
    fn lose_route(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        // A fast recovery that outlived this would freeze the window.
        self.state.fast_recovery.leave();
        self.state.fast_recovery.leave_on_path(path);
        self.lose_flight(path, SendCause::Timeout, |_| true, tracer);
        self.state.paths[path].t3.stop();
        self.loss.stop_timer(path);
        self.spurious.iter_mut().for_each(|it| it.cancel(path));
        self.state.settle_gates();
        self.state.trace_thinness(tracer);
    }

    /// Resets the measurements of `path`, whose packets take another route from now on.
    fn renew_path(&mut self, now: Instant, path: u8, packet: u32) {
        let config = Arc::clone(&self.state.config);
        self.state.paths[path].renew(now, &config, packet);
        if let Some(diversity) = self.state.paths.diversity_mut() {
            diversity.renew_path(path);
        }
        self.loss.renew_path(path);
        self.probe.renew_path(now, path);
        self.redundancy.renew_path(path);
        self.spurious.iter_mut().for_each(|it| it.renew_path(path));
    }

    /// Called when something shows whether `path` works. Returns its new state, if that is another.
    pub fn on_path_event(&mut self, path: u8, event: PathEvent) -> Option<PathState> {
        if let Some(diversity) = self.state.paths.diversity_mut() {
            match event {
                PathEvent::Probed => diversity.on_arrived(path, None),
                PathEvent::ProbeLost => diversity.on_lost(path, None, None),
                PathEvent::Error { .. } | PathEvent::Answered { .. } => {}
            }
        }
        let potentially_failed = self.state.config.sctp.potentially_failed_max_retrans;
        let reach = &mut self.state.paths[path].reach;
        let before = reach.state();
        match event {
            PathEvent::Error { path_max_retrans: inactive } => {
                reach.on_error(FailureLimits { potentially_failed, inactive });
            }
            PathEvent::Answered { is_certain } => reach.on_answer(is_certain),
            PathEvent::Probed => reach.on_probe_answered(),
            PathEvent::ProbeLost => {}
        }
        let state = reach.state();
        // Among paths that are not active the fewest errors decide.
        if state != before || matches!(event, PathEvent::Error { .. }) {
            let moves = self.state.choose_paths();
            self.on_moves(moves);
        }
        (state != before).then_some(state)
    }

    /// Called when the handshake over `path` is done, timed out, or begins again.
    pub fn on_setup(&mut self, now: Instant, path: u8, event: SetupEvent, tracer: &mut Tracer<'_>) {
        match event {
            SetupEvent::Done { packet, was_repeated, answered_after } => {
                if let Some(rtt) = answered_after {
                    self.probe.on_setup_rtt(path, rtt);
                }
                let config = Arc::clone(&self.state.config);
                let p = &mut self.state.paths[path];
                p.window = CongestionWindow::new(config.window(), packet);
                if was_repeated {
                    p.window.on_setup_lost();
                    p.timer.on_setup_lost(&config.rto);
                }
            }
            SetupEvent::TimedOut if self.state.outstanding.flight(path).packets > 0 => {
                // Data was sent with the COOKIE ECHO, and shares its fate.
                Expiry { recovery: self, now, tracer }.expire_t3(path, TimeoutKind::Loss);
            }
            SetupEvent::TimedOut => self.on_t3_event(now, path, T3Event::Unanswered),
            SetupEvent::Restarted => {
                self.lose_flight(path, SendCause::Timeout, |_| true, tracer);
                // It was sent with the setup, and so it is retransmitted.
                self.spurious.iter_mut().for_each(|it| it.end_f_rto(path));
                self.state.paths[path].t3.stop();
            }
        }
    }
}
