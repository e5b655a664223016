//! [`LossRecovery`]: the sender's side of an association. It passes events to the mechanisms, one after the
//! other, and carries out their results.
//!
//! `ack` processes ACKs, with `duplicate_acks` of a peer without SACK and `episodes` that prove spurious; `timeout`
//! processes timers, and `losses` what either declares lost. `packet` fills packets, `permission` has the rules of
//! sending, and `addresses` changes of paths.

mod ack;
mod addresses;
mod congestion_echo;
mod diversity;
mod duplicate_acks;
mod episodes;
mod losses;
mod packet;
mod permission;
mod timeout;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};
use rexmit_deadline::Planner;

pub use ack::{Ack, AckError, AckOutcome, Skipped};
pub use addresses::{PathChange, PathEvent, SetupEvent};
pub use congestion_echo::CongestionEcho;
pub use packet::{Next, OpenPacket, Written};
use permission::Permission;
pub use timeout::{T3Event, Timeout, TimeoutKind};

use crate::fast_recovery::FastRecovery;
use crate::loss::LossDetector;
use crate::outstanding::Outstanding;
use crate::paths::{Path, Paths};
use crate::probe::ProbeTimer;
use crate::redundancy::Redundancy;
use crate::spurious::SpuriousDetection;
use crate::state::{PeerWindow, State};
use crate::thin::{GroupLimit, Groups};
use crate::{
    Reach, RecoveryConfig, RecoveryStatistics, ReorderingState, ThinConfig, Thinness, Unit,
};

/// A unit, or the rest of a message, that is abandoned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abandoned<P> {
    /// A unit that was sent: it is not retransmitted and is not in flight. One that was acknowledged above the
    /// cumulative point is abandoned, too, as a part of its message.
    Sent(u64),
    /// The delayed copy of `unit` that [`next_due`](LossRecovery::next_due) named for `path`.
    Copy {
        /// The path.
        path: u8,
        /// The unit, which stays in flight.
        unit: u64,
    },
    /// A unit that is never sent: it uses up a number.
    Unsent(P),
}

/// Loss recovery and congestion control of one association, over units numbered by the protocol.
///
/// Numbers are unwrapped and consecutive. `P` is the protocol's data of a unit.
#[derive(Debug)]
pub struct LossRecovery<P> {
    state: State<P>,
    loss: LossDetector,
    probe: ProbeTimer,
    redundancy: Redundancy,
    plan: Planner,
    /// `None` if the configuration needs no detector.
    spurious: Option<Box<SpuriousDetection>>,
}

/// The timeout and the reordering tolerated on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFigures {
    /// The retransmission timeout now: the path's RTO, or a shorter timeout while the stream of the earliest
    /// unit outstanding is thin (Petlund 2009 §5.2).
    pub rto: Duration,
    /// The reordering tolerated.
    pub reordering: ReorderingState,
}

/// How a round trip was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RttSource {
    /// Measured by a HEARTBEAT, or by the handshake of SCTP, which is answered without delay.
    Heartbeat,
    /// Measured by TCP's handshake or by a timestamp (RFC 7323), and used for the retransmission timeout only. The
    /// handshake's sample lacks the ACK delay that later ones may have; that of a timestamp may be too long, because a
    /// later ACK may have replaced a lost one.
    Timestamp,
}

impl<P> LossRecovery<P> {
    /// A sender whose first unit will be `first`, over one path whose packets hold units of up to `packet`
    /// bytes (header and padding included).
    #[must_use]
    pub fn new(config: Arc<RecoveryConfig>, first: u64, packet: u32) -> Self {
        let groups = Groups::new(&config);
        let mut recovery = Self {
            loss: LossDetector::new(config.loss_detection, config.missing_reports),
            probe: ProbeTimer::default(),
            redundancy: Redundancy::default(),
            plan: Planner::default(),
            spurious: SpuriousDetection::new(&config),
            state: State {
                outstanding: Outstanding::new(first),
                paths: Paths::new(Path::new(&config, packet, Reach::ACTIVE)),
                groups,
                fast_recovery: FastRecovery::default(),
                statistics: RecoveryStatistics::default(),
                config,
            },
        };
        recovery.add_path_state();
        recovery
    }

    /// The data sent and not cumulatively acknowledged.
    #[must_use]
    #[inline]
    pub const fn outstanding(&self) -> &Outstanding<P> {
        &self.state.outstanding
    }

    /// The paths.
    #[must_use]
    #[inline]
    pub const fn paths(&self) -> &Paths {
        &self.state.paths
    }

    /// The counters.
    #[must_use]
    pub const fn statistics(&self) -> &RecoveryStatistics {
        &self.state.statistics
    }

    /// The loss recovery of `group` while it is thin.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    #[inline]
    pub fn thin_config(&self, group: u8) -> &ThinConfig {
        self.state.groups.config(group)
    }

    /// Whether `group` is thin now, with the figures that decide it.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn thinness(&self, group: u8) -> Thinness {
        self.state.thinness(group)
    }

    /// The present timeout of `path`, and the reordering tolerated on it.
    #[must_use]
    pub fn path_figures(&self, path: u8) -> PathFigures {
        let reordering = self.loss.reordering(path, &self.state);
        PathFigures { rto: self.state.rto(path), reordering }
    }

    /// Sets the mechanisms of `group` while it is thin, or those of a new group. Returns the group.
    ///
    /// # Errors
    /// With [`MAX_GROUPS`](crate::MAX_GROUPS) groups there is no new one.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn set_thin(&mut self, group: Option<u8>, thin: ThinConfig) -> Result<u8, GroupLimit> {
        let State { groups, statistics, .. } = &mut self.state;
        let set = match group {
            None => groups.add(thin, statistics)?,
            Some(group) => {
                groups.set(group, thin, statistics);
                group
            }
        };
        if self.state.groups.probed != 0 {
            self.state.paths.numbers().for_each(|path| self.probe.enable(path));
        }
        if group.is_some() {
            for path in self.state.paths.numbers() {
                let least = self.probe.least_t3(&self.state, path);
                self.state.renew_t3(path, least);
                self.probe.renew(path, &self.state);
            }
        }
        Ok(set)
    }

    /// Whether `user_bytes` of new data may be sent over `path`, given the data on other paths and the peer's window; see
    /// [`CmtConfig::split_buffer`](crate::CmtConfig::split_buffer) and [`avoid_blocking`](crate::CmtConfig::avoid_blocking).
    #[must_use]
    pub fn may_take(&self, path: u8, user_bytes: u64, peer: PeerWindow) -> bool {
        self.state.may_take(path, user_bytes, peer)
    }

    /// Whether the round-trip time is to be measured by other means where an acknowledgement is ambiguous. The
    /// probe timer learns from those that are not, and needs more only before the first sample, when nothing
    /// but a sample ends the backoff of T3-rtx, and where messages are abandoned (`has_abandoned`): these may be all.
    #[must_use]
    pub fn wants_rtt_sample(&self, has_abandoned: bool) -> bool {
        let State { groups, paths, .. } = &self.state;
        let timer = &paths[paths.data_path()].timer;
        let needs_any = has_abandoned || timer.rtt().srtt().is_none() || timer.backoffs() > 0;
        let wants = |group| {
            let thin = groups.config(group);
            let needs_it = needs_any || thin.probe_timer.is_none();
            thin.sctp.heartbeat_samples && needs_it && self.state.is_thin(group)
        };
        groups.has_mechanisms && (0..groups.count()).any(wants)
    }

    /// Begins a new opportunity to send, with a new allowance of Max.Burst packets. To be called when a
    /// packet has arrived, a timer has expired, or the application has made a call.
    pub fn begin_opportunity(&mut self) {
        let State { paths, config, .. } = &mut self.state;
        paths.iter_mut().for_each(|path| path.renew_burst(config));
    }

    /// Chooses the path of retransmissions, for policies that choose when the packet is sent. To be called before a
    /// packet is built. `draw` returns a random number below its argument, which decides between equals.
    pub fn choose_destination(&mut self, now: Instant, draw: impl FnOnce(u64) -> u64) {
        self.state.choose_destination(now, draw);
    }

    /// The next unit to be sent over `path` before new data, if it may be sent now: one that was declared
    /// lost, or else a delayed copy.
    #[must_use]
    #[inline]
    pub fn next_due(&self, path: u8) -> Option<Next> {
        let permission = Permission::of(self);
        match permission.next_lost(path) {
            Some(unit) => Some(Next::Lost(unit)),
            None => permission.next_copy(path, false).map(Next::DelayedCopy),
        }
    }

    /// Whether a packet that begins with new data of `group` may be sent over `path` now.
    #[must_use]
    #[inline]
    pub fn may_send_new(&self, path: u8, group: u8) -> bool {
        Permission::of(self).may_send_new(path, group)
    }

    /// Abandons units that are not to be sent, or not again (RFC 3758).
    pub fn abandon(&mut self, what: Abandoned<P>) {
        match what {
            Abandoned::Sent(unit) => self.abandon_sent(unit),
            Abandoned::Copy { path, unit } => self.redundancy.drop_copy(path, unit),
            Abandoned::Unsent(payload) => _ = self.state.outstanding.skip(payload),
        }
    }

    fn abandon_sent(&mut self, unit: u64) {
        let Some(abandoned) = self.state.outstanding.abandon(unit) else { return };
        if abandoned.was_lost {
            // Whether it had arrived will never be known.
            let path = abandoned.sent_over;
            self.spurious.iter_mut().for_each(|it| it.mark_unprovable(path));
        }
        self.loss.on_abandoned(unit);
        self.renew_probe(abandoned.path);
        self.state.stop_t3_if_idle(abandoned.path);
        self.state.settle_gates();
    }

    /// Called when the probe of a closed window was refused, and the window is open again: `unit` is retransmitted.
    pub fn on_probe_refused(&mut self, unit: u64, tracer: &mut Tracer<'_>) {
        if self.state.outstanding.end_probe(unit) {
            self.declare_lost(unit, SendCause::WindowProbe, tracer);
            let path = self.state.outstanding.unit(unit).map_or(0, |unit| unit.path);
            self.state.paths[path].gate.open_for_retransmission();
        }
    }

    /// Called when a round trip over `path` was measured by other means than the acknowledgement of data.
    pub fn on_rtt_sample(
        &mut self,
        now: Instant,
        path: u8,
        rtt: Duration,
        source: RttSource,
        tracer: &mut Tracer<'_>,
    ) {
        if source == RttSource::Heartbeat {
            self.probe.on_rtt(path, rtt);
            self.state.note_queueing(now, path, rtt);
        }
        self.on_round_trip(now, path, rtt, tracer);
        if source == RttSource::Heartbeat {
            self.probe.renew(path, &self.state);
        }
    }

    /// Forgets every unit, giving each to `f` in order: the end of the association.
    pub fn drain(&mut self, f: impl FnMut(Unit<P>)) {
        self.state.outstanding.drain(f);
        self.loss.clear();
        self.probe.clear();
        self.redundancy.clear();
        self.plan.clear();
        self.spurious.iter_mut().for_each(|it| it.clear());
        self.state.fast_recovery.forget_beyond_window();
        for path in self.state.paths.iter_mut() {
            path.t3.stop();
            path.gate.close();
            path.window.release(Instant::FAR_FUTURE);
        }
    }

    /// Releases memory that is not in use. To be called when nothing was sent for a while, because duplicate
    /// reports are not understood any more afterwards.
    pub fn release_memory(&mut self) {
        self.state.outstanding.release_memory();
        if self.state.outstanding.is_empty() {
            self.loss.release_memory();
            self.probe.release_memory();
        }
    }
}
